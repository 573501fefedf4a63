//! A core dump: which addresses it has, and what is there.
//!
//! It is read in place, as far as it is asked for. It may be damaged: no place in it is trusted.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use object::elf::{ET_CORE, FileHeader64, PF_W, PT_LOAD, PT_NOTE, ProgramHeader64};
use object::read::ReadCache;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, NativeEndian};

use super::process::Process;
use crate::modules::Mapping;

/// What to do when memory is missing.
pub const ADVICE: &str = "have the whole dumped: `ulimit -c unlimited`, and bit 0 set in \
                          /proc/PID/coredump_filter (`echo 0x3f`)";

/// A piece of the process's memory.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// In the process.
    pub address: u64,
    /// Of it in the file.
    pub bytes: u64,
    at: u64,
    /// The process could write to it.
    pub is_writable: bool,
}

/// A core dump.
#[derive(Debug)]
pub struct Dump {
    file: File,
    /// By address.
    pub loads: Vec<Load>,
    /// What all loads have together.
    pub bytes: u64,
    /// Of the process where it ran.
    pub pid: Option<u32>,
    /// That the process had mapped.
    pub files: Vec<Mapping>,
    /// When the dump was last changed.
    pub written: Option<SystemTime>,
}

impl Dump {
    /// Fails when it is something else, or ends too early.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path)?;
        let about = file.metadata()?;
        let (loads, process) = read(&file)?;
        let end = loads.iter().map(|load| load.at.saturating_add(load.bytes)).max();
        if let Some(end) = end.filter(|&end| end > about.len()) {
            bail!(
                "the dump is cut short: it has {} of {end} bytes; {ADVICE}, and room on disk",
                about.len()
            );
        }
        if overlap(&loads) {
            bail!("the dump is damaged: its pieces of memory overlap");
        }
        Ok(Self {
            file,
            bytes: loads.iter().map(|load| load.bytes).sum(),
            loads,
            pid: process.pid,
            files: process.files,
            written: about.modified().ok(),
        })
    }

    /// Fills `into` with what the process had at `address`. `what` is there, for the error.
    pub fn read(&self, mut address: u64, mut into: &mut [u8], what: &str) -> Result<()> {
        while !into.is_empty() {
            let behind = self.loads.partition_point(|load| load.address <= address);
            let load = behind.checked_sub(1).map(|index| self.loads[index]);
            let inside = load.map(|load| (load, address - load.address));
            let Some((load, passed)) = inside.filter(|(load, passed)| *passed < load.bytes) else {
                bail!("the dump lacks the page at {address:#x} ({what}): {ADVICE}");
            };
            let length = usize::try_from(load.bytes - passed).unwrap_or(usize::MAX).min(into.len());
            let (now, later) = into.split_at_mut(length);
            self.file.read_exact_at(now, load.at.saturating_add(passed)).context("the dump")?;
            address = address.wrapping_add(length as u64);
            into = later;
        }
        Ok(())
    }

    /// The same as so many bytes. The dump has them before they take memory here.
    pub fn bytes(&self, address: u64, length: u64, what: &str) -> Result<Vec<u8>> {
        if length > self.bytes {
            bail!("the dump is damaged: {what} would take {length} bytes");
        }
        let mut into = vec![0; usize::try_from(length)?];
        self.read(address, &mut into, what)?;
        Ok(into)
    }

    /// An integer.
    pub fn long(&self, address: u64, what: &str) -> Result<u64> {
        let mut into = [0; 8];
        self.read(address, &mut into, what)?;
        Ok(u64::from_ne_bytes(into))
    }
}

// In memory or in the file: then a few bytes there would be many here.
fn overlap(loads: &[Load]) -> bool {
    let mut places: Vec<_> = loads.iter().map(|load| (load.at, load.bytes)).collect();
    places.sort_unstable();
    let meet = |(first, bytes): (u64, u64), second: u64| first.saturating_add(bytes) > second;
    let addresses = loads.iter().map(|load| (load.address, load.bytes));
    places.windows(2).any(|pair| meet(pair[0], pair[1].0))
        || addresses.zip(loads.iter().skip(1)).any(|(first, next)| meet(first, next.address))
}

fn read(file: &File) -> Result<(Vec<Load>, Process)> {
    const WHAT: &str = "it is not a core dump: name the file that the system wrote as the process \
                        ended; one in a compressed form, as of systemd-coredump, must be unpacked";
    let cache = ReadCache::new(file);
    let header = FileHeader64::<Endianness>::parse(&cache).map_err(|_| anyhow::anyhow!(WHAT))?;
    let endian = header.endian().map_err(|_| anyhow::anyhow!(WHAT))?;
    if header.e_type(endian) != ET_CORE {
        bail!(WHAT);
    }
    if endian != native() {
        bail!("it is of a machine with another byte order: read it on such a machine");
    }
    let headers = header.program_headers(endian, &cache).context("the dump is damaged")?;
    let mut loads: Vec<_> = headers
        .iter()
        .filter(|header| header.p_type(endian) == PT_LOAD)
        .map(|header| load(header, endian))
        .filter(|load| load.bytes != 0)
        .collect();
    loads.sort_by_key(|load| load.address);
    let mut process = Process::default();
    for notes in headers.iter().filter(|header| header.p_type(endian) == PT_NOTE) {
        process.add(notes.data(endian, &cache).unwrap_or_default());
    }
    Ok((loads, process))
}

fn native() -> Endianness {
    use object::Endian;
    Endianness::from_big_endian(NativeEndian.is_big_endian()).unwrap_or_default()
}

fn load(header: &ProgramHeader64<Endianness>, endian: Endianness) -> Load {
    Load {
        address: header.p_vaddr(endian),
        bytes: header.p_filesz(endian),
        at: header.p_offset(endian),
        is_writable: header.p_flags(endian).0 & PF_W.0 != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_meet_in_memory_or_in_the_file_overlap() {
        let load = |address, at| Load { address, bytes: 0x1000, at, is_writable: true };
        let cases = [
            (vec![], false),
            (vec![load(0x1000, 0x2000), load(0x2000, 0x1000)], false),
            (vec![load(0x1000, 0x1000), load(0x1fff, 0x5000)], true),
            (vec![load(0x1000, 0x1000), load(0x8000, 0x1000)], true),
            (vec![load(0x1000, 0x5000), load(0x8000, 0x1000), load(0xa000, 0x5fff)], true),
            (vec![load(0x1000, u64::MAX), load(0x8000, 0x1000)], false),
        ];
        for (loads, is_expected) in cases {
            assert_eq!(overlap(&loads), is_expected, "{loads:?}");
        }
    }
}
