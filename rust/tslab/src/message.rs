//! message: a protocol buffer as it is written, and a gzip file that holds bytes as they are.

/// Fields that were written one behind the other.
#[derive(Default)]
pub(crate) struct Message(pub(crate) Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value > 0x7f {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }

    /// A field whose value 0 is not written.
    pub(crate) fn number(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.varint(field << 3);
            self.varint(value);
        }
    }

    pub(crate) fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn message(&mut self, field: u64, message: &Message) {
        self.bytes(field, &message.0);
    }

    pub(crate) fn numbers(&mut self, field: u64, values: &[u64]) {
        let mut packed = Message::default();
        for &value in values {
            packed.varint(value);
        }
        self.message(field, &packed);
    }
}

// RFC 1952: deflate, no name, no time, an unknown system.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// The bytes in blocks that are not compressed (RFC 1951).
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut file = GZIP_HEADER.to_vec();
    let mut left = bytes;
    loop {
        let length = u16::try_from(left.len()).unwrap_or(u16::MAX);
        let (block, rest) = left.split_at(length.into());
        file.push(u8::from(rest.is_empty()));
        file.extend(length.to_le_bytes());
        file.extend((!length).to_le_bytes());
        file.extend_from_slice(block);
        left = rest;
        if left.is_empty() {
            break;
        }
    }
    file.extend(crc(bytes).to_le_bytes());
    // Modulo 2^32.
    file.extend_from_slice(&bytes.len().to_le_bytes()[..4]);
    file
}

fn crc(bytes: &[u8]) -> u32 {
    let shift = |crc: u32, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_by_seven_bits() {
        let mut message = Message::default();
        message.number(1, 150);
        message.number(2, 0);
        message.numbers(3, &[3, 270]);
        message.bytes(4, b"x");
        assert_eq!(message.0, [8, 0x96, 1, 0x1a, 3, 3, 0x8e, 2, 0x22, 1, b'x']);
    }

    #[test]
    fn checksums_are_those_of_gzip() {
        assert_eq!((crc(b""), crc(b"123456789")), (0, 0xcbf4_3926));
    }

    #[test]
    #[cfg_attr(miri, ignore = "the checksum takes minutes there")]
    fn long_files_have_several_blocks() {
        let ends = |bytes: &[u8]| (bytes.len() - 18) / 5;
        for (bytes, blocks) in [(0, 1), (65_535, 1), (65_536, 2), (200_000, 4)] {
            let file = gzip(&vec![7; bytes]);
            assert_eq!(file.len(), 18 + bytes + 5 * blocks, "{bytes} bytes");
            assert_eq!(ends(&file) - bytes / 5, blocks, "{bytes} bytes");
        }
    }
}
