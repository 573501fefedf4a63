//! Room for what is read of a file.

use std::ops::{Deref, DerefMut};

use memmap2::{Advice, MmapMut};

const MANY_BYTES: usize = 256 << 10;

/// Zeros at first. Of many bytes, large pages that the system makes ready at once: small ones, one
/// at a time, would take longer than the reading.
#[derive(Debug)]
pub enum Buffer {
    /// Up to `MANY_BYTES`.
    Few(Vec<u8>),
    /// More.
    Many(MmapMut),
}

impl Buffer {
    /// Room for so many bytes; none when there is no memory.
    pub fn of(bytes: u64) -> Option<Self> {
        let length = usize::try_from(bytes).ok()?;
        if length < MANY_BYTES {
            return Some(Self::Few(vec![0; length]));
        }
        let map = MmapMut::map_anon(length).ok()?;
        // Where the system takes no advice it only takes longer.
        for advice in [Advice::HugePage, Advice::PopulateWrite] {
            let _ = map.advise(advice);
        }
        Some(Self::Many(map))
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Few(bytes) => bytes,
            Self::Many(map) => map,
        }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Few(bytes) => bytes,
            Self::Many(map) => map,
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
