//! A profile: who allocates how much, and who allocated what lives, worked out from samples.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::names::Names;
use crate::sampling::{LiveSample, Reach, Sampling, Site, float};

pub mod filter;
pub mod folded;
pub mod heap_v2;
pub mod lifetimes;
pub mod pprof;

/// How long ago a block was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Age {
    /// Less than a second.
    #[serde(rename = "0-1s")]
    Second,
    /// Less than ten seconds.
    #[serde(rename = "1-10s")]
    Seconds,
    /// Less than a minute.
    #[serde(rename = "10-60s")]
    Minute,
    /// Less than ten minutes.
    #[serde(rename = "1-10min")]
    Minutes,
    /// Less than an hour.
    #[serde(rename = "10-60min")]
    Hour,
    /// Less than a day.
    #[serde(rename = "1-24h")]
    Day,
    /// Longer.
    #[serde(rename = "1d+")]
    Days,
}

impl Age {
    fn of_ms(ms: u64) -> Self {
        match ms / 1000 {
            0 => Self::Second,
            1..10 => Self::Seconds,
            10..60 => Self::Minute,
            60..600 => Self::Minutes,
            600..3_600 => Self::Hour,
            3_600..86_400 => Self::Day,
            _ => Self::Days,
        }
    }

    /// What people read.
    pub fn text(self) -> &'static str {
        match self {
            Self::Second => "0-1s",
            Self::Seconds => "1-10s",
            Self::Minute => "10-60s",
            Self::Minutes => "1-10min",
            Self::Hour => "10-60min",
            Self::Day => "1-24h",
            Self::Days => "1d+",
        }
    }
}

/// What tells the samples of a profile apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Where the calls stand, innermost first.
    pub calls: Vec<u64>,
    /// Of the epoch.
    pub label: Option<String>,
    /// Of a block; None: blocks of whole units.
    pub class_bytes: Option<u64>,
    /// Id of the epoch, of blocks that live: what was allocated is counted by label.
    pub epoch: Option<u64>,
    /// Of blocks that live.
    pub age: Option<Age>,
}

/// What was allocated so far, and what of it lives.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Amount {
    /// Blocks that were allocated.
    pub alloc_objects: f64,
    /// Their size.
    pub alloc_bytes: f64,
    /// Blocks that live.
    pub objects: f64,
    /// Their size.
    pub bytes: f64,
}

impl Amount {
    /// Both together.
    pub fn add(&mut self, other: Self) {
        self.alloc_objects += other.alloc_objects;
        self.alloc_bytes += other.alloc_bytes;
        self.objects += other.objects;
        self.bytes += other.bytes;
    }

    fn times(self, weight: f64) -> Self {
        Self {
            alloc_objects: self.alloc_objects * weight,
            alloc_bytes: self.alloc_bytes * weight,
            objects: self.objects * weight,
            bytes: self.bytes * weight,
        }
    }
}

/// Equal samples, taken together.
#[derive(Clone, Debug)]
pub struct Sample {
    /// What they have in common.
    pub key: Key,
    /// The samples at `weight_bytes` for which they stand.
    pub sampled: Amount,
    /// How many of them live.
    pub live: u64,
    /// What they stand for.
    pub estimate: Amount,
    /// Of the estimate of the bytes that live, in bytes squared.
    pub variance: f64,
}

/// Which amount is meant where there is room for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// What lives.
    Live,
    /// What was allocated.
    Cumulative,
}

/// What was sampled, by call stack, epoch, class and age.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// Bytes from sample to sample on average; 0: nothing was sampled.
    pub mean_bytes: u64,
    /// The same, of the samples for which these stand (`Sampling`).
    pub weight_bytes: u64,
    /// Blocks that were sampled.
    pub taken: u64,
    /// Of further ones nothing is known.
    pub lost: u64,
    /// What is sampled now.
    pub reach: Reach,
    /// Those of which more lives first.
    pub samples: Vec<Sample>,
    /// Of all calls in them.
    pub names: Names,
}

/// Where the calls stand that a process's samples tell of.
pub fn calls_of(sampling: &Sampling) -> BTreeSet<u64> {
    sampling.sites.iter().flat_map(Site::calls).collect()
}

impl Profile {
    /// `now_ms`: the moment that ages count to.
    pub fn of(sampling: &Sampling, names: Names, now_ms: u64) -> Self {
        let mut samples = BTreeMap::<Key, Sample>::new();
        for site in &sampling.sites {
            add(&mut samples, allocated(sampling, site, &names));
        }
        for live in &sampling.live {
            let site = &sampling.sites[live.site];
            add(&mut samples, living(sampling, site, live, &names, now_ms));
        }
        let mut samples: Vec<_> = samples.into_values().collect();
        samples.retain(|sample| sample.sampled != Amount::default());
        samples.sort_by_key(|sample| {
            let estimate = sample.estimate;
            Reverse((ordered(estimate.bytes), ordered(estimate.alloc_bytes)))
        });
        let Sampling { weight_bytes, taken, lost, .. } = *sampling;
        let mean_bytes = sampling.mean_bytes();
        let reach = sampling.reach();
        Self { mean_bytes, weight_bytes, taken, lost, reach, samples, names }
    }

    /// All that was allocated, and all that lives.
    pub fn total(&self) -> Amount {
        self.samples.iter().fold(Amount::default(), |mut sum, sample| {
            sum.add(sample.estimate);
            sum
        })
    }

    /// How many call stacks there are.
    pub fn stacks(&self) -> usize {
        self.samples.iter().map(|sample| &sample.key.calls).collect::<BTreeSet<_>>().len()
    }

    /// The functions of a stack, innermost first.
    pub fn functions(&self, calls: &[u64]) -> Vec<String> {
        let lines = calls.iter().flat_map(|call| self.names.lines(*call));
        lines.map(|line| line.function).collect()
    }
}

// Amounts are neither negative nor endless: their bits are in their order.
fn ordered(amount: f64) -> u64 {
    amount.to_bits()
}

fn add(samples: &mut BTreeMap<Key, Sample>, sample: Sample) {
    let Sample { key, sampled, live, estimate, variance } = sample;
    let empty = |key| {
        let nothing = Amount::default();
        Sample { key, sampled: nothing, live: 0, estimate: nothing, variance: 0.0 }
    };
    let known = samples.entry(key.clone()).or_insert_with(|| empty(key));
    known.sampled.add(sampled);
    known.live += live;
    known.estimate.add(estimate);
    known.variance += variance;
}

fn key_of(site: &Site, names: &Names) -> Key {
    Key {
        calls: names.user_calls(site),
        label: site.label.clone(),
        class_bytes: site.class_bytes,
        epoch: None,
        age: None,
    }
}

// Blocks of whole units are of several sizes: their mean stands for all of them.
fn allocated(sampling: &Sampling, site: &Site, names: &Names) -> Sample {
    let (objects, bytes) = (float(site.allocations), float(site.bytes));
    let sampled = Amount { alloc_objects: objects, alloc_bytes: bytes, ..Amount::default() };
    let mean_bytes = if site.allocations == 0 { 0.0 } else { bytes / objects };
    let estimate = sampled.times(sampling.weight(mean_bytes));
    Sample { key: key_of(site, names), sampled, live: 0, estimate, variance: 0.0 }
}

fn living(
    sampling: &Sampling,
    site: &Site,
    live: &LiveSample,
    names: &Names,
    now_ms: u64,
) -> Sample {
    let bytes = float(live.bytes);
    let sampled = Amount { objects: 1.0, bytes, ..Amount::default() }.times(float(live.times));
    let age = Age::of_ms(now_ms.saturating_sub(live.sampled_ms));
    let key = Key { epoch: Some(live.epoch), age: Some(age), ..key_of(site, names) };
    let estimate = sampled.times(sampling.weight(bytes));
    Sample { key, sampled, live: 1, estimate, variance: variance(estimate) }
}

// Of one sample that stands for many: each of these was sampled with the chance 1 / objects.
fn variance(estimate: Amount) -> f64 {
    estimate.bytes.powi(2) * (1.0 - 1.0 / estimate.objects)
}

/// What `fixture::add_samples` samples.
#[cfg(test)]
pub fn sampling_of_test() -> Sampling {
    use crate::fixture::{add_samples, sample};
    use crate::segment::Segment;
    let mut image = sample(42, 7);
    add_samples(&mut image);
    let segment = Segment::open(image.bytes()).expect("a file without damage");
    Sampling::read(&segment).expect("a file without damage").expect("samples")
}

/// The same, with names.
#[cfg(test)]
pub fn of_test() -> Profile {
    let names = crate::names::of_test(&[
        (0x1000, "malloc", "malloc.c", 1),
        (0x2000, "handle", "/src/server.c", 88),
        (0x3000, "parse;header", "/src/http.c", 211),
        (0x4000, "copy_name", "/src/user.c", 40),
    ]);
    Profile::of(&sampling_of_test(), names, crate::fixture::TOLD_MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::whole;

    #[test]
    fn samples_are_told_apart_by_stack_epoch_class_and_age() {
        let profile = of_test();
        let lives: Vec<_> = profile.samples.iter().filter(|s| s.key.epoch.is_some()).collect();
        let ages: Vec<_> = lives.iter().map(|sample| sample.key.age.unwrap().text()).collect();
        assert_eq!(ages, ["0-1s", "1-10min", "1-10min", "10-60min"]);
        let upload = lives[1];
        assert_eq!(
            (upload.key.label.as_deref(), upload.key.class_bytes),
            (Some("GET /upload"), Some(128))
        );
        assert_eq!(
            (upload.key.epoch, upload.key.calls.as_slice()),
            (Some(1 << 24 | 7), &[0x2000][..])
        );
        assert_eq!((whole(upload.sampled.objects), whole(upload.sampled.bytes)), (3, 384));
        assert_eq!((whole(upload.estimate.objects), whole(upload.estimate.bytes)), (98, 12_481));
        // Of three samples: about 12,481 / sqrt(3).
        assert_eq!(whole(upload.variance.sqrt() / 10.0), 709);
        let allocated =
            profile.samples.iter().find(|s| s.key.calls == [0x2000] && s.key.age.is_none());
        let allocated = allocated.unwrap();
        assert_eq!((whole(allocated.estimate.alloc_objects), allocated.key.epoch), (650, None));
        assert_eq!((profile.stacks(), profile.taken, profile.lost), (4, 40, 1));
        assert_eq!(
            profile.functions(&[0x2000, 0x3000, 0x5000]),
            ["handle", "parse;header", "0x5000"]
        );
    }

    #[test]
    fn blocks_of_whole_units_stand_for_few() {
        let profile = of_test();
        let large = &profile.samples[0];
        assert_eq!((large.key.class_bytes, large.key.epoch), (None, Some(0)));
        assert_eq!((whole(large.estimate.objects), whole(large.estimate.bytes)), (1, 100_000));
        assert!(large.variance.sqrt() < 1.0, "such a block is always sampled");
        assert_eq!(whole(profile.total().objects), 148);
    }

    #[test]
    fn a_sample_counts_for_those_in_whose_place_it_was_taken() {
        use crate::fixture::{add_samples, sample};
        use crate::segment::Segment;
        let mut image = sample(42, 7);
        add_samples(&mut image);
        image.set_all("samples", 6, &[("times", 5)]);
        let sampling = Sampling::read(&Segment::open(image.bytes()).unwrap()).unwrap().unwrap();
        let profile = Profile::of(&sampling, Names::default(), 0);
        let large = &profile.samples[0];
        assert_eq!((whole(large.sampled.objects), whole(large.sampled.bytes)), (5, 500_000));
        assert_eq!((whole(large.estimate.objects), whole(large.estimate.bytes)), (5, 500_000));
        // One of five that may have been none or ten: by far not as sure as five samples.
        assert_eq!(whole(large.variance.sqrt()), whole(500_000.0 * 0.8_f64.sqrt()));
    }

    #[test]
    fn ages_have_buckets() {
        let ages = [0, 1_000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000];
        let texts: Vec<_> = ages.map(|ms| Age::of_ms(ms).text()).to_vec();
        assert_eq!(texts, ["0-1s", "1-10s", "10-60s", "1-10min", "10-60min", "1-24h", "1d+"]);
        for ms in ages {
            let age = Age::of_ms(ms);
            assert_eq!(serde_json::to_value(age).unwrap(), age.text());
        }
    }

    #[test]
    fn nothing_is_a_profile_too() {
        let profile = Profile::of(&Sampling::default(), Names::default(), 0);
        assert_eq!((profile.stacks(), profile.total()), (0, Amount::default()));
    }
}
