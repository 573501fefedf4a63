//! Processes in trouble and out of it, with the verdict that an expert gives on each.
//!
//! Each is two looks a second apart, or what a process left behind, and what the system says. Each
//! check has a situation for it and one against it.

use super::finding::MIB;
use super::helper::Helper;
use super::tests::{Case, findings, healthy, report};
use super::*;
use crate::commands::Subject;
use crate::fixture::{Closing, Image, TOLD_MS, add_epoch, server};

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

// What a class did in the second.
fn did(mut image: Image, allocations: u64, values: &[(&str, u64)]) -> Image {
    image.set_class("bins", 1, "allocations", 3, allocations);
    for (field, value) in values {
        image.set_class("bins", 1, field, 3, *value);
    }
    image
}

// `rss`: in MiB at both looks; of it, `blocks` are the allocator's.
fn looks(before: Image, now: Image, rss: [u64; 2], blocks: u64) -> Case {
    let (rss_bytes, blocks_bytes) = (Some(rss.map(|mib| mib * MIB)), Some(blocks * MIB));
    let helper = Some(Helper::Absent);
    let before = Image { told_ms: now.told_ms - 1000, ..before };
    Case { before: Some(before), now, rss_bytes, blocks_bytes, helper }
}

fn still(image: fn() -> Image, rss: u64, blocks: u64) -> Case {
    looks(image(), image(), [rss, rss], blocks)
}

fn sessions() -> Closing {
    Closing { kept_ms: 100_000, ..Closing::leak((3, "session"), 40) }
}

fn closing(which: Closing) -> Case {
    looks(server(FIVE_MINUTES_MS - 1000, &[which]), server(FIVE_MINUTES_MS, &[which]), [80, 80], 70)
}

fn ended(image: Image) -> Case {
    Case { now: image, ..Case::default() }
}

// As redis after FLUSHALL: its thread has freed, and told neither of slabs that it gave away nor of
// empty units that others have now.
fn silent() -> Image {
    with(unchanged(1, 3), &[("open_bytes", 230 * MIB)])
}

// The same, with a helper that has told and given back.
fn given_back() -> Image {
    let told = [("open_bytes", 230 * MIB), ("cached_bytes", 218 * MIB)];
    with(with(unchanged(1, 3), &told), &[("free_bytes", 8 * MIB), ("dirty_bytes", 8 * MIB)])
}

fn tenant(held_mib: u64, refused: u64) -> Image {
    let mut image = with(changed(100, 10), &[("limits_refused", refused)]);
    let limits = [("hard_limit_bytes", 64 * MIB), ("held_bytes", held_mib * MIB)];
    add_epoch(&mut image, 4, "tenant", &limits);
    // It is still open, and all that it holds lives.
    image.set_all("epochs", 4, &[("opened_ms", image.told_ms - 10_000), ("large_objects", 1)]);
    image.set_all("epochs", 4, &[("large_bytes", held_mib * MIB)]);
    let large = [("large_objects", 1), ("large_bytes", held_mib * MIB)];
    with(image, &large)
}

fn threads(units: u64, hot: u64) -> Image {
    let mut image = unchanged(100, 0);
    image.set("heaps", 1, "cached_units", units);
    image.set_class("bins", 1, "hot", 0, hot * MIB / 64);
    image.set_class("bins", 1, "out", 0, hot * MIB / 64);
    image.set_class("bins", 1, "slabs", 0, hot * MIB / UNIT);
    image
}

// An epoch of 100 MiB, opened so many seconds ago.
fn open(seconds: u64) -> Image {
    let mut image = changed(50, 0);
    let opened_ms = image.told_ms - seconds * 1000;
    let values = [("opened_ms", opened_ms), ("held_bytes", 100 * MIB)];
    add_epoch(&mut image, 5, "import", &values);
    image
}

// A thread is in an epoch that is closed, and has objects there, or was.
fn inside(scopes: u64) -> Image {
    let mut image = changed(50, 0);
    let closed_ms = image.told_ms - 120_000;
    add_epoch(&mut image, 5, "job", &[("state", 1), ("opened_ms", 1), ("closed_ms", closed_ms)]);
    image.set("epochs", 5, "held_bytes", 80 * MIB);
    image.set_class("epochs", 5, "survivors", 1, scopes * 1_000);
    image.set_all("heaps", 3, &[("state", 1), ("home", 1), ("epoch", 5), ("scopes", scopes)]);
    image
}

// An epoch whose thread has told of 4 MiB of objects, and not yet of the memory for them.
fn told_late() -> Image {
    let mut image = unchanged(100, 300);
    let opened_ms = image.told_ms - 10_000;
    add_epoch(&mut image, 3, "batch", &[("opened_ms", opened_ms)]);
    image.set_all("heaps", 3, &[("state", 1), ("home", 1), ("epoch", 3)]);
    image.set_all("heaps", 3, &[("cut_objects", 65_536), ("cut_bytes", 4 * MIB)]);
    image
}

// Three classes share what is free; the smallest has no slabs.
fn evenly() -> Image {
    let mut image = unchanged(60, 0);
    for class in 1..4 {
        image.set_class("bins", 1, "slabs", class, 100 * MIB / UNIT);
    }
    image
}

fn free_memory() -> Vec<Situation> {
    let mut never = still(|| with_dirty(unchanged(40, 0), 40, 220), 280, 262);
    never.helper = Some(Helper::Never);
    let mut delayed = still(|| with_dirty(unchanged(40, 0), 40, 220), 280, 262);
    delayed.helper = Some(Helper::Runs);
    let back = with_dirty(unchanged(40, 0), 40, 110);
    vec![
        Situation {
            name: "a server at work",
            verdict: "It keeps a tenth beyond what lives. Nothing to do.",
            case: still(|| changed(400, 40), 470, 440),
            expected: &[],
            against: &["memory-refused", "limit-refused", "purge-refused", "full-table"],
        },
        Situation {
            name: "redis, a second after FLUSHALL",
            verdict: "220 MiB became free and half of it is back already: it comes by itself.",
            case: looks(
                with_dirty(unchanged(40, 0), 40, 220),
                with(back, &[("purges", 90), ("purged_bytes", 110 * MIB)]),
                [280, 170],
                152,
            ),
            expected: &[],
            against: &["dirty"],
        },
        Situation {
            name: "redis after FLUSHALL, started with helper:never",
            verdict: "220 MiB are free and nobody gives them back, because nobody may.",
            case: never,
            expected: &[("dirty", "start it without option helper:never")],
            against: &[],
        },
        Situation {
            name: "redis after FLUSHALL, with a purge delay of an hour",
            verdict: "There is a helper, and it waits. The delay is too long.",
            case: delayed,
            expected: &[("dirty", "lower option purge_delay_ms")],
            against: &[],
        },
        Situation {
            name: "redis three seconds after FLUSHALL",
            verdict: "218 MiB of addresses are at hand for all threads, and hardly a page of them.",
            case: still(given_back, 14, 3),
            expected: &[],
            against: &["dirty"],
        },
        Situation {
            name: "redis three seconds after FLUSHALL, without a helper and silent",
            verdict: "225 MiB are resident that nobody uses, and the file does not tell: free.",
            case: still(silent, 245, 230),
            expected: &[("dirty", "start it with TSLAB_HELPER=always")],
            against: &["retention"],
        },
        Situation {
            name: "memcached with 23 % free in slabs",
            verdict: "Fragmentation of 230 MiB. Nobody changes memcached, so advice about epochs \
                      is useless; new values of the same sizes will use it.",
            case: still(|| unchanged(770, 230), 1050, 1000),
            expected: &[("retention", "New objects of these sizes use the rest")],
            against: &[],
        },
        Situation {
            name: "the same share in a program with epochs",
            verdict: "Long-lived objects lie among short-lived ones: they want their own epoch.",
            case: still(|| changed(770, 230), 1050, 1000),
            expected: &[(
                "retention",
                "are allocated among short-lived ones an epoch of their own",
            )],
            against: &[],
        },
        Situation {
            name: "memcached with 23 % free in slabs, of which most is not resident",
            verdict: "Its pages went back in place. What is left is not worth a word.",
            case: still(|| unchanged(770, 230), 840, 790),
            expected: &[],
            against: &["retention"],
        },
        Situation {
            name: "memcached with 23 % free in slabs while it is going back",
            verdict: "Look again in a second.",
            case: looks(unchanged(770, 230), unchanged(770, 230), [1090, 1050], 1000),
            expected: &[],
            against: &["retention"],
        },
        Situation {
            name: "counts of a class that are behind those of the whole",
            verdict: "At most all of what is free is free in that class.",
            case: still(told_late, 460, 400),
            expected: &[("retention", ", 296.0 MiB of it in class 512 B")],
            against: &[],
        },
        Situation {
            name: "free memory in the slabs of three classes",
            verdict: "The class that has most of it is named, never one that has none.",
            case: still(evenly, 380, 360),
            expected: &[("retention", "100.0 MiB of it in class 256 B")],
            against: &[],
        },
    ]
}

fn memory_elsewhere() -> Vec<Situation> {
    vec![
        Situation {
            name: "a node process with 600 MiB of its own mappings",
            verdict: "The allocator has 100 of 700 MiB: look at V8's heap, not here.",
            case: still(|| unchanged(90, 10), 700, 100),
            expected: &[("outside", "600.0 MiB of 700.0 MiB RSS are not the allocator's")],
            against: &[],
        },
        Situation {
            name: "a large server with 300 MiB of libraries and stacks",
            verdict: "That is a quarter of it, and usual.",
            case: still(|| unchanged(850, 50), 1200, 900),
            expected: &[],
            against: &["outside"],
        },
        Situation {
            name: "a server with 1,600 cached units in its threads",
            verdict: "Its threads keep as much as lives. It has an option.",
            case: still(|| threads(1_600, 0), 210, 200),
            expected: &[("thread-caches", "lower option cache_units")],
            against: &[],
        },
        Situation {
            name: "a server of many threads with free objects at hand",
            verdict: "Each thread keeps its own: fewer threads would do.",
            case: still(|| threads(0, 80), 190, 180),
            expected: &[("thread-caches", "let fewer threads do the work")],
            against: &[],
        },
        Situation {
            name: "a server with 300 cached units in its threads",
            verdict: "19 MiB beside 100 that live are what caches are for.",
            case: still(|| threads(300, 0), 130, 120),
            expected: &[],
            against: &["thread-caches"],
        },
        Situation {
            name: "a program that locks its memory",
            verdict: "One cause, one finding: what is free cannot go back.",
            case: still(
                || with(with_dirty(unchanged(40, 0), 40, 220), &[("purges_refused", 12)]),
                280,
                262,
            ),
            expected: &[("purge-refused", "220.0 MiB are free and not given back")],
            against: &["dirty"],
        },
        Situation {
            name: "the same, which was refused once long ago, and has no helper",
            verdict: "Nobody gives back; the refusal has nothing to do with it.",
            case: Case {
                helper: Some(Helper::Never),
                ..still(
                    || {
                        let purges = [("purges_refused", 1), ("purges", 900)];
                        with(with_dirty(unchanged(40, 0), 40, 220), &purges)
                    },
                    280,
                    262,
                )
            },
            expected: &[("dirty", "without option helper:never")],
            against: &["purge-refused"],
        },
    ]
}

fn lifetimes() -> Vec<Situation> {
    let died = server(5_000, &[Closing::leak((2, "page"), 1_488)]);
    vec![
        Situation {
            name: "requests that leave an object behind, 40 a second",
            verdict: "A leak: 40 come each second and none goes.",
            case: closing(Closing::leak((2, "upload"), 40)),
            expected: &[("leak", "grows: 40 came and 0 went in 1.0 s")],
            against: &[],
        },
        Situation {
            name: "sessions that end after 100 s",
            verdict: "No leak, though each is older than a minute at its end: 40 come and 40 go.",
            case: closing(sessions()),
            expected: &[],
            against: &["leak"],
        },
        Situation {
            name: "a process that died after 5 s",
            verdict: "7,441 epochs of all ages kept an object. It was not given a minute.",
            case: ended(died),
            expected: &[("leak", "grows: survivors of all ages up to 5.0 s")],
            against: &[],
        },
        Situation {
            name: "a tenant at its hard limit",
            verdict: "Callers have got NULL. That comes before all that is about bytes.",
            case: still(|| tenant(63, 3), 190, 175),
            expected: &[
                ("limit-refused", "hard limits refused memory 3 times, 0 of them in 1.0 s"),
                ("near-limit", "98 % of its hard limit"),
            ],
            against: &[],
        },
        Situation {
            name: "a tenant with half of its limit",
            verdict: "It has what it was given.",
            case: still(|| tenant(32, 0), 160, 145),
            expected: &[],
            against: &["near-limit", "limit-refused"],
        },
        Situation {
            name: "an import that nobody closed",
            verdict: "Open for 20 minutes, with 100 MiB.",
            case: still(|| open(1_200), 170, 150),
            expected: &[("open-too-long", "1 epoch \"import\" open for up to 20 min")],
            against: &[],
        },
        Situation {
            name: "an import of half a minute",
            verdict: "It is at work; what is free in its slabs it is about to use.",
            case: still(|| open(30), 70, 60),
            expected: &[],
            against: &["open-too-long"],
        },
        Situation {
            name: "a thread that is still in a closed job",
            verdict: "Nothing can be given back before it leaves.",
            case: still(|| inside(1), 150, 140),
            expected: &[("scope-left-open", "and 1 scope still open there")],
            against: &["leak"],
        },
        Situation {
            name: "a job that every thread has left",
            verdict: "It is over.",
            case: still(|| inside(0), 60, 55),
            expected: &[],
            against: &["scope-left-open"],
        },
        Situation {
            name: "a system without memory",
            verdict: "Nothing else matters before this.",
            case: looks(
                with_dirty(unchanged(100, 100), 200, 120),
                with(with_dirty(unchanged(100, 100), 200, 120), &[("memory_refused", 7)]),
                [340, 340],
                320,
            ),
            expected: &[
                ("memory-refused", "the system refused memory 7 times, 7 of them in 1.0 s"),
                ("dirty", "TSLAB_HELPER=always"),
                ("retention", "100.0 MiB are free in slabs"),
            ],
            against: &[],
        },
    ]
}

fn speed() -> Vec<Situation> {
    let purges = |rate: u64, mib: u64| [("purges", 200_000 + rate), ("purged_bytes", mib * MIB)];
    let churn = |rss: [u64; 2], rate| {
        let (before, now) = (with(unchanged(300, 20), &purges(0, 900)), unchanged(300, 20));
        looks(before, with(now, &purges(rate, 1_300)), rss, 320)
    };
    let at_start = [
        ("sent", 50_000_000),
        ("taken", 50_000_000),
        ("returned", 60_000_000),
        ("opened", 9_000_000),
    ];
    let busy = [("sent", 50_150_000), ("taken", 50_150_000), ("opened", 9_000_000)];
    let few = [("opened", 9_002_000)];
    let full = [("returned", 60_150_000)];
    let first = || did(changed(300, 20), 70_000_000, &at_start);
    let unchanged_first = || did(unchanged(300, 20), 70_000_000, &at_start);
    let rate = |now| looks(first(), now, [340, 340], 320);
    vec![
        Situation {
            name: "memory that goes back and forth",
            verdict: "400 MiB went back in a second, and all of it is here again.",
            case: churn([340, 340], 300),
            expected: &[("purge-churn", "raise option purge_delay_ms")],
            against: &[],
        },
        Situation {
            name: "200,000 purges at the start, an hour ago",
            verdict: "Nothing of it is left to be seen.",
            case: churn([340, 340], 0),
            expected: &[],
            against: &["purge-churn"],
        },
        Situation {
            name: "a mass delete that goes back in 300 purges",
            verdict: "Resident memory falls by as much: as it should be.",
            case: churn([720, 340], 300),
            expected: &[],
            against: &["purge-churn", "dirty"],
        },
        Situation {
            name: "a pipeline with epochs, whose consumers free",
            verdict: "150,000 of 200,000 objects a second are freed by others; it can change.",
            case: rate(did(first(), 70_200_000, &busy)),
            expected: &[("slow-frees", "150000 objects were freed by other threads")],
            against: &[],
        },
        Situation {
            name: "the same pipeline, never changed",
            verdict: "It is how the program works: there is nothing to set.",
            case: looks(
                unchanged_first(),
                did(unchanged_first(), 70_200_000, &busy),
                [340, 340],
                320,
            ),
            expected: &[],
            against: &["slow-frees"],
        },
        Situation {
            name: "short epochs that open a slab for a few objects each",
            verdict: "2,000 slabs a second for ten objects each.",
            case: rate(did(first(), 70_020_000, &few)),
            expected: &[("slow-slabs", "opened 2000 slabs of 128 objects for 20000 objects")],
            against: &[],
        },
        Situation {
            name: "slabs that fill",
            verdict: "2,000 slabs a second, each for all that it holds.",
            case: rate(did(first(), 70_256_000, &few)),
            expected: &[],
            against: &["slow-slabs"],
        },
        Situation {
            name: "objects freed in heaps of thousands",
            verdict: "150,000 of 200,000 find no room at hand.",
            case: rate(did(first(), 70_200_000, &full)),
            expected: &[("slow-bins", "150000 freed objects of class 512 B found no room")],
            against: &[],
        },
        Situation {
            name: "a past of such frees",
            verdict: "It is over.",
            case: rate(did(first(), 70_200_000, &[])),
            expected: &[],
            against: &["slow-bins", "slow-frees"],
        },
        Situation {
            name: "a file without room for its tables",
            verdict: "Figures are too low, and that is all.",
            case: {
                let mut image = changed(300, 20);
                image.table("bins").is_full = 1;
                looks(changed(300, 20), image, [340, 340], 320)
            },
            expected: &[("full-table", "make room in /dev/shm")],
            against: &[],
        },
    ]
}

fn all() -> Vec<Situation> {
    [free_memory(), memory_elsewhere(), lifetimes(), speed()].into_iter().flatten().collect()
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
        let is_changed = now.snapshot.epochs.len() > 1;
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
