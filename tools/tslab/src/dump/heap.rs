//! All blocks that the allocator had in the process, as its records tell. The walk is that of
//! `src/observe/census.c`, but each block is asked for: a free one that a thread kept at hand is
//! found on its list.

use std::collections::{BTreeMap, HashSet};

use anyhow::{Result, bail};

use super::description::{Class, Description};
use super::file::Dump;
use super::record::{long, word};

// What a place in a set takes, about. No block is smaller.
const HOT_BYTES: usize = 16;

/// A slab, a cell or a large block: what one epoch's blocks lie in.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Of the first byte.
    pub address: u64,
    /// With what is no block's.
    pub bytes: u64,
    /// What it is.
    pub kind: Kind,
    /// Of its epoch.
    pub slot: u32,
}

/// What a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Blocks of one class.
    Slab(usize),
    /// Blocks of all classes.
    Cell,
    /// One block.
    Large,
}

/// A block, live or free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Of its first byte.
    pub address: u64,
    /// That the program may use.
    pub bytes: u64,
    /// Its size class; None: it has whole units.
    pub class: Option<usize>,
    /// The program had not freed it.
    pub is_live: bool,
}

/// A declared lifetime.
#[derive(Clone, Debug)]
pub struct Epoch {
    /// Its number among all that there ever were.
    pub id: u64,
    /// Its name.
    pub label: String,
    /// Where it was in its life.
    pub state: &'static str,
    /// Its cells, slabs and large blocks, and those of its children.
    pub held_bytes: u64,
}

/// The allocator in the process.
#[derive(Debug)]
pub struct Heap<'a> {
    /// Where its records were read.
    pub dump: &'a Dump,
    says: Description,
    /// The first unit.
    pub base: u64,
    /// From there on, that may have blocks.
    pub bytes: u64,
    unit_bytes: u64,
    /// By address.
    pub pieces: Vec<Piece>,
    hot: HashSet<u64>,
    // By address: blocks of cells that were freed, of which the granules say nothing, and what
    // these said.
    cut_back: BTreeMap<u64, u8>,
}

fn at(start: u64, index: u64, each: usize) -> u64 {
    start.wrapping_add(index.wrapping_mul(each as u64))
}

impl<'a> Heap<'a> {
    /// Reads the records.
    pub fn read(dump: &'a Dump) -> Result<Self> {
        let says = Description::find(dump)?;
        let unit_log2 = says.small("unit_log2")?;
        if !(12..=16).contains(&unit_log2) {
            bail!("the dump is damaged: units of 2^{unit_log2} bytes");
        }
        let mut heap = Self {
            dump,
            base: 0,
            bytes: 0,
            unit_bytes: 1 << unit_log2,
            says,
            pieces: Vec::new(),
            hot: HashSet::new(),
            cut_back: BTreeMap::new(),
        };
        heap.base = heap.region("base")?;
        if heap.base == 0 {
            bail!("the process had not allocated anything of tslab yet");
        }
        heap.find_pieces()?;
        heap.find_hot()?;
        Ok(heap)
    }

    // A value of the library's variable `tsl_region`.
    fn region(&self, field: &str) -> Result<u64> {
        let place = self.says.number("region")?;
        let offset = self.says.number(&format!("region.{field}"))?;
        self.dump.long(place.wrapping_add(offset), "the region")
    }

    fn region_word(&self, field: &str) -> Result<u64> {
        Ok(self.region(field)? & u64::from(u32::MAX))
    }

    fn find_pieces(&mut self) -> Result<()> {
        let units = self.region("units")?;
        let map = self.dump.bytes(self.base, units.saturating_mul(4), "the map")?;
        self.bytes = units.saturating_mul(self.unit_bytes);
        let mut unit = self.region("first_unit")?;
        while unit < units {
            let entry = usize::try_from(unit).ok().and_then(|unit| word(&map, unit * 4));
            let entry = entry.unwrap_or_default();
            unit += if entry == 0 { 1 } else { self.add_unit(unit, entry)?.max(1) };
            self.check_room(self.pieces.len() * size_of::<Piece>(), "slabs and cells")?;
        }
        Ok(())
    }

    // Each piece and each block has more bytes in the dump than it takes here.
    fn check_room(&self, bytes: usize, what: &str) -> Result<()> {
        if bytes as u64 > self.dump.bytes {
            bail!("the dump is damaged: it has no room for as many {what}");
        }
        Ok(())
    }

    // Adds what begins at a unit. Returns how many units it takes.
    fn add_unit(&mut self, unit: u64, entry: u32) -> Result<u64> {
        let code = u64::from(entry) & (self.says.number("code_visited")?.wrapping_sub(1));
        let address = self.base.wrapping_add(unit.wrapping_mul(self.unit_bytes));
        let record = at(self.region("records")?, unit, self.says.stride("record_bytes")?);
        let field = |name: &str| -> Result<u64> {
            self.dump.long(record.wrapping_add(self.says.number(name)?), "a slab's record")
        };
        let low = u64::from(u32::MAX);
        let slot = u32::try_from(field("span.epoch")? & low)?;
        if code == self.says.number("code_large")? {
            let (bytes, units) = (field("span.bytes")?, field("span.units")? & low);
            self.pieces.push(Piece { address, bytes, kind: Kind::Large, slot });
            return Ok(units.min(self.bytes / self.unit_bytes));
        }
        let number = usize::try_from(code / 2)?;
        let Some(&class) = self.says.classes.get(number) else {
            bail!("the dump is damaged: {address:#x} is of size class {number}");
        };
        if number >= self.says.small("block_classes")? {
            self.add_cells(unit, address, class)?;
            return Ok(1);
        }
        let behind = unit & (class.units - 1);
        if behind == 0 {
            let bytes = class.units * self.unit_bytes;
            self.pieces.push(Piece { address, bytes, kind: Kind::Slab(number), slot });
        }
        Ok(class.units - behind)
    }

    fn add_cells(&mut self, unit: u64, start: u64, class: Class) -> Result<()> {
        let stride = self.says.stride("cells_bytes")?;
        let records = at(self.region("cells")?, unit, stride);
        let cells = self.dump.bytes(records, stride as u64, "the records of cells")?;
        let each = self.says.stride("cell_bytes")?;
        let field = self.says.small("cell.epoch")?;
        let page_log2 = self.says.small("cell_page_log2")?.min(24);
        for address in (0..self.unit_bytes).step_by(usize::try_from(class.bytes)?) {
            let page = usize::try_from(address >> page_log2)?;
            let slot = word(&cells, page.saturating_mul(each).saturating_add(field));
            let Some(slot) = slot else { bail!("the dump is damaged: a cell has no record") };
            let address = start.wrapping_add(address);
            self.pieces.push(Piece { address, bytes: class.bytes, kind: Kind::Cell, slot });
        }
        Ok(())
    }

    // ---- Free blocks at hand

    fn find_hot(&mut self) -> Result<()> {
        let each = self.says.stride("heap_bytes")?;
        let heaps = self.region("heaps")?;
        for number in 1..=self.region_word("last_heap")? {
            let address = at(heaps, number, each);
            let heap = self.dump.bytes(address, each as u64, "a heap's record")?;
            if word(&heap, self.says.small("heap.number")?).unwrap_or_default() != 0 {
                self.find_hot_of(address, &heap)?;
                self.find_cut_back(&heap)?;
                self.check_room(self.hot.len() * HOT_BYTES, "free blocks")?;
            }
        }
        Ok(())
    }

    fn find_hot_of(&mut self, address: u64, heap: &[u8]) -> Result<()> {
        let field = |name: &str| Ok::<_, anyhow::Error>(long(heap, self.says.small(name)?));
        let store = field("heap.store")?.unwrap_or_default();
        let is_home = field("heap.home")? == Some(address);
        if store == self.says.number("store_empty")? {
            return Ok(());
        }
        let (stride, first) = (self.says.stride("bin_bytes")?, self.says.small("bin.head")?);
        for class in 0..self.says.small("block_classes")? {
            self.add_bin(long(heap, class * stride + first).unwrap_or_default())?;
            self.add_stock(store, class)?;
            if is_home && class < self.says.small("gather_classes")? {
                self.add_gather(store, class)?;
            }
        }
        self.add_quarantine(store)
    }

    // The one that its thread freed last, where it had cut it last (`src/state/cut_back.h`).
    fn find_cut_back(&mut self, heap: &[u8]) -> Result<()> {
        let last = word(heap, self.says.small("heap.cell_cut_back")?).unwrap_or_default();
        let start = long(heap, self.says.small("heap.cell_start")?).unwrap_or_default();
        let mask = u32::try_from(self.says.small("cut_back_byte")?)?;
        let shift = self.says.small("cut_back_shift")?.min(31);
        if last != 0 {
            let address = start.wrapping_add(u64::from((last & !mask) >> shift));
            self.cut_back.insert(address, u8::try_from(last & mask)?);
        }
        Ok(())
    }

    fn is_inside(&self, address: u64) -> bool {
        address.wrapping_sub(self.base) < self.bytes
    }

    // A link is its own address XOR the next one's; the last leads out of the region.
    fn add_bin(&mut self, mut block: u64) -> Result<()> {
        let link = self.says.number("free_block.link")?;
        while self.is_inside(block) && self.hot.insert(block) {
            self.check_room(self.hot.len() * HOT_BYTES, "free blocks")?;
            block ^= self.dump.long(block.wrapping_add(link), "a free block")?;
        }
        Ok(())
    }

    fn add_run(&mut self, first: u64, bits: u64, class: usize) {
        let bytes = self.says.classes.get(class).map_or(0, |class| class.bytes);
        let set = (0..64).filter(|bit| bits >> bit & 1 != 0);
        self.hot.extend(set.map(|bit| first.wrapping_add(bit * bytes)));
    }

    fn add_stock(&mut self, store: u64, class: usize) -> Result<()> {
        let each = self.says.stride("stock_bytes")?;
        let stock = self.dump.bytes(at(store, class as u64, each), each as u64, "a store")?;
        let next = long(&stock, self.says.small("stock.next")?).unwrap_or_default();
        let run = word(&stock, self.says.small("stock.run")?).unwrap_or_default();
        let rest = long(&stock, self.says.small("stock.rest")?).unwrap_or_default();
        let bytes = self.says.classes.get(class).map_or(0, |class| class.bytes);
        let ones = u64::MAX.checked_shr(64_u32.saturating_sub(run)).unwrap_or_default();
        self.add_run(next, ones, class);
        self.add_run(next.wrapping_add(u64::from(run) * bytes), rest, class);
        Ok(())
    }

    fn add_gather(&mut self, store: u64, class: usize) -> Result<()> {
        let each = self.says.stride("gather_bytes")?;
        let gathers = store.wrapping_add(self.says.number("home_store.gathers")?);
        let gather = self.dump.bytes(at(gathers, class as u64, each), each as u64, "a store")?;
        let field = |name: &str| {
            Ok::<_, anyhow::Error>(long(&gather, self.says.small(name)?).unwrap_or_default())
        };
        let waiting = field("gather.opened")? & !field("gather.out")?;
        self.add_run(field("gather.start")?, waiting, class);
        Ok(())
    }

    fn add_quarantine(&mut self, store: u64) -> Result<()> {
        let blocks = self.says.small("quarantine_blocks")?;
        let place = store.wrapping_add(self.says.number("store.quarantine")?);
        let held = self.dump.bytes(place, blocks as u64 * 8, "a store")?;
        let blocks = held.chunks_exact(8).filter_map(|block| long(block, 0));
        self.hot.extend(blocks.filter(|&block| block != 0));
        Ok(())
    }

    // ---- Blocks

    /// All blocks of a piece, by address; in a cell those that were ever handed out.
    pub fn blocks(&self, piece: &Piece) -> Result<Vec<Block>> {
        match piece.kind {
            Kind::Slab(class) => self.blocks_of_slab(piece, class),
            Kind::Cell => self.blocks_of_cell(piece),
            Kind::Large => {
                let (address, bytes) = (piece.address, piece.bytes);
                Ok(vec![Block { address, bytes, class: None, is_live: true }])
            }
        }
    }

    fn blocks_of_slab(&self, piece: &Piece, class: usize) -> Result<Vec<Block>> {
        let Some(&Class { bytes, .. }) = self.says.classes.get(class) else { return Ok(vec![]) };
        let each = self.says.stride("record_bytes")?;
        let unit = piece.address.wrapping_sub(self.base) / self.unit_bytes;
        let record = self.dump.bytes(
            at(self.region("records")?, unit, each),
            each as u64,
            "a slab's record",
        )?;
        let free = self.says.small("slab.free")?;
        let remote = self.says.small("slab.remote")?;
        let is_sealed = word(&record, self.says.small("slab.sealed")?).unwrap_or(0) != 0;
        let words = |from: usize, index: u64| {
            let word = usize::try_from(index / 64).unwrap_or_default();
            long(&record, from + word * 8).unwrap_or_default() >> (index % 64) & 1 != 0
        };
        let capacity = piece.bytes.saturating_sub(self.says.number("guard_bytes")?) / bytes;
        // Each block has a bit.
        let capacity = capacity.min(8 * each as u64);
        Ok((0..capacity)
            .map(|index| {
                let address = piece.address.wrapping_add(index * bytes);
                let is_free = words(free, index) || (!is_sealed && words(remote, index));
                let is_live = !is_free && !self.hot.contains(&address);
                Block { address, bytes, class: Some(class), is_live }
            })
            .collect())
    }

    fn blocks_of_cell(&self, piece: &Piece) -> Result<Vec<Block>> {
        let log2 = self.says.small("granule_log2")?.min(12);
        let place = self.region("granules")?.wrapping_add(piece.address >> log2);
        let granules = self.dump.bytes(place, piece.bytes >> log2, "the granules of a cell")?;
        let (freed, counted) = (self.says.small("cell_freed")?, self.says.small("cell_counted")?);
        let classes = self.says.small("block_classes")?;
        let block = |address: u64, byte: usize, is_live: bool| {
            let class =
                (byte & !freed & !counted).checked_sub(1).filter(|class| *class < classes)?;
            let bytes = self.says.classes.get(class)?.bytes;
            Some(Block { address, bytes, class: Some(class), is_live })
        };
        let at_granule = |(index, &byte): (usize, &u8)| {
            let address = piece.address.wrapping_add((index as u64) << log2);
            if byte == 0 {
                return block(address, self.cut_back.get(&address).copied()?.into(), false);
            }
            block(address, byte.into(), usize::from(byte) & freed == 0)
        };
        Ok(granules.iter().enumerate().filter_map(at_granule).collect())
    }

    // ---- Epochs

    /// The highest slot in use.
    pub fn last_slot(&self) -> Result<u32> {
        Ok(u32::try_from(self.region_word("last_epoch")?)?)
    }

    /// What has a slot.
    pub fn epoch(&self, slot: u32) -> Result<Epoch> {
        let each = self.says.stride("epoch_bytes")?;
        let address = at(self.region("epochs")?, slot.into(), each);
        let record = self.dump.bytes(address, each as u64, "an epoch's record")?;
        let field = |name: &str| {
            Ok::<_, anyhow::Error>(long(&record, self.says.small(name)?).unwrap_or_default())
        };
        let word = field("epoch.word")?;
        let is_shared = field("epoch.is_shared")? & 0xff != 0;
        Ok(Epoch {
            id: if slot == 0 { 0 } else { word >> 8 << 24 | u64::from(slot) },
            label: self.label(field("epoch.label")? & u64::from(u32::MAX))?,
            state: if is_shared { "shared" } else { state(word & 0xff) },
            held_bytes: field("epoch.held_bytes")?,
        })
    }

    /// The first two have no text in the table (state/label.h).
    fn label(&self, number: u64) -> Result<String> {
        if let Some(own) = ["default", "other"].get(usize::try_from(number)?) {
            return Ok(String::from(*own));
        }
        if number >= self.says.number("most_labels")? {
            return Ok(String::from("?"));
        }
        let each = self.says.stride("label_bytes")?;
        let labels = self.says.number("labels")?;
        let text = self.dump.bytes(at(labels, number, each), each as u64, "a label")?;
        let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(text).into_owned())
    }
}

fn state(number: u64) -> &'static str {
    ["open", "closed", "released", "over", "open"]
        .get(usize::try_from(number).unwrap_or(usize::MAX))
        .unwrap_or(&"?")
}
