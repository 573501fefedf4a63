//! Phases of a run: from one moment at which little lives to the next. What lives rises to a peak
//! in each, and falls to less than half of that before it rises again.

use super::rounds::Run;

// Of a phase's peak, what lives must fall below the first, and rise above the lowest by the second,
// so that another phase has begun.
const FALL: f64 = 0.5;
const RISE: f64 = 0.25;

/// Places of the events at which phases begin; the first one begins with the run.
pub fn starts(run: &Run) -> Vec<usize> {
    let mut changes = Vec::new();
    for object in run.objects {
        changes.push((object.begun, object.bytes));
        changes.extend(object.ended.map(|ended| (ended, -object.bytes)));
    }
    changes.sort_by_key(|&(at, _)| at);
    let mut starts = vec![0];
    let mut live = 0.0;
    let (mut most, mut least, mut least_at) = (0.0_f64, f64::INFINITY, 0);
    for (at, bytes) in changes {
        live += bytes;
        let is_falling = least < FALL * most;
        if is_falling && live > least + RISE * most {
            starts.push(least_at + 1);
            (most, least) = (live, f64::INFINITY);
        }
        most = most.max(live);
        if live < least && live < FALL * most {
            (least, least_at) = (live, at);
        }
    }
    starts
}

/// The phase of an event.
pub fn of(starts: &[usize], event: usize) -> usize {
    starts.partition_point(|&start| start <= event).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::advise::rounds::Object;
    use crate::commands::advise::stacks::Stacks;

    // Blocks of 1 KiB: 100 come and all but 5 go, three times.
    fn objects() -> Vec<Object> {
        let object = |phase: usize, block: usize| Object {
            begun: phase * 200 + block,
            ended: (block < 95).then_some(phase * 200 + 100 + block),
            bytes: 1024.0,
        };
        (0..3).flat_map(|phase| (0..100).map(move |block| object(phase, block))).collect()
    }

    #[test]
    fn a_phase_begins_where_least_lives() {
        let stacks = Stacks::default();
        let objects = objects();
        let run = Run { events: &[], stacks: &stacks, objects: &objects };
        let starts = starts(&run);
        assert_eq!(starts, [0, 195, 395]);
        assert_eq!([0, 194, 195, 399].map(|at| of(&starts, at)), [0, 0, 1, 2]);
    }

    #[test]
    fn what_only_grows_is_one_phase() {
        let stacks = Stacks::default();
        let objects: Vec<_> = objects().into_iter().map(|o| Object { ended: None, ..o }).collect();
        let run = Run { events: &[], stacks: &stacks, objects: &objects };
        assert_eq!(starts(&run), [0]);
    }
}
