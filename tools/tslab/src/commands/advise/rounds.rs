//! The rounds of a function: its calls, or those of its loop, as far as sampled events show them.
//!
//! No call is instrumented. A thread that comes to a function from outside begins a round; so does
//! one that goes back in it, from behind a line (the cut) to before it. Of all lines the one is
//! chosen that makes most rounds while what is allocated in a round still dies in it.

use std::collections::{BTreeMap, HashMap};

use super::groups::Ends;
use super::stacks::{Function, Node, Stacks, Step};
use crate::events::{Event, Events};
use crate::sampling::{Sampling, float};

/// Of the bytes below a function so many must die in their round, or no scope belongs there.
pub const ENOUGH: f64 = 0.9;

// Lines of a function that are tried.
const MOST_CUTS: usize = 16;

/// A sampled block.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    /// Place of its event.
    pub begun: usize,
    /// Place of the event that ended it.
    pub ended: Option<usize>,
    /// For how many bytes it stands.
    pub bytes: f64,
}

/// The blocks that the events tell of. A number that comes again is another block's: the first one
/// was ended unseen.
pub fn objects(events: &Events, sampling: &Sampling) -> Vec<Object> {
    let mut objects = Vec::<Object>::new();
    let mut live = HashMap::<u64, usize>::new();
    for (place, event) in events.all.iter().enumerate() {
        let before = live.remove(&event.sample);
        if let Some(before) = before {
            objects[before].ended = Some(place);
        }
        let Some(bytes) = event.bytes else { continue };
        live.insert(event.sample, objects.len());
        let all = float(event.times) * sampling.weight(float(bytes)) * float(bytes);
        objects.push(Object { begun: place, ended: None, bytes: all });
    }
    objects
}

/// What dies in the rounds of a function, and what does not.
#[derive(Clone, Debug)]
pub struct Rounds {
    /// Whose they are.
    pub function: Function,
    /// How many.
    pub count: usize,
    /// Of all objects, those that were allocated in one; the number of the round in which they
    /// died, if it was the same.
    pub objects: Vec<(usize, Option<usize>)>,
    /// Bytes of these.
    pub bytes: f64,
    /// Of them, those that died.
    pub dead_bytes: f64,
}

impl Rounds {
    /// Of the bytes that were allocated in a round, those that died in it.
    pub fn dead_share(&self) -> f64 {
        if self.bytes > 0.0 { self.dead_bytes / self.bytes } else { 0.0 }
    }

    /// Of each of all objects, the round that it dies in. Several rounds may seem to be one, in
    /// which blocks of the first live on in the next.
    pub fn ends(&self, objects: usize) -> Ends {
        let mut groups = vec![None; objects];
        for &(place, round) in &self.objects {
            groups[place] = round;
        }
        Ends { groups, share: 1.0 - ENOUGH }
    }
}

/// What is known of a run.
#[derive(Debug)]
pub struct Run<'a> {
    /// All events.
    pub events: &'a [Event],
    /// Who made them.
    pub stacks: &'a Stacks,
    /// The blocks.
    pub objects: &'a [Object],
}

// When rounds begin, by thread and node.
type Starts = HashMap<(u64, Node), Vec<usize>>;

impl Run<'_> {
    /// The rounds of a function.
    pub fn rounds(&self, function: Function) -> Rounds {
        let steps: Vec<_> =
            self.events.iter().map(|event| self.stacks.step(event.site, function)).collect();
        let tried = cuts(&steps).into_iter().map(Some).chain([None]);
        let all = tried.map(|cut| self.cut(function, &steps, cut));
        let is_enough = |rounds: &Rounds| rounds.dead_share() >= ENOUGH;
        let better = |best: Rounds, next: Rounds| match (is_enough(&best), is_enough(&next)) {
            (true, true) if next.count > best.count => next,
            (false, true) => next,
            (false, false) if next.dead_share() > best.dead_share() => next,
            _ => best,
        };
        let none = Rounds { function, count: 0, objects: vec![], bytes: 0.0, dead_bytes: 0.0 };
        all.fold(none, better)
    }

    fn cut(&self, function: Function, steps: &[Option<Step>], cut: Option<u64>) -> Rounds {
        let starts = self.starts(steps, cut);
        let count = starts.values().map(Vec::len).sum();
        let mut rounds = Rounds { function, count, objects: vec![], bytes: 0.0, dead_bytes: 0.0 };
        for (place, object) in self.objects.iter().enumerate() {
            let Some(step) = steps[object.begun] else { continue };
            let round = self.round(object, step, steps, &starts);
            rounds.objects.push((place, round));
            rounds.bytes += object.bytes;
            rounds.dead_bytes += if round.is_some() { object.bytes } else { 0.0 };
        }
        rounds
    }

    fn starts(&self, steps: &[Option<Step>], cut: Option<u64>) -> Starts {
        let mut starts = Starts::new();
        let mut last = HashMap::<u64, Option<Step>>::new();
        for (place, (event, step)) in self.events.iter().zip(steps).enumerate() {
            if self.stacks.path(event.site).is_empty() {
                continue;
            }
            let before = last.insert(event.thread, *step).flatten();
            let Some(step) = step else { continue };
            let goes_on = before.is_some_and(|before| {
                let went_back = cut.is_some_and(|cut| before.at >= cut && step.at < cut);
                before.node == step.node && !went_back
            });
            if !goes_on {
                starts.entry((event.thread, step.node)).or_default().push(place);
            }
        }
        starts
    }

    // In which it dies; the place of the event that begins it. Whoever frees it on its own thread
    // does so below the function, or after the call.
    fn round(
        &self,
        object: &Object,
        step: Step,
        steps: &[Option<Step>],
        starts: &Starts,
    ) -> Option<usize> {
        let ended = object.ended?;
        let (begin, end) = (&self.events[object.begun], &self.events[ended]);
        let is_known = end.bytes.is_none() && !self.stacks.path(end.site).is_empty();
        let is_own = is_known && begin.thread == end.thread;
        if is_own && steps[ended].is_none_or(|end| end.node != step.node) {
            return None;
        }
        let starts = starts.get(&(begin.thread, step.node))?;
        let next = starts.partition_point(|&start| start <= object.begun);
        let is_before_next = starts.get(next).is_none_or(|&next| next > ended);
        if is_before_next { starts.get(next.checked_sub(1)?).copied() } else { None }
    }
}

// The lines that events have most often; none is before the first.
fn cuts(steps: &[Option<Step>]) -> Vec<u64> {
    let mut lines = BTreeMap::<u64, usize>::new();
    for step in steps.iter().flatten() {
        *lines.entry(step.at).or_default() += 1;
    }
    let mut lines: Vec<_> = lines.into_iter().skip(1).collect();
    lines.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    lines.into_iter().take(MOST_CUTS).map(|(line, _)| line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names;
    use crate::sampling::Site;

    const BUILD: usize = 1;
    const DROP: usize = 2;
    const KEEP: usize = 3;

    // main calls job, which calls build, keep and drop.
    fn stacks() -> Stacks {
        let names = names::of_test(&[
            (0x1000, "main", "a.c", 5),
            (0x1010, "job", "a.c", 20),
            (0x1011, "job", "a.c", 22),
            (0x1020, "build", "a.c", 30),
            (0x1030, "drop", "a.c", 40),
            (0x1040, "keep", "a.c", 50),
        ]);
        let site = |row, frames: &[u64]| Site { row, frames: frames.to_vec(), ..Site::default() };
        let sites = [
            site(BUILD, &[0x1021, 0x1011, 0x1001]),
            site(DROP, &[0x1031, 0x1012, 0x1001]),
            site(KEEP, &[0x1041, 0x1021, 0x1011, 0x1001]),
        ];
        Stacks::of(&sites, &names)
    }

    fn function(stacks: &Stacks, name: &str) -> Function {
        stacks.functions.iter().position(|known| known.name == name).unwrap()
    }

    // Twenty jobs, each of which builds ten blocks and keeps one until the next but one.
    fn events(freeing_thread: u64) -> Events {
        let mut events = Events::default();
        let mut add = |bytes, sample, site, thread| {
            let at_ns = events.all.len() as u64 + 1;
            events.all.push(Event { at_ns, bytes, times: 1, sample, site, thread });
        };
        for job in 0..20 {
            (0..10).for_each(|block| add(Some(4096), block, BUILD, 1));
            add(Some(2048), 100 + job, KEEP, 1);
            if job > 1 {
                add(None, 98 + job, KEEP, 1);
            }
            (0..10).for_each(|block| add(None, block, DROP, freeing_thread));
        }
        events
    }

    fn rounds(events: &Events, name: &str) -> (usize, u64) {
        let stacks = stacks();
        let sampling = Sampling { weight_bytes: 4096, ..Sampling::default() };
        let objects = objects(events, &sampling);
        let run = Run { events: &events.all, stacks: &stacks, objects: &objects };
        let rounds = run.rounds(function(&stacks, name));
        (rounds.count, crate::sampling::whole(100.0 * rounds.dead_share()))
    }

    #[test]
    fn rounds_are_told_apart_by_going_back() {
        let (count, percent) = rounds(&events(1), "job");
        assert_eq!(count, 20);
        assert!((90..100).contains(&percent), "{percent}: what is kept outlives its round");
    }

    #[test]
    fn what_the_caller_frees_does_not_die_within() {
        assert_eq!(rounds(&events(1), "build").1, 0);
        assert_eq!(rounds(&events(1), "keep").1, 0);
    }

    // One round, of which but the two that are kept last die.
    #[test]
    fn what_encloses_all_has_one_round() {
        let (count, percent) = rounds(&events(1), "main");
        assert_eq!(count, 1);
        assert!(percent >= 99, "{percent}");
    }

    #[test]
    fn other_threads_free_before_the_next_round_or_not() {
        assert!(rounds(&events(2), "job").1 >= 90);
    }

    #[test]
    fn a_number_that_comes_again_ends_the_block_before() {
        let event = |sample| Event { at_ns: 1, bytes: Some(64), sample, ..Event::default() };
        let events = Events { all: vec![event(7), event(7), event(8)], is_cut: false };
        let found = objects(&events, &Sampling::default());
        let ends: Vec<_> = found.iter().map(|object| object.ended).collect();
        assert_eq!(ends, [Some(1), None, None]);
    }
}
