//! OpenMetrics 1.0, as a strict reader takes it: what it only should not be is an error, too.
#![allow(dead_code, reason = "each test program uses a part")]

use std::collections::{BTreeMap, BTreeSet};

/// Metrics of one name.
#[derive(Debug, Default)]
pub struct Family {
    pub name: String,
    pub kind: Option<String>,
    pub unit: Option<String>,
    pub help: Option<String>,
    pub samples: Vec<Sample>,
}

/// A line with a value.
#[derive(Debug)]
pub struct Sample {
    pub name: String,
    /// Names and values, these as they were before they were escaped.
    pub labels: Vec<(String, String)>,
    pub value: f64,
}

impl Sample {
    pub fn label(&self, name: &str) -> Option<&str> {
        let mut labels = self.labels.iter();
        labels.find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The names of its labels, without the one that tells buckets apart.
    pub fn label_names(&self) -> Vec<&str> {
        let names = self.labels.iter().map(|(name, _)| name.as_str());
        names.filter(|name| *name != "le").collect()
    }
}

/// Reads what a scrape gets; says what is wrong with it.
pub fn parse(text: &str) -> Result<Vec<Family>, String> {
    let body = text.strip_suffix("# EOF\n").ok_or("it does not end with # EOF")?;
    let mut families = Vec::new();
    for line in body.split_inclusive('\n') {
        let line = line.strip_suffix('\n').ok_or("the last line has no end")?;
        read_line(&mut families, line).map_err(|error| format!("{error}: {line}"))?;
    }
    for family in &families {
        check(family).map_err(|error| format!("{}: {error}", family.name))?;
    }
    check_names(&families)?;
    Ok(families)
}

fn read_line(families: &mut Vec<Family>, line: &str) -> Result<(), String> {
    if let Some(descriptor) = line.strip_prefix("# ") {
        let parts: Vec<_> = descriptor.splitn(3, ' ').collect();
        let [keyword, name, text] = parts[..] else { return Err("half a descriptor".to_owned()) };
        return describe(families, keyword, name, text);
    }
    let sample = read_sample(line)?;
    let family = families.last_mut().ok_or("a sample of no family")?;
    if !sample_names(family).contains(&sample.name) {
        return Err(format!("a sample among those of {}", family.name));
    }
    family.samples.push(sample);
    Ok(())
}

fn describe(
    families: &mut Vec<Family>,
    keyword: &str,
    name: &str,
    text: &str,
) -> Result<(), String> {
    if families.last().is_none_or(|family| family.name != name) {
        check_name(name)?;
        families.push(Family { name: name.to_owned(), ..Family::default() });
    }
    let family = families.last_mut().ok_or("no family")?;
    let place = match keyword {
        "HELP" => &mut family.help,
        "TYPE" => &mut family.kind,
        "UNIT" => &mut family.unit,
        _ => return Err("an unknown descriptor".to_owned()),
    };
    if !family.samples.is_empty() || place.replace(text.to_owned()).is_some() {
        return Err("a descriptor behind samples, or twice".to_owned());
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), String> {
    let is_inner = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let begins = name.starts_with(|char: char| is_inner(char) && !char.is_ascii_digit());
    if begins && name.chars().all(is_inner) { Ok(()) } else { Err(format!("a name {name:?}")) }
}

fn read_sample(line: &str) -> Result<Sample, String> {
    let (name, rest) = line.split_at(line.find(['{', ' ']).ok_or("no value")?);
    check_name(name)?;
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(labels) => read_labels(labels)?,
        None => (Vec::new(), rest),
    };
    let value = number(rest.strip_prefix(' ').ok_or("no blank before the value")?)?;
    Ok(Sample { name: name.to_owned(), labels, value })
}

type Labels = Vec<(String, String)>;

fn read_labels(mut rest: &str) -> Result<(Labels, &str), String> {
    let mut labels = Labels::new();
    loop {
        let (name, quoted) = rest.split_once("=\"").ok_or("a label without a value")?;
        check_name(name)?;
        if labels.iter().any(|(known, _)| known == name) {
            return Err(format!("two labels {name}"));
        }
        let (value, after) = read_text(quoted)?;
        labels.push((name.to_owned(), value));
        if let Some(end) = after.strip_prefix('}') {
            return Ok((labels, end));
        }
        rest = after.strip_prefix(',').ok_or("no comma between labels")?;
    }
}

fn read_text(quoted: &str) -> Result<(String, &str), String> {
    let mut text = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Ok((text, &quoted[at + 1..])),
            '\\' => text.push(match chars.next() {
                Some((_, 'n')) => '\n',
                Some((_, escaped @ ('\\' | '"'))) => escaped,
                other => return Err(format!("an escape {other:?}")),
            }),
            _ => text.push(char),
        }
    }
    Err("a text without an end".to_owned())
}

fn number(text: &str) -> Result<f64, String> {
    if text == "+Inf" {
        return Ok(f64::INFINITY);
    }
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || b".e+-".contains(&byte));
    let number = text.parse().ok().filter(|_| is_plain);
    number.ok_or_else(|| format!("a number {text:?}"))
}

fn sample_names(family: &Family) -> Vec<String> {
    let suffixes: &[&str] = match family.kind.as_deref() {
        Some("gauge") => &[""],
        Some("counter") => &["_total"],
        Some("histogram") => &["_bucket", "_sum", "_count"],
        _ => &[],
    };
    suffixes.iter().map(|suffix| format!("{}{suffix}", family.name)).collect()
}

fn check(family: &Family) -> Result<(), String> {
    if sample_names(family).is_empty() || family.help.as_ref().is_none_or(String::is_empty) {
        return Err("no known type, or no help".to_owned());
    }
    if family.unit.as_ref().is_some_and(|unit| !family.name.ends_with(&format!("_{unit}"))) {
        return Err(format!("its unit is {:?}", family.unit));
    }
    let mut seen = BTreeSet::new();
    for sample in &family.samples {
        if !seen.insert((&sample.name, sorted(&sample.labels))) {
            return Err(format!("{sample:?} stands twice"));
        }
        if family.kind.as_deref() != Some("gauge") && sample.value < 0.0 {
            return Err(format!("{sample:?} is negative"));
        }
    }
    if family.kind.as_deref() == Some("histogram") { check_histogram(family) } else { Ok(()) }
}

fn sorted(labels: &Labels) -> Labels {
    let mut labels = labels.clone();
    labels.sort();
    labels
}

// Of one set of labels: bounds with their counts, and the count of all.
type Histogram = (Vec<(f64, f64)>, Option<f64>);

fn check_histogram(family: &Family) -> Result<(), String> {
    let mut histograms = BTreeMap::<Labels, Histogram>::new();
    for sample in &family.samples {
        let mut labels = sorted(&sample.labels);
        labels.retain(|(name, _)| name != "le");
        let (buckets, count) = histograms.entry(labels).or_default();
        if sample.name.ends_with("_bucket") {
            let bound = number(sample.label("le").ok_or("a bucket without le")?)?;
            buckets.push((bound, sample.value));
        } else if sample.name.ends_with("_count") {
            *count = Some(sample.value);
        }
    }
    for (labels, (buckets, count)) in histograms {
        let ascend = buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1);
        let last = buckets.last().copied();
        if !ascend || last != count.map(|count| (f64::INFINITY, count)) {
            return Err(format!("{labels:?}: buckets {buckets:?}, count {count:?}"));
        }
    }
    Ok(())
}

// A name leads to one family.
fn check_names(families: &[Family]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for family in families {
        let samples = sample_names(family).into_iter().filter(|name| *name != family.name);
        for name in samples.chain([family.name.clone()]) {
            if !seen.insert(name.clone()) {
                return Err(format!("{name} is of two families"));
            }
        }
    }
    Ok(())
}

#[test]
fn what_is_wrong_is_noticed() {
    let text = |lines: &str| format!("# HELP a A.\n# TYPE a counter\n{lines}# EOF\n");
    assert_eq!(
        parse(&text("a_total{b=\"\\\"\\\\\\n\"} 1\n")).unwrap()[0].samples[0].labels[0].1,
        "\"\\\n"
    );
    for wrong in [
        "a 1\n",
        "a_total -1\n",
        "a_total 1\na_total 1\n",
        "a_total{b=\"c\"}1\n",
        "a_total{b=\"c\",b=\"d\"} 1\n",
        "a_total{b=\"c\\d\"} 1\n",
        "a_total{b=\"c\nd\"} 1\n",
        "a_total 1 2\n",
        "a_total one\n",
        "a_total 1\n# UNIT a a\n",
        "# UNIT a seconds\na_total 1\n",
        "# HELP a B.\na_total 1\n",
        "\n",
        "a_total 1\n# EOF\n",
        "# HELP b B.\n# TYPE b gauge\nb 1\n# HELP a A.\n# TYPE a counter\na_total 1\n",
        "# HELP a_total B.\n# TYPE a_total gauge\na_total 1\n",
        "# HELP h H.\n# TYPE h histogram\nh_sum 1\nh_count 2\nh_bucket{le=\"+Inf\"} 1\n",
        "# HELP h H.\n# TYPE h histogram\nh_sum 1\nh_count 1\nh_bucket{le=\"1.0\"} 1\n",
    ] {
        assert!(parse(&text(wrong)).is_err(), "{wrong}");
    }
    assert!(parse("# HELP a A.\n").is_err());
}
