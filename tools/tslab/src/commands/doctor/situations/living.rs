//! What lives outside of epochs, and becomes more or does not.

use super::*;
use crate::commands::default_epoch::tests::Program;

const TWO_MINUTES_MS: u64 = 120_000;

// So many MiB live after so long; the peak was so long ago.
fn living(lived_ms: u64, live: u64, peak_ago_ms: u64) -> Image {
    let mut image = unchanged(live, 0);
    image.told_ms = image.made_ms + lived_ms;
    let peak_ms = image.told_ms - peak_ago_ms;
    with(image, &[("peak_ms", peak_ms)])
}

// Looks a second apart: by so many MiB it grew in that.
fn grown(lived_ms: u64, live: u64, by: u64, peak_ago_ms: u64) -> Case {
    let before = living(lived_ms - 1000, live - by, 0);
    looks(before, living(lived_ms, live, peak_ago_ms), [live + 10, live + 10], live)
}

// Two sampled objects a second, for ten minutes.
fn sampled(program: &Program) -> Case {
    let (before, now) = (program.image_at(599_000), program.image_at(600_000));
    Case { after_ms: Some(60_000), ..looks(before, now, [80, 80], 75) }
}

pub fn all() -> Vec<Situation> {
    vec![
        Situation {
            name: "a thread that loses 2 MiB a second",
            verdict: "All of 240 MiB came like that.",
            case: grown(TWO_MINUTES_MS, 240, 2, 100),
            expected: &[("live-growth", "240.0 MiB live, 2.0 MiB of them new in 1.0 s")],
            against: &[],
        },
        Situation {
            name: "a thread that loses 8 KiB a second, in a process that samples",
            verdict: "A second is too short to see it, and its samples are of all ages.",
            case: sampled(&Program::default()),
            expected: &[("live-growth", "about 4.3 MiB of them by 1 call stack that keeps more")],
            against: &[],
        },
        Situation {
            name: "a cache that is full, in a process that samples",
            verdict: "Its samples are of all ages up to that at which they go.",
            case: sampled(&Program { lifetime: |_| 250_000, ..Program::default() }),
            expected: &[],
            against: &["live-growth"],
        },
        Situation {
            name: "a cache that was filled at the start",
            verdict: "It stays as it is.",
            case: grown(TWO_MINUTES_MS, 240, 0, 60_000),
            expected: &[],
            against: &["live-growth"],
        },
        Situation {
            name: "a busy second of a server that once had more",
            verdict: "What it has more it will free: it did before.",
            case: grown(TWO_MINUTES_MS, 240, 2, 30_000),
            expected: &[],
            against: &["live-growth"],
        },
        Situation {
            name: "a server of two hours that takes 8 MiB in a second",
            verdict: "It has not grown like that, or it would hold 56 GiB.",
            case: grown(TWO_HOURS_MS, 240, 8, 100),
            expected: &[],
            against: &["live-growth"],
        },
        Situation {
            name: "a program that reads its data, for half a minute",
            verdict: "It may be about to have all.",
            case: Case { after_ms: Some(60_000), ..grown(30_000, 240, 8, 100) },
            expected: &[],
            against: &["live-growth"],
        },
    ]
}

#[test]
fn it_counts_from_64_mib_on_and_a_mib_more() {
    let causes = |live, by| -> Vec<_> {
        let found = report(&grown(100_000, live, by, 100)).findings;
        found.iter().map(|finding| finding.cause).collect()
    };
    assert_eq!(causes(64, 1), ["live-growth"]);
    assert!(causes(63, 1).is_empty() && causes(64, 3).is_empty());
    assert_eq!(causes(199, 1), ["live-growth"]);
    assert!(causes(202, 1).is_empty());
}

#[test]
fn the_advice_fits_what_is_sampled() {
    let advice = |told: &[(&str, u64)]| {
        let mut case = grown(TWO_MINUTES_MS, 240, 2, 100);
        case.now.set_all("process", 0, told);
        report(&case).findings[0].advice.clone()
    };
    assert!(advice(&[]).starts_with("start it with TSLAB_SAMPLE_BYTES=512K"));
    let sampled = advice(&[("sample_bytes", 4096), ("weight_bytes", 4096)]);
    assert!(sampled.starts_with("`tslab leaks 42` names the call stacks"), "{sampled}");
}

// Half an hour of growth: a MiB more takes 8 s.
#[test]
fn what_may_grow_too_slowly_for_the_looks_is_said() {
    let half_an_hour_ms = 15 * TWO_MINUTES_MS;
    let said = |live, by, peak_ago_ms| {
        of_patient(&grown(half_an_hour_ms, live, by, peak_ago_ms), live::undecided)
    };
    let expected = "225.0 MiB live, and the process held most 7.9 s ago: whether that grows \
                    slowly, a longer look tells (--over 16)";
    assert_eq!(said(225, 0, 7_900).as_deref(), Some(expected));
    assert_eq!(said(225, 0, 8_100), None, "a MiB more would have been a peak");
    assert_eq!(said(63, 0, 0), None);
    let fast = of_patient(&grown(TWO_MINUTES_MS, 240, 2, 100), live::undecided);
    assert_eq!(fast, None, "a second is enough to see it");
}

// The look that is advised finds the leak for which it is advised.
#[test]
fn a_look_as_long_as_advised_tells() {
    let half_an_hour_ms = 15 * TWO_MINUTES_MS;
    let mut case = grown(half_an_hour_ms, 225, 2, 100);
    let before = case.before.as_mut().unwrap();
    before.told_ms = case.now.told_ms - 16_000;
    assert_eq!(of_patient(&case, live::undecided), None);
    let found = report(&case).findings;
    assert!(found.len() == 1 && found[0].cause == "live-growth", "{found:?}");
}

#[test]
fn what_call_stacks_keep_counts_from_a_mib_on() {
    let found = |lived_ms| {
        let program = Program::default();
        let (before, now) = (program.image_at(lived_ms - 1000), program.image_at(lived_ms));
        let case = Case { after_ms: Some(60_000), ..looks(before, now, [80, 80], 75) };
        report(&case).findings.into_iter().map(|finding| finding.cause).collect::<Vec<_>>()
    };
    assert!(found(180_000).is_empty());
    assert_eq!(found(200_000), ["live-growth"]);
}
