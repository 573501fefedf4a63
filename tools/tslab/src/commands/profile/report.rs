//! report: the profile of a process in JSON.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::commands::{Identity, Subject};
use crate::decades::{self, Decades};
use crate::profile::lifetimes::{self, Blocks, Lives};
use crate::profile::{Age, Amount, Profile, Sample};
use crate::sampling::{Sampling, whole};

/// The profile of a process in JSON.
#[derive(Debug, Serialize)]
pub struct Report {
    #[serde(flatten)]
    identity: Identity,
    /// Bytes from sample to sample on average; 0: none is taken, None: not told.
    sample_bytes: Option<u64>,
    /// The same, while `sample_bytes` is 0, in epochs of labels whose objects outlive them.
    watch_bytes: Option<u64>,
    /// Since when all, only these epochs, or nothing is sampled; 0: since there is a file.
    sampling_since_ms: Option<u64>,
    /// `all`; `watched`: only these epochs; `ended`: nothing is any more. None: there are no
    /// samples.
    sampled: Option<&'static str>,
    /// Some of what lives was allocated while not all was sampled.
    partial: Option<bool>,
    /// The same, of these samples; 0: there are none.
    weight_bytes: Option<u64>,
    samples_taken: Option<u64>,
    samples_lost: Option<u64>,
    samples: Vec<Row>,
    lifetimes: Vec<LifetimeRow>,
}

// Estimates; what lives is told by epoch and age, what was allocated by label.
#[derive(Debug, Serialize)]
struct Row {
    /// Innermost first.
    stack: Vec<String>,
    epoch: Option<String>,
    epoch_id: Option<u64>,
    /// None: blocks of whole units.
    class_bytes: Option<u64>,
    age: Option<Age>,
    /// Sampled objects that live.
    samples: u64,
    objects: u64,
    bytes: u64,
    /// Of the estimate of `bytes`: chance seldom makes twice as much.
    deviation_bytes: u64,
    alloc_objects: u64,
    alloc_bytes: u64,
}

// Estimates of what was freed, and of what lives.
#[derive(Debug, Serialize)]
struct LifetimeRow {
    /// Innermost first.
    stack: Vec<String>,
    epoch: Option<String>,
    /// None: blocks of whole units.
    class_bytes: Option<u64>,
    objects: u64,
    bytes: u64,
    /// Of `objects`: freed within 10 ms.
    temporary_objects: u64,
    temporary_percent: Option<u64>,
    mean_lifetime_ms: Option<u64>,
    #[serde(flatten)]
    lifetimes: Spread,
    live: Live,
}

#[derive(Debug, Serialize)]
struct Live {
    objects: u64,
    bytes: u64,
    mean_age_ms: Option<u64>,
    #[serde(flatten)]
    ages: Spread,
}

// How long blocks lived, or have lived so far.
#[derive(Debug, Serialize)]
struct Spread {
    /// Half of them for less; None: not for less than any bound, or not known.
    median_below_ms: Option<u64>,
    /// None: there are none, or the library does not tell.
    by_decade: Option<Vec<Decade>>,
}

#[derive(Debug, Serialize)]
struct Decade {
    /// And not below that of the decade before; None: all others.
    below_ms: Option<u64>,
    objects: u64,
}

/// Of what a process sampled.
pub fn report(subject: &Subject, profile: &Profile) -> Report {
    let sampling = subject.snapshot.sampling.as_ref();
    let lifetimes = |sampling| lifetime_rows(sampling, profile, subject.as_of_ms);
    Report {
        identity: subject.identity(),
        sample_bytes: sampling.map(|sampling| sampling.sample_bytes),
        watch_bytes: sampling.map(|sampling| sampling.watch_bytes),
        sampling_since_ms: sampling.map(|sampling| sampling.since_ms),
        sampled: subject.has_profile().then(|| profile.reach.text()),
        partial: sampling.map(Sampling::is_partial),
        weight_bytes: sampling.map(Sampling::mean_bytes),
        samples_taken: sampling.map(|sampling| sampling.taken),
        samples_lost: sampling.map(|sampling| sampling.lost),
        samples: rows(profile),
        lifetimes: sampling.map(lifetimes).unwrap_or_default(),
    }
}

// Calls at several places of a function look the same here.
fn lifetime_rows(sampling: &Sampling, profile: &Profile, now_ms: u64) -> Vec<LifetimeRow> {
    let mut sums = BTreeMap::<_, Lives>::new();
    for (key, lives) in lifetimes::of(sampling, &profile.names, now_ms) {
        let of = (profile.functions(&key.calls), key.label, key.class_bytes);
        sums.entry(of).or_default().add(lives);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, lives)| lives.order());
    sums.into_iter().map(|(of, lives)| lifetime_row(of, lives)).collect()
}

fn lifetime_row(
    (stack, epoch, class_bytes): (Vec<String>, Option<String>, Option<u64>),
    Lives { freed, live }: Lives,
) -> LifetimeRow {
    LifetimeRow {
        stack,
        epoch,
        class_bytes,
        objects: whole(freed.objects),
        bytes: whole(freed.bytes),
        temporary_objects: whole(freed.short_objects),
        temporary_percent: freed.short_percent(),
        mean_lifetime_ms: freed.mean_ms(),
        lifetimes: spread(&freed),
        live: Live {
            objects: whole(live.objects),
            bytes: whole(live.bytes),
            mean_age_ms: live.mean_ms(),
            ages: spread(&live),
        },
    }
}

fn spread(blocks: &Blocks) -> Spread {
    let median = blocks.by_decade.and_then(|decades| decades.median());
    let decade = |(decade, &objects): (usize, &f64)| Decade {
        below_ms: decades::end_ms(decade),
        objects: whole(objects),
    };
    let all = |Decades(objects): Decades| objects.iter().enumerate().map(decade).collect();
    Spread {
        median_below_ms: median.and_then(decades::end_ms),
        by_decade: blocks.by_decade.map(all),
    }
}

// Calls at several places of a function look the same here.
fn rows(profile: &Profile) -> Vec<Row> {
    let mut amounts = BTreeMap::<_, (u64, Amount, f64)>::new();
    for Sample { key, live, estimate, variance, .. } in &profile.samples {
        let stack = profile.functions(&key.calls);
        let of = (stack, &key.label, key.epoch, key.class_bytes, key.age);
        let (samples, amount, sum) = amounts.entry(of).or_default();
        *samples += live;
        amount.add(*estimate);
        *sum += variance;
    }
    let row = |(of, (samples, amount, variance)): (_, (u64, Amount, f64))| {
        let (stack, label, epoch_id, class_bytes, age) = of;
        Row {
            stack,
            epoch: Option::clone(label),
            epoch_id,
            class_bytes,
            age,
            samples,
            objects: whole(amount.objects),
            bytes: whole(amount.bytes),
            deviation_bytes: whole(variance.sqrt()),
            alloc_objects: whole(amount.alloc_objects),
            alloc_bytes: whole(amount.alloc_bytes),
        }
    };
    let mut rows: Vec<_> = amounts.into_iter().map(row).collect();
    rows.sort_by_key(|row| Reverse((row.bytes, row.alloc_bytes)));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::profile::of_subject;
    use crate::fixture::{sample, sampled};

    fn subject() -> Subject {
        Subject::of_bytes(sampled().bytes())
    }

    fn json(subject: &Subject) -> serde_json::Value {
        serde_json::to_value(report(subject, &of_subject(subject))).unwrap()
    }

    fn decades(objects: [u64; decades::COUNT]) -> serde_json::Value {
        let decade = |(decade, objects)| {
            let below_ms = decades::end_ms(decade);
            serde_json::json!({ "below_ms": below_ms, "objects": objects })
        };
        objects.into_iter().enumerate().map(decade).collect()
    }

    #[test]
    fn a_report_tells_what_lives_by_epoch_and_what_was_allocated_by_label() {
        let json = json(&subject());
        assert_eq!((&json["pid"], &json["weight_bytes"]), (&42.into(), &4096.into()));
        assert_eq!((&json["partial"], &json["sampling_since_ms"]), (&false.into(), &0.into()));
        assert_eq!(json["sampled"], "ended");
        assert_eq!((&json["samples_taken"], &json["samples_lost"]), (&40.into(), &1.into()));
        let rows = json["samples"].as_array().unwrap();
        let upload = &rows[1];
        assert_eq!(upload["stack"], serde_json::json!(["0x1000", "0x2000"]));
        assert_eq!(
            (&upload["epoch"], &upload["epoch_id"]),
            (&"GET /upload".into(), &16_777_223.into())
        );
        assert_eq!((&upload["class_bytes"], &upload["age"]), (&128.into(), &"1-10min".into()));
        assert_eq!((&upload["objects"], &upload["bytes"]), (&98.into(), &12_481.into()));
        assert_eq!(upload["deviation_bytes"].as_u64().map(|bytes| bytes / 100), Some(70));
        assert_eq!((&upload["alloc_objects"], &upload["alloc_bytes"]), (&0.into(), &0.into()));
        let allocated = rows.iter().find(|row| row["alloc_bytes"] == 83_207).unwrap();
        assert!(allocated["epoch_id"].is_null() && allocated["age"].is_null());
        assert!(rows[0]["class_bytes"].is_null());
        let lifetimes = json["lifetimes"].as_array().unwrap();
        let upload = serde_json::json!({
            "stack": ["0x1000", "0x2000"], "epoch": "GET /upload", "class_bytes": 128,
            "objects": 553, "bytes": 70_726, "temporary_objects": 390, "temporary_percent": 71,
            "mean_lifetime_ms": 40, "median_below_ms": 10,
            "by_decade": decades([390, 98, 65, 0, 0, 0, 0]),
            "live": {
                "objects": 98, "bytes": 12_481, "mean_age_ms": 61_500, "median_below_ms": 100_000,
                "by_decade": decades([0, 0, 0, 0, 98, 0, 0]),
            },
        });
        assert_eq!((&lifetimes[0], lifetimes.len()), (&upload, 4));
        let live = &lifetimes[2];
        assert_eq!((&live["objects"], &live["live"]["objects"]), (&0.into(), &33.into()));
        assert!(live["mean_lifetime_ms"].is_null() && live["by_decade"].is_null());
        assert!(live["live"]["median_below_ms"].is_null(), "an hour is longer than any bound");
    }

    #[test]
    fn without_samples_a_report_has_none() {
        let mut older = sample(42, 7);
        older.tables.retain(|table| table.name != "sites");
        let of_older = json(&Subject::of_bytes(older.bytes()));
        assert!(of_older["weight_bytes"].is_null());
        assert_eq!(of_older["samples"], serde_json::json!([]));
        let of_other = json(&Subject::of_bytes(sample(42, 7).bytes()));
        assert_eq!(of_other["weight_bytes"], 0);
        assert!(of_other["sampled"].is_null());
    }
}
