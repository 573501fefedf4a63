//! What a scrape gets, from files put together for it.

use std::collections::BTreeSet;

use super::encode::{Kind, metrics, openmetrics};
use super::figures::{COUNTERS, GAUGES, HOME_COUNTERS};
use super::find::Files;
use super::ledger::Ledger;
use super::samples::{Histogram, Samples, Value};
use super::*;
use crate::commands::Subject;
use crate::fixture::{Image, TOLD_MS, add_epoch, add_samples, sample};
use crate::host::Life;
use crate::openmetrics::parse;
use crate::rows;

const LIMITS: Limits = Limits { most_labels: 16, most_sites: 10, leak_after_ms: 60_000 };

// Of a process that runs; half of what it holds is resident.
fn samples_of(ledger: &mut Ledger, subject: Subject) -> Samples {
    let (name, rss_bytes) = (Some("server".to_owned()), Some(1 << 19));
    let subject = Subject { life: Life::Alive, name, rss_bytes, ..subject };
    let mut samples = Samples::default();
    ledger.add(&mut samples, &subject);
    ledger.close(&mut samples, Files { unreadable: 2, abandoned: 1 });
    samples
}

fn samples(ledger: &mut Ledger, image: &Image) -> Samples {
    samples_of(ledger, Subject::of_bytes(image.bytes()))
}

fn scrape(ledger: &mut Ledger, image: &Image) -> String {
    openmetrics(metrics().unwrap(), samples(ledger, image)).unwrap()
}

/// The text of a scrape of one process, held to the format.
pub(in crate::commands) fn checked_scrape(subject: Subject) -> String {
    let samples = samples_of(&mut Ledger::new(LIMITS), subject);
    let text = openmetrics(metrics().unwrap(), samples).unwrap();
    if let Err(error) = parse(&text) {
        panic!("{error} in\n{text}");
    }
    text
}

// The value of a series of process 42; `more`: further labels.
fn value<'a>(text: &'a str, metric: &str, more: &str) -> Option<&'a str> {
    let series = format!("{metric}{{pid=\"42\",process=\"server\"{more}}} ");
    text.lines().find_map(|line| line.strip_prefix(&series))
}

fn assert_values(text: &str, expected: &[(&str, &str, &str)]) {
    for (metric, more, expected) in expected {
        assert_eq!(value(text, metric, more), Some(*expected), "{metric} {more} in\n{text}");
    }
}

#[test]
fn metrics_have_the_kinds_and_units_of_their_fields() {
    let metrics = metrics().unwrap();
    for (name, field) in GAUGES.into_iter().chain(COUNTERS) {
        let metric = metrics.iter().find(|metric| metric.name == name).unwrap();
        let kind =
            if metric.kind == Kind::Counter { rows::Kind::Counter } else { rows::Kind::Gauge };
        assert_eq!((field.table, field.kind), (rows::process::TABLE, kind), "{name}");
        assert_eq!(metric.unit == "bytes", field.unit == rows::Unit::Bytes, "{name}");
    }
}

#[test]
fn what_threads_count_of_ends_and_units() {
    let mut image = sample(42, 7);
    let metrics = metrics().unwrap();
    for (number, (name, field)) in (1..).zip(HOME_COUNTERS) {
        let metric = metrics.iter().find(|metric| metric.name == name).unwrap();
        assert_eq!((field.table, metric.kind), (rows::bins::TABLE, Kind::Counter), "{name}");
        assert_eq!(metric.unit == "bytes", field.unit == rows::Unit::Bytes, "{name}");
        image.set("bins", 1, field.name, number);
    }
    let more = [("end_timed_ns", 1_500_000_000), ("units_kept", 11), ("units_fresh", 12)];
    image.set_all("bins", 1, &more);
    let text = scrape(&mut Ledger::new(LIMITS), &image);
    for (number, (name, _)) in (1..).zip(HOME_COUNTERS) {
        assert_values(&text, &[(name, "", &format!("{number}"))]);
    }
    assert_values(
        &text,
        &[
            ("tslab_timed_ends_seconds_total", "", "1.5"),
            ("tslab_units_taken_total", ",source=\"thread\"", "11"),
            ("tslab_units_taken_total", ",source=\"shared\"", "0"),
            ("tslab_units_taken_total", ",source=\"fresh\"", "12"),
        ],
    );
}

#[test]
fn figures_of_the_process() {
    let text = scrape(&mut Ledger::new(LIMITS), &sample(42, 7));
    assert_values(
        &text,
        &[
            ("tslab_resident_bytes", "", "524288"),
            ("tslab_live_bytes", "", "419520"),
            ("tslab_live_objects", "", "809"),
            ("tslab_held_bytes", "", "642368"),
            ("tslab_open_bytes", "", "1048576"),
            ("tslab_hot_bytes", "", "2432"),
            ("tslab_threads", "", "1"),
            ("tslab_allocations_total", "", "2000"),
            ("tslab_slow_paths_total", ",cause=\"slab_opened\"", "4"),
            ("tslab_slow_paths_total", ",cause=\"other_thread\"", "8"),
            ("tslab_purges_total", "", "5"),
            ("tslab_epochs", ",state=\"open\"", "1"),
            ("tslab_epochs", ",state=\"closed\"", "1"),
        ],
    );
    for own in ["processes 1", "unreadable_files 2", "abandoned_files 1", "read_errors_total 2"] {
        assert!(text.contains(&format!("\ntslab_{own}\n")), "{own} in\n{text}");
    }
    assert!(text.contains("\ntslab_build_info{version=\"0.1.0\"} 1\n"), "{text}");
}

#[test]
fn figures_of_classes() {
    let text = scrape(&mut Ledger::new(LIMITS), &sample(42, 7));
    let class = ",class=\"128\"";
    assert_values(
        &text,
        &[
            // 131 in the default epoch, 340 survivors.
            ("tslab_class_live_bytes", class, "60288"),
            ("tslab_class_hot_bytes", class, "1920"),
            ("tslab_class_slabs", class, "2"),
            ("tslab_class_allocations_total", class, "1000"),
            ("tslab_class_slabs_opened_total", class, "4"),
            ("tslab_class_slow_paths_total", class, "0"),
            // 18 in a thread's part of an epoch, 17 survivors.
            ("tslab_class_live_bytes", ",class=\"256\"", "8960"),
        ],
    );
    assert_eq!(value(&text, "tslab_class_live_bytes", ",class=\"512\""), None);
}

#[test]
fn what_classes_gave_back() {
    let mut image = sample(42, 7);
    image.set("classes", 1, "purged_bytes", 8_192);
    let text = scrape(&mut Ledger::new(LIMITS), &image);
    assert_values(
        &text,
        &[
            ("tslab_class_slabs_recycled_total", ",class=\"128\"", "2"),
            ("tslab_class_purged_bytes_total", ",class=\"128\"", "8192"),
        ],
    );
}

#[test]
fn refusals_and_histories_of_labels() {
    let mut image = sample(42, 7);
    image.set_all("labels", 7, &[("limits_refused", 3), ("memory_refused", 1)]);
    let ended = [("ended", 4), ("ended_bytes", 4_096), ("ended_survivor_bytes", 128)];
    image.set_all("labels", 7, &ended);
    let more = [("ended_pinned_bytes", 1_024), ("ended_lived_ms", 1_500), ("shares", 1)];
    image.set_all("labels", 7, &more);
    // Its limit has refused nothing yet.
    image.set("epochs", 3, "hard_limit_bytes", 1 << 20);
    let text = scrape(&mut Ledger::new(LIMITS), &image);
    let (upload, batch) = (",epoch=\"GET /upload\"", ",epoch=\"batch\"");
    assert_values(
        &text,
        &[
            ("tslab_epoch_limit_refusals_total", upload, "3"),
            ("tslab_epoch_memory_refusals_total", upload, "1"),
            ("tslab_epoch_limit_refusals_total", batch, "0"),
            ("tslab_label_ended_epochs", upload, "4"),
            ("tslab_label_ended_bytes", upload, "4096"),
            ("tslab_label_ended_survivor_bytes", upload, "128"),
            ("tslab_label_ended_pinned_bytes", upload, "1024"),
            ("tslab_label_ended_open_seconds", upload, "1.5"),
            ("tslab_label_shares", upload, "1"),
        ],
    );
    assert_eq!(value(&text, "tslab_label_ended_epochs", batch), None);
}

#[test]
fn the_shared_epoch_of_a_label_has_memory_and_no_age() {
    let mut image = sample(42, 7);
    image.set_all("epochs", 7, &[("state", 3), ("closed_ms", 0)]);
    let text = scrape(&mut Ledger::new(LIMITS), &image);
    let upload = ",epoch=\"GET /upload\"";
    assert_values(
        &text,
        &[
            ("tslab_epochs", ",state=\"open\"", "1"),
            ("tslab_epochs", ",state=\"closed\"", "0"),
            ("tslab_epochs", ",state=\"shared\"", "1"),
            ("tslab_label_epochs", upload, "0"),
            ("tslab_epoch_live_objects", upload, "357"),
            ("tslab_epoch_survivor_objects", upload, "0"),
        ],
    );
    assert_eq!(value(&text, "tslab_epoch_oldest_seconds", upload), None);
}

#[test]
fn scopes_in_epochs_that_have_ended() {
    let mut image = sample(42, 7);
    image.set("heaps", 3, "scopes", 2);
    let mut after = |state| {
        image.set("epochs", 3, "state", state);
        let text = scrape(&mut Ledger::new(LIMITS), &image);
        value(&text, "tslab_closing_scopes", "").map(str::to_owned)
    };
    assert_eq!([0, 1, 2].map(&mut after), ["0", "2", "2"].map(|text| Some(text.to_owned())));
}

#[test]
fn figures_of_labels() {
    let text = scrape(&mut Ledger::new(LIMITS), &sample(42, 7));
    let (batch, upload, default) =
        (",epoch=\"batch\"", ",epoch=\"GET /upload\"", ",epoch=\"default\"");
    assert_values(
        &text,
        &[
            ("tslab_label_epochs", batch, "1"),
            ("tslab_epoch_live_bytes", batch, "154880"),
            ("tslab_epoch_held_bytes", batch, "262144"),
            ("tslab_epoch_limited_bytes", batch, "0"),
            ("tslab_epoch_estimated_rss_bytes", batch, "213956"),
            ("tslab_epoch_survivor_bytes", batch, "0"),
            ("tslab_epoch_hard_limit_bytes", batch, "0"),
            ("tslab_epoch_oldest_seconds", batch, "10.0"),
            ("tslab_epoch_survivor_bytes", upload, "47872"),
            ("tslab_epoch_survivor_objects", upload, "357"),
            ("tslab_epoch_live_objects", default, "133"),
            ("tslab_epoch_held_bytes", default, "331072"),
            ("tslab_label_epochs", default, "0"),
        ],
    );
    assert_eq!(value(&text, "tslab_epoch_oldest_seconds", upload), None);
    assert_eq!(value(&text, "tslab_epoch_oldest_seconds", default), None);
    assert_eq!(value(&text, "tslab_label_epochs", ",epoch=\"gone\""), None);
}

#[test]
fn ages_are_of_open_epochs_and_buckets_add_up() {
    let mut image = sample(42, 7);
    add_epoch(&mut image, 2, "old", &[("opened_ms", TOLD_MS - 700_000)]);
    let text = scrape(&mut Ledger::new(LIMITS), &image);
    let bucket = "tslab_epoch_age_seconds_bucket";
    // The encoder puts the bound before the other labels.
    let of_bound = |bound: &str| {
        let series = format!("{bucket}{{le=\"{bound}\",pid=\"42\",process=\"server\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&series)).map(str::to_owned)
    };
    let bounds = ["0.1", "1.0", "10.0", "60.0", "600.0", "3600.0", "86400.0", "+Inf"];
    let counts = bounds.map(|bound| of_bound(bound).unwrap());
    assert_eq!(counts, ["0", "0", "1", "1", "1", "2", "2", "2"]);
    assert_values(
        &text,
        &[("tslab_epoch_age_seconds_sum", "", "710.0"), ("tslab_epoch_age_seconds_count", "", "2")],
    );
}

#[test]
fn sizes_at_a_bound_are_within_it() {
    let histogram = Histogram::of(&[1.0, 2.0], &[0.0, 1.0, 1.5, 9.0]);
    assert_eq!(histogram.buckets, [(1.0, 2), (2.0, 1), (f64::MAX, 1)]);
    assert_eq!(histogram.count(), 4);
}

#[test]
fn the_smaller_labels_are_summed_up() {
    let mut image = sample(42, 7);
    add_epoch(&mut image, 2, "other", &[("large_objects", 1), ("large_bytes", 9 << 20)]);
    image.set_all("process", 0, &[("large_objects", 4), ("large_bytes", 331_072 + (9 << 20))]);
    let limits = Limits { most_labels: 2, ..LIMITS };
    let text = scrape(&mut Ledger::new(limits), &image);
    let labels = text.lines().filter(|line| line.starts_with("tslab_label_epochs{")).count();
    assert_eq!(labels, 3);
    let other = ",epoch=\"other\"";
    assert_values(
        &text,
        &[
            ("tslab_epoch_live_bytes", ",epoch=\"default\"", "216768"),
            ("tslab_epoch_live_bytes", ",epoch=\"batch\"", "154880"),
            // The library's own, "GET /upload" and "step".
            ("tslab_label_epochs", other, "3"),
            ("tslab_epoch_live_bytes", other, "9485056"),
            ("tslab_epoch_survivor_objects", other, "357"),
        ],
    );
}

#[test]
fn leaks_are_counted_once_and_announced_with_0() {
    let mut image = sample(42, 7);
    let mut ledger = Ledger::new(LIMITS);
    let leaked = "tslab_objects_leaked_total";
    let (small, large) =
        (",class=\"128\",handler=\"GET /upload\"", ",class=\"large\",handler=\"GET /upload\"");
    image.set("epochs", 7, "closed_ms", TOLD_MS - 60_000);
    assert_values(&scrape(&mut ledger, &image), &[(leaked, small, "0")]);
    image.set("epochs", 7, "closed_ms", TOLD_MS - 60_001);
    assert_values(&scrape(&mut ledger, &image), &[(leaked, small, "340")]);
    image.set_class("epochs", 7, "survivors", 1, 400);
    assert_values(&scrape(&mut ledger, &image), &[(leaked, small, "340")]);
    // Another epoch in the same row.
    image.set_all("epochs", 7, &[("id", 2 << 24 | 7), ("large_objects", 1), ("large_bytes", 9)]);
    let text = scrape(&mut ledger, &image);
    assert_values(&text, &[(leaked, small, "740"), (leaked, large, "1")]);
}

#[test]
fn read_errors_add_up() {
    let mut ledger = Ledger::new(LIMITS);
    let mut errors = |unreadable| {
        let mut samples = Samples::default();
        ledger.close(&mut samples, Files { unreadable, abandoned: 0 });
        samples.of("tslab_read_errors_total")[0].value.clone()
    };
    let told = [2, 3, 0, u64::MAX].map(&mut errors);
    assert_eq!(told, [2, 5, 5, u64::MAX].map(Value::Counter));
}

#[test]
fn labels_cannot_break_the_text() {
    let mut image = sample(42, 7);
    add_epoch(&mut image, 2, "a\"b\\c\nd ü", &[]);
    add_epoch(&mut image, 4, "", &[]);
    image.text("labels", 7, b"\xff\xfe\0");
    let text = scrape(&mut Ledger::new(LIMITS), &image);
    for label in ["a\\\"b\\\\c\\nd ü", "\u{fffd}\u{fffd}", "other"] {
        let more = format!(",epoch=\"{label}\"");
        assert_values(&text, &[("tslab_label_epochs", &more, "1")]);
    }
}

#[test]
fn the_metrics_are_those_of_the_contract() {
    let mut ledger = Ledger::new(LIMITS);
    let mut image = sample(42, 7);
    image.set_all("labels", 7, &[("limits_refused", 1), ("ended", 1)]);
    add_samples(&mut image);
    let mut samples = samples(&mut ledger, &image);
    let subject = Subject::of_bytes(image.bytes());
    verdicts::of_resident(&subject).add(&mut samples, &subject);
    sites::Sites::new(10).add(&mut samples, &subject);
    // Only who reads knows how long it took.
    let measured = "tslab_scrape_duration_seconds";
    let given: BTreeSet<_> = samples.names().chain([measured]).collect();
    let metrics = metrics().unwrap();
    let promised: BTreeSet<_> = metrics.iter().map(|metric| metric.name.as_str()).collect();
    assert_eq!(given, promised);
    for metric in metrics.iter() {
        for sample in samples.of(&metric.name) {
            assert_eq!(sample.labels.len(), metric.labels.len(), "{}", metric.name);
        }
    }
}

#[test]
fn names_types_and_units_are_told() {
    let text = scrape(&mut Ledger::new(LIMITS), &sample(42, 7));
    for line in [
        "# TYPE tslab_purged_bytes counter",
        "# UNIT tslab_purged_bytes bytes",
        "# HELP tslab_purged_bytes Bytes given back to the system by purges.",
        "# TYPE tslab_live_objects gauge",
        "# UNIT tslab_live_objects objects",
        "# TYPE tslab_epoch_age_seconds histogram",
        "# TYPE tslab_objects_leaked counter",
        "# TYPE tslab_scrape_duration_seconds gauge",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line}");
    }
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn what_is_not_known_has_no_value() {
    let mut image = sample(42, 7);
    image.forget("bins", "taken");
    image.forget("process", "purges");
    let text = checked_scrape(Subject::of_bytes(image.bytes()));
    assert_eq!(value(&text, "tslab_live_bytes", ""), None);
    assert_eq!(value(&text, "tslab_purges_total", ""), None);
    assert_eq!(value(&text, "tslab_open_bytes", ""), Some("1048576"));
}

#[test]
fn values_beyond_all_measure_and_equal_classes_do_no_harm() {
    let mut image = sample(42, 7);
    image.set("process", 0, "open_bytes", u64::MAX);
    image.set("classes", 2, "bytes", 128);
    let text = checked_scrape(Subject::of_bytes(image.bytes()));
    assert_eq!(value(&text, "tslab_open_bytes", ""), Some("9223372036854775807"));
}
