//! Room for what is read of a file.

use std::ops::{Deref, DerefMut};

use memmap2::{Advice, MmapMut};

const LARGE_PAGE_BYTES: usize = 2 << 20;
/// From here on a large page is ready sooner than small ones.
const MANY_BYTES: usize = LARGE_PAGE_BYTES / 4;

/// Zeros at first. Of many bytes, large pages that the system makes ready at once: small ones, one
/// at a time, would take longer than the reading.
#[derive(Debug)]
pub enum Buffer {
    /// Up to `MANY_BYTES`.
    Few(Vec<u8>),
    /// More: the first so many bytes.
    Many(MmapMut, usize),
}

impl Buffer {
    /// Room for so many bytes; none when there is no memory.
    pub fn of(bytes: u64) -> Option<Self> {
        let length = usize::try_from(bytes).ok()?;
        if length < MANY_BYTES {
            return Some(Self::Few(vec![0; length]));
        }
        // The system places only whole large pages so that they can be such.
        let map = MmapMut::map_anon(length.checked_next_multiple_of(LARGE_PAGE_BYTES)?).ok()?;
        // Where the system takes no advice it only takes longer.
        let _ = map.advise(Advice::HugePage);
        let _ = map.advise_range(Advice::PopulateWrite, 0, length);
        Some(Self::Many(map, length))
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Few(bytes) => bytes,
            Self::Many(map, length) => &map[..*length],
        }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Few(bytes) => bytes,
            Self::Many(map, length) => &mut map[..*length],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_bytes_are_zeros_that_can_be_written() {
        for bytes in [0, 1, MANY_BYTES - 1, MANY_BYTES, 5 << 20] {
            let mut buffer = Buffer::of(bytes as u64).unwrap();
            assert_eq!((buffer.len(), buffer.iter().all(|&byte| byte == 0)), (bytes, true));
            buffer.fill(7);
            assert!(buffer.iter().all(|&byte| byte == 7));
        }
    }

    #[test]
    fn more_than_there_is_gives_none() {
        assert!(Buffer::of(1 << 60).is_none());
    }
}
