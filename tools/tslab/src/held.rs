//! Who holds the allocator's memory: the one definition of `held`, which every command, `/metrics`
//! and the page show (docs/statistics.md).
//!
//!  H1  an epoch's own memory: its slabs, cells and large blocks, with what is free in them
//!  H2  an epoch holds its own memory and its descendants': the library counts it, but for the
//!      default epoch, whose slabs, cells and large blocks the snapshot adds up
//!  H3  the process holds what all epochs own: each byte once

use std::collections::HashMap;

/// What an epoch holds.
#[derive(Clone, Copy, Debug)]
pub struct Holder {
    /// The epoch's row.
    pub row: u64,
    /// The parent's row.
    pub parent: Option<u64>,
    /// Its descendants' included. None: not known.
    pub held_bytes: Option<u64>,
}

/// What each of these epochs, which are all, owns.
pub fn own(epochs: &[Holder]) -> Vec<Option<u64>> {
    let children = children(epochs);
    let own = |epoch: &Holder| {
        let by_children = children.get(&epoch.row).copied().unwrap_or_default();
        Some(epoch.held_bytes?.saturating_sub(by_children))
    };
    epochs.iter().map(own).collect()
}

// What the children of each epoch hold, by the parent's row. An epoch that is its own parent, as in
// a damaged file, is no child.
fn children(epochs: &[Holder]) -> HashMap<u64, u64> {
    let mut held = HashMap::<_, u64>::new();
    for epoch in epochs.iter().filter(|epoch| epoch.parent != Some(epoch.row)) {
        let (Some(parent), Some(bytes)) = (epoch.parent, epoch.held_bytes) else { continue };
        let sum = held.entry(parent).or_default();
        *sum = sum.saturating_add(bytes);
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_of<const N: usize>(epochs: [(u64, u64, Option<u64>); N]) -> Vec<Option<u64>> {
        own(&epochs.map(|(row, parent, held_bytes)| {
            let parent = (parent != 0).then_some(parent);
            Holder { row, parent, held_bytes }
        }))
    }

    #[test]
    fn each_byte_is_owned_once() {
        let epochs = [(0, 0, 1000), (1, 0, 90), (2, 1, 50), (3, 2, 20), (4, 1, 10), (5, 0, 7)];
        let own = own_of(epochs.map(|(row, parent, held)| (row, parent, Some(held))));
        assert_eq!(own, [1000, 30, 30, 20, 10, 7].map(Some));
    }

    #[test]
    fn damaged_parents_do_no_harm() {
        let epochs = [(1, 1, 5), (2, 3, 6), (3, 2, 9), (4, 99, u64::MAX), (5, 99, u64::MAX)];
        let own = own_of(epochs.map(|(row, parent, held)| (row, parent, Some(held))));
        assert_eq!(own, [5, 0, 3, u64::MAX, u64::MAX].map(Some));
    }

    #[test]
    fn what_is_not_told_is_not_known() {
        assert_eq!(own_of([(1, 0, None), (2, 1, Some(4))]), [None, Some(4)]);
    }
}
