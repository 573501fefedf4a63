//! What is wrong with the memory of the whole process.

use serde_json::Value;

use super::finding::{Finding, Found, MIB, Patient, Rank, percent, reaches, shown};
use super::{epochs, pinned, refusals};
use crate::commands::account::Kind;
use crate::helper::Helper;
use crate::python;
use crate::rows::process;
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
    let pinned = pinned::groups(patient).into_iter().flat_map(|group| group.epochs);
    told.chain(pinned).filter_map(bytes).fold(0, u64::saturating_add)
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
    let is_wrong = patient.is_stuck(dirty)? && !refusals::keeps_pages(patient)?;
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
        Some(Helper::Absent) => {
            "start it with TSLAB_HELPER=always and TSLAB_VERBOSE=true, which says if the system \
             refuses the thread that gives memory back"
        }
        None => {
            "start it without option helper:never, or if it has not that, with TSLAB_HELPER=always \
             and TSLAB_VERBOSE=true, which says if the system refuses the thread that gives \
             memory back"
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
    let advice = if patient.hides_objects {
        format!(
            "start it with {}=malloc (`tslab run` says so, too): Python's small objects lie in \
             arenas of its own, where nobody sees them",
            python::VARIABLE
        )
    } else {
        format!("`tslab why {}` says what it is: mappings, stacks or files", subject.pid)
    };
    Some(vec![Finding::new("outside", Rank::of_bytes(beyond), what, &evidence, advice)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::tests::{Case, causes, healthy, only, report, said, with};
    use crate::fixture::{Image, TOLD_MS};

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
                        given back in 1.0 s -> start it without option helper:never, or";
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
}
