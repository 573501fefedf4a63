//! Free memory.

use super::*;

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

pub fn all() -> Vec<Situation> {
    [given_away(), fragmented()].into_iter().flatten().collect()
}

fn given_away() -> Vec<Situation> {
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
            name: "the same, after it wrote its title over its environment",
            verdict: "Nobody knows whether a helper is forbidden: that is to be looked at first.",
            case: Case {
                helper: None,
                ..still(|| with_dirty(unchanged(40, 0), 40, 220), 280, 262)
            },
            expected: &[("dirty", "start it without option helper:never, or")],
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
    ]
}

fn fragmented() -> Vec<Situation> {
    vec![
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
