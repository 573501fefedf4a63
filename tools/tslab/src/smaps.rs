//! A process's mappings as the system counts them: /proc/PID/smaps.
//!
//! The allocator's own are one stretch of address space, reserved as a whole (`memory/region.h`).
//! The kernel names it where it can; otherwise it is recognised by its shape.

use std::fs;
use std::path::Path;

use anyhow::{Result, anyhow};

/// Where the allocator names its memory.
const NAME: &str = "[anon:tslab]";

/// The least that the allocator reserves begins at a multiple of this, in bytes.
const LEAST_REGION_BYTES: u64 = 1 << 24;

/// A mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// Its first address.
    pub start: u64,
    /// The address behind it.
    pub end: u64,
    /// Anything may be done with its memory.
    pub is_accessible: bool,
    /// Nothing but reading.
    pub is_read_only: bool,
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
    /// How large it is.
    pub fn bytes(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    // A line such as `7f00-7f01 rw-s 00000000 00:18 42   /dev/shm/tslab.1.2`.
    fn of_head(line: &str) -> Option<Self> {
        let mut rest = line;
        let mut next = || {
            let (word, after) = rest.trim_start().split_once(' ').unwrap_or((rest.trim(), ""));
            rest = after;
            word
        };
        let (start, end) = next().split_once('-')?;
        let access = next();
        for _offset_device_inode in 0..3 {
            next();
        }
        Some(Self {
            start: u64::from_str_radix(start, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
            is_accessible: !access.starts_with("---"),
            is_read_only: access.starts_with("r--"),
            name: rest.trim().to_owned(),
            ..Self::default()
        })
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

    fn is_unnamed(&self) -> bool {
        self.name.is_empty()
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

/// The allocator's memory among the mappings of a process.
#[derive(Debug)]
pub struct Region {
    mappings: Vec<Mapping>,
}

impl Region {
    /// Finds it. `open_bytes`: what the process says that it opened for blocks. None when nothing
    /// among the mappings looks like it.
    pub fn find(mappings: &[Mapping], open_bytes: u64) -> Option<Self> {
        let named: Vec<_> =
            mappings.iter().filter(|mapping| mapping.name == NAME).cloned().collect();
        if !named.is_empty() {
            return Some(Self { mappings: named });
        }
        let runs = runs(mappings).map(|run| Self { mappings: run.to_vec() });
        runs.filter(|run| run.is_plausible(open_bytes)).max_by_key(Self::bytes)
    }

    fn bytes(&self) -> u64 {
        sum(&self.mappings, Mapping::bytes)
    }

    // Its beginning is the map, which may be read; its end is not accessible before all of it is
    // in use. What was opened for blocks lies in the last part that is accessible.
    fn is_plausible(&self, open_bytes: u64) -> bool {
        let first = self.mappings.first();
        let is_aligned = first.is_some_and(|first| first.start.is_multiple_of(LEAST_REGION_BYTES));
        let is_readable = first.is_some_and(|first| first.is_accessible && first.is_unnamed());
        let is_large = self.bytes() >= LEAST_REGION_BYTES;
        let blocks = self.blocks();
        let blocks_bytes = sum(blocks, Mapping::bytes);
        is_aligned && is_readable && is_large && !blocks.is_empty() && blocks_bytes >= open_bytes
    }

    // Between the records and the blocks there is room for records to come.
    fn blocks(&self) -> &[Mapping] {
        let is_accessible = |mapping: &Mapping| mapping.is_accessible;
        let Some(last) = self.mappings.iter().rposition(is_accessible) else { return &[] };
        let gap = self.mappings[..last].iter().rposition(|mapping| !mapping.is_accessible);
        &self.mappings[gap.map_or(0, |gap| gap + 1)..=last]
    }

    /// What is resident of it.
    pub fn resident(&self) -> Resident {
        let (all, blocks) = (&self.mappings, self.blocks());
        let blocks_bytes = sum(blocks, |mapping| mapping.rss_bytes);
        Resident {
            blocks_bytes,
            huge_bytes: sum(blocks, |mapping| mapping.huge_bytes),
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

// Unnamed mappings that touch each other.
fn runs(mappings: &[Mapping]) -> impl Iterator<Item = &[Mapping]> {
    let touch = |a: &Mapping, b: &Mapping| a.is_unnamed() && b.is_unnamed() && a.end == b.start;
    mappings.chunk_by(touch).flat_map(from_map)
}

// What lies before the region may touch it: it begins at the last aligned mapping that is only
// read, or where the run does.
fn from_map(run: &[Mapping]) -> [&[Mapping]; 2] {
    let is_map = |mapping: &Mapping| {
        mapping.is_read_only && mapping.start.is_multiple_of(LEAST_REGION_BYTES)
    };
    let at = run.iter().position(is_map).unwrap_or(0);
    [run, &run[at..]]
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;
    const MIB: u64 = 1 << 20;

    fn head(start: u64, bytes: u64, access: &str, name: &str) -> String {
        format!("{start:x}-{:x} {access} 00000000 00:00 0    {name}\n", start + bytes)
    }

    fn mapping(start: u64, bytes: u64, access: &str, rss_kib: u64) -> String {
        let head = head(start, bytes, access, "");
        format!("{head}Rss:      {rss_kib} kB\nAnonHugePages:   0 kB\nSwap:   4 kB\n")
    }

    // As the library lays it out: the map, records, room, records, room, 64 MiB of blocks, room.
    fn region(base: u64) -> String {
        let parts = [
            (0, MIB, "r--p", 0),
            (MIB, MIB, "rw-p", 20),
            (2 * MIB, MIB, "---p", 0),
            (3 * MIB, MIB, "rw-p", 100),
            (4 * MIB, 4 * MIB, "---p", 0),
            (8 * MIB, 32 * MIB, "rw-p", 30_000),
            (40 * MIB, 32 * MIB, "rw-p", 3_000),
            (72 * MIB, GIB, "---p", 0),
        ];
        parts
            .iter()
            .map(|&(at, bytes, access, rss)| mapping(base + at, bytes, access, rss))
            .collect()
    }

    #[test]
    fn lines_are_understood_and_others_passed_over() {
        let text = "7f00-7f02 rw-s 00000000 00:18 42   /dev/shm/a b (deleted)\n\
                    Rss:     12 kB\nVmFlags: rd wr\nSwap:  x kB\nnonsense\n\n";
        let expected = Mapping {
            start: 0x7f00,
            end: 0x7f02,
            is_accessible: true,
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
    fn named_memory_is_the_allocators() {
        let text = head(1 << 40, MIB, "r--p", "[anon:tslab]")
            + "Rss: 8 kB\n"
            + &head((1 << 40) + MIB, MIB, "---p", "[anon:tslab]")
            + &head((1 << 40) + 2 * MIB, MIB, "rw-p", "[anon:tslab]")
            + "Rss: 40 kB\nAnonHugePages: 4 kB\n"
            + &head(1 << 42, MIB, "rw-p", "[anon:other]");
        let mappings = parse(&text);
        let region = Region::find(&mappings, MIB).unwrap();
        let expected = Resident {
            blocks_bytes: 40 << 10,
            huge_bytes: 4 << 10,
            records_bytes: 8 << 10,
            swap_bytes: 0,
        };
        assert_eq!(region.resident(), expected);
        assert!(region.has(&mappings[0]) && !region.has(&mappings[3]));
    }

    #[test]
    fn memory_without_a_name_is_recognised_by_its_shape() {
        let stack = mapping(1 << 41, 64 * MIB, "---p", 0)
            + &mapping((1 << 41) + 64 * MIB, 128 * MIB, "rw-p", 99);
        let text = region(1 << 40) + &head(1 << 42, MIB, "r--p", "/usr/lib/x") + &stack;
        let mappings = parse(&text);
        let region = Region::find(&mappings, 64 * MIB).unwrap();
        assert_eq!(region.resident().blocks_bytes, 33_000 << 10);
        assert_eq!(region.resident().records_bytes, 120 << 10);
        assert_eq!(region.resident().swap_bytes, 8 * 4096);
        assert!(Region::find(&mappings, 65 * MIB).is_none());
        assert!(Region::find(&parse(&stack), MIB).is_none());
        assert!(Region::find(&[], 0).is_none());
    }

    #[test]
    fn what_touches_the_region_from_below_is_not_part_of_it() {
        let text = mapping((1 << 40) - 4 * MIB, 4 * MIB, "rw-p", 777) + &region(1 << 40);
        let region = Region::find(&parse(&text), 64 * MIB).unwrap();
        assert_eq!(region.resident().records_bytes, 120 << 10);
    }

    #[test]
    fn sizes_at_their_ends_do_no_harm() {
        let text = format!(
            "0-ffffffffffffffff rw-p 0 0 0\nRss: {} kB\nffffffffffffffff-0 rw-p 0 0 0\n",
            u64::MAX
        );
        let mappings = parse(&text);
        let region = Region::find(&mappings, 0).unwrap();
        assert_eq!(region.resident().blocks_bytes, u64::MAX);
    }
}
