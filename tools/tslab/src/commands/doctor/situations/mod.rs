//! Processes in trouble and out of it, with the verdict that an expert gives on each.
//!
//! Each is two looks a second apart, or what a process left behind, and what the system says. Each
//! check has a situation for it and one against it.

mod elsewhere;
mod free;
mod lifetimes;
mod living;
mod speed;

use super::finding::MIB;
use super::tests::{Case, findings, healthy, of_patient, report};
use super::*;
use crate::commands::Subject;
use crate::fixture::{Closing, Image, TOLD_MS, add_epoch, add_sampled, server};
use crate::helper::Helper;
use crate::rows::bins;

const UNIT: u64 = 65_536;
const FIVE_MINUTES_MS: u64 = 300_000;
const TWO_HOURS_MS: u64 = 7_200_000;

struct Situation {
    name: &'static str,
    /// What an expert says of it.
    verdict: &'static str,
    case: Case,
    /// The findings in order: the cause, and words of what is wrong or of the advice.
    expected: &'static [(&'static str, &'static str)],
    /// What a hasty look would name, and is not there.
    against: &'static [&'static str],
}

// So many MiB that live in objects of 512 B, and are free in their slabs, in a program that opens
// no epochs.
fn unchanged(live: u64, free: u64) -> Image {
    let mut image = Image::new(42, 7);
    image.told_ms = TWO_HOURS_MS;
    image.set_all("heaps", 1, &[("state", 1), ("home", 1), ("thread", 42)]);
    image.set_class("bins", 1, "out", 3, live * MIB / 512);
    image.set_class("bins", 1, "slabs", 3, (live + free) * MIB / UNIT);
    image.set("process", 0, "open_bytes", (live + free) * MIB);
    image
}

// The same in a program that has served requests in epochs.
fn changed(live: u64, free: u64) -> Image {
    let mut image = unchanged(live, free);
    add_epoch(&mut image, 3, "request", &[("state", 2), ("opened_ms", 100), ("closed_ms", 200)]);
    image
}

fn with(mut image: Image, values: &[(&str, u64)]) -> Image {
    image.set_all("process", 0, values);
    image
}

// So many MiB free beside what there is, and not given back.
fn with_dirty(image: Image, used: u64, dirty: u64) -> Image {
    let open = (used + dirty) * MIB;
    let free = dirty * MIB;
    with(image, &[("open_bytes", open), ("free_bytes", free), ("dirty_bytes", free)])
}

// `rss`: in MiB at both looks; of it, `blocks` are the allocator's.
fn looks(before: Image, now: Image, rss: [u64; 2], blocks: u64) -> Case {
    let (rss_bytes, blocks_bytes) = (Some(rss.map(|mib| mib * MIB)), Some(blocks * MIB));
    let helper = Some(Helper::Absent);
    let before = Image { told_ms: now.told_ms - 1000, ..before };
    Case { before: Some(before), now, rss_bytes, blocks_bytes, helper, ..Case::default() }
}

fn still(image: fn() -> Image, rss: u64, blocks: u64) -> Case {
    looks(image(), image(), [rss, rss], blocks)
}

fn all() -> Vec<Situation> {
    let by_noun = [free::all(), elsewhere::all(), lifetimes::all(), living::all(), speed::all()];
    by_noun.into_iter().flatten().collect()
}

fn texts(finding: &Finding) -> String {
    format!("{} -> {}", finding.what, finding.advice)
}

#[test]
fn doctor_says_what_an_expert_says() {
    for situation in all() {
        let found = report(&situation.case).findings;
        let causes: Vec<_> = found.iter().map(|finding| finding.cause).collect();
        let expected: Vec<_> = situation.expected.iter().map(|(cause, _)| *cause).collect();
        let (name, verdict) = (situation.name, situation.verdict);
        assert_eq!(causes, expected, "{name}: {verdict}\n{found:#?}");
        for (finding, (_, words)) in found.iter().zip(situation.expected) {
            let said = texts(finding);
            assert!(said.contains(words), "{name}: {verdict}\n{said}");
        }
    }
}

#[test]
fn every_check_has_a_situation_for_it_and_one_against_it() {
    let all = all();
    for check in &CHECKS {
        let is_found = |situation: &Situation| {
            situation.expected.iter().any(|(cause, _)| *cause == check.name)
        };
        let is_against = |situation: &&Situation| situation.against.contains(&check.name);
        assert!(all.iter().any(is_found), "{}", check.name);
        let mut against = all.iter().filter(is_against).peekable();
        assert!(against.peek().is_some() && !against.any(is_found), "{}", check.name);
    }
}

#[test]
fn unchanged_programs_hear_nothing_of_epochs() {
    for situation in all() {
        let now = Subject::of_bytes(situation.case.now.bytes());
        let has_closed = now.snapshot.work.of_homes.sum(bins::CLOSES).is_some_and(|n| n > 0);
        let is_changed = has_closed || now.snapshot.epochs.len() > 1;
        for finding in report(&situation.case).findings {
            let said = texts(&finding);
            assert!(is_changed || !said.contains("epoch"), "{}: {said}", situation.name);
        }
    }
}

// Findings are about different bytes, of which there are no more than are resident or held.
#[test]
fn findings_are_ranked_and_no_larger_than_the_whole() {
    for situation in all() {
        let case = &situation.case;
        let found = report(case).findings;
        assert!(found.is_sorted_by_key(|finding| finding.rank), "{}", situation.name);
        let held = Subject::of_bytes(case.now.bytes()).snapshot.totals().held_bytes;
        let whole = case.rss_bytes.map(|[_, now]| now).or(held).unwrap();
        let sum: u64 = found.iter().filter_map(|finding| finding.bytes).sum();
        assert!(sum <= whole, "{}: {sum} of {whole}", situation.name);
    }
}

#[test]
fn no_finding_is_of_no_objects() {
    for situation in all() {
        for finding in report(&situation.case).findings {
            assert_ne!(finding.evidence.get("objects"), Some(&0.into()), "{finding:?}");
            assert!(!finding.what.contains("about 0 "), "{}: {finding:?}", situation.name);
        }
    }
}

#[test]
fn no_option_is_to_be_raised_and_lowered() {
    for situation in all() {
        let found = report(&situation.case).findings;
        let says = |words: &str| found.iter().any(|finding| finding.advice.contains(words));
        let both = says("raise option purge_delay_ms") && says("lower option purge_delay_ms");
        assert!(!both, "{}", situation.name);
    }
}

// 128 MiB that a thread keeps at hand in an epoch, and so many MiB free in slabs of the default
// one.
fn at_hand_in_an_old_epoch(free: u64) -> Image {
    let mut image = healthy();
    let hot = 128 * MIB / 512;
    image.set_all("heaps", 3, &[("epoch", 7)]);
    image.set_all("epochs", 7, &[("opened_ms", TOLD_MS - 600_001), ("held_bytes", 128 * MIB)]);
    image.set_class("bins", 3, "hot", 3, hot);
    image.set_class("bins", 3, "out", 3, hot);
    image.set_class("bins", 1, "slabs", 3, free * MIB / 65_536);
    image.set("process", 0, "open_bytes", 512 * MIB);
    image
}

#[test]
fn objects_at_hand_in_an_epoch_that_is_told_are_in_no_other_finding() {
    let found = findings(&at_hand_in_an_old_epoch(0));
    assert!(found.iter().any(|finding| finding.cause == "open-too-long"), "{found:?}");
    let held = at_hand_in_an_old_epoch(0);
    let held = Subject::of_bytes(held.bytes()).snapshot.totals().held_bytes;
    let sum: u64 = found.iter().filter_map(|finding| finding.bytes).sum();
    assert!(sum <= held.unwrap(), "{sum} of {held:?}: {found:#?}");
}

#[test]
fn objects_at_hand_in_an_epoch_that_is_told_hide_no_other_finding() {
    let found = findings(&at_hand_in_an_old_epoch(100));
    let causes: Vec<_> = found.iter().map(|finding| finding.cause).collect();
    assert_eq!(causes, ["open-too-long", "retention"], "{found:#?}");
}

// An hour lies between a copy of the file and now.
fn in_an_hour(before: &[(&str, u64)], now: &[(&str, u64)]) -> Vec<Finding> {
    let dirty = [("free_bytes", 64 * MIB), ("dirty_bytes", 64 * MIB), ("open_bytes", 65 * MIB)];
    let image = |told_ms, told: &[(&str, u64)]| {
        let mut image = with(healthy(), &dirty);
        image.set_all("process", 0, told);
        Image { told_ms, ..image }
    };
    let (before, now) = (image(TOLD_MS, before), image(TOLD_MS + 3_600_000, now));
    let found = report(&Case { before: Some(before), now, ..Case::default() }).findings;
    found.into_iter().filter(|finding| finding.cause != "open-too-long").collect()
}

#[test]
fn a_little_that_went_back_in_an_hour_is_not_the_rest_on_its_way() {
    let told = |purges, mib: u64| [("purges", purges), ("purged_bytes", mib * MIB)];
    let found = in_an_hour(&told(5, 10), &told(6, 14));
    assert!(found.len() == 1 && found[0].cause == "dirty", "{found:?}");
    let found = texts(&found[0]);
    assert!(found.contains(", and 4.0 MiB went back in 60 min ->"), "{found}");
    assert!(in_an_hour(&told(5, 10), &told(6, 15)).is_empty());
}

#[test]
fn a_refusal_among_many_purges_of_an_hour_is_no_finding() {
    let told = |purges, refused| [("purges", purges), ("purges_refused", refused)];
    let causes = |now: &[(&str, u64)]| -> Vec<_> {
        in_an_hour(&told(500, 0), now).iter().map(|finding| finding.cause).collect()
    };
    assert_eq!(causes(&told(502, 2)), ["purge-refused"]);
    assert_eq!(causes(&told(503, 2)), ["dirty"]);
}
