//! What is wrong with the memory of the whole process.

use serde_json::Value;

use super::epochs;
use super::finding::{Finding, Found, MIB, Patient, Rank, percent, reaches};
use super::helper::Helper;
use crate::commands::account::Kind;
use crate::holdings::TableUse;
use crate::rows::{Field, process};
use crate::snapshot::{Class, Epoch, Snapshot};
use crate::text;

// From when on memory counts.
const MUCH_BYTES: u64 = 64 * MIB;
const OUTSIDE_BYTES: u64 = 256 * MIB;
const OUTSIDE_PERCENT: u64 = 50;
const FREE_PERCENT: u64 = 20;
const DIRTY_PERCENT: u64 = 25;
const CACHE_PERCENT: u64 = 25;
// A class that has less of what is free is not its cause.
const CLASS_PERCENT: u64 = 10;

// From when on counts count, a second.
const PURGES: u64 = 100;
const PURGED_PERCENT: u64 = 50;
const OPENED: u64 = 1_000;
const OPENED_PERCENT: u64 = 5;
const SENT: u64 = 100_000;
const SENT_PERCENT: u64 = 50;
const RETURNED: u64 = 100_000;
const RETURNED_PERCENT: u64 = 50;
const ROWS_PERCENT: u64 = 90;

fn shown(bytes: u64) -> String {
    text::bytes(Some(bytes))
}

// How often something was refused, and for people, also how much of it is recent.
fn refusals(patient: &Patient, field: Field, what: &str) -> Option<(u64, String)> {
    let times = patient.snapshot().process_figure(field)?;
    let recent = patient.grew(|snapshot| snapshot.process_figure(field));
    let recent = recent.map(|recent| format!(", {recent} of them {}", patient.span()));
    let times_text = text::count(Some(times), "time");
    Some((times, format!("{what} {times_text}{}", recent.unwrap_or_default())))
}

// Whether the system takes no pages back: it refused between the looks, or more often than not.
// What it refused once, long ago, is not the cause of anything now.
fn keeps_pages(patient: &Patient) -> Option<bool> {
    let figure = |field| patient.snapshot().process_figure(field);
    Some(patient.is_refusing() || figure(process::PURGES_REFUSED)? > figure(process::PURGES)?)
}

fn refused(
    patient: &Patient,
    cause: &'static str,
    field: Field,
    what: &str,
    advice: &str,
) -> Found {
    let (times, what) = refusals(patient, field, what)?;
    if times == 0 {
        return Some(Vec::new());
    }
    let evidence = [(field.name, Value::from(times))];
    Some(vec![Finding::new(cause, Rank::Refused, what, &evidence, advice.to_owned())])
}

/// The system gave no memory.
pub(super) fn memory_refused(patient: &Patient) -> Found {
    let advice = format!(
        "compare /proc/{0}/limits, the number of lines of /proc/{0}/maps with vm.max_map_count, \
         and CommitLimit in /proc/meminfo: the one that is reached must be raised",
        patient.subject.pid
    );
    let what = "the system refused memory";
    refused(patient, "memory-refused", process::MEMORY_REFUSED, what, &advice)
}

/// An epoch's hard limit gave none.
pub(super) fn limit_refused(patient: &Patient) -> Found {
    let advice = "raise hard_limit_bytes of the epoch whose HELD is close to it in `tslab epochs`, \
                  or let its on_limit make room: callers have got NULL";
    let what = "hard limits refused memory";
    refused(patient, "limit-refused", process::LIMITS_REFUSED, what, advice)
}

/// Pages stay although they are free.
pub(super) fn purge_refused(patient: &Patient) -> Found {
    let what = "the system refused to take free pages back";
    let field = process::PURGES_REFUSED;
    let (times, what) = refusals(patient, field, what)?;
    if !keeps_pages(patient)? {
        return Some(Vec::new());
    }
    let dirty = patient.snapshot().process_figure(process::DIRTY_BYTES).unwrap_or_default();
    let what = format!("{what}; {} are free and not given back", shown(dirty));
    let evidence = [(field.name, Value::from(times)), ("dirty_bytes", Value::from(dirty))];
    let advice = "run the program with TSLAB_VERBOSE=true, which says why: locked memory \
                  (mlockall, ulimit -l) cannot be given back"
        .to_owned();
    Some(vec![Finding::new("purge-refused", Rank::of_bytes(dirty), what, &evidence, advice)])
}

// The class that has most memory free in its slabs, and how much. Counts of classes are told at
// other moments than those of the whole: a class never has more.
fn emptiest_class(snapshot: &Snapshot, free: u64) -> Option<(u64, u64)> {
    let spare = |class: &Class| Some((class.spare_bytes()?.min(free), class.bytes?));
    let (bytes, class) = snapshot.classes.iter().filter_map(spare).max()?;
    reaches(bytes, CLASS_PERCENT, free).then_some((class, bytes))
}

// A sum over the epochs of which other findings tell.
fn of_told(patient: &Patient, bytes: impl Fn(&Epoch) -> Option<u64>) -> u64 {
    let told = patient.snapshot().epochs.iter().filter(|epoch| epochs::is_told(patient, epoch));
    told.filter_map(bytes).fold(0, u64::saturating_add)
}

// Free in slabs and cells, without epochs of which other findings tell.
fn free_in_slabs(patient: &Patient) -> Option<u64> {
    let used = |epoch: &Epoch| {
        let hot = patient.hot_bytes(epoch).unwrap_or_default();
        Some(epoch.live.bytes?.saturating_add(hot))
    };
    let told = of_told(patient, |epoch| Some(epoch.own_bytes?.saturating_sub(used(epoch)?)));
    let free = patient.snapshot().totals().spare_bytes?.saturating_sub(told);
    Some(patient.resident(Kind::FreeInSlabs).map_or(free, |resident| resident.min(free)))
}

/// A few live objects keep many slabs.
pub(super) fn retention(patient: &Patient) -> Found {
    let totals = patient.snapshot().totals();
    let live = totals.live_bytes?.saturating_sub(totals.large_bytes?);
    let free = free_in_slabs(patient)?;
    let whole = free.saturating_add(live);
    if free < MUCH_BYTES || !reaches(free, FREE_PERCENT, whole) || patient.is_returning(free) {
        return Some(Vec::new());
    }
    let class = emptiest_class(patient.snapshot(), free);
    let of_it = class.map(|(class, free)| format!(", {} of it in class {class} B", shown(free)));
    let resident = if patient.account.is_some() { "" } else { ", resident or not," };
    let what = format!(
        "{}{resident} are free in slabs and cells that hold {} of live objects, {} % of both{}",
        shown(free),
        shown(live),
        percent(free, whole),
        of_it.unwrap_or_default()
    );
    let evidence = [
        ("free_bytes", Value::from(free)),
        ("live_bytes", Value::from(live)),
        ("class_bytes", Value::from(class.map(|(class, _)| class))),
        ("class_free_bytes", Value::from(class.map(|(_, free)| free))),
    ];
    let advice = retention_advice(patient).to_owned();
    Some(vec![Finding::new("retention", Rank::of_bytes(free), what, &evidence, advice)])
}

fn retention_advice(patient: &Patient) -> &'static str {
    match patient.helper {
        _ if patient.knows_epochs() => {
            "give objects that live long and are allocated among short-lived ones an epoch of \
             their own"
        }
        Some(Helper::Never) => {
            "start it without option helper:never: what of it is whole pages then goes back by \
             itself"
        }
        _ => {
            "unless option helper is never, pages without live objects go back by themselves: \
             these have some. New objects of these sizes use the rest; a restart gives it back"
        }
    }
}

// Free, in no slab or cell, and resident. Much that nobody has told of is free: threads tell what
// they use, and what they freed only when they next come by a slow path.
fn idle_bytes(patient: &Patient) -> Option<u64> {
    let dirty = |snapshot: &Snapshot| snapshot.process_figure(process::DIRTY_BYTES);
    let Some(account) = &patient.account else {
        return Some(dirty(&patient.before?.snapshot)?.min(dirty(patient.snapshot())?));
    };
    let idle = [Kind::Dirty, Kind::SharedCache, Kind::Untold].map(|part| account.bytes(part));
    let idle = idle.into_iter().fold(0, u64::saturating_add);
    Some(idle.saturating_sub(account.not_resident_bytes))
}

/// Free memory that nobody gives back.
pub(super) fn dirty(patient: &Patient) -> Found {
    let dirty = idle_bytes(patient)?;
    let held = patient.snapshot().totals().held_bytes?;
    // The system's refusals are a finding of their own.
    let is_wrong = patient.is_stuck(dirty)? && !keeps_pages(patient)?;
    let is_much = dirty >= MUCH_BYTES && reaches(dirty, DIRTY_PERCENT, held);
    if !is_much || !is_wrong || patient.is_returning(dirty) {
        return Some(Vec::new());
    }
    let gone = match patient.purged_bytes()? {
        0 => "none of it was given back".to_owned(),
        purged => format!("{} went back", shown(purged)),
    };
    let what = format!(
        "{} are free beside {} in use, and {gone} {}",
        shown(dirty),
        shown(held),
        patient.span()
    );
    let evidence = [
        ("dirty_bytes", Value::from(dirty)),
        ("held_bytes", Value::from(held)),
        ("over_ms", Value::from(patient.over_ms())),
    ];
    let advice = match patient.helper {
        Some(Helper::Never) => {
            "start it without option helper:never: a thread then gives memory back while the \
             program idles"
        }
        Some(Helper::Runs) => "lower option purge_delay_ms",
        Some(Helper::Absent) | None => {
            "start it with TSLAB_HELPER=always and TSLAB_VERBOSE=true, which says if the system \
             refuses the thread that gives memory back"
        }
    };
    let rank = Rank::of_bytes(dirty);
    Some(vec![Finding::new("dirty", rank, what, &evidence, advice.to_owned())])
}

/// Threads keep much for themselves.
pub(super) fn thread_caches(patient: &Patient) -> Found {
    let snapshot = patient.snapshot();
    let totals = snapshot.totals();
    let units = snapshot.holdings.thread_cached_bytes?;
    let (all_hot, live) = (totals.hot_bytes?, totals.live_bytes?);
    let hot = all_hot.saturating_sub(of_told(patient, |epoch| patient.hot_bytes(epoch)));
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
    let rank = Rank::of_bytes(kept);
    Some(vec![Finding::new("thread-caches", rank, what, &evidence, advice.to_owned())])
}

// Resident, and not the allocator's.
fn outside_bytes(patient: &Patient, rss: u64) -> Option<u64> {
    if let Some(account) = &patient.account {
        return Some(rss.saturating_sub(account.resident_bytes));
    }
    let figure = |field| patient.snapshot().process_figure(field);
    let clean = figure(process::FREE_BYTES)?.saturating_sub(figure(process::DIRTY_BYTES)?);
    Some(rss.saturating_sub(figure(process::OPEN_BYTES)?.saturating_sub(clean)))
}

/// The memory is not the allocator's.
pub(super) fn outside(patient: &Patient) -> Found {
    let subject = patient.subject;
    let (rss, live) = (subject.rss_bytes?, patient.snapshot().totals().live_bytes?);
    let beyond = outside_bytes(patient, rss)?;
    if beyond < OUTSIDE_BYTES || !reaches(beyond, OUTSIDE_PERCENT, rss) {
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
    Some(vec![Finding::new("outside", Rank::of_bytes(beyond), what, &evidence, advice)])
}

/// Memory is given back only to be taken again: resident memory does not become less.
pub(super) fn purge_churn(patient: &Patient) -> Found {
    let purges = patient.grew(|snapshot| snapshot.process_figure(process::PURGES))?;
    let bytes = patient.grew(|snapshot| snapshot.process_figure(process::PURGED_BYTES))?;
    let again = bytes.saturating_sub(patient.shrank_bytes()?);
    let is_often = patient.a_second(purges)? >= PURGES;
    if !is_often || !reaches(again, PURGED_PERCENT, bytes) {
        return Some(Vec::new());
    }
    let what = format!(
        "{purges} purges gave back {} {}, of which {} are resident again",
        shown(bytes),
        patient.span(),
        shown(again)
    );
    let evidence = [
        ("purges", Value::from(purges)),
        ("purged_bytes", Value::from(bytes)),
        ("resident_again_bytes", Value::from(again)),
        ("over_ms", Value::from(patient.over_ms())),
    ];
    let advice = "raise option purge_delay_ms: what goes back is needed again soon".to_owned();
    Some(vec![Finding::new("purge-churn", Rank::Slow, what, &evidence, advice)])
}

// What a class did between the looks.
struct Deed<'a> {
    class: &'a Class,
    allocations: u64,
    opened: u64,
    returned: u64,
}

fn deeds<'a>(patient: &'a Patient) -> Option<Vec<Deed<'a>>> {
    let before = &patient.before?.snapshot.classes;
    let grown = |before: Option<u64>, now: Option<u64>| Some(now?.saturating_sub(before?));
    let deed = |(before, class): (&Class, &'a Class)| {
        Some(Deed {
            class,
            allocations: grown(before.allocations, class.allocations)?,
            opened: grown(before.opened, class.opened)?,
            returned: grown(before.returned, class.returned)?,
        })
    };
    let all = before.iter().zip(&patient.snapshot().classes).map(deed);
    all.collect::<Option<Vec<_>>>().filter(|all| !all.is_empty())
}

impl Deed<'_> {
    // Slabs are opened again and again, and each for few objects. One that fills up once is opened
    // for as many as it holds.
    fn opens_for_few(&self, patient: &Patient) -> Option<bool> {
        let room = self.opened.saturating_mul(self.class.capacity?);
        let is_often = patient.a_second(self.opened)? >= OPENED;
        let is_much = reaches(self.opened, OPENED_PERCENT, self.allocations);
        Some(is_often && is_much && room > self.allocations.saturating_mul(2))
    }

    fn evidence(&self, patient: &Patient, name: &'static str, count: u64) -> [(&str, Value); 4] {
        [
            ("class_bytes", Value::from(self.class.bytes)),
            (name, Value::from(count)),
            ("allocations", Value::from(self.allocations)),
            ("over_ms", Value::from(patient.over_ms())),
        ]
    }
}

// What only a change of the program cures is no finding in one that was never changed.
fn is_unchanged(patient: &Patient) -> Option<Vec<Finding>> {
    (!patient.knows_epochs()).then(Vec::new)
}

/// Allocations take the slow path, since slabs come and go.
pub(super) fn slow_slabs(patient: &Patient) -> Found {
    if let Some(none) = is_unchanged(patient) {
        return Some(none);
    }
    let deeds = deeds(patient)?;
    let judged = deeds.iter().map(|deed| Some((deed.opens_for_few(patient)?, deed)));
    let judged: Vec<_> = judged.collect::<Option<_>>()?;
    let slow: Vec<_> = judged.iter().filter(|(is_slow, _)| *is_slow).collect();
    let worst = slow.iter().max_by_key(|(_, deed)| deed.opened);
    let Some((_, deed)) = worst else { return Some(Vec::new()) };
    let what = format!(
        "class {} B opened {} slabs of {} for {} objects {} (such classes: {})",
        text::number(deed.class.bytes),
        deed.opened,
        text::count(deed.class.capacity, "object"),
        deed.allocations,
        patient.span(),
        slow.len(),
    );
    let evidence = deed.evidence(patient, "opened", deed.opened);
    let advice = "let several short epochs be one: each opens slabs of its own".to_owned();
    Some(vec![Finding::new("slow-slabs", Rank::Slow, what, &evidence, advice)])
}

/// Frees take the slow path, since other threads do them.
pub(super) fn slow_frees(patient: &Patient) -> Found {
    if let Some(none) = is_unchanged(patient) {
        return Some(none);
    }
    let sent = patient.grew(|snapshot| snapshot.holdings.sent)?;
    let allocated = patient.grew(|snapshot| snapshot.work.allocations)?;
    if patient.a_second(sent)? < SENT || !reaches(sent, SENT_PERCENT, allocated) {
        return Some(Vec::new());
    }
    let what = format!(
        "{sent} objects were freed by other threads than allocated them {}, beside {allocated} \
         allocations",
        patient.span()
    );
    let evidence = [
        ("sent", Value::from(sent)),
        ("allocations", Value::from(allocated)),
        ("over_ms", Value::from(patient.over_ms())),
    ];
    let advice = "let the thread that allocates free, or give the work an epoch and release it as \
                  a whole"
        .to_owned();
    Some(vec![Finding::new("slow-frees", Rank::Slow, what, &evidence, advice)])
}

/// Frees take the slow path, since more objects of a class are freed than threads keep at hand.
pub(super) fn slow_bins(patient: &Patient) -> Found {
    if let Some(none) = is_unchanged(patient) {
        return Some(none);
    }
    let deeds = deeds(patient)?;
    let is_slow = |deed: &&Deed| {
        patient.a_second(deed.returned).is_some_and(|rate| rate >= RETURNED)
            && reaches(deed.returned, RETURNED_PERCENT, deed.allocations)
    };
    let worst = deeds.iter().filter(is_slow).max_by_key(|deed| deed.returned);
    let Some(deed) = worst else { return Some(Vec::new()) };
    let what = format!(
        "{} freed objects of class {} B found no room at hand {}, beside {} allocations",
        deed.returned,
        text::number(deed.class.bytes),
        patient.span(),
        deed.allocations
    );
    let evidence = deed.evidence(patient, "returned", deed.returned);
    let advice = "give what is freed together an epoch, and release it as a whole".to_owned();
    Some(vec![Finding::new("slow-bins", Rank::Slow, what, &evidence, advice)])
}

/// Tables of the statistics file have no room.
pub(super) fn full_table(patient: &Patient) -> Found {
    let snapshot = &patient.subject.snapshot;
    let holdings = &snapshot.holdings;
    (!holdings.tables.is_empty()).then_some(())?;
    let without_memory = snapshot.full_tables.iter().map(|name| {
        let what = format!("the system has no memory for all rows of table {name:?}");
        let advice = "make room in /dev/shm: figures are too low".to_owned();
        Finding::new(
            "full-table",
            Rank::Figures,
            what,
            &[("table", Value::from(name.as_str()))],
            advice,
        )
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
        Finding::new("full-table", Rank::Figures, what, &evidence, advice.to_owned())
    });
    let labels = holdings.tables.iter().filter(|table| table.name == "labels");
    let labels = labels.filter(|_| holdings.labels_overflow).map(|table| {
        let what =
            format!("all {} labels are taken: others are told as \"other\"", table.most_rows);
        let evidence = [("most_labels", Value::from(table.most_rows))];
        let advice = "take what differs from call to call, such as ids, out of the labels";
        Finding::new("full-table", Rank::Figures, what, &evidence, advice.to_owned())
    });
    Some(without_memory.chain(near).chain(labels).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::tests::{Case, causes, findings, healthy, in_a_second, report};
    use crate::fixture::{Image, TOLD_MS};

    fn with(values: &[(&str, u64)]) -> Image {
        let mut image = healthy();
        image.set_all("process", 0, values);
        image
    }

    fn said(found: &[Finding]) -> String {
        assert_eq!(found.len(), 1, "{found:?}");
        format!("{}: {} -> {}", found[0].cause, found[0].what, found[0].advice)
    }

    fn only(image: &Image) -> String {
        said(&findings(image))
    }

    #[test]
    fn refusals_count_from_the_first_on() {
        for (field, cause) in
            [("memory_refused", "memory-refused"), ("limits_refused", "limit-refused")]
        {
            assert_eq!(causes(&with(&[(field, 1)])), [cause]);
        }
        let thrice = with(&[("limits_refused", 3)]);
        assert!(only(&thrice).contains("refused memory 3 times ->"), "{}", only(&thrice));
        assert!(said(&in_a_second(thrice)).contains("refused memory 3 times, 3 of them in 1.0 s"));
    }

    #[test]
    fn refused_purges_count_while_they_go_on_or_outnumber_the_others() {
        let refused = |times| with(&[("purges_refused", times), ("purges", 5)]);
        assert_eq!(causes(&refused(6)), ["purge-refused"]);
        assert!(causes(&refused(5)).is_empty());
        let findings = in_a_second(refused(1));
        assert_eq!(findings[0].cause, "purge-refused", "{findings:?}");
    }

    #[test]
    fn free_memory_in_slabs_counts_from_64_mib_on_and_a_fifth() {
        // In use: 331,072 large, 88,448 other live objects, 2,432 at hand. Other epochs than the
        // first hold 380,224.
        let in_use = 331_072 + 88_448 + 2_432 - 380_224;
        let mut image = healthy();
        image.set("epochs", 3, "held_bytes", in_use + 64 * MIB);
        let expected = "retention: 64.0 MiB, resident or not, are free in slabs and cells that \
                        hold 86.4 KiB of live objects, 99 % of both -> give objects that live long";
        assert!(only(&image).starts_with(expected), "{}", only(&image));
        image.set("epochs", 3, "held_bytes", in_use + 64 * MIB - 1);
        assert!(causes(&image).is_empty());
        // Four times as much, but for a byte, lives in slabs: 88,448 as it is.
        let live = 256 * MIB - 88_448;
        image.set("epochs", 3, "held_bytes", in_use + 64 * MIB + live);
        image.set("heaps", 3, "cut_bytes", 64_000 + live);
        assert_eq!(causes(&image), ["retention"]);
        image.set("heaps", 3, "cut_bytes", 64_000 + live + 1);
        image.set("epochs", 3, "held_bytes", in_use + 64 * MIB + live + 1);
        assert!(causes(&image).is_empty());
    }

    #[test]
    fn a_class_is_named_if_it_has_a_tenth_of_what_is_free() {
        let mut image = healthy();
        // Slabs of 128 and 512 B have 131,072 - 19,200 B, and much more.
        image.set_class("bins", 1, "slabs", 3, 1_024);
        assert!(only(&image).contains(", 64.0 MiB of it in class 512 B"), "{}", only(&image));
        image.set_class("bins", 1, "slabs", 3, 0);
        image.set("epochs", 3, "held_bytes", 65 * MIB);
        assert!(!only(&image).contains("of it in class"), "{}", only(&image));
    }

    #[test]
    fn memory_that_nobody_gives_back_counts_from_64_mib_on() {
        let dirty = |bytes: u64, told: &[(&str, u64)]| {
            let values = [("open_bytes", 65 * MIB), ("free_bytes", bytes), ("dirty_bytes", bytes)];
            let both = |told_ms| {
                let mut image = with(&values);
                image.set_all("process", 0, told);
                Image { told_ms, ..image }
            };
            let (before, now) = (both(TOLD_MS - 1000), both(TOLD_MS));
            report(&Case { before: Some(before), now, ..Case::default() }).findings
        };
        let expected = "dirty: 64.0 MiB are free beside 627.3 KiB in use, and none of it was \
                        given back in 1.0 s -> start it with TSLAB_HELPER=always";
        assert!(said(&dirty(64 * MIB, &[])).starts_with(expected), "{:?}", dirty(64 * MIB, &[]));
        assert!(dirty(64 * MIB - 1, &[]).is_empty());
        assert_eq!(dirty(64 * MIB, &[("purges_refused", 6)])[0].cause, "purge-refused");
        assert!(causes(&with(&[("dirty_bytes", 64 * MIB)])).is_empty());
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
        let beyond = |rss: u64, blocks_bytes| {
            let rss_bytes = Some([rss, rss]);
            report(&Case { rss_bytes, blocks_bytes, ..Case::default() }).findings.len()
        };
        assert_eq!((beyond(257 * MIB, None), beyond(257 * MIB - 1, None)), (1, 0));
        // What lives is 420 KiB; the rest of what is resident is free in slabs, or untold.
        assert_eq!(
            (beyond(600 * MIB, Some(300 * MIB)), beyond(600 * MIB, Some(301 * MIB))),
            (1, 0)
        );
        assert_eq!(beyond(256 * MIB, Some(MIB)), 0);
    }

    #[test]
    fn purges_count_when_there_are_many_a_second_and_memory_stays_resident() {
        let churn = |purges: u64, shrank: u64| {
            let now = with(&[("purges", 5 + purges), ("purged_bytes", 64 * MIB)]);
            let before = Image { told_ms: TOLD_MS - 1000, ..healthy() };
            let rss_bytes = Some([100 * MIB + shrank, 100 * MIB]);
            report(&Case { before: Some(before), now, rss_bytes, ..Case::default() }).findings
        };
        let expected = "purge-churn: 100 purges gave back 64.0 MiB in 1.0 s, of which 32.0 MiB are \
                        resident again -> raise option purge_delay_ms";
        assert!(said(&churn(100, 32 * MIB)).starts_with(expected), "{:?}", churn(100, 32 * MIB));
        assert!(churn(99, 32 * MIB).is_empty() && churn(100, 32 * MIB + 1).is_empty());
    }

    #[test]
    fn slabs_opened_for_few_objects_are_slow() {
        let slabs = |opened: u64, allocations: u64, capacity: u64| {
            let mut image = healthy();
            image.set_class("bins", 1, "allocations", 3, allocations);
            image.set_class("bins", 1, "opened", 3, opened);
            image.set("classes", 3, "capacity", capacity);
            in_a_second(image)
        };
        let expected = "slow-slabs: class 512 B opened 1000 slabs of 128 objects for 20000 objects \
                        in 1.0 s (such";
        let found = said(&slabs(1_000, 20_000, 128));
        assert!(found.starts_with(expected), "{found}");
        assert!(slabs(999, 19_980, 128).is_empty() && slabs(1_000, 20_001, 128).is_empty());
        // As many as each holds: filled once.
        assert!(slabs(1_000, 20_000, 20).is_empty());
    }

    #[test]
    fn frees_by_other_threads_are_slow_when_there_are_many() {
        let frees = |sent: u64, allocations: u64| {
            let mut image = healthy();
            image.set_class("bins", 1, "allocations", 1, 1_000 + allocations);
            image.set_class("bins", 1, "sent", 1, 5 + sent);
            image.set_class("bins", 1, "taken", 1, 3 + sent);
            in_a_second(image)
        };
        let found = said(&frees(100_000, 200_000));
        assert!(found.starts_with("slow-frees: 100000 objects were freed by other"), "{found}");
        assert!(frees(99_999, 100_000).is_empty() && frees(100_000, 200_001).is_empty());
    }

    #[test]
    fn frees_without_room_at_hand_are_slow_when_there_are_many() {
        let frees = |returned: u64, allocations: u64| {
            let mut image = healthy();
            image.set_class("bins", 1, "allocations", 1, 1_000 + allocations);
            image.set_class("bins", 1, "returned", 1, returned);
            in_a_second(image)
        };
        let expected = "slow-bins: 100000 freed objects of class 128 B found no room at hand in \
                        1.0 s, beside 200000 allocations -> give what is freed together an epoch";
        let found = said(&frees(100_000, 200_000));
        assert!(found.starts_with(expected), "{found}");
        assert!(frees(99_999, 100_000).is_empty() && frees(100_000, 200_001).is_empty());
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
