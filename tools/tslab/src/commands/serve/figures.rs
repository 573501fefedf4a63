//! The figures of one process, metric by metric.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::counters::{Count, Counters};
use super::labels::{by_label, histories};
use super::limits::Limits;
use super::samples::{Histogram, OfProcess, Samples, Value};
use crate::commands::Subject;
use crate::rows::{EpochState, Field, SLOW_PATHS, bins, process};
use crate::snapshot::{Class, DEFAULT_EPOCH, Snapshot};

/// Bounds of `tslab_epoch_age_seconds`, in seconds.
const AGES: [f64; 7] = [0.1, 1.0, 10.0, 60.0, 600.0, 3_600.0, 86_400.0];

/// Gauges that the process says itself, by the field that holds them.
pub(super) const GAUGES: [(&str, Field); 7] = [
    ("tslab_open_bytes", process::OPEN_BYTES),
    ("tslab_free_bytes", process::FREE_BYTES),
    ("tslab_dirty_bytes", process::DIRTY_BYTES),
    ("tslab_cached_bytes", process::CACHED_BYTES),
    ("tslab_large_bytes", process::LARGE_BYTES),
    ("tslab_peak_held_bytes", process::PEAK_HELD_BYTES),
    ("tslab_soft_limit_bytes", process::SOFT_LIMIT_BYTES),
];

/// Counters of what the process does, by the field that it counts in.
pub(super) const COUNTERS: [(&str, Field); 5] = [
    ("tslab_purges_total", process::PURGES),
    ("tslab_purged_bytes_total", process::PURGED_BYTES),
    ("tslab_purge_failures_total", process::PURGES_REFUSED),
    ("tslab_limit_refusals_total", process::LIMITS_REFUSED),
    ("tslab_memory_refusals_total", process::MEMORY_REFUSED),
];

/// Counters of what its threads do, by the field that they count in.
pub(super) const HOME_COUNTERS: [(&str, Field); 8] = [
    ("tslab_closes_total", bins::CLOSES),
    ("tslab_releases_total", bins::RELEASES),
    ("tslab_ended_parts_total", bins::END_PARTS),
    ("tslab_ended_pieces_total", bins::END_PIECES),
    ("tslab_ended_pieces_recycled_total", bins::END_PIECES_GIVEN),
    ("tslab_ended_bytes_total", bins::END_BYTES),
    ("tslab_ended_recycled_bytes_total", bins::END_BYTES_GIVEN),
    ("tslab_timed_ends_total", bins::END_TIMED_PARTS),
];

/// Whence the units for slabs came, by the field that counts them.
const UNIT_SOURCES: [(&str, Field); 4] = [
    ("thread", bins::UNITS_KEPT),
    ("shared", bins::UNITS_SHARED),
    ("reused", bins::UNITS_REUSED),
    ("fresh", bins::UNITS_FRESH),
];

/// Adds the figures of a process that has this name.
pub fn add(
    samples: &mut Samples,
    name: &str,
    subject: &Subject,
    counters: &Counters,
    limits: Limits,
) {
    let mut out = OfProcess::new(samples, subject.pid, name);
    add_process(&mut out, subject, counters);
    add_classes(&mut out, &subject.snapshot, counters);
    add_epochs(&mut out, subject);
    add_labels(&mut out, subject, limits.most_labels);
    add_histories(&mut out, subject, limits.most_labels);
    for (label, refused) in &counters.refused {
        out.counter("tslab_epoch_limit_refusals_total", &[label], refused.by_limits);
        out.counter("tslab_epoch_memory_refusals_total", &[label], refused.by_system);
    }
    for ((class, handler), objects) in &counters.leaked {
        out.counter("tslab_objects_leaked_total", &[class, handler], Some(*objects));
    }
}

fn add_process(out: &mut OfProcess, subject: &Subject, counters: &Counters) {
    let snapshot = &subject.snapshot;
    let totals = snapshot.totals();
    out.gauge("tslab_resident_bytes", &[], subject.rss_bytes);
    out.gauge("tslab_live_bytes", &[], totals.live_bytes);
    out.gauge("tslab_live_objects", &[], totals.live_objects);
    out.gauge("tslab_held_bytes", &[], totals.held_bytes);
    out.gauge("tslab_hot_bytes", &[], totals.hot_bytes);
    out.gauge("tslab_threads", &[], totals.threads);
    for (metric, field) in GAUGES {
        out.gauge(metric, &[], snapshot.process_figure(field));
    }
    for (metric, field) in COUNTERS.into_iter().chain(HOME_COUNTERS) {
        out.counter(metric, &[], counters.get(Count::Own(field)));
    }
    let walked = counters.get(Count::Own(bins::END_TIMED_NS)).map(seconds_of_ns);
    out.add("tslab_timed_ends_seconds_total", &[], walked.map(Value::CountedSeconds));
    for (source, field) in UNIT_SOURCES {
        let count = counters.get(Count::Own(field));
        out.counter("tslab_units_taken_total", &[&source.into()], count);
    }
    out.counter("tslab_allocations_total", &[], counters.get(Count::Allocations));
    for path in SLOW_PATHS {
        let count = counters.get(Count::SlowPaths(path.cause));
        out.counter("tslab_slow_paths_total", &[&path.cause.into()], count);
    }
}

// Of a size class. None: not known.
#[derive(Clone, Copy, Default)]
struct ClassFigures {
    live_bytes: Option<u64>,
    hot_bytes: Option<u64>,
    slabs: Option<u64>,
    allocations: Option<u64>,
    opened: Option<u64>,
    slow_paths: Option<u64>,
    recycled: Option<u64>,
    purged_bytes: Option<u64>,
}

impl ClassFigures {
    fn is_used(&self) -> bool {
        let figures = [self.live_bytes, self.hot_bytes, self.slabs, self.allocations, self.opened];
        figures.iter().any(|figure| figure.is_some_and(|figure| figure > 0))
    }
}

// Of classes of the same size, as in a damaged file, the first is told.
fn add_classes(out: &mut OfProcess, snapshot: &Snapshot, counters: &Counters) {
    let mut classes = BTreeMap::<u64, ClassFigures>::new();
    for (number, class) in snapshot.classes.iter().enumerate() {
        let Some(bytes) = class.bytes else { continue };
        classes.entry(bytes).or_insert_with(|| class_figures(class, number, counters));
    }
    for (bytes, class) in classes.iter().filter(|(_, class)| class.is_used()) {
        let label: Arc<str> = bytes.to_string().into();
        let label = [&label];
        out.gauge("tslab_class_live_bytes", &label, class.live_bytes);
        out.gauge("tslab_class_hot_bytes", &label, class.hot_bytes);
        out.gauge("tslab_class_slabs", &label, class.slabs);
        out.counter("tslab_class_allocations_total", &label, class.allocations);
        out.counter("tslab_class_slabs_opened_total", &label, class.opened);
        out.counter("tslab_class_slow_paths_total", &label, class.slow_paths);
        out.counter("tslab_class_slabs_recycled_total", &label, class.recycled);
        out.counter("tslab_class_purged_bytes_total", &label, class.purged_bytes);
    }
}

fn class_figures(class: &Class, number: usize, counters: &Counters) -> ClassFigures {
    ClassFigures {
        live_bytes: class.live_bytes(),
        hot_bytes: class.hot_bytes(),
        slabs: class.slabs,
        allocations: counters.get(Count::ClassAllocations(number)),
        opened: counters.get(Count::ClassOpened(number)),
        slow_paths: counters.get(Count::ClassSlowPaths(number)),
        recycled: counters.get(Count::ClassRecycled(number)),
        purged_bytes: counters.get(Count::ClassPurged(number)),
    }
}

fn add_epochs(out: &mut OfProcess, subject: &Subject) {
    let totals = subject.snapshot.totals();
    let mut count = |state: EpochState, epochs| {
        out.gauge("tslab_epochs", &[&state.text().into()], epochs);
    };
    count(EpochState::Open, totals.epochs_open);
    count(EpochState::Closed, totals.epochs_closed_with_survivors);
    count(EpochState::Shared, totals.epochs_shared);
    out.gauge("tslab_closing_scopes", &[], closing_scopes(&subject.snapshot));
    let epochs = subject.snapshot.epochs.iter();
    let open =
        epochs.filter(|epoch| epoch.row != DEFAULT_EPOCH && epoch.state == Some(EpochState::Open));
    let ages: Vec<_> =
        open.filter_map(|epoch| epoch.since_opened_ms(subject.as_of_ms)).map(seconds).collect();
    let histogram = Histogram::of(&AGES, &ages);
    out.add("tslab_epoch_age_seconds", &[], Some(Value::Histogram(histogram)));
}

// Open in epochs that have ended: what their threads hold there stays until they leave.
fn closing_scopes(snapshot: &Snapshot) -> Option<u64> {
    let scopes = snapshot.holdings.open_scopes.as_ref()?;
    let ended = snapshot
        .epochs
        .iter()
        .filter(|epoch| matches!(epoch.state, Some(EpochState::Closed | EpochState::Released)));
    let rows = ended.filter_map(|epoch| usize::try_from(epoch.row).ok());
    Some(rows.filter_map(|row| scopes.get(row)).fold(0, |sum, count| sum.saturating_add(*count)))
}

fn add_labels(out: &mut OfProcess, subject: &Subject, most_labels: usize) {
    for (label, sums) in by_label(subject, most_labels) {
        let label: Arc<str> = label.into();
        let label = [&label];
        out.gauge("tslab_label_epochs", &label, Some(sums.epochs));
        out.gauge("tslab_epoch_live_bytes", &label, sums.live_bytes);
        out.gauge("tslab_epoch_live_objects", &label, sums.live_objects);
        out.gauge("tslab_epoch_held_bytes", &label, sums.held_bytes);
        out.gauge("tslab_epoch_limited_bytes", &label, sums.limited_bytes);
        out.gauge("tslab_epoch_estimated_rss_bytes", &label, sums.resident_bytes);
        out.gauge("tslab_epoch_survivor_bytes", &label, sums.survivor_bytes);
        out.gauge("tslab_epoch_survivor_objects", &label, sums.survivor_objects);
        out.gauge("tslab_epoch_hard_limit_bytes", &label, Some(sums.hard_limit_bytes));
        let oldest = sums.oldest_ms.map(seconds).map(Value::Seconds);
        out.add("tslab_epoch_oldest_seconds", &label, oldest);
    }
}

fn add_histories(out: &mut OfProcess, subject: &Subject, most_labels: usize) {
    for (label, history) in histories(&subject.snapshot.labels, most_labels) {
        let label: Arc<str> = label.into();
        let label = [&label];
        out.gauge("tslab_label_ended_epochs", &label, history.ended);
        out.gauge("tslab_label_ended_bytes", &label, history.bytes);
        out.gauge("tslab_label_ended_survivor_bytes", &label, history.survivor_bytes);
        out.gauge("tslab_label_ended_pinned_bytes", &label, history.pinned_bytes);
        let open = history.lived_ms.map(seconds).map(Value::Seconds);
        out.add("tslab_label_ended_open_seconds", &label, open);
        out.gauge("tslab_label_shares", &label, history.sharing);
    }
}

// Exact below 2^53 ms.
#[expect(clippy::cast_precision_loss, reason = "an age of 300,000 years may be rounded")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

// Exact below 2^53 ns.
#[expect(clippy::cast_precision_loss, reason = "100 days of walks may be rounded")]
fn seconds_of_ns(ns: u64) -> f64 {
    ns as f64 / 1e9
}
