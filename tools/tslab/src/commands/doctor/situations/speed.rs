//! Where time is lost.

use super::*;

// What a class did in the second.
fn did(mut image: Image, allocations: u64, values: &[(&str, u64)]) -> Image {
    image.set_class("bins", 1, "allocations", 3, allocations);
    for (field, value) in values {
        image.set_class("bins", 1, field, 3, *value);
    }
    image
}

fn limited(mut case: Case, bytes: u64) -> Case {
    case.now.set("process", 0, "soft_limit_bytes", bytes);
    case
}

fn untold(mut case: Case) -> Case {
    case.now.forget("process", "soft_limit_bytes");
    case
}

pub fn all() -> Vec<Situation> {
    [given_back(), slow_paths()].into_iter().flatten().collect()
}

fn given_back() -> Vec<Situation> {
    let purges = |rate: u64, mib: u64| [("purges", 200_000 + rate), ("purged_bytes", mib * MIB)];
    let churn = |rss: [u64; 2], rate| {
        let (before, now) = (with(unchanged(300, 20), &purges(0, 900)), unchanged(300, 20));
        looks(before, with(now, &purges(rate, 1_300)), rss, 320)
    };
    vec![
        Situation {
            name: "memory that goes back and forth",
            verdict: "400 MiB went back in a second, and all of it is here again.",
            case: churn([340, 340], 300),
            expected: &[("purge-churn", "raise option purge_delay_ms: ")],
            against: &[],
        },
        Situation {
            name: "the same beyond a soft limit",
            verdict: "Whatever the delay, it goes back at once: the limit is too low.",
            case: limited(churn([340, 340], 300), 320 * MIB),
            expected: &[("purge-churn", "raise option soft_limit, which is 320.0 MiB")],
            against: &[],
        },
        Situation {
            name: "the same of a file that does not tell the limit",
            verdict: "Either may be the cause.",
            case: untold(churn([340, 340], 300)),
            expected: &[("purge-churn", "soft_limit if it is set, otherwise purge_delay_ms")],
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
            name: "closed epochs of which a page goes back now and then",
            verdict: "5 MiB in 300 purges are no work.",
            case: looks(
                with(unchanged(300, 20), &purges(0, 900)),
                with(unchanged(300, 20), &purges(300, 905)),
                [340, 340],
                320,
            ),
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
    ]
}

fn slow_paths() -> Vec<Situation> {
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
            name: "the same in a program whose only epoch was empty",
            verdict: "It has code for epochs: a thread has closed one.",
            case: {
                let closed = |mut image: Image| {
                    image.set("bins", 1, "closes", 1);
                    image
                };
                let now = did(did(unchanged(300, 20), 70_200_000, &at_start), 70_200_000, &full);
                looks(closed(unchanged_first()), closed(now), [340, 340], 320)
            },
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
