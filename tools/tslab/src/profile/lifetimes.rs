//! How long blocks lived, and how old those are that live, by who allocated them: which are
//! temporaries, which stay.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Key, Profile, key_of};
use crate::decades::{self, Decades};
use crate::names::Names;
use crate::sampling::{LiveSample, Sampling, Site, float, whole};
use crate::symbols::Line;
use crate::text::{self, Align, Grid};

// Of a stack in a row of the table.
const SHOWN_CALLS: usize = 4;

/// What is known of blocks that were freed, or that live: estimates.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Blocks {
    /// How many.
    pub objects: f64,
    /// Their size.
    pub bytes: f64,
    /// How many of them lived for less than 10 ms: those that were freed were temporaries.
    pub short_objects: f64,
    /// The same of each decade; None: there are none, or the library does not tell.
    pub by_decade: Option<Decades>,
    /// How long they lived, or have lived so far, added up.
    pub lived_ms: f64,
}

impl Blocks {
    /// Both together.
    pub fn add(&mut self, other: Self) {
        self.objects += other.objects;
        self.bytes += other.bytes;
        self.short_objects += other.short_objects;
        self.lived_ms += other.lived_ms;
        match (&mut self.by_decade, other.by_decade) {
            (Some(sum), Some(more)) => sum.add(more),
            (sum, more) => *sum = sum.or(more),
        }
    }

    /// How long a block lived on average; None: there are none.
    pub fn mean_ms(&self) -> Option<u64> {
        (self.objects > 0.0).then(|| whole(self.lived_ms / self.objects))
    }

    /// The share of those that lived for less than 10 ms; None: there are none.
    pub fn short_percent(&self) -> Option<u64> {
        (self.objects > 0.0).then(|| percent(self.short_objects, self.objects))
    }
}

/// Blocks of one call stack, label and class.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lives {
    /// Those that were freed.
    pub freed: Blocks,
    /// Those that live.
    pub live: Blocks,
}

impl Lives {
    /// Both together.
    pub fn add(&mut self, other: Self) {
        self.freed.add(other.freed);
        self.live.add(other.live);
    }

    /// Those with most temporaries come first.
    pub fn order(&self) -> impl Ord + use<> {
        let Self { freed, live } = self;
        Reverse((whole(freed.short_objects), whole(freed.objects), whole(live.objects)))
    }
}

/// All of which a block was freed or lives, in their order. None in files of libraries that do not
/// tell. `now_ms`: the moment that ages count to.
pub fn of(sampling: &Sampling, names: &Names, now_ms: u64) -> Vec<(Key, Lives)> {
    let mut sites = BTreeMap::<Key, Lives>::new();
    for (site, live) in sampling.sites.iter().zip(living_by_site(sampling, now_ms)) {
        let freed = freed(sampling, site).unwrap_or_default();
        if site.ended.is_some() && freed.objects + live.objects > 0.0 {
            sites.entry(key_of(site, names)).or_default().add(Lives { freed, live });
        }
    }
    let mut lifetimes: Vec<_> = sites.into_iter().collect();
    lifetimes.sort_by_key(|(_, lives)| lives.order());
    lifetimes
}

fn freed(sampling: &Sampling, site: &Site) -> Option<Blocks> {
    let ended = site.ended.filter(|ended| ended.frees > 0 && site.allocations > 0)?;
    let bytes = float(site.bytes) / float(site.allocations);
    let weight = sampling.weight(bytes);
    let objects = float(ended.frees) * weight;
    let weighed = |frees: u64| float(frees) * weight;
    Some(Blocks {
        objects,
        bytes: objects * bytes,
        short_objects: weighed(ended.short_frees.min(ended.frees)),
        by_decade: ended.by_decade.map(|frees| Decades(frees.map(weighed))),
        lived_ms: weighed(ended.lifetime_ms),
    })
}

fn living_by_site(sampling: &Sampling, now_ms: u64) -> Vec<Blocks> {
    let mut sums = vec![Blocks::default(); sampling.sites.len()];
    for sample in &sampling.live {
        sums[sample.site].add(living(sampling, sample, now_ms));
    }
    sums
}

fn living(sampling: &Sampling, sample: &LiveSample, now_ms: u64) -> Blocks {
    let (objects, age_ms) = (sampling.objects(sample), now_ms.saturating_sub(sample.sampled_ms));
    let by_decade = Decades::of_ms(age_ms, objects);
    Blocks {
        objects,
        bytes: objects * float(sample.bytes),
        short_objects: by_decade.0[0],
        by_decade: Some(by_decade),
        lived_ms: objects * float(age_ms),
    }
}

/// A table for people, of lifetimes in `sampling` with the names of its profile: two rows for those
/// of which blocks were freed and others live. `now_ms`: the moment that ages count to.
pub fn text(sampling: &Sampling, profile: &Profile, now_ms: u64) -> String {
    let mut columns = vec![("", Align::Left), ("OBJECTS", Align::Right), ("BYTES", Align::Right)];
    columns.extend(decades::NAMES.map(|name| (name, Align::Right)));
    columns.extend([("MEDIAN", Align::Right), ("MEAN", Align::Right), ("CLASS", Align::Right)]);
    columns.extend([("LABEL", Align::Left), ("STACK", Align::Left)]);
    let mut grid = Grid::new(&columns);
    for (key, Lives { freed, live }) in of(sampling, &profile.names, now_ms) {
        for (name, blocks) in [("freed", freed), ("live", live)] {
            if blocks.objects > 0.0 {
                grid.row([vec![name.to_owned()], figures(&blocks), whose(profile, &key)].concat());
            }
        }
    }
    grid.render()
}

fn figures(blocks: &Blocks) -> Vec<String> {
    let mut texts = vec![whole(blocks.objects).to_string(), text::bytes(Some(whole(blocks.bytes)))];
    texts.extend(shares(blocks));
    texts.push(median(blocks));
    texts.push(blocks.mean_ms().map_or_else(String::new, lived));
    texts
}

// Blank where there are none.
fn shares(blocks: &Blocks) -> Vec<String> {
    let Some(Decades(decades)) = blocks.by_decade else {
        let mut shares = vec![text::NOT_KNOWN.to_owned(); decades::COUNT];
        shares[0] = share(blocks.short_objects, blocks.objects);
        return shares;
    };
    let sum = decades.iter().sum();
    decades.iter().map(|&objects| share(objects, sum)).collect()
}

fn share(part: f64, all: f64) -> String {
    if part > 0.0 { format!("{} %", percent(part, all)) } else { String::new() }
}

fn percent(part: f64, all: f64) -> u64 {
    whole(100.0 * part / all)
}

// A bound, as more is not known.
fn median(blocks: &Blocks) -> String {
    let Some(decades) = blocks.by_decade else { return text::NOT_KNOWN.to_owned() };
    let Some(decade) = decades.median() else { return String::new() };
    match decades::end_ms(decade) {
        Some(ms) if ms < 1000 => format!("< {ms} ms"),
        Some(ms) => format!("< {} s", ms / 1000),
        None => decades::NAMES[decade].to_owned(),
    }
}

fn whose(profile: &Profile, key: &Key) -> Vec<String> {
    let lines = key.calls.iter().flat_map(|call| profile.names.lines(*call));
    let shown: Vec<_> = lines.take(SHOWN_CALLS).map(|line| call_text(&line)).collect();
    let class = key.class_bytes.map_or_else(|| "large".to_owned(), |bytes| format!("{bytes} B"));
    let label = key.label.as_deref().map_or_else(String::new, |label| text::label(Some(label)));
    vec![class, label, shown.join(" <- ")]
}

// The same function may allocate in several places.
fn call_text(line: &Line) -> String {
    let place = text::place(line.file.as_deref(), line.number);
    format!("{} {place}", text::printable(&line.function)).trim_end().to_owned()
}

fn lived(ms: u64) -> String {
    if ms < 1000 { format!("{ms} ms") } else { text::age(Some(ms)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::TOLD_MS;
    use crate::profile::{of_test, sampling_of_test};
    use crate::sampling::Ended;

    fn table(sampling: &Sampling) -> Vec<String> {
        text(sampling, &of_test(), TOLD_MS).lines().map(str::to_owned).collect()
    }

    fn words(line: &str) -> Vec<&str> {
        line.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect()
    }

    #[test]
    fn sites_with_most_temporaries_come_first() {
        let lines = table(&sampling_of_test());
        let columns = [
            "OBJECTS",
            "BYTES",
            "0-10ms",
            "10-100ms",
            "0.1-1s",
            "1-10s",
            "10-100s",
            "100-1000s",
            "1000s+",
            "MEDIAN",
            "MEAN",
            "CLASS",
            "LABEL",
            "STACK",
        ];
        assert_eq!(words(&lines[0]), columns);
        let freed = ["freed", "553", "69.1 KiB", "71 %", "18 %", "12 %", "< 10 ms", "40 ms"];
        let upload = ["128 B", "\"GET /upload\"", "handle server.c:88"];
        assert_eq!(words(&lines[1]), [&freed[..], &upload[..]].concat());
        let live = ["live", "98", "12.2 KiB", "100 %", "< 100 s", "61 s"];
        assert_eq!(words(&lines[2]), [&live[..], &upload[..]].concat());
        let column = |line: &str, word| line.find(word).map(|at| at + str::len(word));
        assert_eq!(column(&lines[1], "71 %"), column(&lines[0], "0-10ms"));
        assert_eq!(column(&lines[2], "100 %"), column(&lines[0], "  10-100s"));
        let large = ["freed", "1", "97.7 KiB", "100 %", "1000s+", "16 min", "large"];
        assert_eq!(words(&lines[3])[..large.len()], large);
        let kinds = lines[4..].iter().map(|line| words(line)[0]);
        assert!(kinds.eq(["live"; 3]), "of the others nothing was freed");
    }

    #[test]
    fn older_libraries_tell_of_temporaries_alone() {
        let mut sampling = sampling_of_test();
        for ended in sampling.sites.iter_mut().filter_map(|site| site.ended.as_mut()) {
            ended.by_decade = None;
        }
        let lines = table(&sampling);
        let freed =
            ["freed", "553", "69.1 KiB", "71 %", "?", "?", "?", "?", "?", "?", "?", "40 ms"];
        assert_eq!(words(&lines[1])[..freed.len()], freed);
        assert_eq!(words(&lines[2])[..4], ["live", "98", "12.2 KiB", "100 %"]);
    }

    #[test]
    fn a_mean_of_two_kinds_of_blocks_is_told_apart() {
        let by_decade = Some([51, 0, 0, 0, 0, 49, 0]);
        let ended = Ended { frees: 100, short_frees: 51, by_decade, lifetime_ms: 30_000_000 };
        let site =
            Site { allocations: 100, bytes: 100 << 30, ended: Some(ended), ..Site::default() };
        let lines = table(&Sampling { sites: vec![site], ..Sampling::default() });
        let words = words(&lines[1]);
        assert_eq!(words[3..7], ["51 %", "49 %", "< 10 ms", "5 min"]);
        assert_eq!(lines.len(), 2, "none of them lives");
    }

    #[test]
    fn equal_stacks_are_added_up() {
        let site = |frees, short_frees| Site {
            frames: vec![0x2001],
            allocations: 10,
            bytes: 1 << 30,
            ended: Some(Ended { frees, short_frees, by_decade: None, lifetime_ms: 100 * frees }),
            ..Site::default()
        };
        let sites = vec![site(1, 1), site(3, 0), site(0, 0)];
        let live = |site, sampled_ms| LiveSample {
            site,
            sampled_ms,
            times: 1,
            bytes: 1 << 30,
            address: 0,
            epoch: 0,
        };
        let live = vec![live(0, 9_990), live(2, 4_000), live(2, 9_000)];
        let sampling = Sampling { weight_bytes: 4096, sites, live, ..Sampling::default() };
        let found = of(&sampling, &Names::default(), 10_000);
        let [(_, Lives { freed, live })] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((freed.mean_ms(), freed.short_percent()), (Some(100), Some(25)));
        assert_eq!(whole(freed.objects), 4);
        assert_eq!(live.mean_ms(), Some((10 + 6_000 + 1_000) / 3 + 1));
        let ages = live.by_decade.unwrap().0.map(whole);
        assert_eq!(ages, [0, 1, 0, 2, 0, 0, 0]);
    }

    #[test]
    fn older_libraries_do_not_tell() {
        let sites = vec![Site { allocations: 1, bytes: 1, ..Site::default() }];
        let live = vec![LiveSample { site: 0, ..sampling_of_test().live[0] }];
        let sampling = Sampling { sites, live, ..Sampling::default() };
        assert!(of(&sampling, &Names::default(), 0).is_empty());
    }
}
