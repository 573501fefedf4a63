//! Memory that is not in slabs, or not the allocator's.

use super::*;

fn threads(units: u64, hot: u64) -> Image {
    let mut image = unchanged(100, 0);
    image.set("heaps", 1, "cached_units", units);
    image.set_class("bins", 1, "hot", 0, hot * MIB / 64);
    image.set_class("bins", 1, "out", 0, hot * MIB / 64);
    image.set_class("bins", 1, "slabs", 0, hot * MIB / UNIT);
    image
}

pub fn all() -> Vec<Situation> {
    vec![
        Situation {
            name: "a node process with 600 MiB of its own mappings",
            verdict: "The allocator has 100 of 700 MiB: look at V8's heap, not here.",
            case: still(|| unchanged(90, 10), 700, 100),
            expected: &[("outside", "600.0 MiB of 700.0 MiB RSS are not the allocator's")],
            against: &[],
        },
        Situation {
            name: "a Python that was started without PYTHONMALLOC",
            verdict: "Its small objects lie in arenas of its own. One variable shows them.",
            case: Case { hides_objects: true, ..still(|| unchanged(90, 10), 700, 100) },
            expected: &[("outside", "start it with PYTHONMALLOC=malloc")],
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
