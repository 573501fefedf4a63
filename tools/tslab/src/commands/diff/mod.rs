//! diff: what grew between two looks at a process, by epoch label, size class and call stack.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::{Answer, Setting};
use crate::sampling::float;
use crate::text::{self, Align, Grid};

mod side;

use side::{Estimate, Side, Sites, Sum};

const SHOWN_CALLS: usize = 3;

/// What `diff` is asked.
#[derive(Debug, Args)]
pub struct Arguments {
    /// A process, a statistics file, a folder of `record`, or what `stats --json`, `epochs --json`
    /// or `profile --format json` wrote
    before: String,

    /// The same, later
    after: String,

    /// End with status 1 when something grew
    #[arg(long, value_name = "WHAT")]
    fail_on: Option<FailOn>,

    /// By how much it may grow, in percent of what it was before
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = tolerance)]
    tolerance: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// Something grew beyond the tolerance
    Regression,
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if percent >= 0.0 && percent.is_finite() => Ok(percent),
        _ => Err("a percentage from 0 on is wanted".to_owned()),
    }
}

/// What a difference is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Topic {
    /// The whole process.
    Process,
    /// All epochs with a label; None: those whose label is not known.
    Label(Option<Arc<str>>),
    /// The default epoch's objects of a size class, in bytes, and all slabs of it.
    Class(u64),
    /// What lives of all that a call stack allocated, estimated; functions, innermost first.
    Site(Vec<String>),
}

/// Which of its quantities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Quantity {
    /// Live objects, in bytes.
    LiveBytes,
    /// Live objects.
    Objects,
    /// What is resident of a process; what epochs and slabs hold.
    ResidentBytes,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Difference {
    topic: Topic,
    quantity: Quantity,
    before: u64,
    after: u64,
    /// It grew beyond the tolerance.
    regression: bool,
}

/// Whether call stacks of both sides are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Stacks {
    Compared,
    /// They are, but samples are of a part of what lives.
    Partial,
    /// They are not: one side has none.
    NotSampled,
    /// Functions of one side have no names.
    NotNamed,
    /// Samples of one side are of all, those of the other of a part, or of another part.
    SampledOtherwise,
}

#[derive(Debug, Serialize)]
struct Report {
    tolerance_percent: f64,
    call_stacks: Stacks,
    /// What is known of both sides and not the same, the largest first.
    differences: Vec<Difference>,
    /// How many quantities are known of both sides.
    compared: usize,
    regressions: usize,
}

/// Compares two files.
pub fn run(setting: &Setting, arguments: &Arguments) -> Result<Answer> {
    let read = |target: &str| Side::read(setting, target);
    let (before, after) = (read(&arguments.before)?, read(&arguments.after)?);
    let report = Report::of(&before, &after, arguments.tolerance);
    if report.compared == 0 {
        bail!(
            "{} is {}, and {} is {}: they tell of nothing that could be compared; take both in \
             the same way",
            text::printable(&arguments.before),
            before.form,
            text::printable(&arguments.after),
            after.form
        );
    }
    Ok(Answer {
        output: setting.output(&report, Report::text)?,
        notes: report.notes(before.unsettled || after.unsettled),
        found: arguments.fail_on == Some(FailOn::Regression) && report.regressions > 0,
        failed: false,
    })
}

impl Stacks {
    fn of(before: &Side, after: &Side) -> Self {
        let Some((old, new)) = before.sites.as_ref().zip(after.sites.as_ref()) else {
            return Self::NotSampled;
        };
        let is_process = before.key.is_some() && before.key == after.key;
        let is_named =
            old.are_named && new.are_named || !old.are_named && !new.are_named && is_process;
        match (old.are_partial, new.are_partial) {
            _ if !is_named => Self::NotNamed,
            _ if !is_sampled_alike(old, new, is_process) => Self::SampledOtherwise,
            (false, false) => Self::Compared,
            _ => Self::Partial,
        }
    }

    // Those that are compared.
    fn sites<'a>(self, before: &'a Side, after: &'a Side) -> Option<(&'a Sites, &'a Sites)> {
        let are_compared = matches!(self, Self::Compared | Self::Partial);
        before.sites.as_ref().zip(after.sites.as_ref()).filter(|_| are_compared)
    }

    fn note(self) -> Option<&'static str> {
        match self {
            Self::Compared | Self::NotSampled => None,
            Self::Partial => Some(
                "only a part of what lives was sampled: a stack may be missing, or seem to grow as \
                 sampled blocks replace older ones",
            ),
            Self::NotNamed => Some(
                "call stacks are not compared, since functions of one side have no names: compare \
                 processes that run, folders of `record`, or JSON of `profile`",
            ),
            Self::SampledOtherwise => Some(
                "call stacks are not compared, since not the same was sampled on both sides: \
                 compare looks between which nobody began or ended sampling, as \
                 `tslab profile --seconds 0` takes them",
            ),
        }
    }
}

// In one process nothing may have changed between the looks.
fn is_sampled_alike(old: &Sites, new: &Sites, is_process: bool) -> bool {
    let kind = |sites: &Sites| (sites.reach.map(|(reach, _)| reach), sites.are_partial);
    kind(old) == kind(new) && (!is_process || old.reach == new.reach)
}

// Whether it is more than what chance makes of such samples.
fn is_beyond_chance(before: Estimate, after: Estimate) -> bool {
    let deviation = (before.variance + after.variance).sqrt();
    float(before.live_bytes.abs_diff(after.live_bytes)) > 3.0 * deviation
}

// Whether more than so many percent were added. What was not there before grew without measure.
#[expect(clippy::cast_precision_loss, reason = "a tolerance is no exact number")]
fn grew(before: u64, after: u64, tolerance: f64) -> bool {
    after > before && (after - before) as f64 * 100.0 > before as f64 * tolerance
}

impl Report {
    fn of(before: &Side, after: &Side, tolerance: f64) -> Self {
        let mut all = Vec::new();
        let mut add = |topic: Topic, before: Sum, after: Sum| {
            let pairs = [
                (Quantity::LiveBytes, before.live_bytes, after.live_bytes),
                (Quantity::Objects, before.objects, after.objects),
                (Quantity::ResidentBytes, before.resident_bytes, after.resident_bytes),
            ];
            for (quantity, before, after) in pairs {
                let Some((before, after)) = before.zip(after) else { continue };
                let regression = grew(before, after, tolerance);
                let topic = topic.clone();
                all.push(Difference { topic, quantity, before, after, regression });
            }
        };
        add(Topic::Process, before.process, after.process);
        for (label, before, after) in
            pairs(before.labels.as_ref(), after.labels.as_ref(), Sum::NOTHING)
        {
            add(Topic::Label(label), before, after);
        }
        for (class, before, after) in
            pairs(before.classes.as_ref(), after.classes.as_ref(), Sum::NOTHING)
        {
            add(Topic::Class(class), before, after);
        }
        let call_stacks = Stacks::of(before, after);
        if let Some((old, new)) = call_stacks.sites(before, after) {
            let none = Estimate::default();
            for (stack, old, new) in pairs(Some(&old.by_stack), Some(&new.by_stack), none) {
                let (before, after) = (old.live_bytes, new.live_bytes);
                let regression = is_beyond_chance(old, new) && grew(before, after, tolerance);
                let (topic, quantity) = (Topic::Site(stack), Quantity::LiveBytes);
                all.push(Difference { topic, quantity, before, after, regression });
            }
        }
        let compared = all.len();
        all.retain(|difference| difference.before != difference.after);
        all.sort_by_key(Difference::order);
        let regressions = all.iter().filter(|difference| difference.regression).count();
        Self { tolerance_percent: tolerance, call_stacks, differences: all, compared, regressions }
    }

    fn notes(&self, unsettled: bool) -> Vec<String> {
        let changing =
            "figures were changing while they were read: what came out negative counts as 0";
        let notes = unsettled.then_some(changing).into_iter().chain(self.call_stacks.note());
        notes.map(str::to_owned).collect()
    }

    fn text(&self) -> String {
        if self.differences.is_empty() {
            return format!(
                "no difference in {}\n",
                text::count(Some(self.compared as u64), "figure")
            );
        }
        let mut grid = Grid::new(&[
            ("", Align::Left),
            ("WHAT", Align::Left),
            ("", Align::Left),
            ("BEFORE", Align::Right),
            ("AFTER", Align::Right),
            ("CHANGE", Align::Right),
            ("%", Align::Right),
        ]);
        self.differences.iter().for_each(|difference| grid.row(difference.texts()));
        let grown = text::count(Some(self.regressions as u64), "figure");
        format!("{}{grown} grew by more than {} %\n", grid.render(), self.tolerance_percent)
    }
}

// What is known of both sides; what one of them lacks altogether is 0 there.
fn pairs<K: Ord + Clone, V: Copy>(
    before: Option<&BTreeMap<K, V>>,
    after: Option<&BTreeMap<K, V>>,
    nothing: V,
) -> Vec<(K, V, V)> {
    let (Some(before), Some(after)) = (before, after) else { return Vec::new() };
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let of = |side: &BTreeMap<K, V>, key: &K| side.get(key).copied().unwrap_or(nothing);
    keys.into_iter().map(|key| (key.clone(), of(before, key), of(after, key))).collect()
}

impl Difference {
    // Those that grew too much first, in each of them bytes before objects, the larger first.
    fn order(&self) -> (bool, bool, Reverse<u64>, Topic) {
        let size = self.after.abs_diff(self.before);
        let is_count = self.quantity == Quantity::Objects;
        (!self.regression, is_count, Reverse(size), self.topic.clone())
    }

    fn texts(&self) -> Vec<String> {
        let topic = match &self.topic {
            Topic::Process => "process".to_owned(),
            Topic::Label(label) => text::label(label.as_deref()),
            Topic::Class(bytes) => format!("class {bytes} B"),
            Topic::Site(stack) => stack_text(stack),
        };
        let quantity = match (self.quantity, &self.topic) {
            (Quantity::LiveBytes, _) => "live",
            (Quantity::Objects, _) => "objects",
            (Quantity::ResidentBytes, Topic::Process) => "RSS",
            (Quantity::ResidentBytes, _) => "held",
        };
        let is_count = self.quantity == Quantity::Objects;
        let shown = |value: u64| {
            if is_count { value.to_string() } else { text::bytes(Some(value)) }
        };
        let sign = if self.after > self.before { "+" } else { "-" };
        vec![
            if self.regression { "!" } else { " " }.to_owned(),
            topic,
            quantity.to_owned(),
            shown(self.before),
            shown(self.after),
            format!("{sign}{}", shown(self.after.abs_diff(self.before))),
            self.percent(sign),
        ]
    }

    fn percent(&self, sign: &str) -> String {
        let size = u128::from(self.after.abs_diff(self.before));
        match self.before {
            0 => "new".to_owned(),
            before => format!("{sign}{}", size * 100 / u128::from(before)),
        }
    }
}

// The innermost calls.
fn stack_text(stack: &[String]) -> String {
    let shown: Vec<_> = stack.iter().take(SHOWN_CALLS).map(|call| text::printable(call)).collect();
    let rest = if stack.len() > SHOWN_CALLS { " <- ..." } else { "" };
    shown.join(" <- ") + rest
}

/// The difference between two processes.
#[cfg(test)]
pub(super) fn between(before: &super::Subject, after: &super::Subject) -> String {
    let side = |subject: &super::Subject| Side::of_subject(subject);
    let report = Report::of(&side(before), &side(after), 5.0);
    report.text() + &text::json(&report).expect("JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Image, add_epoch, add_samples, sample};

    fn side(image: &Image) -> Side {
        Side::of_bytes(image.bytes())
    }

    fn report(before: &Image, after: &Image, tolerance: f64) -> Report {
        Report::of(&side(before), &side(after), tolerance)
    }

    #[test]
    fn files_that_tell_the_same_do_not_differ() {
        let report = report(&sample(42, 7), &sample(43, 8), 0.0);
        assert!(report.differences.is_empty() && report.compared > 10);
        assert!(report.text().starts_with("no difference in "));
    }

    #[test]
    fn growth_is_shown_by_label_and_class() {
        let mut after = sample(42, 7);
        after.set_class("epochs", 7, "survivors", 1, 440);
        after.set("epochs", 7, "held_bytes", 65_536);
        after.set_class("bins", 1, "out", 1, 99);
        let report = report(&sample(42, 7), &after, 5.0);
        let expected = "
   WHAT                       BEFORE      AFTER     CHANGE    %
!  \"GET /upload\"  held      48.0 KiB   64.0 KiB  +16.0 KiB  +33
!  \"GET /upload\"  live      46.8 KiB   59.3 KiB  +12.5 KiB  +26
!  class 128 B    live      58.9 KiB   71.3 KiB  +12.4 KiB  +21
!  \"GET /upload\"  objects        357        457       +100  +28
!  process        objects        809        908        +99  +12
!  class 128 B    objects        471        570        +99  +21
   process        live     409.7 KiB  422.1 KiB  +12.4 KiB   +3
   \"default\"      live     211.7 KiB  211.6 KiB     -128 B   -0
   \"default\"      objects        133        132         -1   -0
6 figures grew by more than 5 %
";
        assert_eq!(format!("\n{}", report.text()), expected);
    }

    // Of one stack so many samples of blocks live that each stand for as many others.
    fn sampled(samples: usize, times: u64) -> Side {
        let mut image = sample(42, 7);
        add_samples(&mut image);
        for row in 6..6 + samples {
            let fields = [("site", 4), ("bytes", 100_000), ("times", times)];
            image.set_all("samples", row, &fields);
        }
        side(&image)
    }

    fn grown_sites(before: &Side, after: &Side) -> Vec<Difference> {
        let mut report = Report::of(before, after, 5.0);
        report.differences.retain(|difference| matches!(difference.topic, Topic::Site(_)));
        report.differences
    }

    #[test]
    fn call_stacks_that_grew_beyond_chance_are_named() {
        let sites = grown_sites(&sampled(1, 1), &sampled(10, 2));
        assert_eq!(sites.len(), 1, "{sites:?}");
        assert!(sites[0].regression && sites[0].after - sites[0].before == 1_900_000);
        let shown = stack_text(&["a\n".into(), "b".into(), "c".into(), "d".into()]);
        assert_eq!(shown, "a\\n <- b <- c <- ...");
        let notes = |after| Report::of(&sampled(1, 1), &after, 5.0).notes(false);
        assert!(notes(sampled(2, 1)).is_empty());
        let other = || Side { key: Some((43, 7)), ..sampled(2, 1) };
        assert!(grown_sites(&sampled(1, 1), &other()).is_empty());
        assert!(notes(other())[0].contains("have no names"));
    }

    // What the process says of its sampling, and whether functions have names.
    fn told(told: &[(&str, u64)], are_named: bool) -> Side {
        let mut image = sample(42, 7);
        add_samples(&mut image);
        image.set_all("process", 0, told);
        let mut side = side(&image);
        side.sites.as_mut().unwrap().are_named |= are_named;
        side
    }

    #[test]
    fn samples_of_a_part_are_compared_with_those_of_the_same_part() {
        let watched =
            |since_ms| told(&[("watch_bytes", 4096), ("sampling_since_ms", since_ms)], true);
        let all = |since_ms| told(&[("sample_bytes", 4096), ("sampling_since_ms", since_ms)], true);
        let other = |side| Side { key: Some((43, 7)), ..side };
        let stacks = |before: &Side, after: &Side| Stacks::of(before, after);
        assert_eq!(stacks(&all(0), &all(0)), Stacks::Compared);
        assert_eq!(stacks(&watched(5), &watched(5)), Stacks::Partial);
        assert_eq!(stacks(&all(5), &all(5)), Stacks::Partial);
        assert_eq!(stacks(&watched(5), &other(watched(7))), Stacks::Partial);
        for key in [Some((42, 8)), None] {
            let started_later = Side { key, ..watched(7) };
            assert_eq!(stacks(&watched(5), &started_later), Stacks::Partial);
        }
        let of_nobody = || Side { key: None, ..watched(5) };
        assert_eq!(stacks(&of_nobody(), &of_nobody()), Stacks::Partial);
        let different = [(watched(5), all(7)), (watched(5), watched(7)), (all(0), other(all(5)))];
        for (before, after) in &different {
            assert_eq!(stacks(before, after), Stacks::SampledOtherwise);
            assert!(grown_sites(before, after).is_empty());
        }
        let report = Report::of(&watched(5), &watched(5), 5.0);
        assert!(report.notes(false)[0].starts_with("only a part of what lives was sampled"));
        assert!(text::json(&report).unwrap().contains(r#""call_stacks": "partial""#));
        let report = Report::of(&watched(5), &all(7), 5.0);
        let note = &report.notes(true)[1];
        assert!(note.contains("not the same was sampled") && note.contains("--seconds 0"));
        assert!(text::json(&report).unwrap().contains(r#""call_stacks": "sampled_otherwise""#));
    }

    #[test]
    fn few_samples_that_stand_for_many_may_be_chance() {
        let sites = grown_sites(&sampled(1, 1), &sampled(1, 40));
        assert!(!sites[0].regression && sites[0].after == 4_000_000, "{sites:?}");
        assert!(grown_sites(&sampled(1, 1), &sampled(2, 1))[0].regression, "each is sampled");
    }

    #[test]
    fn the_tolerance_is_what_may_be_added() {
        assert!(!grew(100, 105, 5.0) && grew(100, 106, 5.0));
        assert!(!grew(100, 100, 0.0) && grew(100, 101, 0.0) && !grew(100, 99, 0.0));
        assert!(grew(0, 1, 1e9) && !grew(0, 0, 0.0));
        assert!(grew(1, u64::MAX, 5.0) && !grew(u64::MAX, 1, 5.0));
    }

    #[test]
    fn what_appeared_was_nothing_before_and_what_is_gone_shrank() {
        let mut after = sample(42, 7);
        add_epoch(&mut after, 2, "new", &[("held_bytes", 4096)]);
        let appeared = report(&sample(42, 7), &after, 50.0);
        let topic = Topic::Label(Some("new".into()));
        let difference = &appeared.differences[0];
        assert_eq!((&difference.topic, difference.before, difference.after), (&topic, 0, 4096));
        assert!(difference.regression && appeared.text().contains("new\n"));
        let gone = report(&after, &sample(42, 7), 0.0);
        assert_eq!((gone.regressions, gone.differences.len()), (0, 1));
    }

    #[test]
    fn percentages_are_checked() {
        assert_eq!(tolerance("0"), Ok(0.0));
        assert_eq!(tolerance("12.5"), Ok(12.5));
        for text in ["-1", "nan", "inf", "x", ""] {
            assert!(tolerance(text).is_err(), "{text}");
        }
    }
}
