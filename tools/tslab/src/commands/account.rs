//! Shares the allocator's resident memory out to what it is made of.
//!
//! The statistics file tells quantities, the system what is resident; of neither is known where the
//! other's lie. What is known to be in use or kept is taken as resident. What is resident beyond it
//! can only be free memory in slabs and cells, as far as there is so much, memory of threads that
//! have not told of it, or inside huge pages; what is left is the residual. If less is resident,
//! something was never written to, given back in place, or swapped out: so much of the parts is not
//! resident, and nobody knows of which.

use serde::Serialize;

use super::Subject;
use crate::rows::{Field, bins, heaps, process};
use crate::smaps::Resident;
use crate::snapshot::Snapshot;

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
    /// Memory that is somebody's who has not told of it.
    Untold,
    /// Free memory that shares huge pages with what is in use.
    FreeInHugePages,
    /// The allocator's own records.
    Records,
    /// The statistics file.
    StatisticsFile,
    /// What is resident beyond all that is told.
    Residual,
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
            Self::Untold => "held by threads that have not told of it yet",
            Self::FreeInHugePages => "free, in huge pages that are in use",
            Self::Records => "the allocator's own records",
            Self::StatisticsFile => "statistics file",
            Self::Residual => "residual: resident, and none of the above",
        }
    }
}

/// A part and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_field_names, reason = "readers of the JSON know it by this name")]
pub struct Part {
    /// What it is.
    pub part: Kind,
    /// How large it is.
    pub bytes: u64,
    /// What people read.
    pub text: &'static str,
}

impl Part {
    fn new((part, bytes): (Kind, u64)) -> Self {
        Self { part, bytes, text: part.text() }
    }
}

/// All parts, which add up to what is resident and what is not.
#[derive(Clone, Debug, Serialize)]
pub struct Account {
    /// Resident memory of the allocator, in bytes.
    pub resident_bytes: u64,
    /// Of the parts: never written to, given back in place, or in swap.
    pub not_resident_bytes: u64,
    /// What epochs hold, resident or not.
    pub held_bytes: Option<u64>,
    /// What both are made of.
    pub parts: Vec<Part>,
    /// Fields that the file does not have: what they would tell counts as 0.
    pub not_told: Vec<String>,
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
    // What no cache has and nobody's is not, beyond what epochs hold.
    untold: u64,
    held: Option<u64>,
    // Free memory that the system has, but for huge pages.
    clean: u64,
    missing: Vec<String>,
}

impl Account {
    /// `statistics_bytes`: resident memory of the statistics file.
    pub fn of(subject: &Subject, resident: Resident, statistics_bytes: u64) -> Self {
        let told = Told::of(&subject.snapshot);
        let known = [told.live, told.large, told.hot, told.thread_caches, told.shared_cache];
        let known = known.into_iter().fold(told.dirty, u64::saturating_add);
        let mut beyond = resident.blocks_bytes.saturating_sub(known);
        let mut take = |most: u64| {
            let taken = beyond.min(most);
            beyond -= taken;
            taken
        };
        let free_in_slabs = take(told.free_in_slabs);
        let untold = take(told.untold);
        let in_huge_pages = take(told.clean.min(resident.huge_bytes));
        let parts = [
            (Kind::Live, told.live),
            (Kind::Large, told.large),
            (Kind::Hot, told.hot),
            (Kind::FreeInSlabs, free_in_slabs),
            (Kind::ThreadCaches, told.thread_caches),
            (Kind::SharedCache, told.shared_cache),
            (Kind::Dirty, told.dirty),
            (Kind::Untold, untold),
            (Kind::FreeInHugePages, in_huge_pages),
            (Kind::Records, resident.records_bytes),
            (Kind::StatisticsFile, statistics_bytes),
            (Kind::Residual, beyond),
        ];
        let all = [resident.blocks_bytes, resident.records_bytes, statistics_bytes];
        Self {
            resident_bytes: all.into_iter().fold(0, u64::saturating_add),
            not_resident_bytes: known.saturating_sub(resident.blocks_bytes),
            held_bytes: told.held,
            parts: parts.into_iter().map(Part::new).collect(),
            not_told: told.missing,
        }
    }

    /// How large a part is.
    pub fn bytes(&self, kind: Kind) -> u64 {
        self.parts.iter().filter(|part| part.part == kind).map(|part| part.bytes).sum()
    }

    /// All parts together.
    pub fn whole_bytes(&self) -> u64 {
        self.resident_bytes.saturating_add(self.not_resident_bytes)
    }
}

impl Told {
    fn of(snapshot: &Snapshot) -> Self {
        let mut told = Self::default();
        let totals = snapshot.totals();
        told.large = told.or_missing(totals.large_bytes, &process::LARGE_BYTES.name);
        let live = told.or_missing(totals.live_bytes, &"live objects");
        told.live = live.saturating_sub(told.large);
        told.hot = told.or_missing(totals.hot_bytes, &bins::HOT);
        told.thread_caches = told.or_missing(totals.thread_cached_bytes, &heaps::CACHED_UNITS);
        told.shared_cache = told.figure(snapshot, process::CACHED_BYTES);
        told.dirty = told.figure(snapshot, process::DIRTY_BYTES);
        let free = told.figure(snapshot, process::FREE_BYTES);
        told.clean = free.saturating_sub(told.dirty);
        told.held = totals.held_bytes;
        let held = told.or_missing(totals.held_bytes, &"held memory");
        told.free_in_slabs = totals.spare_bytes.unwrap_or_default();
        told.untold = told.not_free(snapshot, free).saturating_sub(held);
        told
    }

    fn figure(&mut self, snapshot: &Snapshot, field: Field) -> u64 {
        self.or_missing(snapshot.process_figure(field), &field.name)
    }

    fn or_missing(&mut self, value: Option<u64>, name: &impl ToString) -> u64 {
        if value.is_none() {
            self.missing.push(name.to_string());
        }
        value.unwrap_or_default()
    }

    // Slabs, cells and large blocks, as what is nobody's and in no cache. The process tells of
    // itself at most once a millisecond, and not at all while it sleeps.
    fn not_free(&mut self, snapshot: &Snapshot, free: u64) -> u64 {
        let open = self.figure(snapshot, process::OPEN_BYTES);
        open.saturating_sub(free)
            .saturating_sub(self.shared_cache)
            .saturating_sub(self.thread_caches)
    }
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

    fn part(account: &Account, kind: Kind) -> u64 {
        account.parts.iter().find(|part| part.part == kind).unwrap().bytes
    }

    fn adds_up(account: &Account) -> bool {
        account.parts.iter().map(|part| part.bytes).sum::<u64>() == account.whole_bytes()
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
            (Kind::Untold, 0),
            (Kind::FreeInHugePages, 0),
            (Kind::Records, 20_480),
            (Kind::StatisticsFile, 28_672),
            (Kind::Residual, 0),
        ];
        assert_eq!(account.parts, parts.map(Part::new));
        assert!(adds_up(&account) && account.not_told.is_empty());
    }

    // Held: 128 KiB slabs, 200,000 B large blocks of the default epoch, 304 KiB in other epochs.
    const HELD: u64 = 131_072 + 200_000 + 262_144 + 49_152;
    const SPARE: u64 = HELD - 419_520 - 2_432;
    // Neither free nor in a cache, and held by nobody who told of it.
    const UNTOLD: u64 = (1024 - 200 - 2 * 64) * KIB - HELD;

    #[test]
    fn beyond_what_is_free_in_slabs_some_have_not_told() {
        let account = account(&image(), KNOWN + SPARE + 1_000, 0);
        assert_eq!(account.held_bytes, Some(HELD));
        assert_eq!(part(&account, Kind::FreeInSlabs), SPARE);
        assert_eq!((part(&account, Kind::Untold), part(&account, Kind::Residual)), (1_000, 0));
        assert!(adds_up(&account));
    }

    #[test]
    fn more_than_all_that_is_told_is_residual_but_for_huge_pages() {
        const MOST: u64 = KNOWN + SPARE + UNTOLD;
        let plain = account(&image(), MOST + 1_000, 0);
        assert_eq!((part(&plain, Kind::Untold), part(&plain, Kind::Residual)), (UNTOLD, 1_000));
        let huge = account(&image(), MOST + 150 * KIB, 2 << 20);
        assert_eq!(part(&huge, Kind::FreeInHugePages), 100 * KIB);
        assert_eq!(part(&huge, Kind::Residual), 50 * KIB);
        let few = account(&image(), MOST + 1_000, 400);
        assert_eq!(part(&few, Kind::FreeInHugePages), 400);
        assert!(adds_up(&plain) && adds_up(&huge) && adds_up(&few));
    }

    #[test]
    fn what_is_not_resident_makes_no_part_larger_than_the_whole() {
        let account = account(&image(), 7_000, 0);
        assert_eq!(account.not_resident_bytes, KNOWN - 7_000);
        assert!(account.parts.iter().all(|part| part.bytes <= account.whole_bytes()));
        assert_eq!(part(&account, Kind::FreeInSlabs), 0);
        assert!(adds_up(&account));
    }

    #[test]
    fn a_process_that_slept_since_it_told_is_believed_row_by_row() {
        let mut image = image();
        image.set("process", 0, "free_bytes", 900 * KIB);
        let account = account(&image, KNOWN + SPARE + 1, 0);
        assert_eq!((part(&account, Kind::FreeInSlabs), part(&account, Kind::Untold)), (SPARE, 0));
        assert_eq!(part(&account, Kind::Residual), 1);
    }

    #[test]
    fn what_the_file_does_not_tell_is_named_and_left_to_the_residual() {
        let mut image = image();
        image.forget("process", "dirty_bytes");
        image.forget("heaps", "cached_units");
        let account = account(&image, KNOWN + 900 * KIB, 0);
        assert_eq!(account.not_told, ["heaps.cached_units", "dirty_bytes"]);
        assert_eq!(part(&account, Kind::Dirty), 0);
        assert!(part(&account, Kind::Residual) > 0 && adds_up(&account));
    }
}
