//! What is wrong with the memory of the whole process.

use serde_json::Value;

use super::finding::{Finding, Found, MIB, Patient, percent, reaches};
use crate::holdings::TableUse;
use crate::snapshot::{Class, Snapshot};
use crate::text;

// From when on memory counts.
const MUCH_BYTES: u64 = 64 * MIB;
const OUTSIDE_BYTES: u64 = 256 * MIB;
const OUTSIDE_TIMES: u64 = 3;
const DIRTY_PERCENT: u64 = 25;
const CACHE_PERCENT: u64 = 25;

// From when on counts count.
const PURGES: u64 = 1_000;
const PURGES_A_SECOND: u64 = 100;
const ALLOCATIONS: u64 = 100_000;
const OPENED_PERCENT: u64 = 5;
const SENT: u64 = 1_000_000;
const SENT_PERCENT: u64 = 50;
const RETURNED: u64 = 1_000_000;
const RETURNED_PERCENT: u64 = 50;
const ROWS_PERCENT: u64 = 90;

// A process that did not tell of itself for so long sleeps.
const ASLEEP_MS: u64 = 1_000;

fn shown(bytes: u64) -> String {
    text::bytes(Some(bytes))
}

fn refusals(
    patient: &Patient,
    cause: &'static str,
    field: &'static str,
    what: &str,
    advice: &str,
) -> Found {
    let times = patient.subject.snapshot.process_figure(field)?;
    if times == 0 {
        return Some(Vec::new());
    }
    let what = format!("{what} {}", text::count(Some(times), "time"));
    Some(vec![Finding::new(cause, what, &[(field, Value::from(times))], advice.to_owned())])
}

/// The system gave no memory.
pub(super) fn memory_refused(patient: &Patient) -> Found {
    let advice = format!(
        "compare /proc/{0}/limits, the number of lines of /proc/{0}/maps with vm.max_map_count, \
         and CommitLimit in /proc/meminfo: the one that is reached must be raised",
        patient.subject.pid
    );
    refusals(patient, "memory-refused", "memory_refused", "the system refused memory", &advice)
}

/// An epoch's hard limit gave none.
pub(super) fn limit_refused(patient: &Patient) -> Found {
    let advice = "raise hard_limit_bytes of the epoch whose HELD is close to it in `tslab epochs`, \
                  or let its on_limit make room: callers have got NULL";
    refusals(patient, "limit-refused", "limits_refused", "hard limits refused memory", advice)
}

/// Pages stay although they are free.
pub(super) fn purge_refused(patient: &Patient) -> Found {
    let advice = "run the program with TSLAB_VERBOSE=true, which says why: locked memory \
                  (mlockall, ulimit -l) cannot be given back";
    let what = "the system refused to take free pages back";
    refusals(patient, "purge-refused", "purges_refused", what, advice)
}

// Slabs, cells and large blocks, live or not.
fn held_bytes(snapshot: &Snapshot) -> Option<u64> {
    let open = snapshot.process_figure("open_bytes")?;
    let free = snapshot.process_figure("free_bytes")?;
    let cached = snapshot.process_figure("cached_bytes")?;
    let by_threads = snapshot.holdings.thread_cached_bytes?;
    Some(open.saturating_sub(free).saturating_sub(cached).saturating_sub(by_threads))
}

// The class that has most memory free in its slabs, and how much.
fn emptiest_class(snapshot: &Snapshot) -> Option<(u64, u64)> {
    let out = snapshot.holdings.out.as_ref()?;
    let free = |(class, out): (&Class, &u64)| {
        let slabs = class.slabs?.saturating_mul(class.slab_bytes?);
        Some((slabs.saturating_sub(class.bytes?.saturating_mul(*out)), class.bytes?))
    };
    let (free, class) = snapshot.classes.iter().zip(out).filter_map(free).max()?;
    Some((class, free))
}

/// A few live objects keep many slabs.
pub(super) fn retention(patient: &Patient) -> Found {
    let snapshot = &patient.subject.snapshot;
    let (totals, held) = (snapshot.totals(), held_bytes(snapshot)?);
    let large = snapshot.process_figure("large_bytes")?;
    let live = totals.live_bytes?.saturating_sub(large);
    let free = held.saturating_sub(large).saturating_sub(live).saturating_sub(totals.hot_bytes?);
    if free < MUCH_BYTES || free <= live {
        return Some(Vec::new());
    }
    let class = emptiest_class(snapshot);
    let of_it = class.map(|(class, free)| format!(", {} of it in class {class} B", shown(free)));
    let what = format!(
        "{} are free in slabs and cells that hold {} of live objects{}",
        shown(free),
        shown(live),
        of_it.unwrap_or_default()
    );
    let evidence = [
        ("free_bytes", Value::from(free)),
        ("live_bytes", Value::from(live)),
        ("class_bytes", Value::from(class.map(|(class, _)| class))),
        ("class_free_bytes", Value::from(class.map(|(_, free)| free))),
    ];
    let advice = "give objects that live long and are allocated among short-lived ones an epoch \
                  of their own";
    Some(vec![Finding::new("retention", what, &evidence, advice.to_owned())])
}

/// Free memory is given back too late.
pub(super) fn dirty(patient: &Patient) -> Found {
    let subject = patient.subject;
    let snapshot = &subject.snapshot;
    let dirty = snapshot.process_figure("dirty_bytes")?;
    let held = held_bytes(snapshot)?;
    if dirty < MUCH_BYTES || !reaches(dirty, DIRTY_PERCENT, held) {
        return Some(Vec::new());
    }
    let silent_ms = subject.as_of_ms.saturating_sub(snapshot.header.told_ms);
    let what = format!(
        "{} are free and not given back, beside {} in use; the process last told {} ago",
        shown(dirty),
        shown(held),
        text::age(Some(silent_ms))
    );
    let evidence = [
        ("dirty_bytes", Value::from(dirty)),
        ("held_bytes", Value::from(held)),
        ("silent_ms", Value::from(silent_ms)),
    ];
    let advice = if silent_ms > ASLEEP_MS {
        "set option helper, whose thread gives memory back while the program idles"
    } else {
        "lower option purge_delay_ms"
    };
    Some(vec![Finding::new("dirty", what, &evidence, advice.to_owned())])
}

/// Threads keep much for themselves.
pub(super) fn thread_caches(patient: &Patient) -> Found {
    let snapshot = &patient.subject.snapshot;
    let totals = snapshot.totals();
    let units = snapshot.holdings.thread_cached_bytes?;
    let (hot, live) = (totals.hot_bytes?, totals.live_bytes?);
    let kept = units.saturating_add(hot);
    if kept < MUCH_BYTES || !reaches(kept, CACHE_PERCENT, live) {
        return Some(Vec::new());
    }
    let pooled = snapshot.holdings.pooled_homes;
    let what = format!(
        "{} threads, and {} that have ended, keep {} in empty units and {} in free objects, beside \
         {} of live ones",
        text::number(totals.threads),
        text::number(pooled),
        shown(units),
        shown(hot),
        shown(live)
    );
    let evidence = [
        ("unit_bytes", Value::from(units)),
        ("hot_bytes", Value::from(hot)),
        ("live_bytes", Value::from(live)),
        ("threads", Value::from(totals.threads)),
        ("ended_threads", Value::from(pooled)),
    ];
    let advice = if units > hot {
        "lower option cache_units"
    } else {
        "let fewer threads do the work: each keeps free objects of every class that it used"
    };
    Some(vec![Finding::new("thread-caches", what, &evidence, advice.to_owned())])
}

/// The memory is not the allocator's.
pub(super) fn outside(patient: &Patient) -> Found {
    let subject = patient.subject;
    let snapshot = &subject.snapshot;
    let (rss, live) = (subject.rss_bytes?, snapshot.totals().live_bytes?);
    let open = snapshot.process_figure("open_bytes")?;
    let clean = snapshot
        .process_figure("free_bytes")?
        .saturating_sub(snapshot.process_figure("dirty_bytes")?);
    let beyond = rss.saturating_sub(open.saturating_sub(clean));
    if beyond < OUTSIDE_BYTES || rss < live.saturating_mul(OUTSIDE_TIMES) {
        return Some(Vec::new());
    }
    let what = format!(
        "{} of {} RSS are not the allocator's, in whose memory {} live",
        shown(beyond),
        shown(rss),
        shown(live)
    );
    let evidence = [
        ("outside_bytes", Value::from(beyond)),
        ("rss_bytes", Value::from(rss)),
        ("live_bytes", Value::from(live)),
    ];
    let advice = format!("`tslab why {}` says what it is: mappings, stacks or files", subject.pid);
    Some(vec![Finding::new("outside", what, &evidence, advice)])
}

/// Memory is given back only to be taken again.
pub(super) fn purge_churn(patient: &Patient) -> Found {
    let snapshot = &patient.subject.snapshot;
    let purges = snapshot.process_figure("purges")?;
    let bytes = snapshot.process_figure("purged_bytes")?;
    let lived_ms = patient.subject.as_of_ms.saturating_sub(snapshot.header.made_ms).max(1);
    let a_second = u128::from(purges) * 1000 / u128::from(lived_ms);
    if purges < PURGES || a_second < u128::from(PURGES_A_SECOND) {
        return Some(Vec::new());
    }
    let what = format!(
        "{purges} purges gave back {} in {}, {a_second} a second",
        shown(bytes),
        text::age(Some(lived_ms))
    );
    let evidence = [
        ("purges", Value::from(purges)),
        ("purged_bytes", Value::from(bytes)),
        ("lived_ms", Value::from(lived_ms)),
    ];
    let advice = "raise option purge_delay_ms: what goes back is needed again soon";
    Some(vec![Finding::new("purge-churn", what, &evidence, advice.to_owned())])
}

// Slabs are opened again and again, and each for few objects. One that fills up once is opened for
// as many as it holds.
fn is_slow(class: &Class) -> Option<bool> {
    let (opened, allocations) = (class.opened?, class.allocations?);
    let room = opened.saturating_mul(class.capacity?);
    Some(
        allocations >= ALLOCATIONS
            && reaches(opened, OPENED_PERCENT, allocations)
            && room > allocations.saturating_mul(2),
    )
}

/// Allocations take the slow path, since slabs come and go.
pub(super) fn slow_slabs(patient: &Patient) -> Found {
    let classes = &patient.subject.snapshot.classes;
    let slow: Option<Vec<_>> = classes.iter().map(|class| Some((is_slow(class)?, class))).collect();
    let slow = slow.filter(|all| !all.is_empty())?;
    let worst = slow.iter().filter(|(is_slow, _)| *is_slow).max_by_key(|(_, class)| class.opened);
    let Some((_, class)) = worst else { return Some(Vec::new()) };
    let (opened, allocations) = (class.opened?, class.allocations?);
    let count = slow.iter().filter(|(is_slow, _)| *is_slow).count();
    let what = format!(
        "class {} B opened {opened} slabs of {} for {allocations} objects (such classes: {count})",
        text::number(class.bytes),
        text::count(class.capacity, "object"),
    );
    let evidence = [
        ("class_bytes", Value::from(class.bytes)),
        ("opened", Value::from(opened)),
        ("allocations", Value::from(allocations)),
        ("classes", Value::from(count)),
    ];
    let advice = "let several short epochs be one: each opens slabs of its own";
    Some(vec![Finding::new("slow-slabs", what, &evidence, advice.to_owned())])
}

/// Frees take the slow path, since other threads do them.
pub(super) fn slow_frees(patient: &Patient) -> Found {
    let snapshot = &patient.subject.snapshot;
    let sent = snapshot.holdings.sent?;
    let allocated = snapshot.work.allocations?;
    if sent < SENT || !reaches(sent, SENT_PERCENT, allocated) {
        return Some(Vec::new());
    }
    let what = format!(
        "{sent} objects were freed by other threads than allocated them, {} % of {allocated}",
        percent(sent, allocated)
    );
    let evidence = [("sent", Value::from(sent)), ("allocations", Value::from(allocated))];
    let advice = "let the thread that allocates free, or give the work an epoch and release it as \
                  a whole";
    Some(vec![Finding::new("slow-frees", what, &evidence, advice.to_owned())])
}

/// Frees take the slow path, since more objects of a class are freed than threads keep at hand.
pub(super) fn slow_bins(patient: &Patient) -> Found {
    let classes = patient.subject.snapshot.classes.iter();
    let counted = classes.map(|class| Some((class.returned?, class.allocations?, class.bytes)));
    let counted = counted.collect::<Option<Vec<_>>>().filter(|all| !all.is_empty())?;
    let is_slow = |(returned, allocations, _): &&(u64, u64, Option<u64>)| {
        *returned >= RETURNED && reaches(*returned, RETURNED_PERCENT, *allocations)
    };
    let worst = counted.iter().filter(is_slow).max_by_key(|(returned, ..)| *returned);
    let Some(&(returned, allocations, bytes)) = worst else { return Some(Vec::new()) };
    let what = format!(
        "{returned} freed objects of class {} B found no room at hand, {} % of {allocations}",
        text::number(bytes),
        percent(returned, allocations)
    );
    let evidence = [
        ("class_bytes", Value::from(bytes)),
        ("returned", Value::from(returned)),
        ("allocations", Value::from(allocations)),
    ];
    let advice = "give what is freed together an epoch, and release it as a whole";
    Some(vec![Finding::new("slow-bins", what, &evidence, advice.to_owned())])
}

/// Tables of the statistics file have no room.
pub(super) fn full_table(patient: &Patient) -> Found {
    let snapshot = &patient.subject.snapshot;
    let holdings = &snapshot.holdings;
    (!holdings.tables.is_empty()).then_some(())?;
    let without_memory = snapshot.full_tables.iter().map(|name| {
        let what = format!("the system has no memory for all rows of table {name:?}");
        let advice = "make room in /dev/shm: figures are too low".to_owned();
        Finding::new("full-table", what, &[("table", Value::from(name.as_str()))], advice)
    });
    let is_near = |table: &&TableUse| reaches(table.rows, ROWS_PERCENT, table.most_rows);
    let near = holdings.tables.iter().filter(is_near).filter(|table| table.name != "labels");
    let near = near.map(|table| {
        let (rows, most) = (table.rows, table.most_rows);
        let what = format!("table {:?} has {rows} of {most} rows", table.name);
        let evidence = [
            ("table", Value::from(table.name.as_str())),
            ("rows", Value::from(rows)),
            ("most_rows", Value::from(most)),
        ];
        let advice = "keep fewer epochs and threads at a time: those beyond are not told of";
        Finding::new("full-table", what, &evidence, advice.to_owned())
    });
    let labels = holdings.tables.iter().filter(|table| table.name == "labels");
    let labels = labels.filter(|_| holdings.labels_overflow).map(|table| {
        let what =
            format!("all {} labels are taken: others are told as \"other\"", table.most_rows);
        let evidence = [("most_labels", Value::from(table.most_rows))];
        let advice = "take what differs from call to call, such as ids, out of the labels";
        Finding::new("full-table", what, &evidence, advice.to_owned())
    });
    Some(without_memory.chain(near).chain(labels).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Subject;
    use crate::commands::doctor::tests::{causes, findings, healthy};
    use crate::fixture::Image;

    fn with(values: &[(&str, u64)]) -> Image {
        let mut image = healthy();
        image.set_all("process", 0, values);
        image
    }

    fn only(image: &Image) -> String {
        let found = findings(image);
        assert_eq!(found.len(), 1, "{found:?}");
        format!("{}: {} -> {}", found[0].cause, found[0].what, found[0].advice)
    }

    #[test]
    fn refusals_count_from_the_first_on() {
        for (field, cause) in [
            ("memory_refused", "memory-refused"),
            ("limits_refused", "limit-refused"),
            ("purges_refused", "purge-refused"),
        ] {
            assert_eq!(causes(&with(&[(field, 1)])), [cause]);
        }
        assert!(only(&with(&[("limits_refused", 3)])).contains("refused memory 3 times"));
    }

    #[test]
    fn free_memory_in_slabs_counts_from_64_mib_on() {
        // In use: 331,072 large, 88,448 other live objects, 2,432 at hand.
        let in_use = 331_072 + 88_448 + 2_432;
        let said = only(&with(&[("open_bytes", in_use + 64 * MIB)]));
        assert!(said.starts_with("retention: 64.0 MiB are free in slabs and cells that hold 86.4"));
        assert!(said.contains("109.3 KiB of it in class 128 B"), "{said}");
        assert!(causes(&with(&[("open_bytes", in_use + 64 * MIB - 1)])).is_empty());
    }

    #[test]
    fn dirty_memory_counts_from_64_mib_on_and_the_advice_depends_on_sleep() {
        let dirty = [("open_bytes", 65 * MIB), ("free_bytes", 64 * MIB), ("dirty_bytes", 64 * MIB)];
        assert!(only(&with(&dirty)).ends_with("lower option purge_delay_ms"));
        let mut asleep = with(&dirty);
        asleep.told_ms = 997_000;
        assert!(only(&asleep).contains("set option helper"), "{}", only(&asleep));
        let fewer = [("open_bytes", 65 * MIB), ("free_bytes", 64 * MIB), ("dirty_bytes", 60 * MIB)];
        assert!(causes(&with(&fewer)).is_empty());
    }

    #[test]
    fn caches_of_threads_count_from_64_mib_on() {
        let mut image = with(&[("open_bytes", 80 * MIB)]);
        image.set("heaps", 1, "cached_units", 1024);
        assert!(only(&image).ends_with("lower option cache_units"));
        image.set("heaps", 1, "cached_units", 1022);
        assert!(causes(&image).is_empty());
        image.set_class("bins", 1, "hot", 3, 1 << 20);
        assert!(causes(&image).contains(&"thread-caches"));
    }

    #[test]
    fn memory_outside_of_the_allocator_is_seen() {
        let mut subject = Subject::of_bytes(healthy().bytes());
        let beyond = |subject: &Subject| {
            outside(&Patient { subject, after_ms: 0, open_after_ms: 0 }).unwrap().len()
        };
        subject.rss_bytes = Some(257 * MIB);
        assert_eq!(beyond(&subject), 1);
        subject.rss_bytes = Some(257 * MIB - 1);
        assert_eq!(beyond(&subject), 0);
    }

    #[test]
    fn purges_count_when_there_are_many_a_second() {
        // The file was made 999 s before the last word.
        let churn = with(&[("purges", 99_900), ("purged_bytes", MIB)]);
        assert!(only(&churn).contains("99900 purges gave back 1.0 MiB in 16 min, 100 a second"));
        assert!(causes(&with(&[("purges", 99_899)])).is_empty());
    }

    #[test]
    fn slabs_opened_for_few_objects_are_slow() {
        let mut image = healthy();
        image.set_class("bins", 1, "allocations", 3, 100_000);
        image.set_class("bins", 1, "opened", 3, 5_000);
        let said = only(&image);
        let expected = "class 512 B opened 5000 slabs of 128 objects for 100000 objects (such";
        assert!(said.contains(expected), "{said}");
        image.set_class("bins", 1, "opened", 3, 4_999);
        assert!(causes(&image).is_empty());
        // As many as each holds: filled once.
        image.set("classes", 3, "capacity", 20);
        image.set_class("bins", 1, "opened", 3, 5_000);
        assert!(causes(&image).is_empty());
    }

    #[test]
    fn frees_by_other_threads_are_slow_when_there_are_many() {
        let mut image = healthy();
        image.set_class("bins", 1, "allocations", 1, 2_000_000 - 1_000);
        image.set_class("bins", 1, "sent", 1, 999_997);
        image.set_class("bins", 1, "taken", 1, 999_998);
        assert!(
            only(&image).starts_with("slow-frees: 1000000 objects were freed by other threads")
        );
        image.set_class("bins", 1, "sent", 1, 999_996);
        assert!(causes(&image).is_empty());
    }

    #[test]
    fn frees_without_room_at_hand_are_slow_when_there_are_many() {
        let mut image = healthy();
        image.set_class("bins", 1, "allocations", 1, 2_000_000);
        image.set_class("bins", 1, "returned", 1, 1_000_000);
        let expected = "slow-bins: 1000000 freed objects of class 128 B found no room at hand, \
                        50 % of 2000000 -> give what is freed together an epoch";
        assert!(only(&image).starts_with(expected), "{}", only(&image));
        image.set_class("bins", 1, "allocations", 1, 2_000_001);
        assert!(causes(&image).is_empty());
    }

    #[test]
    fn tables_without_room_are_seen() {
        let mut image = healthy();
        image.table("bins").is_full = 1;
        assert!(only(&image).contains("make room in /dev/shm"));
        image.table("bins").is_full = 0;
        image.table("epochs").most_rows = 16;
        image.set_all("epochs", 14, &[("id", 14)]);
        assert!(only(&image).contains("table \"epochs\" has 15 of 16 rows"));
        image.set_all("epochs", 14, &[("id", 0)]);
        image.text("labels", 1, b"other");
        assert!(only(&image).contains("all 8 labels are taken"));
    }
}
