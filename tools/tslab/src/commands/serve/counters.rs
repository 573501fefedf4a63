//! What the files do not keep: counts that only grow, as a counter must.
//!
//! A thread's part of an epoch takes its counts along when it ends, a process that calls exec
//! begins anew, and nobody counts leaks. The agent adds up what it sees: what begins and ends
//! between two readings is missed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::Limits;
use super::labels::{OTHER, known_label};
use crate::commands::Subject;
use crate::live::{Counts, SlabCounts};
use crate::snapshot::{DEFAULT_EPOCH, Epoch};

/// Of one process: what it counted before the agent first saw it, and all since.
#[derive(Debug, Default)]
pub struct Counters {
    own: HashMap<&'static str, Tally>,
    /// Objects allocated in cells.
    pub cut: u64,
    /// Of slabs, by number of the size class.
    pub slabs: Vec<SlabCounts>,
    /// Objects of leak candidates, by size class and label.
    pub leaked: BTreeMap<(Arc<str>, Arc<str>), u64>,
    heaps: HashMap<usize, Counts>,
    seen: HashSet<u64>,
    handlers: BTreeSet<Arc<str>>,
}

/// Fields in which a process counts what it did.
const OWN: [&str; 5] =
    ["purges", "purged_bytes", "purges_refused", "limits_refused", "memory_refused"];

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    last: u64,
    sum: u64,
}

impl Counters {
    /// What a field of the process has counted. None: the process does not tell.
    pub fn own(&self, field: &str) -> Option<u64> {
        Some(self.own.get(field)?.sum)
    }

    /// Takes notice of what the process says now.
    pub fn update(&mut self, subject: &Subject, limits: Limits) {
        for field in OWN {
            let Some(now) = subject.snapshot.process_figure(field) else { continue };
            let tally = self.own.entry(field).or_default();
            tally.sum = tally.sum.saturating_add(grow(&mut tally.last, now));
        }
        if let Some(heaps) = &subject.snapshot.heaps {
            self.update_heaps(heaps);
        }
        self.update_leaks(subject, limits);
    }

    fn update_heaps(&mut self, heaps: &[Counts]) {
        let mut before = std::mem::take(&mut self.heaps);
        for heap in heaps {
            let mut last = before.remove(&heap.row).unwrap_or_default();
            self.cut = self.cut.saturating_add(grow(&mut last.cut, heap.cut));
            add(&mut self.slabs, &mut last.slabs, &heap.slabs);
            self.heaps.insert(heap.row, last);
        }
    }

    fn update_leaks(&mut self, subject: &Subject, limits: Limits) {
        let epochs = &subject.snapshot.epochs;
        let ids: HashSet<_> = epochs.iter().map(|epoch| epoch.id).collect();
        self.seen.retain(|id| ids.contains(id));
        let closed = epochs.iter().filter(|epoch| epoch.row != DEFAULT_EPOCH);
        for epoch in closed.filter(|epoch| epoch.has_survivors()) {
            let age_ms = epoch.since_closed_ms(subject.as_of_ms);
            let is_old = age_ms.is_some_and(|age_ms| age_ms > limits.leak_after_ms);
            let is_counted = is_old && !epoch.live.unsettled && self.seen.insert(epoch.id);
            self.add_leak(epoch, limits, is_counted);
        }
    }

    // Those that are not counted yet have a 0 already, so that Prometheus sees the growth.
    fn add_leak(&mut self, epoch: &Epoch, limits: Limits, is_counted: bool) {
        let handler = self.handler(epoch.label.as_deref(), limits.most_labels);
        for (class, objects) in objects_by_class(epoch) {
            let count = self.leaked.entry((class, Arc::clone(&handler))).or_default();
            *count = count.saturating_add(if is_counted { objects } else { 0 });
        }
    }

    // The first ones keep their names: a counter must not change its labels.
    fn handler(&mut self, label: Option<&str>, most: usize) -> Arc<str> {
        let label = known_label(label);
        if let Some(known) = self.handlers.get(label) {
            return Arc::clone(known);
        }
        let own = label != OTHER && self.handlers.len() < most;
        let handler: Arc<str> = if own { label.into() } else { OTHER.into() };
        if own {
            self.handlers.insert(Arc::clone(&handler));
        }
        handler
    }
}

// Those of which the class is not known yet: their threads have not left the epoch.
fn objects_by_class(epoch: &Epoch) -> Vec<(Arc<str>, u64)> {
    let mut rest = epoch.live.objects.unwrap_or_default();
    let mut take = |objects: u64| {
        let taken = objects.min(rest);
        rest -= taken;
        taken
    };
    let class = |bytes: Option<u64>| -> Arc<str> {
        bytes.map_or_else(|| OTHER.into(), |bytes| bytes.to_string().into())
    };
    let mut classes: Vec<_> = epoch
        .survivors
        .iter()
        .map(|survivors| (class(survivors.class_bytes), take(survivors.objects)))
        .collect();
    classes.push(("large".into(), take(epoch.large_objects.unwrap_or_default())));
    classes.push((OTHER.into(), rest));
    classes.retain(|(_, objects)| *objects > 0);
    classes
}

fn add(sums: &mut Vec<SlabCounts>, last: &mut Vec<SlabCounts>, now: &[SlabCounts]) {
    sums.resize(sums.len().max(now.len()), SlabCounts::default());
    last.resize(now.len(), SlabCounts::default());
    for ((sum, last), now) in sums.iter_mut().zip(last).zip(now) {
        let allocations = grow(&mut last.allocations, now.allocations);
        sum.allocations = sum.allocations.saturating_add(allocations);
        sum.opened = sum.opened.saturating_add(grow(&mut last.opened, now.opened));
    }
}

// By how much a count grew. It may fall a little, as objects go back into stock, which is no
// growth later; what has fallen to less than half has begun anew.
fn grow(last: &mut u64, now: u64) -> u64 {
    let growth = if now >= *last {
        now - *last
    } else if now < *last / 2 {
        now
    } else {
        return 0;
    };
    *last = now;
    growth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_fall_a_little_do_not_grow_and_such_that_begin_anew_do() {
        let mut last = 0;
        let growth = [100, 100, 90, 95, 110, 7, 9].map(|now| grow(&mut last, now));
        assert_eq!(growth, [100, 0, 0, 0, 10, 7, 2]);
    }

    #[test]
    fn what_a_process_counts_does_not_fall_when_it_begins_anew() {
        let mut image = crate::fixture::sample(42, 7);
        let mut counters = Counters::default();
        let limits = Limits { most_labels: 1, leak_after_ms: 0 };
        let mut after = |purges| {
            image.set("process", 0, "purges", purges);
            counters.update(&Subject::of_bytes(image.bytes()), limits);
            counters.own("purges")
        };
        let told = [5, 9, 0, 3, u64::MAX, 1].map(&mut after);
        assert_eq!(told, [5, 9, 9, 12, u64::MAX, u64::MAX].map(Some));
        assert_eq!(counters.own("open_bytes"), None);
    }

    #[test]
    fn heaps_that_end_leave_their_counts() {
        let class = |allocations| SlabCounts { allocations, ..SlabCounts::default() };
        let heap = |row, cut| Counts { row, cut, slabs: vec![class(cut)], ..Counts::default() };
        let mut counters = Counters::default();
        counters.update_heaps(&[heap(1, 10), heap(2, 5)]);
        counters.update_heaps(&[heap(1, 12)]);
        counters.update_heaps(&[heap(1, 12), heap(2, 4)]);
        assert_eq!((counters.cut, counters.slabs[0].allocations), (21, 21));
    }

    #[test]
    fn the_first_handlers_keep_their_names() {
        let mut counters = Counters::default();
        let mut name = |label| counters.handler(label, 2).to_string();
        let labels = [Some("a"), Some("other"), Some("b"), Some("c"), None, Some("a"), Some("")];
        assert_eq!(labels.map(&mut name), ["a", "other", "b", "other", "other", "a", "other"]);
    }
}
