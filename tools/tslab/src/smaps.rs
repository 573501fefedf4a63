//! A process's mappings as the system counts them: /proc/PID/smaps.
//!
//! The allocator's own lie in one stretch of address space (`memory/region.h`), which the process
//! tells.

use std::fs;
use std::ops::Range;
use std::path::Path;

use anyhow::{Result, anyhow};

use crate::modules;

/// What the allocator's memory is called, where the kernel has names: the larger part of it.
const NAME: &str = "[anon:tslab]";

/// A mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// Its first address.
    pub start: u64,
    /// The address behind it.
    pub end: u64,
    /// A file, or what the kernel calls it; empty: memory of the process's own.
    pub name: String,
    /// Resident, in bytes.
    pub rss_bytes: u64,
    /// Of it, in huge pages.
    pub huge_bytes: u64,
    /// In swap, in bytes.
    pub swap_bytes: u64,
}

impl Mapping {
    // A line such as `7f00-7f01 rw-s 00000000 00:18 42   /dev/shm/tslab.1.2`.
    fn of_head(line: &str) -> Option<Self> {
        let modules::Mapping { start, end, path: name, .. } = modules::Mapping::of_line(line)?;
        Some(Self { start, end, name, ..Self::default() })
    }

    // A line such as `Rss:                  12 kB`.
    fn add(&mut self, line: &str) {
        let Some((name, value)) = line.split_once(':') else { return };
        let field = match name {
            "Rss" => &mut self.rss_bytes,
            "AnonHugePages" => &mut self.huge_bytes,
            "Swap" => &mut self.swap_bytes,
            _ => return,
        };
        let kibibytes = value.trim().strip_suffix("kB").and_then(|value| value.trim().parse().ok());
        *field = kibibytes.map_or(0, |kibibytes: u64| kibibytes.saturating_mul(1024));
    }

    fn is_in(&self, addresses: &Range<u64>) -> bool {
        addresses.contains(&self.start) && (self.name.is_empty() || self.name == NAME)
    }
}

/// The mappings of a process that runs.
pub fn of_process(pid: u32) -> Result<Vec<Mapping>> {
    let path = format!("/proc/{pid}/smaps");
    of_file(Path::new(&path)).map_err(|error| {
        anyhow!(
            "the system does not tell what is resident in process {pid} ({error}): \
             run this command as the user of that process, or root"
        )
    })
}

/// The mappings in a copy of such a file.
pub fn of_file(path: &Path) -> Result<Vec<Mapping>> {
    let text = fs::read(path)?;
    let mappings = parse(&String::from_utf8_lossy(&text));
    if mappings.is_empty() {
        return Err(anyhow!("it lists no mappings"));
    }
    Ok(mappings)
}

fn parse(text: &str) -> Vec<Mapping> {
    let mut mappings = Vec::<Mapping>::new();
    for line in text.lines() {
        // Fields begin with capitals, addresses do not.
        if !line.starts_with(|first: char| first.is_ascii_uppercase()) {
            mappings.extend(Mapping::of_head(line));
        } else if let Some(last) = mappings.last_mut() {
            last.add(line);
        }
    }
    mappings
}

/// Where the allocator's memory lies, as the process tells it.
#[derive(Clone, Debug)]
pub struct Place {
    /// All of it.
    pub region: Range<u64>,
    /// Of it, the blocks.
    pub blocks: Range<u64>,
}

/// The allocator's memory among the mappings of a process.
#[derive(Debug)]
pub struct Region {
    mappings: Vec<Mapping>,
    place: Place,
}

impl Region {
    /// Finds it. None when no mapping lies where the process says.
    pub fn find(mappings: &[Mapping], place: &Place) -> Option<Self> {
        let is_own = |mapping: &&Mapping| mapping.is_in(&place.region);
        let own: Vec<_> = mappings.iter().filter(is_own).cloned().collect();
        (!own.is_empty()).then(|| Self { mappings: own, place: place.clone() })
    }

    /// What is resident of it.
    pub fn resident(&self) -> Resident {
        let all = &self.mappings;
        let are_blocks = |mapping: &&Mapping| mapping.is_in(&self.place.blocks);
        let blocks: Vec<_> = all.iter().filter(are_blocks).cloned().collect();
        let blocks_bytes = sum(&blocks, |mapping| mapping.rss_bytes);
        Resident {
            blocks_bytes,
            huge_bytes: sum(&blocks, |mapping| mapping.huge_bytes),
            records_bytes: sum(all, |mapping| mapping.rss_bytes).saturating_sub(blocks_bytes),
            swap_bytes: sum(all, |mapping| mapping.swap_bytes),
        }
    }

    /// Whether a mapping is part of it.
    pub fn has(&self, mapping: &Mapping) -> bool {
        self.mappings.iter().any(|own| own.start == mapping.start)
    }
}

fn sum(mappings: &[Mapping], value: fn(&Mapping) -> u64) -> u64 {
    mappings.iter().map(value).fold(0, u64::saturating_add)
}

/// What is resident of the allocator's memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "units stand in names")]
pub struct Resident {
    /// Where blocks lie.
    pub blocks_bytes: u64,
    /// Of it, in huge pages.
    pub huge_bytes: u64,
    /// The allocator's own records.
    pub records_bytes: u64,
    /// Of both, in swap: not resident.
    pub swap_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;
    const MIB: u64 = 1 << 20;

    fn mapping(start: u64, name: &str, rss_kib: u64) -> String {
        let head = format!("{start:x}-{:x} rw-p 00000000 00:00 0    {name}", start + MIB);
        format!("{head}\nRss:      {rss_kib} kB\nAnonHugePages:   8 kB\nSwap:   4 kB\n")
    }

    // As the library lays it out: the map, blocks in two mappings, records. Before, between and
    // behind lies what is not the allocator's.
    fn process() -> String {
        let base = 1 << 40;
        let parts = [
            (base - MIB, "", 777),
            (base, "", 20),
            (base + 8 * MIB, "[anon:tslab]", 30_000),
            (base + 40 * MIB, "", 3_000),
            (base + 72 * MIB, "[anon:other]", 99),
            (base + 512 * MIB, "", 100),
            (base + 600 * MIB, "/usr/lib/x", 50),
            (base + GIB, "", 888),
        ];
        parts.iter().map(|&(at, name, rss)| mapping(at, name, rss)).collect()
    }

    fn place() -> Place {
        let base = 1 << 40;
        Place { region: base..base + GIB, blocks: base + 8 * MIB..base + 512 * MIB }
    }

    #[test]
    fn lines_are_understood_and_others_passed_over() {
        let text = "7f00-7f02 rw-s 00000000 00:18 42   /dev/shm/a b (deleted)\n\
                    Rss:     12 kB\nVmFlags: rd wr\nSwap:  x kB\nnonsense\n\n";
        let expected = Mapping {
            start: 0x7f00,
            end: 0x7f02,
            name: "/dev/shm/a b (deleted)".to_owned(),
            rss_bytes: 12 << 10,
            ..Mapping::default()
        };
        assert_eq!(parse(text), [expected]);
        assert_eq!(parse("Rss:  1 kB\n"), []);
        let own = of_process(std::process::id()).unwrap();
        assert!(sum(&own, |mapping| mapping.rss_bytes) > 4096);
    }

    #[test]
    fn what_lies_in_the_region_is_the_allocators() {
        let mappings = parse(&process());
        let region = Region::find(&mappings, &place()).unwrap();
        let expected = Resident {
            blocks_bytes: 33_000 << 10,
            huge_bytes: 16 << 10,
            records_bytes: 120 << 10,
            swap_bytes: 4 * 4096,
        };
        assert_eq!(region.resident(), expected);
        let own: Vec<_> = mappings.iter().map(|mapping| region.has(mapping)).collect();
        assert_eq!(own, [false, true, true, true, false, true, false, false]);
    }

    #[test]
    fn mappings_of_another_process_have_no_region() {
        let elsewhere = Place { region: 1 << 42..1 << 43, blocks: 1 << 42..1 << 43 };
        assert!(Region::find(&parse(&process()), &elsewhere).is_none());
        assert!(Region::find(&[], &place()).is_none());
    }

    #[test]
    fn sizes_at_their_ends_do_no_harm() {
        let text = format!(
            "0-ffffffffffffffff rw-p 0 0 0\nRss: {} kB\nffffffffffffffff-0 rw-p 0 0 0\n",
            u64::MAX
        );
        let all = Place { region: 0..u64::MAX, blocks: 0..u64::MAX };
        let region = Region::find(&parse(&text), &all).unwrap();
        assert_eq!(region.resident().blocks_bytes, u64::MAX);
    }
}
