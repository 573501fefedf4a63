//! What a process has done so far, over all its heaps: counts that only grow.
//!
//! A thread's part of an epoch leaves its counts to a home when it ends. What is read meanwhile may
//! lack them, or have them twice.

use serde::Serialize;
use serde::ser::SerializeMap;

use crate::live::{self, Role, Tables};
use crate::rows::{Field, SLOW_PATHS, SlowPath, bins, heaps, process};
use crate::segment::Rows;

/// None: the file does not tell.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// Objects allocated: in slabs, in cells, and as whole units.
    pub allocations: Option<u64>,
    /// How often the fast path was left.
    pub slow_paths: SlowPaths,
    /// What threads count once, beside the size classes.
    pub of_homes: OfHomes,
}

/// What threads count in their homes alone.
pub const OF_HOMES: [Field; 13] = [
    bins::UNITS_KEPT,
    bins::UNITS_SHARED,
    bins::UNITS_REUSED,
    bins::UNITS_FRESH,
    bins::CLOSES,
    bins::RELEASES,
    bins::END_PARTS,
    bins::END_PIECES,
    bins::END_PIECES_GIVEN,
    bins::END_BYTES,
    bins::END_BYTES_GIVEN,
    bins::END_TIMED_PARTS,
    bins::END_TIMED_NS,
];

/// The sums of these.
#[derive(Clone, Debug, Default)]
pub struct OfHomes([Option<u64>; OF_HOMES.len()]);

impl OfHomes {
    /// Each field with its sum.
    pub fn each(&self) -> impl Iterator<Item = (Field, Option<u64>)> {
        OF_HOMES.into_iter().zip(self.0)
    }

    /// The sum of one of them.
    pub fn sum(&self, field: Field) -> Option<u64> {
        self.each().find(|(each, _)| each.name == field.name)?.1
    }
}

impl Serialize for OfHomes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.each().map(|(field, sum)| (field.name, sum)))
    }
}

/// How often allocations and frees left the fast path, by cause.
#[derive(Clone, Debug, Default)]
pub struct SlowPaths([Option<u64>; SLOW_PATHS.len()]);

impl Work {
    /// Adds up what the tables tell.
    pub fn of(process: Option<&Rows>, tables: Option<Tables>, roles: &[(usize, Role)]) -> Self {
        let count = |field: Field| match field.table {
            process::TABLE => process?.column(field)?.get(0),
            _ => Some(total(&live::of_bins(tables?.bins, roles, field)?)),
        };
        let slow_path = |path: SlowPath| match path.less {
            Some(less) => Some(count(path.field)?.saturating_sub(count(less)?)),
            None => count(path.field),
        };
        Self {
            allocations: tables.and_then(|tables| allocations(process, tables, roles)),
            slow_paths: SlowPaths(SLOW_PATHS.map(slow_path)),
            of_homes: OfHomes(OF_HOMES.map(count)),
        }
    }
}

impl SlowPaths {
    /// Each cause with its count.
    pub fn each(&self) -> impl Iterator<Item = (SlowPath, Option<u64>)> {
        SLOW_PATHS.into_iter().zip(self.0)
    }
}

impl Serialize for SlowPaths {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (path, count) in self.each() {
            map.serialize_entry(path.cause, &count)?;
        }
        map.end()
    }
}

fn total(classes: &[u64]) -> u64 {
    classes.iter().fold(0, |sum, count| sum.saturating_add(*count))
}

// Older libraries tell neither of parts that have ended nor of whole units.
fn allocations(process: Option<&Rows>, tables: Tables, roles: &[(usize, Role)]) -> Option<u64> {
    let in_slabs = total(&live::of_bins(tables.bins, roles, bins::ALLOCATIONS)?);
    let cut = tables.heaps.column(heaps::CUT_OBJECTS)?;
    let in_cells = roles.iter().filter_map(|&(row, _)| cut.get(row)).fold(0, u64::saturating_add);
    let ended = live::of_bins(tables.bins, roles, bins::ENDED_OBJECTS).map(|ended| total(&ended));
    let large = process.and_then(|process| process.column(process::LARGE_ALLOCATIONS)?.get(0));
    let parts = [in_cells, ended.unwrap_or_default(), large.unwrap_or_default()];
    Some(parts.into_iter().fold(in_slabs, u64::saturating_add))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Image, sample};
    use crate::segment::Segment;
    use crate::snapshot::Snapshot;

    fn work(image: &Image) -> Work {
        Snapshot::read(&Segment::open(image.bytes()).unwrap()).unwrap().work
    }

    fn count(work: &Work, cause: &str) -> Option<u64> {
        work.slow_paths.each().find(|(path, _)| path.cause == cause).unwrap().1
    }

    #[test]
    fn allocations_are_those_of_slabs_cells_and_whole_units() {
        let mut image = sample(42, 7);
        assert_eq!(work(&image).allocations, Some(2_000));
        image.set("process", 0, "large_allocations", 30);
        image.set("bins", 2, "ended_objects", 400);
        assert_eq!(work(&image).allocations, Some(2_430));
    }

    #[test]
    fn a_part_that_ends_leaves_its_counts() {
        let mut image = sample(42, 7);
        image.set("heaps", 3, "state", 0);
        assert_eq!(work(&image).allocations, Some(1_000));
        image.set("bins", 1, "ended_objects", 1_000);
        assert_eq!(work(&image).allocations, Some(2_000));
    }

    #[test]
    fn slow_paths_have_causes() {
        let mut image = sample(42, 7);
        image.set_class("bins", 1, "refills", 1, 20);
        image.set_class("bins", 2, "refills", 3, 2);
        image.set_class("bins", 1, "returned", 1, 50);
        image.set_all("bins", 1, &[("cells_taken", 6), ("cells_restarted", 7)]);
        image.set_all("process", 0, &[("large_allocations", 8), ("samples_taken", 9)]);
        let work = work(&image);
        let counts: Vec<_> = work.slow_paths.each().map(|(_, count)| count.unwrap()).collect();
        assert_eq!(counts, [18, 4, 6, 7, 8, 9, 50, 8]);
    }

    #[test]
    fn what_homes_count_is_added_up() {
        let mut image = sample(42, 7);
        for (number, field) in (1..).zip(OF_HOMES) {
            image.set("bins", 1, field.name, number);
            image.set("bins", 2, field.name, 100);
        }
        image.forget("bins", "units_kept");
        let sums: Vec<_> = work(&image).of_homes.each().map(|(_, sum)| sum).collect();
        let expected: Vec<_> = (101..).take(OF_HOMES.len()).map(Some).collect();
        assert_eq!((sums[0], &sums[1..]), (None, &expected[1..]));
    }

    #[test]
    fn what_the_file_does_not_have_is_not_known() {
        let mut image = sample(42, 7);
        image.forget("bins", "refills");
        let without = work(&image);
        assert_eq!((count(&without, "bin_empty"), count(&without, "slab_opened")), (None, Some(4)));
        image.tables.retain(|table| table.name != "bins");
        let without = work(&image);
        assert_eq!((without.allocations, count(&without, "bin_full")), (None, None));
        assert_eq!(count(&without, "sampled"), Some(0));
    }
}
