//! Integers in records that a process wrote.

/// An integer at a place in a record, if it is that long.
pub fn word(record: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*record.get(at..)?.first_chunk()?))
}

/// The same of 8 bytes.
pub fn long(record: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*record.get(at..)?.first_chunk()?))
}
