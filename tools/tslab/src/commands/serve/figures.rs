//! The figures of one process, metric by metric.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::counters::{Count, Counters};
use super::labels::by_label;
use super::limits::Limits;
use super::samples::{Histogram, OfProcess, Samples, Value};
use crate::commands::Subject;
use crate::snapshot::{Class, DEFAULT_EPOCH, Snapshot, State};
use crate::work::CAUSES;

/// Bounds of `tslab_epoch_age_seconds`, in seconds.
const AGES: [f64; 7] = [0.1, 1.0, 10.0, 60.0, 600.0, 3_600.0, 86_400.0];

/// Gauges that the process says itself, by the field that holds them.
const GAUGES: [(&str, &str); 5] = [
    ("tslab_open_bytes", "open_bytes"),
    ("tslab_free_bytes", "free_bytes"),
    ("tslab_dirty_bytes", "dirty_bytes"),
    ("tslab_cached_bytes", "cached_bytes"),
    ("tslab_large_bytes", "large_bytes"),
];

/// Counters of what the process does, by the field that it counts in.
const COUNTERS: [(&str, &str); 5] = [
    ("tslab_purges_total", "purges"),
    ("tslab_purged_bytes_total", "purged_bytes"),
    ("tslab_purge_failures_total", "purges_refused"),
    ("tslab_limit_refusals_total", "limits_refused"),
    ("tslab_memory_refusals_total", "memory_refused"),
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
    out.gauge("tslab_hot_bytes", &[], totals.hot_bytes);
    out.gauge("tslab_threads", &[], totals.threads);
    for (metric, field) in GAUGES {
        out.gauge(metric, &[], snapshot.process_figure(field));
    }
    for (metric, field) in COUNTERS {
        out.counter(metric, &[], counters.get(Count::Own(field)));
    }
    out.counter("tslab_allocations_total", &[], counters.get(Count::Allocations));
    for (cause, _) in CAUSES {
        let count = counters.get(Count::SlowPaths(cause));
        out.counter("tslab_slow_paths_total", &[&cause.into()], count);
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
}

impl ClassFigures {
    fn is_used(&self) -> bool {
        let figures = [self.live_bytes, self.hot_bytes, self.slabs, self.allocations, self.opened];
        figures.iter().any(|figure| figure.is_some_and(|figure| figure > 0))
    }
}

// Of classes of the same size, as in a damaged file, the first is told.
fn add_classes(out: &mut OfProcess, snapshot: &Snapshot, counters: &Counters) {
    let elsewhere = live_elsewhere(snapshot);
    let mut classes = BTreeMap::<u64, ClassFigures>::new();
    for (number, class) in snapshot.classes.iter().enumerate() {
        let Some(bytes) = class.bytes else { continue };
        let elsewhere = elsewhere.get(&bytes).copied().unwrap_or_default();
        classes.entry(bytes).or_insert_with(|| class_figures(class, number, elsewhere, counters));
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
    }
}

fn class_figures(
    class: &Class,
    number: usize,
    elsewhere: u64,
    counters: &Counters,
) -> ClassFigures {
    let in_bytes = |objects: u64| Some(objects.saturating_mul(class.bytes?));
    ClassFigures {
        live_bytes: class.live.and_then(|live| in_bytes(live.saturating_add(elsewhere))),
        hot_bytes: class.hot.and_then(in_bytes),
        slabs: class.slabs,
        allocations: counters.get(Count::ClassAllocations(number)),
        opened: counters.get(Count::ClassOpened(number)),
        slow_paths: counters.get(Count::ClassSlowPaths(number)),
    }
}

// Live objects outside of the default epoch, by size of their class: in slabs of threads' parts,
// and of threads that have left. Those in cells of threads that have not are told of no class.
fn live_elsewhere(snapshot: &Snapshot) -> BTreeMap<u64, u64> {
    let mut objects = BTreeMap::<u64, u64>::new();
    let mut add = |bytes: Option<u64>, more: u64| {
        let Some(bytes) = bytes else { return };
        let sum = objects.entry(bytes).or_default();
        *sum = sum.saturating_add(more);
    };
    let in_parts = snapshot.holdings.in_parts.iter().flatten();
    for (class, objects) in snapshot.classes.iter().zip(in_parts) {
        add(class.bytes, *objects);
    }
    for survivors in snapshot.epochs.iter().flat_map(|epoch| &epoch.survivors) {
        add(survivors.class_bytes, survivors.objects);
    }
    objects
}

fn add_epochs(out: &mut OfProcess, subject: &Subject) {
    let totals = subject.snapshot.totals();
    out.gauge("tslab_epochs", &[&"open".into()], totals.epochs_open);
    out.gauge("tslab_epochs", &[&"closed".into()], totals.epochs_closed_with_survivors);
    let epochs = subject.snapshot.epochs.iter();
    let open =
        epochs.filter(|epoch| epoch.row != DEFAULT_EPOCH && epoch.state == Some(State::Open));
    let ages: Vec<_> =
        open.filter_map(|epoch| epoch.since_opened_ms(subject.as_of_ms)).map(seconds).collect();
    let histogram = Histogram::of(&AGES, &ages);
    out.add("tslab_epoch_age_seconds", &[], Some(Value::Histogram(histogram)));
}

fn add_labels(out: &mut OfProcess, subject: &Subject, most_labels: usize) {
    for (label, sums) in by_label(subject, most_labels) {
        let label: Arc<str> = label.into();
        let label = [&label];
        out.gauge("tslab_label_epochs", &label, Some(sums.epochs));
        out.gauge("tslab_epoch_live_bytes", &label, sums.live_bytes);
        out.gauge("tslab_epoch_live_objects", &label, sums.live_objects);
        out.gauge("tslab_epoch_held_bytes", &label, sums.held_bytes);
        out.gauge("tslab_epoch_estimated_rss_bytes", &label, sums.resident_bytes);
        out.gauge("tslab_epoch_survivor_bytes", &label, sums.survivor_bytes);
        out.gauge("tslab_epoch_survivor_objects", &label, sums.survivor_objects);
        out.gauge("tslab_epoch_hard_limit_bytes", &label, Some(sums.hard_limit_bytes));
        let oldest = sums.oldest_ms.map(seconds).map(Value::Seconds);
        out.add("tslab_epoch_oldest_seconds", &label, oldest);
    }
}

// Exact below 2^53 ms.
#[expect(clippy::cast_precision_loss, reason = "an age of 300,000 years may be rounded")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}
