//! What the files do not keep: counts that only grow, as a counter must.
//!
//! A process that calls exec begins anew, sums fall for a moment while a thread's part of an epoch
//! ends, and nobody counts leaks. The agent adds up what it sees.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::labels::{OTHER, known_label};
use super::limits::Limits;
use crate::commands::Subject;
use crate::labels::Label;
use crate::rows::{Field, Kind, process};
use crate::snapshot::{DEFAULT_EPOCH, Epoch, Snapshot};

/// Something that a process counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Count {
    /// A field of the process, or one that its threads count once.
    Own(Field),
    /// Objects allocated.
    Allocations,
    /// Times that the fast path was left for this cause.
    SlowPaths(&'static str),
    /// Objects of this size class allocated in slabs, by its number.
    ClassAllocations(usize),
    /// Its slabs opened.
    ClassOpened(usize),
    /// Times that the fast path was left.
    ClassSlowPaths(usize),
    /// Its slabs given back.
    ClassRecycled(usize),
    /// Bytes of pages of its open slabs given back.
    ClassPurged(usize),
}

/// Of one process: what it counted before the agent first saw it, and all since.
#[derive(Debug, Default)]
pub struct Counters {
    counts: HashMap<Count, Tally>,
    /// Of the file that was read last: a program that is run by exec makes another.
    made_ms: u64,
    /// Objects of leak candidates, by size class and label.
    pub leaked: BTreeMap<(Arc<str>, Arc<str>), u64>,
    seen: HashSet<u64>,
    handlers: Names,
    /// Refusals by label.
    pub refused: BTreeMap<Arc<str>, Refused>,
    refused_before: HashMap<Arc<str>, Refused>,
    refused_names: Names,
}

/// How often epochs were refused memory. None: not told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// By a limit.
    pub by_limits: Option<u64>,
    /// By the system.
    pub by_system: Option<u64>,
}

impl Refused {
    // What came since.
    fn since(self, before: Self) -> Self {
        let since = |now: Option<u64>, before: Option<u64>| {
            now.map(|now| now.saturating_sub(before.unwrap_or_default()))
        };
        Self {
            by_limits: since(self.by_limits, before.by_limits),
            by_system: since(self.by_system, before.by_system),
        }
    }

    fn add(&mut self, more: Self) {
        let add = |sum: Option<u64>, more: Option<u64>| {
            more.map(|more| more.saturating_add(sum.unwrap_or_default())).or(sum)
        };
        self.by_limits = add(self.by_limits, more.by_limits);
        self.by_system = add(self.by_system, more.by_system);
    }
}

// The first labels that were met keep their names: a counter must not change its labels.
#[derive(Debug, Default)]
struct Names(BTreeSet<Arc<str>>);

impl Names {
    fn of(&mut self, label: Option<&str>, most: usize) -> Arc<str> {
        let label = known_label(label);
        if let Some(known) = self.0.get(label) {
            return Arc::clone(known);
        }
        let own = label != OTHER && self.0.len() < most;
        let name: Arc<str> = if own { label.into() } else { OTHER.into() };
        if own {
            self.0.insert(Arc::clone(&name));
        }
        name
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    last: u64,
    sum: u64,
}

impl Tally {
    // What has fallen for a moment counts again once it is beyond what it was.
    fn add(&mut self, now: u64) {
        self.sum = self.sum.saturating_add(now.saturating_sub(self.last));
        self.last = self.last.max(now);
    }
}

impl Counters {
    /// What was counted so far. None: the process does not tell.
    pub fn get(&self, count: Count) -> Option<u64> {
        Some(self.counts.get(&count)?.sum)
    }

    /// Takes notice of what the process says now.
    pub fn update(&mut self, subject: &Subject, limits: Limits) {
        let made_ms = subject.snapshot.header.made_ms;
        if std::mem::replace(&mut self.made_ms, made_ms) != made_ms {
            self.counts.values_mut().for_each(|tally| tally.last = 0);
            self.refused_before.clear();
        }
        for (count, now) in counts(&subject.snapshot) {
            let Some(now) = now else { continue };
            self.counts.entry(count).or_default().add(now);
        }
        self.update_leaks(subject, limits);
        self.update_refused(&subject.snapshot, limits);
    }

    // A label whose epochs have a limit has a 0 before the limit refuses anything.
    fn update_refused(&mut self, snapshot: &Snapshot, limits: Limits) {
        let limited: HashSet<_> = snapshot
            .epochs
            .iter()
            .filter(|epoch| epoch.hard_limit_bytes.is_some())
            .filter_map(|epoch| epoch.label.as_deref())
            .collect();
        let is_told = |label: &&Label| label.is_refused() || limited.contains(&*label.text);
        for label in snapshot.labels.iter().filter(is_told) {
            let now = Refused { by_limits: label.limits_refused, by_system: label.memory_refused };
            let before = self.refused_before.insert(Arc::clone(&label.text), now);
            let name = self.refused_names.of(Some(&label.text), limits.most_labels);
            self.refused.entry(name).or_default().add(now.since(before.unwrap_or_default()));
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
        let handler = self.handlers.of(epoch.label.as_deref(), limits.most_labels);
        for (class, objects) in objects_by_class(epoch) {
            let count = self.leaked.entry((class, Arc::clone(&handler))).or_default();
            *count = count.saturating_add(if is_counted { objects } else { 0 });
        }
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
    classes.push(("large".into(), take(epoch.large.objects.unwrap_or_default())));
    classes.push((OTHER.into(), rest));
    classes.retain(|(_, objects)| *objects > 0);
    classes
}

fn counts(snapshot: &Snapshot) -> impl Iterator<Item = (Count, Option<u64>)> {
    let own = process::FIELDS.iter().filter(|field| field.kind == Kind::Counter);
    let own = own.map(|&field| (Count::Own(field), snapshot.process_figure(field)));
    let slow_paths = snapshot.work.slow_paths.each();
    let classes = snapshot.classes.iter().enumerate().flat_map(|(number, class)| {
        [
            (Count::ClassAllocations(number), class.allocations),
            (Count::ClassOpened(number), class.opened),
            (Count::ClassSlowPaths(number), class.slow_paths()),
            (Count::ClassRecycled(number), class.recycled),
            (Count::ClassPurged(number), class.purged_bytes),
        ]
    });
    let of_homes = snapshot.work.of_homes.each().map(|(field, sum)| (Count::Own(field), sum));
    own.chain(of_homes)
        .chain([(Count::Allocations, snapshot.work.allocations)])
        .chain(slow_paths.map(|(path, count)| (Count::SlowPaths(path.cause), count)))
        .chain(classes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_falls_for_a_moment_is_not_counted_again() {
        let mut tally = Tally::default();
        let sums = [100, 100, 7, 95, 110].map(|now| {
            tally.add(now);
            tally.sum
        });
        assert_eq!(sums, [100, 100, 100, 100, 110]);
    }

    #[test]
    fn what_a_process_counts_does_not_fall_when_it_begins_anew() {
        let mut image = crate::fixture::sample(42, 7);
        let mut counters = Counters::default();
        let limits = Limits { most_labels: 1, most_sites: 10, leak_after_ms: 0 };
        let mut after = |(made_ms, purges)| {
            image.made_ms = made_ms;
            image.set("process", 0, "purges", purges);
            counters.update(&Subject::of_bytes(image.bytes()), limits);
            counters.get(Count::Own(process::PURGES))
        };
        let told = [(1, 5), (1, 9), (2, 0), (2, 3), (2, u64::MAX), (3, 1)].map(&mut after);
        assert_eq!(told, [5, 9, 9, 12, u64::MAX, u64::MAX].map(Some));
        assert_eq!(counters.get(Count::Own(process::OPEN_BYTES)), None);
    }

    #[test]
    fn a_part_that_ends_is_counted_once() {
        let mut image = crate::fixture::sample(42, 7);
        let mut counters = Counters::default();
        let mut after = |state, ended_objects| {
            image.set("heaps", 3, "state", state);
            image.set("bins", 1, "ended_objects", ended_objects);
            counters.update(
                &Subject::of_bytes(image.bytes()),
                Limits { most_labels: 1, most_sites: 10, leak_after_ms: 0 },
            );
            counters.get(Count::Allocations)
        };
        let told =
            [(1, 0), (0, 0), (0, 1_000), (0, 1_500)].map(|(state, ended)| after(state, ended));
        assert_eq!(told, [2_000, 2_000, 2_000, 2_500].map(Some));
    }

    #[test]
    fn refusals_are_counted_by_label_and_never_fall() {
        let mut image = crate::fixture::sample(42, 7);
        let mut counters = Counters::default();
        let mut after = |made_ms, by_limits| {
            image.made_ms = made_ms;
            image.set("labels", 7, "limits_refused", by_limits);
            let limits = Limits { most_labels: 1, most_sites: 10, leak_after_ms: 0 };
            counters.update(&Subject::of_bytes(image.bytes()), limits);
            counters.refused.get("GET /upload").map(|refused| refused.by_limits.unwrap())
        };
        let told = [(1, 0), (1, 2), (1, 5), (2, 1), (2, 1)].map(|(at, count)| after(at, count));
        assert_eq!(told, [None, Some(2), Some(5), Some(6), Some(6)]);
        image.set("labels", 3, "memory_refused", 4);
        let limits = Limits { most_labels: 1, most_sites: 10, leak_after_ms: 0 };
        counters.update(&Subject::of_bytes(image.bytes()), limits);
        assert_eq!(counters.refused[OTHER].by_system, Some(4));
    }

    #[test]
    fn the_first_handlers_keep_their_names() {
        let mut handlers = Names::default();
        let mut name = |label| handlers.of(label, 2).to_string();
        let labels = [Some("a"), Some("other"), Some("b"), Some("c"), None, Some("a"), Some("")];
        assert_eq!(labels.map(&mut name), ["a", "other", "b", "other", "other", "a", "other"]);
    }
}
