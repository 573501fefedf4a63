//! What would be resident if blocks that end together lay apart from all others.
//!
//! Besides the blocks all stays as it was measured. Blocks of no group lie side by side and keep
//! what they took when they were most. A group takes what lives of it at most, and is idle when
//! nothing of it lives. Where today next to nothing but live blocks and idle memory is resident,
//! nothing is saved.

use serde::Serialize;

use super::apart::Cells;
use super::groups::{Ends, Group, Groups, Slab};
use super::idle::{Givers, Idle, share_left};
use super::rounds::Object;
use crate::commands::record::Moment;
use crate::events::Event;
use crate::sampling::{float, whole};

// A smaller share of what is resident is no saving. Samples tell it from none only to a few
// percent, and a helper that had time gives part of that back without any scope.
const LEAST_SHARE: f64 = 0.1;

/// The most that is resident, and the least behind that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Resident {
    /// The most.
    pub peak_bytes: u64,
    /// The least behind it.
    pub trough_bytes: u64,
    /// Of that, what is predicted to be idle, and to wait for somebody who gives it back.
    #[serde(rename = "idle_bytes")]
    pub idle: u64,
}

impl Resident {
    // Of what is resident, and of it idle, from moment to moment.
    fn of(curve: &[(f64, f64)]) -> Self {
        let peak = curve.iter().fold(0.0, |most: f64, (bytes, _)| most.max(*bytes));
        let behind = curve.iter().skip_while(|(bytes, _)| *bytes < peak);
        let least = behind.min_by(|a, b| a.0.total_cmp(&b.0)).copied();
        let (trough, idle) = least.unwrap_or_default();
        Self { peak_bytes: whole(peak), trough_bytes: whole(trough), idle: whole(idle) }
    }

    /// The greater share that this one is below another, of their peaks and of their troughs.
    pub fn saved_share(&self, now: &Self) -> f64 {
        let share = |then: u64, now: u64| 1.0 - float(then) / float(now.max(1));
        let behind = share(self.trough_bytes, now.trough_bytes);
        behind.max(share(self.peak_bytes, now.peak_bytes))
    }

    /// Whether that is a tenth or more.
    pub fn saves(&self, now: &Self) -> bool {
        self.saved_share(now) >= LEAST_SHARE
    }
}

// What changes as a block comes or goes.
struct Change {
    at_ns: u64,
    bytes: f64,
    slab: Slab,
    // Of cells besides the block, because it was sampled.
    apart_bytes: f64,
    group: Option<usize>,
}

fn changes(events: &[Event], objects: &[Object], groups: &[Option<usize>]) -> Vec<Change> {
    let mut steps = Vec::new();
    for (nth, object) in objects.iter().enumerate() {
        steps.push((events[object.begun].at_ns, nth, 1.0));
        steps.extend(object.ended.map(|ended| (events[ended].at_ns, nth, -1.0)));
    }
    steps.sort_by_key(|&(at_ns, ..)| at_ns);
    let mut cells = Cells::default();
    let mut places = vec![None; objects.len()];
    let mut change = |(at_ns, nth, sign): (u64, usize, f64)| {
        let (object, place): (&Object, &mut Option<_>) = (&objects[nth], &mut places[nth]);
        let begun = &events[object.begun];
        let block_bytes = begun.bytes.unwrap_or_default();
        let cell_bytes = if let Some(place) = place.take() {
            cells.remove(place, block_bytes)
        } else {
            let (taken, more) = cells.add(block_bytes);
            *place = Some(taken);
            more
        };
        Change {
            at_ns,
            bytes: sign * object.bytes,
            slab: Slab { thread: begun.thread, block_bytes },
            apart_bytes: sign * (float(cell_bytes) - float(block_bytes)),
            group: groups[nth],
        }
    };
    steps.into_iter().map(&mut change).collect()
}

// What lives, up to a moment.
struct Live {
    all: f64,
    lasting: Group,
    groups: Groups,
    idle: Idle,
    apart: f64,
    // The same, with what samples that ended left behind.
    kept_apart: f64,
}

impl Live {
    fn none(end_share: f64) -> Self {
        Self {
            all: 0.0,
            lasting: Group::default(),
            groups: Groups::ending_at(end_share),
            idle: Idle::default(),
            apart: 0.0,
            kept_apart: 0.0,
        }
    }

    fn wait(&mut self, passed_ns: u64, givers: Givers) {
        self.idle.wait(passed_ns, givers);
        let left = if givers.is_awake { share_left(passed_ns) } else { 1.0 };
        self.kept_apart = self.apart.max(self.kept_apart * left);
    }

    fn add(&mut self, change: &Change) {
        self.all += change.bytes;
        self.apart += change.apart_bytes;
        self.kept_apart = self.kept_apart.max(self.apart);
        if let Some(group) = change.group {
            let taken = self.groups.add(group, change.bytes, change.slab);
            self.idle.add(-taken);
            return;
        }
        self.lasting.add(change.bytes, change.slab);
    }

    fn taken(&self) -> f64 {
        self.lasting.taken() + self.groups.taken() + self.idle.bytes()
    }
}

/// What is known of a run besides its samples.
#[derive(Clone, Copy, Debug)]
pub struct Course<'a> {
    /// What was resident when.
    pub moments: &'a [Moment],
    /// A helper may give memory back.
    pub may_have_helper: bool,
}

/// What was resident but for the samples, and what is predicted.
pub fn resident(
    events: &[Event],
    objects: &[Object],
    ends: &Ends,
    course: Course,
) -> (Resident, Resident) {
    let changes = changes(events, objects, &ends.groups);
    let mut changes = changes.iter().peekable();
    let mut live = Live::none(ends.share);
    let mut last = course.moments.first().copied();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for moment in course.moments {
        let then = last.replace(*moment).unwrap_or(*moment);
        // A thread with nothing to give back need not tell of itself; with epochs it would have.
        let acts = changes.peek().is_some_and(|change| change.at_ns <= moment.at_ns);
        let givers = Givers {
            is_awake: acts || moment.told_ms != then.told_ms,
            has_threads: moment.has_threads,
            may_have_helper: course.may_have_helper,
        };
        live.wait(moment.at_ns.saturating_sub(then.at_ns), givers);
        while let Some(change) = changes.next_if(|change| change.at_ns <= moment.at_ns) {
            live.add(change);
        }
        let now = (float(moment.anonymous_bytes) - live.kept_apart).max(0.0);
        before.push((now, 0.0));
        after.push((one(moment, &live, now), live.idle.bytes().min(now)));
    }
    (Resident::of(&before), Resident::of(&after))
}

// A scope adds nothing, and frees nothing but what lies idle between live blocks.
fn one(moment: &Moment, live: &Live, now: f64) -> f64 {
    let blocks = float(moment.blocks_bytes);
    let between = blocks - live.kept_apart - float(moment.idle_bytes) - live.all;
    if between < LEAST_SHARE * now {
        return now;
    }
    let rest = float(moment.anonymous_bytes) - blocks;
    (rest + live.taken()).min(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn event(at_ms: u64, sample: u64, bytes: Option<u64>) -> Event {
        Event { at_ns: at_ms * 1_000_000, bytes, times: 1, sample, site: 1, thread: 1 }
    }

    fn moment(at_ms: u64, blocks_mib: u64) -> Moment {
        Moment {
            at_ns: at_ms * 1_000_000,
            anonymous_bytes: (blocks_mib + 1) * MIB,
            blocks_bytes: blocks_mib * MIB,
            idle_bytes: 0,
            told_ms: at_ms,
            has_threads: false,
        }
    }

    fn course(moments: &[Moment]) -> Course<'_> {
        Course { moments, may_have_helper: true }
    }

    // 10 MiB end together, 2 MiB do not. The pages of the first stay, as they do today.
    fn of(moments: &[Moment], groups: [Option<usize>; 2]) -> (Resident, Resident) {
        let events = [event(0, 1, Some(MIB)), event(0, 2, Some(MIB)), event(100, 1, None)];
        let object = |begun, ended, mib| Object { begun, ended, bytes: float(mib * MIB) };
        let objects = [object(0, Some(2), 10), object(1, None, 2)];
        let ends = Ends { groups: groups.to_vec(), share: 0.0 };
        resident(&events, &objects, &ends, course(moments))
    }

    #[test]
    fn what_ends_together_goes_back() {
        let moments = [50, 100, 200, 300, 400, 500].map(|at_ms| moment(at_ms, 12));
        let (now, then) = of(&moments, [Some(7), None]);
        assert_eq!((now.peak_bytes, now.trough_bytes), (13 * MIB, 13 * MIB));
        assert_eq!((then.peak_bytes, then.trough_bytes), (13 * MIB, 3 * MIB));
        assert_eq!(then.idle, 0);
        assert!(then.saves(&now) && !now.saves(&now));
        let (_, then) = of(&moments, [None, None]);
        assert_eq!(then.trough_bytes, 13 * MIB, "of no group, nothing goes back");
    }

    #[test]
    fn nobody_gives_back_in_a_silent_process() {
        let silent = |at_ms| Moment { told_ms: 50, ..moment(at_ms, 12) };
        let (_, then) = of(&[50, 100, 200, 300, 2100].map(silent), [Some(7), None]);
        assert_eq!(then.trough_bytes, 13 * MIB);
        assert_eq!(then.idle, 0, "at the first of them nothing was");
    }

    // What is idle already does not wait for a scope.
    #[test]
    fn where_little_lies_between_live_blocks_nothing_is_saved() {
        let idle = |at_ms| Moment { idle_bytes: 10 * MIB, ..moment(at_ms, 12) };
        let (now, then) = of(&[50, 100, 200, 300, 400].map(idle), [Some(7), None]);
        assert_eq!(now.trough_bytes, then.trough_bytes);
    }

    // They are no part of what is resident otherwise.
    #[test]
    fn cells_of_samples_are_left_out() {
        let events = [event(0, 1, Some(96)), event(100, 1, None)];
        let objects = [Object { begun: 0, ended: Some(1), bytes: 16384.0 }];
        let peak = |moments: &[Moment]| {
            let ends = Ends { groups: vec![None], share: 0.0 };
            let (now, _) = resident(&events, &objects, &ends, course(moments));
            now.peak_bytes
        };
        assert_eq!(peak(&[moment(50, 1)]), 2 * MIB - 4000);
        let silent = |at_ms| Moment { told_ms: 50, ..moment(at_ms, 1) };
        let stays = "the page stays while nobody gives back";
        assert_eq!(peak(&[50, 150, 250].map(silent)), 2 * MIB - 4000, "{stays}");
        assert_eq!(peak(&[50, 150, 250].map(|at_ms| moment(at_ms, 1))), 2 * MIB - 2000);
    }
}
