//! Memory of groups of blocks that end together, such as those of an epoch: a group takes what
//! lives of it at most, until it ends.

use std::collections::{BTreeMap, BTreeSet};

use crate::sampling::float;

// A slab of a size class is half full on average.
const HALF_SLAB_BYTES: f64 = 32768.0;

// Larger blocks have memory of their own.
const MOST_SMALL_BYTES: u64 = 32768;

// A small group lies in cells for blocks of all sizes, of which it fills most.
const MOST_SLACK: f64 = 0.25;

// What is left of a sum of parts when all of them have gone.
const NOTHING_BYTES: f64 = 1.0;

/// With which of the groups each object ends, and which share of one is left when it has ended.
#[derive(Debug)]
pub struct Ends {
    /// By object.
    pub groups: Vec<Option<usize>>,
    /// Of the most that lives of a group.
    pub share: f64,
}

/// Whose slab a block lies in: each thread has its own for each size class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slab {
    /// Who allocates.
    pub thread: u64,
    /// Of each block.
    pub block_bytes: u64,
}

/// Blocks that lie together, and keep what they took when they were most.
#[derive(Debug, Default)]
pub struct Group {
    live: f64,
    most: f64,
    slabs: BTreeSet<Slab>,
}

impl Group {
    /// So many bytes came, or went if they are below 0.
    pub fn add(&mut self, bytes: f64, slab: Slab) {
        self.live += bytes;
        self.most = self.most.max(self.live);
        if slab.block_bytes <= MOST_SMALL_BYTES {
            self.slabs.insert(slab);
        }
    }

    /// What they take.
    pub fn taken(&self) -> f64 {
        let slack = HALF_SLAB_BYTES * float(self.slabs.len() as u64);
        self.most + slack.min(MOST_SLACK * self.most)
    }
}

/// All groups in which something lives.
#[derive(Debug)]
pub struct Groups {
    all: BTreeMap<usize, Group>,
    taken: f64,
    end_share: f64,
}

impl Groups {
    /// A group has ended when so small a share of the most that lived of it is left.
    pub fn ending_at(end_share: f64) -> Self {
        Self { all: BTreeMap::new(), taken: 0.0, end_share }
    }

    /// So many bytes of a group came, or went if they are below 0. Returns what all groups take now
    /// beyond what they took before.
    pub fn add(&mut self, number: usize, bytes: f64, slab: Slab) -> f64 {
        let group = self.all.entry(number).or_default();
        let before = group.taken();
        group.add(bytes, slab);
        if bytes < 0.0 && group.live <= self.end_share * group.most {
            *group = Group { live: group.live, most: group.live, slabs: BTreeSet::new() };
        }
        let mut after = group.taken();
        if group.live < NOTHING_BYTES {
            self.all.remove(&number);
            after = 0.0;
        }
        self.taken += after - before;
        after - before
    }

    /// What all of them take.
    pub fn taken(&self) -> f64 {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = 1_048_576.0;

    fn of(block_bytes: u64) -> Slab {
        Slab { thread: 1, block_bytes }
    }

    fn is(value: f64, wanted: f64) -> bool {
        (value - wanted).abs() < NOTHING_BYTES
    }

    #[test]
    fn a_group_keeps_what_it_took_until_nothing_of_it_lives() {
        let mut groups = Groups::ending_at(0.0);
        assert!(is(groups.add(1, 4.0 * MIB, of(1 << 20)), 4.0 * MIB));
        assert!(is(groups.add(2, MIB, of(1 << 20)), MIB));
        assert!(is(groups.add(1, -3.0 * MIB, of(1 << 20)), 0.0));
        assert!(is(groups.taken(), 5.0 * MIB));
        assert!(is(groups.add(1, -MIB, of(1 << 20)), -4.0 * MIB));
        assert!(is(groups.taken(), MIB));
    }

    // Of rounds that seem to be one, blocks of the first may live on in the next.
    #[test]
    fn a_group_ends_when_little_is_left() {
        let mut groups = Groups::ending_at(0.1);
        groups.add(1, 4.0 * MIB, of(1 << 20));
        groups.add(1, -3.0 * MIB, of(1 << 20));
        assert!(is(groups.taken(), 4.0 * MIB));
        groups.add(1, -0.7 * MIB, of(1 << 20));
        assert!(is(groups.taken(), 0.3 * MIB));
    }

    #[test]
    fn each_size_class_of_a_thread_has_a_slab_that_is_half_full() {
        let mut groups = Groups::ending_at(0.0);
        groups.add(1, MIB, of(64));
        groups.add(1, MIB, of(96));
        assert!(is(groups.taken(), 2.0 * MIB + 65536.0));
        groups.add(1, MIB, Slab { thread: 2, ..of(64) });
        assert!(is(groups.taken(), 3.0 * MIB + 98_304.0));
        groups.add(2, 4096.0, of(64));
        assert!(is(groups.taken(), 3.0 * MIB + 98_304.0 + 5120.0), "a small one lies in cells");
    }
}
