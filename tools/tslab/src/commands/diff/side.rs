//! One of the two things that are compared, from whichever form it comes in.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::commands::{Setting, Subject, profile};
use crate::held::{self, Holder};
use crate::host;
use crate::recorded::Recorded;
use crate::sampling::{CELL_BYTES, Reach, Sampling, float, whole};
use crate::segment::Source;
use crate::snapshot::Class;
use crate::text;

const MAGIC: &[u8] = b"tslabst";

// More than a process with all epochs that there is room for writes.
const MOST_JSON_BYTES: u64 = 1 << 30;

/// What is compared of something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Live objects, in bytes.
    pub live_bytes: Option<u64>,
    /// Live objects.
    pub objects: Option<u64>,
    /// What they make resident, in bytes: of a process RSS, of others what they hold.
    pub resident_bytes: Option<u64>,
}

impl Sum {
    /// Of what is not there.
    pub const NOTHING: Self =
        Self { live_bytes: Some(0), objects: Some(0), resident_bytes: Some(0) };

    fn add(&mut self, other: Self) {
        let plus = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        self.live_bytes = plus(self.live_bytes, other.live_bytes);
        self.objects = plus(self.objects, other.objects);
        self.resident_bytes = plus(self.resident_bytes, other.resident_bytes);
    }
}

/// By label of epochs; None: those whose label is not known.
pub type ByLabel<T> = BTreeMap<Option<Arc<str>>, T>;

/// What is known of a process at one moment.
#[derive(Debug)]
pub struct Side {
    /// Where it comes from, as people call it.
    pub form: &'static str,
    /// This form may have samples.
    pub may_be_sampled: bool,
    /// Of the whole process.
    pub process: Sum,
    /// By label of epochs; None: not known.
    pub labels: Option<ByLabel<Sum>>,
    /// Pages of cells that live samples of size classes lie in, apart from other blocks; None: not
    /// known.
    pub sample_pages: Option<ByLabel<u64>>,
    /// By bytes of size classes; None: not known.
    pub classes: Option<BTreeMap<u64, Sum>>,
    /// Who allocated what lives; None: nothing was sampled.
    pub sites: Option<Sites>,
    /// The process; None: not known.
    pub key: Option<Key>,
    /// Some of it was changing while it was read.
    pub unsettled: bool,
}

/// Number and start of a process: in two containers, two processes may have the same number.
pub type Key = (u32, u64);

/// Label of epochs and bytes of a size class, which begin to be sampled together. None: a label
/// that is not known, or blocks of whole units.
pub type Kind = (Option<Arc<str>>, Option<u64>);

/// What lives, by who allocated it.
#[derive(Debug, Default)]
pub struct Sites {
    /// By functions, innermost first, and then by label and class.
    pub by_stack: BTreeMap<Vec<String>, BTreeMap<Kind, Estimate>>,
    /// Labels and classes of which a block was sampled, whether it lives or not.
    pub sampled: BTreeSet<Kind>,
    /// Functions have names; otherwise their addresses stand for them.
    pub are_named: bool,
    /// What is sampled, and since when: `Sampling::since_ms`.
    pub reach: Option<(Reach, u64)>,
    /// They are of a part of what lives.
    pub are_partial: bool,
}

/// Bytes that live, as far as samples tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// How many.
    pub live_bytes: u64,
    /// In bytes squared.
    pub variance: f64,
}

impl Estimate {
    /// Adds another one, of other blocks.
    pub fn add(&mut self, other: Self) {
        self.live_bytes = self.live_bytes.saturating_add(other.live_bytes);
        self.variance += other.variance;
    }
}

impl Sites {
    fn of(
        sampling: &Sampling,
        samples: impl Iterator<Item = (Vec<String>, Kind, Estimate)>,
    ) -> Self {
        let mut sites = Self {
            reach: Some((sampling.reach(), sampling.since_ms)),
            are_partial: sampling.is_partial(),
            ..Self::default()
        };
        for (stack, kind, estimate) in samples {
            sites.sampled.insert(kind.clone());
            if estimate.live_bytes == 0 {
                continue;
            }
            sites.are_named |= stack.iter().any(|function| !function.starts_with("0x"));
            sites.by_stack.entry(stack).or_default().entry(kind).or_default().add(estimate);
        }
        sites
    }
}

// What `stats --json`, `epochs --json` and `profile --format json` write, as far as it is compared.
#[derive(Deserialize)]
struct Written {
    pid: Option<u32>,
    start_ticks: Option<u64>,
    #[serde(flatten)]
    sampling: WrittenSampling,
    samples: Option<Vec<WrittenSample>>,
    rss_bytes: Option<u64>,
    totals: Option<WrittenTotals>,
    classes: Option<Vec<WrittenClass>>,
    epochs: Option<Vec<WrittenEpoch>>,
}

#[derive(Deserialize)]
struct WrittenSampling {
    sample_bytes: Option<u64>,
    watch_bytes: Option<u64>,
    sampling_since_ms: Option<u64>,
    weight_bytes: Option<u64>,
}

#[derive(Deserialize)]
struct WrittenTotals {
    live_objects: Option<u64>,
    live_bytes: Option<u64>,
    #[serde(default)]
    unsettled: bool,
}

#[derive(Deserialize)]
struct WrittenClass {
    bytes: Option<u64>,
    slab_bytes: Option<u64>,
    live: Option<u64>,
    slabs: Option<u64>,
}

#[derive(Deserialize)]
struct WrittenEpoch {
    epoch: u64,
    parent: Option<u64>,
    label: Option<Arc<str>>,
    live: WrittenLive,
    held_bytes: Option<u64>,
}

#[derive(Deserialize)]
struct WrittenSample {
    stack: Vec<String>,
    epoch: Option<Arc<str>>,
    class_bytes: Option<u64>,
    bytes: u64,
    deviation_bytes: u64,
}

#[derive(Deserialize)]
struct WrittenLive {
    objects: Option<u64>,
    bytes: Option<u64>,
    #[serde(default)]
    unsettled: bool,
}

impl WrittenSampling {
    fn understood(&self) -> Sampling {
        Sampling {
            sample_bytes: self.sample_bytes.unwrap_or_default(),
            watch_bytes: self.watch_bytes.unwrap_or_default(),
            since_ms: self.sampling_since_ms.unwrap_or_default(),
            weight_bytes: self.weight_bytes.unwrap_or_default(),
            ..Sampling::default()
        }
    }
}

impl Side {
    /// Reads what a process tells, a copy of it, or JSON of this command.
    pub fn read(setting: &Setting, target: &str) -> Result<Self> {
        let path = Path::new(target);
        let is_number = !target.is_empty() && target.bytes().all(|byte| byte.is_ascii_digit());
        if is_number || Recorded::at(path).is_some() {
            return Ok(Self::of_subject(&Subject::find(setting, target)?));
        }
        Self::of_path(path).with_context(|| format!("cannot read {}", text::printable(target)))
    }

    fn of_path(path: &Path) -> Result<Self> {
        let file = host::open(path, true)?;
        let mut magic = [0; MAGIC.len()];
        let is_statistics = Source::read_exact_at(&file, &mut magic, 0).is_ok() && magic == *MAGIC;
        if is_statistics {
            let subject = Subject::of_file(file, path, None)?;
            return Ok(Self::of_subject(&subject));
        }
        let mut json = Vec::new();
        let read = file.take(MOST_JSON_BYTES).read_to_end(&mut json)?;
        if read == 0 {
            bail!("it is empty: did the command that should write it fail?");
        }
        Self::of_json(&json)
    }

    fn of_json(json: &[u8]) -> Result<Self> {
        let written: Written = serde_json::from_slice(json).map_err(|error| {
            anyhow::anyhow!(
                "it is neither a statistics file nor JSON of this command ({error}): write it \
                 with `tslab stats --json PID` or `tslab epochs --json PID`"
            )
        })?;
        let key = written.pid.zip(written.start_ticks);
        let side = match written {
            Written { epochs: Some(epochs), .. } => Self::of_epochs(&epochs),
            Written { totals: Some(totals), classes: Some(classes), rss_bytes, .. } => {
                Self::of_stats(&totals, &classes, rss_bytes)
            }
            Written { samples: Some(samples), sampling, .. } => {
                Self::of_samples(samples, &sampling.understood())
            }
            _ => bail!(
                "it is JSON without epochs, totals or samples: write it with `tslab stats --json \
                 PID` or `tslab epochs --json PID`"
            ),
        };
        Ok(Self { key, ..side })
    }

    fn of_samples(samples: Vec<WrittenSample>, sampling: &Sampling) -> Self {
        let samples = samples.into_iter().map(|sample| {
            let variance = float(sample.deviation_bytes).powi(2);
            let kind = (sample.epoch, sample.class_bytes);
            (sample.stack, kind, Estimate { live_bytes: sample.bytes, variance })
        });
        Self {
            form: "JSON of `profile`",
            may_be_sampled: true,
            process: Sum::default(),
            labels: None,
            sample_pages: None,
            classes: None,
            sites: (sampling.weight_bytes > 0).then(|| Sites::of(sampling, samples)),
            key: None,
            unsettled: false,
        }
    }

    fn of_epochs(epochs: &[WrittenEpoch]) -> Self {
        Self {
            form: "JSON of `epochs`",
            may_be_sampled: false,
            process: Sum::default(),
            labels: Some(labels(epochs)),
            sample_pages: None,
            classes: None,
            sites: None,
            key: None,
            unsettled: epochs.iter().any(|epoch| epoch.live.unsettled),
        }
    }

    fn of_stats(totals: &WrittenTotals, classes: &[WrittenClass], rss: Option<u64>) -> Self {
        Self {
            form: "JSON of `stats`",
            may_be_sampled: false,
            process: Sum {
                live_bytes: totals.live_bytes,
                objects: totals.live_objects,
                resident_bytes: rss,
            },
            labels: None,
            sample_pages: None,
            classes: Some(by_class(classes)),
            sites: None,
            key: None,
            unsettled: totals.unsettled,
        }
    }

    /// Of a process whose file was read.
    pub fn of_subject(subject: &Subject) -> Self {
        let snapshot = &subject.snapshot;
        let totals = snapshot.totals();
        let epoch = |epoch: &crate::snapshot::Epoch| WrittenEpoch {
            epoch: epoch.row,
            parent: epoch.parent,
            label: epoch.label.clone(),
            live: WrittenLive {
                objects: epoch.live.objects,
                bytes: epoch.live.bytes,
                unsettled: epoch.live.unsettled,
            },
            held_bytes: epoch.held_bytes,
        };
        let class = |class: &Class| WrittenClass {
            bytes: class.bytes,
            slab_bytes: class.slab_bytes,
            live: class.live,
            slabs: class.slabs,
        };
        let epochs: Vec<_> = snapshot.epochs.iter().map(epoch).collect();
        let classes: Vec<_> = snapshot.classes.iter().map(class).collect();
        let (live_bytes, objects) = (totals.live_bytes, totals.live_objects);
        Self {
            form: "a statistics file",
            may_be_sampled: true,
            process: Sum { live_bytes, objects, resident_bytes: subject.rss_bytes },
            labels: Some(labels(&epochs)),
            sample_pages: sample_pages(subject),
            classes: Some(by_class(&classes)),
            sites: sites(subject),
            // As JSON has it.
            key: Some((subject.pid, snapshot.header.start_ticks)),
            unsettled: totals.unsettled,
        }
    }
}

#[cfg(test)]
impl Side {
    /// Of a statistics file.
    pub fn of_bytes(bytes: Vec<u8>) -> Self {
        Self::of_subject(&Subject::of_bytes(bytes))
    }
}

fn sites(subject: &Subject) -> Option<Sites> {
    let sampling = subject.snapshot.sampling.as_ref()?;
    let profile = subject.snapshot.has_samples().then(|| profile::of_subject(subject))?;
    let samples = profile.samples.iter().map(|sample| {
        let (live_bytes, variance) = (whole(sample.estimate.bytes), sample.variance);
        let kind = (sample.key.label.as_deref().map(Arc::from), sample.key.class_bytes);
        (profile.functions(&sample.key.calls), kind, Estimate { live_bytes, variance })
    });
    Some(Sites::of(sampling, samples))
}

// Several may lie in one page.
fn sample_pages(subject: &Subject) -> Option<ByLabel<u64>> {
    let sampling = subject.snapshot.sampling.as_ref()?;
    let mut pages = BTreeMap::<Option<Arc<str>>, BTreeSet<u64>>::new();
    for (site, sample) in sampling.live_sites().zip(&sampling.live) {
        if site.class_bytes.is_none() {
            continue;
        }
        let of_label = pages.entry(site.label.as_deref().map(Arc::from)).or_default();
        of_label.insert(sample.address / CELL_BYTES);
    }
    Some(pages.into_iter().map(|(label, pages)| (label, pages.len() as u64)).collect())
}

fn labels(epochs: &[WrittenEpoch]) -> ByLabel<Sum> {
    let holder = |epoch: &WrittenEpoch| {
        let (row, parent, held_bytes) = (epoch.epoch, epoch.parent, epoch.held_bytes);
        Holder { row, parent, held_bytes }
    };
    let own = held::own(&epochs.iter().map(holder).collect::<Vec<_>>());
    let mut labels = BTreeMap::new();
    for (epoch, own_bytes) in epochs.iter().zip(own) {
        let sum = labels.entry(epoch.label.clone()).or_insert(Sum::NOTHING);
        sum.add(Sum {
            live_bytes: epoch.live.bytes,
            objects: epoch.live.objects,
            resident_bytes: own_bytes,
        });
    }
    labels
}

fn by_class(classes: &[WrittenClass]) -> BTreeMap<u64, Sum> {
    let mut by_class = BTreeMap::new();
    for class in classes {
        let Some(bytes) = class.bytes else { continue };
        let times = |count: Option<u64>, each: Option<u64>| Some(count?.saturating_mul(each?));
        let sum = Sum {
            live_bytes: times(class.live, class.bytes),
            objects: class.live,
            resident_bytes: times(class.slabs, class.slab_bytes),
        };
        by_class.insert(bytes, sum);
    }
    by_class
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{add_samples, sample};

    #[test]
    fn call_stacks_of_a_file_and_of_a_profile_are_the_same() {
        let mut image = sample(42, 7);
        add_samples(&mut image);
        image.set_all("process", 0, &[("watch_bytes", 4096), ("sampling_since_ms", 5)]);
        let subject = Subject::of_bytes(image.bytes());
        let of_file = Side::of_subject(&subject).sites.unwrap();
        let report = profile::report(&subject, &profile::of_subject(&subject));
        let written = Side::of_json(text::json(&report).unwrap().as_bytes()).unwrap();
        let of_json = written.sites.unwrap();
        let rounded = |sites: &Sites| -> Vec<_> {
            let deviation = |estimate: &Estimate| whole(estimate.variance.sqrt());
            let stacks = sites.by_stack.iter().flat_map(|(stack, kinds)| {
                kinds.iter().map(move |(kind, estimate)| (stack, kind, estimate))
            });
            let site = |(stack, kind, estimate): (&Vec<String>, &Kind, &Estimate)| {
                (stack.clone(), kind.clone(), estimate.live_bytes, deviation(estimate))
            };
            stacks.map(site).collect()
        };
        assert_eq!(rounded(&of_file), rounded(&of_json));
        assert_eq!((written.key, of_json.are_named), (Some((42, 7)), false));
        assert_eq!(of_file.reach, Some((Reach::Watched, 5)));
        assert_eq!((of_json.reach, of_json.are_partial), (of_file.reach, true));
        let stack = vec!["0x1000".to_owned(), "0x2000".to_owned()];
        let upload = of_file.by_stack[&stack][&(Some("GET /upload".into()), Some(128))];
        assert!(upload.live_bytes >= 12_481, "{upload:?}");
    }

    #[test]
    fn a_file_tells_of_labels_without_their_children() {
        let mut image = sample(42, 7);
        image.set("epochs", 5, "held_bytes", 100_000);
        let side = Side::of_bytes(image.bytes());
        let labels = side.labels.unwrap();
        let of = |label: &str| labels[&Some(label.into())];
        assert_eq!(of("batch").resident_bytes, Some(162_144));
        assert_eq!(of("step").resident_bytes, Some(100_000));
        assert_eq!((of("GET /upload").objects, of("default").objects), (Some(357), Some(133)));
        let class = side.classes.unwrap()[&128];
        assert_eq!((class.objects, class.resident_bytes), (Some(131 + 340), Some(131_072)));
        assert_eq!(side.process.live_bytes, Some(419_520));
    }

    #[test]
    fn what_is_no_json_of_ours_is_refused() {
        for text in ["{", "[]", "{}", "{\"epochs\": 5}", "{\"epochs\": [{}]}", "\"x\"", "nul"] {
            let error = Side::of_json(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("tslab epochs --json PID"), "{text}: {error}");
        }
    }

    #[test]
    fn figures_that_are_not_known_are_not_compared() {
        let json = r#"{"epochs": [
            {"epoch": 1, "label": "a", "live": {"objects": 5, "bytes": null}, "held_bytes": 7},
            {"epoch": 2, "label": "a", "parent": 2, "live": {"objects": 6}, "held_bytes": 1},
            {"epoch": 3, "label": null, "parent": 99, "live": {}}
        ]}"#;
        let labels = Side::of_json(json.as_bytes()).unwrap().labels.unwrap();
        let a = labels[&Some("a".into())];
        assert_eq!((a.live_bytes, a.objects, a.resident_bytes), (None, Some(11), Some(8)));
        assert_eq!(labels[&None], Sum::default());
    }
}
