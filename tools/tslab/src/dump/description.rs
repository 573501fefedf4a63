//! How the library that was in the process lays out its records (`src/observe/postmortem.c`).

use std::collections::HashMap;

use anyhow::{Context, Result, bail};

use super::file::{ADVICE, Dump, Load};
use super::record::{long, word};

const MAGIC: &[u8; 16] = b"tslab postmortem";
const ABI: u32 = 1;
const HEADER_BYTES: usize = 40;
const NUMBER_BYTES: usize = 32;
const NAME_BYTES: usize = 24;
const CLASS_BYTES: usize = 8;
// More than any library has.
const MOST_NUMBERS: u32 = 1024;
const MOST_CLASSES: u32 = 256;
const CHUNK_BYTES: u64 = 1 << 20;

/// A size class.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    /// Of a block.
    pub bytes: u64,
    /// Of a slab.
    pub units: u64,
}

/// What the library says of itself.
#[derive(Debug)]
pub struct Description {
    numbers: HashMap<String, u64>,
    /// Those of cells last.
    pub classes: Vec<Class>,
}

impl Description {
    /// Looks for it where the process could write, in the smaller mappings first.
    pub fn find(dump: &Dump) -> Result<Self> {
        let mut loads: Vec<_> = dump.loads.iter().filter(|load| load.is_writable).collect();
        loads.sort_by_key(|load| load.bytes);
        for load in loads {
            if let Some(address) = find_in(dump, *load)? {
                return read(dump, address);
            }
        }
        bail!(
            "nothing in the dump says that the process used tslab: it ran on another allocator, on \
             a tslab before this command, or the dump lacks its data; {ADVICE}"
        )
    }

    /// A number by its name.
    pub fn number(&self, name: &str) -> Result<u64> {
        self.numbers.get(name).copied().with_context(|| {
            format!(
                "the process's library does not say {name:?}: use the command of its own version"
            )
        })
    }

    /// One that is a size, a place in a record or a count, and so is small.
    pub fn small(&self, name: &str) -> Result<usize> {
        let number = self.number(name)?;
        if number > 1 << 20 {
            bail!("the dump is damaged: {name:?} is {number}");
        }
        Ok(usize::try_from(number)?)
    }

    /// One that records lie apart by.
    pub fn stride(&self, name: &str) -> Result<usize> {
        let number = self.small(name)?;
        if number == 0 {
            bail!("the dump is damaged: {name:?} is 0");
        }
        Ok(number)
    }
}

fn find_in(dump: &Dump, load: Load) -> Result<Option<u64>> {
    let mut passed = 0;
    while passed < load.bytes {
        let length = CHUNK_BYTES.min(load.bytes - passed);
        let start = load.address.wrapping_add(passed);
        let chunk = dump.bytes(start, length, "data")?;
        for (index, word) in chunk.chunks_exact(8).enumerate() {
            let address = start.wrapping_add(index as u64 * 8);
            if word == &MAGIC[..8] && is_description(dump, address) {
                return Ok(Some(address));
            }
        }
        passed += length;
    }
    Ok(None)
}

// It has its own address in it: a copy has another.
fn is_description(dump: &Dump, address: u64) -> bool {
    let mut header = [0; 24];
    dump.read(address, &mut header, "the description").is_ok()
        && header.starts_with(MAGIC)
        && long(&header, 16) == Some(address)
}

fn read(dump: &Dump, address: u64) -> Result<Description> {
    let header = dump.bytes(address, HEADER_BYTES as u64, "the description")?;
    let field = |at| word(&header, at).unwrap_or_default();
    let (abi, numbers, classes, class_at) = (field(24), field(28), field(32), field(36));
    if abi != ABI {
        bail!(
            "the process's library describes itself in form {abi}, and this command reads form \
             {ABI}: use the command of its own version"
        );
    }
    if numbers > MOST_NUMBERS || classes > MOST_CLASSES {
        bail!("the dump is damaged: its description has {numbers} numbers, {classes} classes");
    }
    let table = dump.bytes(
        address.wrapping_add(HEADER_BYTES as u64),
        u64::from(numbers) * NUMBER_BYTES as u64,
        "the description",
    )?;
    let by_class = dump.bytes(
        address.wrapping_add(class_at.into()),
        u64::from(classes) * CLASS_BYTES as u64,
        "the size classes",
    )?;
    Ok(Description {
        numbers: table.chunks_exact(NUMBER_BYTES).filter_map(number).collect(),
        classes: by_class.chunks_exact(CLASS_BYTES).map(class).collect::<Result<_>>()?,
    })
}

fn number(entry: &[u8]) -> Option<(String, u64)> {
    let name = entry[..NAME_BYTES].split(|&byte| byte == 0).next()?;
    Some((String::from_utf8_lossy(name).into_owned(), long(entry, NAME_BYTES)?))
}

fn class(entry: &[u8]) -> Result<Class> {
    let (bytes, units) = (word(entry, 0).unwrap_or_default(), word(entry, 4).unwrap_or_default());
    if !(16..=1 << 20).contains(&bytes) || !units.is_power_of_two() || units > 1 << 10 {
        bail!(
            "the dump is damaged: a size class has blocks of {bytes} bytes, slabs of {units} units"
        );
    }
    Ok(Class { bytes: bytes.into(), units: units.into() })
}
