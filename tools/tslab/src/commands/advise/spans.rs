//! What an epoch for each phase, or for each thread, would do.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::groups::Ends;
use super::phases;
use super::predicted::{self, Course, Resident};
use super::rounds::{ENOUGH, Object, Run};
use crate::sampling::whole;
use crate::text;

const MOST_SHOWN: usize = 6;

// Of a phase's bytes, what its function has below it.
const MOST_OF: f64 = 0.9;

/// One way to give each block an epoch.
#[derive(Debug, Serialize)]
pub struct Spans<S> {
    /// How many epochs there would be.
    pub count: usize,
    /// Of all bytes, those that are dead before their epoch would end.
    pub dead_percent: u64,
    /// What is resident but for the samples.
    pub measured: Resident,
    /// The same with these epochs.
    pub predicted: Resident,
    /// Those that allocate most, in their order.
    pub largest: Vec<S>,
}

impl<S> Spans<S> {
    /// Whether these epochs end with next to nothing in them, and save memory.
    pub fn helps(&self) -> bool {
        self.count > 1
            && self.dead_percent >= whole(100.0 * ENOUGH)
            && self.predicted.saves(&self.measured)
    }

    /// For people. `span`: what each epoch is for.
    pub fn text(&self, span: &str) -> String {
        let bytes = |bytes| text::bytes(Some(bytes));
        let (then, now) = (self.predicted, self.measured);
        format!(
            "\nan epoch for each of {}: {} % dead before it ends, resident {} instead of {} at the \
             peak, {} instead of {} behind\n",
            text::count(Some(self.count as u64), span),
            self.dead_percent,
            bytes(then.peak_bytes),
            bytes(now.peak_bytes),
            bytes(then.trough_bytes),
            bytes(now.trough_bytes),
        )
    }
}

/// From one moment at which little lives to the next.
#[derive(Debug, Serialize)]
pub struct Phase {
    /// Since the first sample.
    pub begun_ms: u64,
    /// The same.
    pub ended_ms: u64,
    /// In it.
    pub allocated_bytes: u64,
    /// Of them, dead before it ends.
    pub dead_percent: u64,
    /// The innermost one that allocates nearly all of it by others.
    pub function: Option<String>,
}

impl Phase {
    /// For people.
    pub fn text(&self) -> String {
        let function = self.function.as_deref().map(text::printable).unwrap_or_default();
        format!(
            "   {} to {}: {} allocated, {} % dead before it ends  {function}\n",
            text::age(Some(self.begun_ms)),
            text::age(Some(self.ended_ms)),
            text::bytes(Some(self.allocated_bytes)),
            self.dead_percent,
        )
    }
}

/// What a thread allocates.
#[derive(Debug, Serialize)]
pub struct Thread {
    /// As the system numbers it.
    #[serde(rename = "thread")]
    pub number: u64,
    /// By it.
    pub allocated_bytes: u64,
    /// Of them, dead before its last sample.
    pub dead_percent: u64,
    /// Of them, freed by other threads.
    pub freed_elsewhere_bytes: u64,
}

impl Thread {
    /// For people.
    pub fn text(&self) -> String {
        format!(
            "   thread {}: {} allocated, {} % dead before it ends, {} freed by others\n",
            self.number,
            text::bytes(Some(self.allocated_bytes)),
            self.dead_percent,
            text::bytes(Some(self.freed_elsewhere_bytes)),
        )
    }
}

// What is added up of a span.
#[derive(Clone, Copy, Default)]
struct Sum {
    bytes: f64,
    dead: f64,
    elsewhere: f64,
}

impl Sum {
    fn dead_percent(&self) -> u64 {
        if self.bytes > 0.0 { whole(100.0 * self.dead / self.bytes) } else { 0 }
    }
}

/// By phase.
pub fn by_phase(run: &Run, course: Course) -> Spans<Phase> {
    let starts = phases::starts(run);
    let begun = |object: &Object| phases::of(&starts, object.begun);
    let dies =
        |object: &Object| object.ended.is_some_and(|at| phases::of(&starts, at) == begun(object));
    let ends: Vec<_> = starts.iter().skip(1).copied().chain([run.events.len()]).collect();
    let shown = |number: usize, sum: &Sum| Phase {
        begun_ms: since_first(run, starts[number]),
        ended_ms: since_first(run, ends[number].saturating_sub(1)),
        allocated_bytes: whole(sum.bytes),
        dead_percent: sum.dead_percent(),
        function: function(run, starts[number]..ends[number]),
    };
    spans(run, course, begun, dies, shown)
}

/// By thread.
pub fn by_thread(run: &Run, course: Course) -> Spans<Thread> {
    let threads: BTreeSet<_> = run.events.iter().map(|event| event.thread).collect();
    let threads: Vec<_> = threads.into_iter().collect();
    let number = |event: usize| threads.partition_point(|&id| id < run.events[event].thread);
    let mut last = vec![0; threads.len()];
    (0..run.events.len()).for_each(|event| last[number(event)] = event);
    let begun = |object: &Object| number(object.begun);
    let dies = |object: &Object| object.ended.is_some_and(|at| at <= last[begun(object)]);
    let shown = |number: usize, sum: &Sum| Thread {
        number: threads[number],
        allocated_bytes: whole(sum.bytes),
        dead_percent: sum.dead_percent(),
        freed_elsewhere_bytes: whole(sum.elsewhere),
    };
    spans(run, course, begun, dies, shown)
}

fn spans<S>(
    run: &Run,
    course: Course,
    begun: impl Fn(&Object) -> usize,
    dies: impl Fn(&Object) -> bool,
    shown: impl Fn(usize, &Sum) -> S,
) -> Spans<S> {
    let mut sums = BTreeMap::<usize, Sum>::new();
    let mut all = Sum::default();
    let mut groups = Vec::new();
    for object in run.objects {
        let (number, dead) = (begun(object), dies(object));
        let dead_bytes = if dead { object.bytes } else { 0.0 };
        let sum = sums.entry(number).or_default();
        sum.bytes += object.bytes;
        sum.dead += dead_bytes;
        sum.elsewhere += if is_freed_elsewhere(run, object) { object.bytes } else { 0.0 };
        all.bytes += object.bytes;
        all.dead += dead_bytes;
        groups.push(dead.then_some(number));
    }
    let ends = Ends { groups, share: 0.0 };
    let (measured, predicted) = predicted::resident(run.events, run.objects, &ends, course);
    let count = sums.len();
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by(|a, b| b.1.bytes.total_cmp(&a.1.bytes));
    sums.truncate(MOST_SHOWN);
    sums.sort_by_key(|(number, _)| *number);
    let largest = sums.iter().map(|(number, sum)| shown(*number, sum)).collect();
    Spans { count, dead_percent: all.dead_percent(), measured, predicted, largest }
}

fn is_freed_elsewhere(run: &Run, object: &Object) -> bool {
    let thread = run.events[object.begun].thread;
    let by = object.ended.map(|ended| &run.events[ended]).filter(|event| event.bytes.is_none());
    by.is_some_and(|event| event.thread != thread)
}

fn since_first(run: &Run, event: usize) -> u64 {
    let at = |event: usize| run.events.get(event).map_or(0, |event| event.at_ns);
    at(event).saturating_sub(at(0)) / 1_000_000
}

// By depth in the stacks of its blocks.
fn function(run: &Run, events: std::ops::Range<usize>) -> Option<String> {
    let mut bytes = BTreeMap::<usize, (f64, usize)>::new();
    let mut all = 0.0;
    for object in run.objects.iter().filter(|object| events.contains(&object.begun)) {
        all += object.bytes;
        let mut seen = BTreeSet::new();
        let path = run.stacks.path(run.events[object.begun].site);
        for (depth, step) in path.iter().rev().skip(1).rev().enumerate() {
            if seen.insert(step.function) {
                let (sum, deepest) = bytes.entry(step.function).or_default();
                *sum += object.bytes;
                *deepest = (*deepest).max(depth);
            }
        }
    }
    let is_own = |function: &usize| run.stacks.functions[*function].is_place();
    let common = bytes.into_iter().filter(|(_, (sum, _))| *sum >= MOST_OF * all);
    let innermost =
        common.filter(|(function, _)| is_own(function)).max_by_key(|(_, (_, depth))| *depth);
    innermost.map(|(function, _)| run.stacks.functions[function].name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::advise::stacks::Stacks;
    use crate::events::Event;

    const BLOCK: u64 = 4096;

    // Thread 1 builds and frees all of its blocks, thread 2 keeps half of its own, and frees the
    // last one of thread 1.
    #[test]
    fn threads_are_told_apart() {
        let event = |thread, bytes| Event { at_ns: 1, bytes, thread, ..Event::default() };
        let events = [
            event(1, Some(BLOCK)),
            event(1, Some(BLOCK)),
            event(1, None),
            event(2, Some(BLOCK)),
            event(2, Some(BLOCK)),
            event(2, None),
            event(2, None),
        ];
        let object = |begun, ended| Object { begun, ended, bytes: 4096.0 };
        let objects = [object(0, Some(2)), object(1, Some(6)), object(3, Some(5)), object(4, None)];
        let stacks = Stacks::default();
        let run = Run { events: &events, stacks: &stacks, objects: &objects };
        let spans = by_thread(&run, Course { moments: &[], may_have_helper: true });
        assert_eq!(spans.count, 2);
        assert_eq!(spans.dead_percent, 50);
        let [first, second] = &spans.largest[..] else { panic!("two threads") };
        assert_eq!((first.number, first.dead_percent, first.freed_elsewhere_bytes), (1, 50, BLOCK));
        assert_eq!(
            (second.number, second.dead_percent, second.allocated_bytes),
            (2, 50, 2 * BLOCK)
        );
        let phases = by_phase(&run, Course { moments: &[], may_have_helper: true });
        assert_eq!((phases.count, phases.dead_percent), (1, 75));
    }
}
