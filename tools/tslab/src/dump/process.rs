//! What a core dump says of its process: its number, and which files it had mapped.

use crate::modules::Mapping;

use super::record::{long, word};

const PROCESS: u32 = 3;
const FILES: u32 = 0x4649_4c45;
const HEADER_BYTES: usize = 12;
// In `struct elf_prpsinfo` of 64-bit systems.
const PID_AT: usize = 24;

/// What the notes say.
#[derive(Debug, Default)]
pub struct Process {
    /// Its number where it ran.
    pub pid: Option<u32>,
    /// By address.
    pub files: Vec<Mapping>,
}

impl Process {
    /// Takes in a segment of notes; what is damaged is left out.
    pub fn add(&mut self, mut notes: &[u8]) {
        while let Some((kind, text, rest)) = first(notes) {
            match kind {
                PROCESS => self.pid = word(text, PID_AT),
                FILES => self.files.extend(files(text).unwrap_or_default()),
                _ => {}
            }
            notes = rest;
        }
    }
}

// A note: what it is, what it says, and those behind it.
fn first(notes: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let (name, text) = (size(notes, 0)?, size(notes, 4)?);
    let rest = notes.get(HEADER_BYTES..)?.get(name.checked_next_multiple_of(4)?..)?;
    let behind = text.checked_next_multiple_of(4)?.min(rest.len());
    Some((word(notes, 8)?, rest.get(..text)?, &rest[behind..]))
}

fn size(notes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(word(notes, at)?).ok()
}

// A count, the size of a page, a start, an end and a page of the file for each; then their names.
fn files(text: &[u8]) -> Option<Vec<Mapping>> {
    let (count, page_bytes) = (usize::try_from(long(text, 0)?).ok()?, long(text, 8)?);
    let places = text.get(16..)?;
    let names = places.get(count.checked_mul(24)?..)?.split(|&byte| byte == 0);
    let mapping = |(place, name): (&[u8], &[u8])| {
        Some(Mapping {
            start: long(place, 0)?,
            end: long(place, 8)?,
            offset: long(place, 16)?.checked_mul(page_bytes)?,
            // The note does not tell; only code is looked up.
            is_executable: true,
            path: String::from_utf8_lossy(name).into_owned(),
        })
    };
    Some(places.chunks_exact(24).zip(names).take(count).filter_map(mapping).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(kind: u32, text: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [5, u32::try_from(text.len()).unwrap(), kind] {
            bytes.extend(number.to_ne_bytes());
        }
        bytes.extend(b"CORE\0\0\0\0");
        bytes.extend(text);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn mapped() -> Vec<u8> {
        let numbers = [2u64, 4096, 0x1000, 0x3000, 1, 0x5000, 0x6000, 0];
        let mut text: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        text.extend(b"/opt/a b\0/lib/c.so\0");
        text
    }

    fn notes() -> Vec<u8> {
        let mut process = vec![0; 136];
        process[PID_AT..PID_AT + 4].copy_from_slice(&4242u32.to_ne_bytes());
        [note(1, b"xyz"), note(PROCESS, &process), note(FILES, &mapped())].concat()
    }

    #[test]
    fn number_and_files_are_found() {
        let mut process = Process::default();
        process.add(&notes());
        assert_eq!(process.pid, Some(4242));
        let [first, second] = process.files.as_slice() else { panic!("{:?}", process.files) };
        assert_eq!((first.path.as_str(), first.start, first.offset), ("/opt/a b", 0x1000, 4096));
        assert_eq!((second.path.as_str(), second.end), ("/lib/c.so", 0x6000));
    }

    #[test]
    fn damaged_notes_are_left_out() {
        let whole = notes();
        for end in 0..whole.len() {
            Process::default().add(&whole[..end]);
        }
        for at in 0..whole.len() {
            for value in [0, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                let mut process = Process::default();
                process.add(&bytes);
                assert!(process.files.len() <= 2);
            }
        }
    }
}
