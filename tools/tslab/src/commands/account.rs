//! Shares the allocator's resident memory out to what it is made of.
//!
//! The statistics file tells quantities, the system what is resident; of neither is known where the
//! other's lie. What is known to be in use or kept is taken as resident. What is resident beyond it
//! can only be free memory in slabs and cells, as far as there is so much, or inside huge pages;
//! what is left is unexplained. If less is resident, something was never written to.

use serde::Serialize;

use super::Subject;
use crate::smaps::Resident;
use crate::snapshot::{DEFAULT_EPOCH, Snapshot};

/// A part of the resident memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Objects in slabs and cells, as large as their size classes.
    Live,
    /// Blocks of whole units.
    Large,
    /// Free objects that threads keep at hand.
    Hot,
    /// Free memory in slabs and cells.
    FreeInSlabs,
    /// Empty units that threads keep.
    ThreadCaches,
    /// Empty units at hand for all threads.
    SharedCache,
    /// Free memory that has not gone back to the system yet.
    Dirty,
    /// Free memory that shares huge pages with what is in use.
    FreeInHugePages,
    /// The allocator's own records.
    Records,
    /// The statistics file.
    StatisticsFile,
    /// Of the parts above: never written to, or in swap. Counts against them.
    Untouched,
    /// What nothing above tells of.
    Unexplained,
}

impl Kind {
    /// What people read.
    pub fn text(self) -> &'static str {
        match self {
            Self::Live => "live objects, and their rounding to size classes",
            Self::Large => "live blocks of whole units, and their rounding",
            Self::Hot => "free objects that threads keep at hand",
            Self::FreeInSlabs => "free in slabs and cells that hold live objects",
            Self::ThreadCaches => "empty units that threads keep",
            Self::SharedCache => "empty units at hand for all threads",
            Self::Dirty => "free, not given back to the system yet",
            Self::FreeInHugePages => "free, in huge pages that are in use",
            Self::Records => "the allocator's own records",
            Self::StatisticsFile => "statistics file",
            Self::Untouched => "of it never written to, or in swap",
            Self::Unexplained => "unexplained",
        }
    }
}

/// A part and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// What it is.
    pub part: Kind,
    /// How large it is; negative for what counts against the others.
    pub bytes: i64,
}

/// All parts, which add up to what is resident.
#[derive(Clone, Debug, Serialize)]
pub struct Account {
    /// Resident memory of the allocator, in bytes.
    pub resident_bytes: u64,
    /// What it is made of.
    pub parts: Vec<Part>,
    /// Fields that the file does not have: what they would tell counts as 0.
    pub not_told: Vec<&'static str>,
}

// What the file tells, in bytes.
#[derive(Debug, Default)]
struct Told {
    live: u64,
    large: u64,
    hot: u64,
    thread_caches: u64,
    shared_cache: u64,
    dirty: u64,
    // The most that slabs and cells can have free.
    free_in_slabs: u64,
    // Free memory that the system has, but for huge pages.
    clean: u64,
    missing: Vec<&'static str>,
}

impl Account {
    /// `statistics_bytes`: resident memory of the statistics file.
    pub fn of(subject: &Subject, resident: Resident, statistics_bytes: u64) -> Self {
        let told = Told::of(&subject.snapshot);
        let known = [told.live, told.large, told.hot, told.thread_caches, told.shared_cache];
        let known = known.into_iter().fold(told.dirty, u64::saturating_add);
        let beyond = resident.blocks_bytes.saturating_sub(known);
        let free_in_slabs = beyond.min(told.free_in_slabs);
        let in_huge_pages = (beyond - free_in_slabs).min(told.clean).min(resident.huge_bytes);
        let parts = [
            (Kind::Live, signed(told.live)),
            (Kind::Large, signed(told.large)),
            (Kind::Hot, signed(told.hot)),
            (Kind::FreeInSlabs, signed(free_in_slabs)),
            (Kind::ThreadCaches, signed(told.thread_caches)),
            (Kind::SharedCache, signed(told.shared_cache)),
            (Kind::Dirty, signed(told.dirty)),
            (Kind::FreeInHugePages, signed(in_huge_pages)),
            (Kind::Records, signed(resident.records_bytes)),
            (Kind::StatisticsFile, signed(statistics_bytes)),
            (Kind::Untouched, -signed(known.saturating_sub(resident.blocks_bytes))),
            (Kind::Unexplained, signed(beyond - free_in_slabs - in_huge_pages)),
        ];
        let all = [resident.blocks_bytes, resident.records_bytes, statistics_bytes];
        Self {
            resident_bytes: all.into_iter().fold(0, u64::saturating_add),
            parts: parts.into_iter().map(|(part, bytes)| Part { part, bytes }).collect(),
            not_told: told.missing,
        }
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

impl Told {
    fn of(snapshot: &Snapshot) -> Self {
        let mut told = Self::default();
        let totals = snapshot.totals();
        let large = told.figure(snapshot, "large_bytes");
        let live = told.or_missing(totals.live_bytes, "live objects");
        told.large = large;
        told.live = live.saturating_sub(large);
        told.hot = told.or_missing(totals.hot_bytes, "bins.hot");
        let thread_caches = snapshot.holdings.thread_cached_bytes;
        told.thread_caches = told.or_missing(thread_caches, "heaps.cached_units");
        told.shared_cache = told.figure(snapshot, "cached_bytes");
        told.dirty = told.figure(snapshot, "dirty_bytes");
        let free = told.figure(snapshot, "free_bytes");
        told.clean = free.saturating_sub(told.dirty);
        let in_use = told.live.saturating_add(told.large).saturating_add(told.hot);
        let held = told.held_by_process(snapshot, free).max(held_by_rows(snapshot));
        told.free_in_slabs = held.saturating_sub(in_use);
        told
    }

    fn figure(&mut self, snapshot: &Snapshot, name: &'static str) -> u64 {
        self.or_missing(snapshot.process_figure(name), name)
    }

    fn or_missing(&mut self, value: Option<u64>, name: &'static str) -> u64 {
        if value.is_none() {
            self.missing.push(name);
        }
        value.unwrap_or_default()
    }

    // Slabs, cells and large blocks, as what is nobody's and in no cache.
    fn held_by_process(&mut self, snapshot: &Snapshot, free: u64) -> u64 {
        let open = self.figure(snapshot, "open_bytes");
        open.saturating_sub(free)
            .saturating_sub(self.shared_cache)
            .saturating_sub(self.thread_caches)
    }
}

// The same as the sum of what epochs hold. The process tells of itself at most once a millisecond,
// and not at all while it sleeps; its epochs and bins tell whenever they change.
fn held_by_rows(snapshot: &Snapshot) -> u64 {
    let roots = snapshot.epochs.iter().filter(|epoch| epoch.parent.is_none());
    let held = roots.filter_map(|epoch| epoch.held_bytes).fold(0, u64::saturating_add);
    held.saturating_add(held_by_default(snapshot))
}

/// Slabs and large blocks of the default epoch, in bytes: it counts none itself.
pub fn held_by_default(snapshot: &Snapshot) -> u64 {
    let default = snapshot.epochs.iter().find(|epoch| epoch.row == DEFAULT_EPOCH);
    let live = default.and_then(|epoch| epoch.live.bytes).unwrap_or_default();
    let in_slabs =
        snapshot.classes.iter().filter_map(|class| class.live?.checked_mul(class.bytes?));
    let large = live.saturating_sub(in_slabs.fold(0, u64::saturating_add));
    large.saturating_add(snapshot.holdings.default_slab_bytes.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Image, sample};

    const KIB: u64 = 1 << 10;

    // Of 1 MiB: 128 KiB slabs of the default epoch, 195 KiB large ones, 304 KiB in other epochs.
    fn image() -> Image {
        let mut image = sample(42, 7);
        image.set_all("process", 0, &[("free_bytes", 200 * KIB), ("dirty_bytes", 100 * KIB)]);
        image.set("process", 0, "cached_bytes", 64 * KIB);
        image.set("heaps", 1, "cached_units", 1);
        image
    }

    fn account(image: &Image, blocks_bytes: u64, huge_bytes: u64) -> Account {
        let resident =
            Resident { blocks_bytes, huge_bytes, records_bytes: 20 * KIB, swap_bytes: 0 };
        Account::of(&Subject::of_bytes(image.bytes()), resident, 28 * KIB)
    }

    fn part(account: &Account, kind: Kind) -> i64 {
        account.parts.iter().find(|part| part.part == kind).unwrap().bytes
    }

    fn adds_up(account: &Account) -> bool {
        let sum: i64 = account.parts.iter().map(|part| part.bytes).sum();
        sum == signed(account.resident_bytes)
    }

    // Live 419,520 of which 331,072 large; 2,432 at hand; 64 KiB in each cache; 100 KiB dirty.
    const KNOWN: u64 = 419_520 + 2_432 + (64 + 64 + 100) * KIB;

    #[test]
    fn what_is_known_comes_first_and_free_memory_in_slabs_next() {
        let account = account(&image(), KNOWN + 5_000, 0);
        let parts = [
            (Kind::Live, 88_448),
            (Kind::Large, 331_072),
            (Kind::Hot, 2_432),
            (Kind::FreeInSlabs, 5_000),
            (Kind::ThreadCaches, 65_536),
            (Kind::SharedCache, 65_536),
            (Kind::Dirty, 102_400),
            (Kind::FreeInHugePages, 0),
            (Kind::Records, 20_480),
            (Kind::StatisticsFile, 28_672),
            (Kind::Untouched, 0),
            (Kind::Unexplained, 0),
        ];
        assert_eq!(account.parts, parts.map(|(part, bytes)| Part { part, bytes }));
        assert!(adds_up(&account) && account.not_told.is_empty());
    }

    #[test]
    fn more_than_slabs_can_have_free_is_unexplained_but_for_huge_pages() {
        // Held: 1 MiB - 200 KiB - 2 * 64 KiB.
        let most = 696 * KIB - 419_520 - 2_432;
        let plain = account(&image(), KNOWN + most + 1_000, 0);
        assert_eq!(part(&plain, Kind::FreeInSlabs), signed(most));
        assert_eq!(part(&plain, Kind::Unexplained), 1_000);
        let huge = account(&image(), KNOWN + most + 150 * KIB, 2 << 20);
        assert_eq!(part(&huge, Kind::FreeInHugePages), signed(100 * KIB));
        assert_eq!(part(&huge, Kind::Unexplained), signed(50 * KIB));
        let few = account(&image(), KNOWN + most + 1_000, 400);
        assert_eq!(part(&few, Kind::FreeInHugePages), 400);
        assert!(adds_up(&plain) && adds_up(&huge) && adds_up(&few));
    }

    #[test]
    fn what_was_never_written_to_counts_against_the_others() {
        let account = account(&image(), KNOWN - 7_000, 0);
        assert_eq!(part(&account, Kind::Untouched), -7_000);
        assert_eq!(part(&account, Kind::FreeInSlabs), 0);
        assert!(adds_up(&account));
    }

    #[test]
    fn a_process_that_slept_since_it_told_is_believed_row_by_row() {
        let mut image = image();
        image.set("process", 0, "free_bytes", 900 * KIB);
        // Slabs and large blocks of the default epoch, and what epochs 3 and 7 hold.
        let most = 131_072 + 200_000 + 262_144 + 49_152 - 419_520 - 2_432;
        let account = account(&image, KNOWN + most + 1, 0);
        assert_eq!(part(&account, Kind::FreeInSlabs), signed(most));
        assert_eq!(part(&account, Kind::Unexplained), 1);
    }

    #[test]
    fn what_the_file_does_not_tell_is_named_and_left_unexplained() {
        let mut image = image();
        image.forget("process", "dirty_bytes");
        image.forget("heaps", "cached_units");
        let account = account(&image, KNOWN + 400 * KIB, 0);
        assert_eq!(account.not_told, ["heaps.cached_units", "dirty_bytes"]);
        assert_eq!(part(&account, Kind::Dirty), 0);
        assert!(part(&account, Kind::Unexplained) > 0 && adds_up(&account));
    }
}
