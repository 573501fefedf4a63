//! The cells that sampled blocks lie in, apart from all others (`src/heap/sampled.c`): as if one
//! heap had them all.

use crate::sampling::CELL_BYTES;

// Larger blocks have a cell each.
const MOST_TOGETHER: u64 = 1024;

// Before a block that lies with others stands the number of its sample.
const NUMBER_BYTES: u64 = 16;

/// Cells, by the number of blocks that live in each.
#[derive(Debug, Default)]
pub struct Cells {
    blocks: Vec<u64>,
    // Of the last one; from here on it is free.
    used: u64,
}

/// Where a block lies.
#[derive(Clone, Copy, Debug)]
pub struct Place(Option<usize>);

impl Cells {
    /// Adds a block. Returns the bytes that cells take more than before, too.
    pub fn add(&mut self, bytes: u64) -> (Place, u64) {
        if bytes > MOST_TOGETHER {
            return (Place(None), bytes.next_multiple_of(CELL_BYTES));
        }
        let alignment = 1 << bytes.max(NUMBER_BYTES).trailing_zeros();
        let end = |used: u64| (used + NUMBER_BYTES).next_multiple_of(alignment) + bytes;
        let has_room = self.blocks.last().is_some_and(|&live| live > 0);
        let fits = has_room && end(self.used) <= CELL_BYTES;
        if !fits {
            self.blocks.push(0);
            self.used = 0;
        }
        self.used = end(self.used);
        let last = self.blocks.len() - 1;
        self.blocks[last] += 1;
        (Place(Some(last)), if fits { 0 } else { CELL_BYTES })
    }

    /// Takes a block off. Returns the bytes that cells take less.
    pub fn remove(&mut self, place: Place, bytes: u64) -> u64 {
        let Some(cell) = place.0 else { return bytes.next_multiple_of(CELL_BYTES) };
        self.blocks[cell] -= 1;
        if self.blocks[cell] == 0 { CELL_BYTES } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_blocks_share_a_cell_until_all_are_gone() {
        let mut cells = Cells::default();
        let (first, taken) = cells.add(512);
        assert_eq!(taken, 4096);
        let more: Vec<_> = (0..3).map(|_| cells.add(512)).collect();
        assert!(more.iter().all(|&(_, taken)| taken == 0), "at 1536, 2560 and 3584");
        let (other, taken) = cells.add(512);
        assert_eq!(taken, 4096);
        assert!(more.iter().all(|&(place, _)| cells.remove(place, 512) == 0));
        assert_eq!(cells.remove(first, 512), 4096);
        assert_eq!(cells.remove(other, 512), 4096);
        assert_eq!(cells.add(16).1, 4096, "an empty cell goes back");
    }

    #[test]
    fn a_large_block_has_whole_pages() {
        let mut cells = Cells::default();
        let (place, taken) = cells.add(5000);
        assert_eq!(taken, 8192);
        assert_eq!(cells.remove(place, 5000), 8192);
    }
}
