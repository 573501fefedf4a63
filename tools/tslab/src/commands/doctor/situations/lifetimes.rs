//! Epochs, and what outlives them.

use super::*;

fn sessions() -> Closing {
    Closing { kept_ms: 100_000, ..Closing::leak((3, "session"), 40) }
}

fn closing(which: Closing) -> Case {
    looks(server(FIVE_MINUTES_MS - 1000, &[which]), server(FIVE_MINUTES_MS, &[which]), [80, 80], 70)
}

// Requests whose epochs share, after so long; 40 a second leave a sampled object, which is freed
// `kept_ms` later.
fn sharing(lived_ms: u64, kept_ms: u64) -> Image {
    let mut image = Image::new(42, 7);
    image.told_ms = image.made_ms + lived_ms;
    let shared = [("state", 3), ("opened_ms", 100), ("held_bytes", 40 * MIB)];
    add_epoch(&mut image, 7, "GET /upload", &shared);
    image.set_class("epochs", 7, "survivors", 1, 5_000);
    add_sampled(&mut image, &[0x1001]);
    let made_ms = image.made_ms;
    for (row, at_ms) in (1..).zip((0..=lived_ms).step_by(25)) {
        image.reach("samples", row);
        let sampled = [("site", 1), ("address", row as u64 * 4096), ("bytes", 128)];
        image.set_all("samples", row, &sampled);
        image.set_all("samples", row, &[("epoch", 1 << 24 | 7), ("sampled_ms", made_ms + at_ms)]);
        if lived_ms - at_ms >= kept_ms {
            image.set("samples", row, "site", 0);
        }
    }
    image
}

fn sharing_for_30_s(kept_ms: u64) -> Case {
    looks(sharing(29_000, kept_ms), sharing(30_000, kept_ms), [80, 80], 70)
}

fn ended(image: Image) -> Case {
    Case { now: image, ..Case::default() }
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

pub fn all() -> Vec<Situation> {
    outliving().into_iter().chain(bounded()).collect()
}

fn outliving() -> Vec<Situation> {
    let died = server(5_000, &[Closing::leak((2, "page"), 1_488)]);
    vec![
        Situation {
            name: "requests that leave an object behind, 40 a second",
            verdict: "A leak: 40 come each second and none goes.",
            case: closing(Closing::leak((2, "upload"), 40)),
            expected: &[("leak", "grows: 40 came and 0 went in 1.0 s")],
            against: &["pinned-epochs"],
        },
        Situation {
            name: "the same in epochs that share",
            verdict: "A leak all the same: samples show it.",
            case: sharing_for_30_s(u64::MAX),
            expected: &[("leak", "in the shared epoch \"GET /upload\" about 5000 outlived")],
            against: &[],
        },
        Situation {
            name: "the same, while it runs",
            verdict: "Nothing is older than a minute yet: all may be of requests in flight.",
            case: Case { after_ms: Some(60_000), ..sharing_for_30_s(u64::MAX) },
            expected: &[],
            against: &["leak"],
        },
        Situation {
            name: "sessions of 10 s in epochs that share",
            verdict: "As many end as come, and they lie side by side.",
            case: sharing_for_30_s(10_000),
            expected: &[],
            against: &["leak", "pinned-epochs"],
        },
        Situation {
            name: "sessions that end after 100 s",
            verdict: "No leak, though each is older than a minute at its end: 40 come and 40 go. \
                      But each keeps a page of an epoch that is over.",
            case: closing(sessions()),
            expected: &[("pinned-epochs", "hold 15.6 MiB for 3999 objects of 499.9 KiB")],
            against: &["leak"],
        },
        Situation {
            name: "a process that died after 5 s",
            verdict: "7,441 epochs of all ages kept an object. It was not given a minute.",
            case: ended(died),
            expected: &[("leak", "grows: survivors of all ages up to 5.0 s")],
            against: &[],
        },
    ]
}

fn bounded() -> Vec<Situation> {
    vec![
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

#[test]
fn what_a_longer_look_would_tell_is_said() {
    let slowly = |lived_ms| {
        let mut image = sharing(lived_ms, u64::MAX);
        (1..image.table("samples").rows as usize)
            .filter(|row| row % 400 != 0)
            .for_each(|row| image.set("samples", row, "site", 0));
        image
    };
    let case = looks(slowly(49_000), slowly(50_000), [80, 80], 70);
    assert!(report(&case).findings.is_empty());
    let expected = "of 5000 objects in the shared epoch \"GET /upload\" about 130 outlived theirs";
    let said = of_patient(&case, epochs::undecided).unwrap();
    assert!(said.starts_with(expected), "{said}");
    assert!(of_patient(&sharing_for_30_s(10_000), epochs::undecided).is_none());
}
