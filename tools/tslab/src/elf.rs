//! What an executable file says of how it is started.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const MAGIC: &[u8] = b"\x7fELF";

// Of the file header, and of program headers (System V ABI, chapters 4 and 5).
const CLASS_AT: usize = 4;
const DATA_AT: usize = 5;
const MACHINE_AT: usize = 18;
const CLASS_64: u8 = 2;
const HEADER_BYTES: usize = 64;
const INTERPRETER: u32 = 3;

// Linux takes no more program headers than fit into this.
const MOST_TABLE_BYTES: usize = 65_536;
// Nor a longer first line of a script.
const MOST_LINE_BYTES: u64 = 256;

/// An executable file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executable {
    /// Word size, byte order and instruction set.
    pub machine: (u8, u8, u16),
    /// A loader starts it, which loads libraries.
    pub is_dynamic: bool,
}

/// None when it is something else, or cannot be read.
pub fn read(path: &Path) -> Option<Executable> {
    let file = File::open(path).ok()?;
    let mut header = [0; HEADER_BYTES];
    file.read_exact_at(&mut header, 0).ok()?;
    header.starts_with(MAGIC).then_some(())?;
    let machine = (header[CLASS_AT], header[DATA_AT], short(&header, MACHINE_AT)?);
    // A library has no loader of its own.
    Some(Executable { machine, is_dynamic: has_interpreter(&file, &header)? })
}

fn has_interpreter(file: &File, header: &[u8]) -> Option<bool> {
    let is_64 = header[CLASS_AT] == CLASS_64;
    let at = if is_64 { long(header, 32)? } else { word(header, 28)?.into() };
    let (size, count) = if is_64 { (54, 56) } else { (42, 44) };
    let (each, count) = (usize::from(short(header, size)?), usize::from(short(header, count)?));
    let bytes = count * each;
    if each < 4 || bytes > MOST_TABLE_BYTES {
        return None;
    }
    let mut table = vec![0; bytes];
    file.read_exact_at(&mut table, at).ok()?;
    Some(table.chunks_exact(each).any(|entry| word(entry, 0) == Some(INTERPRETER)))
}

/// The program that a script is run by in the end, at most so many scripts further. None when it is
/// no script.
pub fn interpreter_of(script: &Path, most: usize) -> Option<PathBuf> {
    let first = interpreter(script)?;
    let is_last = most <= 1;
    if is_last { Some(first) } else { interpreter_of(&first, most - 1).or(Some(first)) }
}

/// What the first line of a script says of how it is run. None when it is no script.
pub fn first_line(script: &Path) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    File::open(script).ok()?.take(MOST_LINE_BYTES).read_to_end(&mut line).ok()?;
    Some(line.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?.to_owned())
}

// The program that the first line names.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let line = first_line(script)?;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(words.next()?)))
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn file(name: &str, bytes: &[u8]) -> PathBuf {
        let name = format!("tslab-elf-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    // A 64-bit header and program headers of these types.
    fn image(types: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..4].copy_from_slice(MAGIC);
        (bytes[CLASS_AT], bytes[DATA_AT], bytes[MACHINE_AT]) = (CLASS_64, 1, 62);
        bytes[32] = 64;
        (bytes[54], bytes[56]) = (56, u8::try_from(types.len()).unwrap());
        for kind in types {
            bytes.extend(kind.to_ne_bytes());
            bytes.extend([0; 52]);
        }
        bytes
    }

    #[test]
    fn programs_without_a_loader_are_static() {
        let dynamic = file("dynamic", &image(&[6, INTERPRETER, 1]));
        let machine = (2, 1, 62);
        assert_eq!(read(&dynamic), Some(Executable { machine, is_dynamic: true }));
        let fixed = file("static", &image(&[1, 1]));
        assert_eq!(read(&fixed), Some(Executable { machine, is_dynamic: false }));
        let own = std::env::current_exe().unwrap();
        assert!(read(&own).is_some_and(|own| own.is_dynamic));
        for path in [dynamic, fixed] {
            fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn what_is_no_program_or_damaged_tells_nothing() {
        let mut large = image(&[1]);
        large[55] = 255;
        large[57] = 255;
        let mut empty = image(&[1]);
        empty[54] = 0;
        let cut = image(&[1])[..80].to_vec();
        for (number, bytes) in
            [vec![], b"#!/bin/sh\n".to_vec(), large, empty, cut].iter().enumerate()
        {
            let path = file(&format!("damaged-{number}"), bytes);
            assert_eq!(read(&path), None, "{number}");
            fs::remove_file(path).unwrap();
        }
        assert_eq!(read(Path::new("/nothing")), None);
    }

    #[test]
    fn scripts_are_followed_to_their_programs() {
        let inner = file("inner", b"#! /bin/sh -e\n");
        let outer = file("outer", format!("#!{}\nx", inner.display()).as_bytes());
        assert_eq!(interpreter_of(&outer, 5), Some("/bin/sh".into()));
        assert_eq!(interpreter_of(&outer, 1), Some(inner.clone()));
        assert_eq!(interpreter_of(Path::new("/bin/sh"), 5), None);
        let ring = file("ring", b"");
        fs::write(&ring, format!("#!{}", ring.display())).unwrap();
        assert_eq!(interpreter_of(&ring, 5), Some(ring.clone()));
        for path in [inner, outer, ring] {
            fs::remove_file(path).unwrap();
        }
    }
}
