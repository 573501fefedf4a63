//! core: what lived in a process when it crashed, and what lies at an address.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;

use super::dump_sites::{self, SiteLine, Sites};
use super::survivors::Call;
use super::{Answer, Setting};
use crate::dump::file::Dump;
use crate::dump::heap::{Block, Heap, Kind, Piece};
use crate::text::{self, Align, Grid};

// Of a block's contents.
const SHOWN_BYTES: u64 = 64;

/// What `core` is asked.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// A core dump
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Show the block that this address is in, and those beside it
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    address: Option<u64>,

    /// The process's statistics file, which tells who allocated [default: the one that the process
    /// left where these files lie]
    #[arg(long, value_name = "FILE")]
    stats: Option<PathBuf>,
}

fn address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| "an address is hexadecimal: 0x7f12345678".into())
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Live {
    live_objects: u64,
    live_bytes: u64,
}

#[derive(Debug, Serialize)]
struct EpochLine {
    epoch: u64,
    label: String,
    state: &'static str,
    #[serde(flatten)]
    live: Live,
    held_bytes: u64,
}

#[derive(Debug, Serialize)]
struct ClassLine {
    /// Of a block; None: blocks of whole units.
    bytes: Option<u64>,
    #[serde(flatten)]
    live: Live,
}

#[derive(Debug, Serialize)]
struct BlockLine {
    address: String,
    bytes: u64,
    live: bool,
}

#[derive(Debug, Serialize)]
struct Found {
    address: String,
    /// What is there, in a word.
    place: &'static str,
    epoch: Option<u64>,
    label: Option<String>,
    state: Option<&'static str>,
    block: Option<BlockLine>,
    /// From the block's beginning to the address.
    offset: Option<u64>,
    before: Option<BlockLine>,
    after: Option<BlockLine>,
    /// Hexadecimal; None where the dump lacks them.
    first_bytes: Option<String>,
    /// Who allocated it; None where it was not sampled.
    calls: Option<Vec<Call>>,
}

#[derive(Debug, Serialize)]
struct Report {
    file: String,
    /// Where it ran; None where the dump does not say.
    pid: Option<u32>,
    totals: Live,
    epochs: Vec<EpochLine>,
    classes: Vec<ClassLine>,
    /// Bytes from sample to sample on average; None: who allocated is not known.
    weight_bytes: Option<u64>,
    /// Who allocated what lives, by estimate.
    sites: Vec<SiteLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<Found>,
}

/// Reads the dump.
pub fn run(setting: &Setting, arguments: &Arguments) -> Result<Answer> {
    let name = text::printable(&arguments.file.to_string_lossy());
    let cannot = || format!("cannot read {name}");
    let dump = Dump::open(&arguments.file).with_context(cannot)?;
    let heap = Heap::read(&dump).with_context(cannot)?;
    let sites = Sites::find(setting, arguments.stats.as_deref(), &dump, heap.base)?;
    let note = match &sites {
        Ok(sites) => sites.note.clone(),
        Err(note) => Some(note.clone()),
    };
    let report = Report::of(&heap, name.clone(), sites.ok().as_mut(), arguments.address);
    let output = setting.output(&report.with_context(cannot)?, Report::text)?;
    Ok(Answer { output, notes: note.into_iter().collect(), ..Answer::default() })
}

impl Live {
    fn add(&mut self, block: &Block) {
        self.live_objects += 1;
        self.live_bytes = self.live_bytes.saturating_add(block.bytes);
    }
}

impl Report {
    fn of(
        heap: &Heap,
        file: String,
        mut sites: Option<&mut Sites>,
        address: Option<u64>,
    ) -> Result<Self> {
        let mut totals = Live::default();
        let mut by_class: BTreeMap<u64, Live> = BTreeMap::new();
        let mut by_slot: BTreeMap<u32, Live> = BTreeMap::new();
        let mut default_bytes = 0_u64;
        for piece in &heap.pieces {
            let mut blocks = heap.blocks(piece)?;
            blocks.retain(|block| block.is_live);
            default_bytes = default_bytes.saturating_add(held_by_default(piece, &blocks));
            for block in &blocks {
                let bytes = block.class.map_or(u64::MAX, |_| block.bytes);
                totals.add(block);
                by_class.entry(bytes).or_default().add(block);
                by_slot.entry(piece.slot).or_default().add(block);
                if let Some(sites) = &mut sites {
                    sites.add(block);
                }
            }
        }
        let found = address.map(|address| find(heap, sites.as_deref(), address)).transpose()?;
        let classes = by_class
            .into_iter()
            .map(|(bytes, live)| ClassLine { bytes: (bytes != u64::MAX).then_some(bytes), live });
        Ok(Self {
            file,
            pid: heap.dump.pid,
            totals,
            classes: classes.collect(),
            epochs: epochs(heap, &by_slot, default_bytes)?,
            weight_bytes: sites.as_ref().map(|sites| sites.mean_bytes()),
            sites: sites.map(|sites| sites.lines()).unwrap_or_default(),
            address: found,
        })
    }

    fn text(&self) -> String {
        let mut out = format!(
            "{} live in {}\n\nepochs\n",
            live(&self.totals),
            text::count_of(self.epochs.len(), "epoch", "epochs")
        );
        out += &epoch_grid(&self.epochs);
        out += "\nsize classes\n";
        out += &class_grid(&self.classes);
        if let Some(bytes) = self.weight_bytes {
            // Writing to a String does not fail.
            let _ = writeln!(out, "\nsites, of samples of a byte in {}", text::bytes(Some(bytes)));
            out += &dump_sites::text(&self.sites);
        }
        if let Some(found) = &self.address {
            out += "\n";
            out += &found.text();
        }
        out
    }
}

fn live(live: &Live) -> String {
    format!(
        "{}, {}",
        text::count(Some(live.live_objects), "object"),
        text::bytes(Some(live.live_bytes))
    )
}

// The default epoch's record does not count what it holds. A cell without blocks is nobody's.
fn held_by_default(piece: &Piece, live: &[Block]) -> u64 {
    let is_nobodys = piece.kind == Kind::Cell && live.is_empty();
    if piece.slot != 0 || is_nobodys { 0 } else { piece.bytes }
}

// Those that are over are left out, unless blocks lie there nevertheless.
fn epochs(
    heap: &Heap,
    by_slot: &BTreeMap<u32, Live>,
    default_bytes: u64,
) -> Result<Vec<EpochLine>> {
    let mut lines = Vec::new();
    for slot in 0..=heap.last_slot()? {
        let epoch = heap.epoch(slot)?;
        let live = by_slot.get(&slot).copied().unwrap_or_default();
        if epoch.state != "over" || live.live_objects != 0 {
            let (label, state) = (epoch.label, epoch.state);
            let held_bytes = if slot == 0 { default_bytes } else { epoch.held_bytes };
            lines.push(EpochLine { epoch: epoch.id, label, state, live, held_bytes });
        }
    }
    lines.sort_by_key(|line| std::cmp::Reverse(line.live.live_bytes));
    Ok(lines)
}

fn epoch_grid(lines: &[EpochLine]) -> String {
    let columns = ["EPOCH", "STATE", "OBJECTS", "LIVE", "HELD", "LABEL"];
    let aligns = [Align::Right, Align::Left, Align::Right, Align::Right, Align::Right, Align::Left];
    let mut grid = Grid::new(&columns.into_iter().zip(aligns).collect::<Vec<_>>());
    for line in lines {
        grid.row(vec![
            format!("{:#x}", line.epoch),
            line.state.to_owned(),
            line.live.live_objects.to_string(),
            text::bytes(Some(line.live.live_bytes)),
            text::bytes(Some(line.held_bytes)),
            text::label(Some(&line.label)),
        ]);
    }
    grid.render()
}

fn class_grid(lines: &[ClassLine]) -> String {
    let columns = [("BYTES", Align::Right), ("OBJECTS", Align::Right), ("LIVE", Align::Right)];
    let mut grid = Grid::new(&columns);
    for line in lines {
        grid.row(vec![
            line.bytes.map_or_else(|| "large".to_owned(), |bytes| bytes.to_string()),
            line.live.live_objects.to_string(),
            text::bytes(Some(line.live.live_bytes)),
        ]);
    }
    grid.render()
}

// ---- One address

impl BlockLine {
    fn of(block: &Block) -> Self {
        let address = format!("{:#x}", block.address);
        Self { address, bytes: block.bytes, live: block.is_live }
    }

    fn text(&self) -> String {
        let state = if self.live { "live" } else { "free" };
        format!("{}, {} bytes, {state}", self.address, self.bytes)
    }
}

fn find(heap: &Heap, sites: Option<&Sites>, address: u64) -> Result<Found> {
    let mut found = Found {
        address: format!("{address:#x}"),
        place: "outside",
        epoch: None,
        label: None,
        state: None,
        block: None,
        offset: None,
        before: None,
        after: None,
        first_bytes: None,
        calls: None,
    };
    if address.wrapping_sub(heap.base) < heap.bytes {
        found.place = "nobody's";
    }
    let behind = heap.pieces.partition_point(|piece| piece.address <= address);
    let Some(index) = behind.checked_sub(1) else { return Ok(found) };
    let piece = &heap.pieces[index];
    if address - piece.address >= piece.bytes {
        return Ok(found);
    }
    let epoch = heap.epoch(piece.slot)?;
    found.place = place(piece);
    (found.epoch, found.label, found.state) =
        (Some(epoch.id), Some(epoch.label), Some(epoch.state));
    let own = fill(heap, index, address, &mut found)?;
    found.calls = own.zip(sites).and_then(|(own, sites)| sites.calls(own));
    Ok(found)
}

fn place(piece: &Piece) -> &'static str {
    match piece.kind {
        Kind::Slab(_) => "slab",
        Kind::Cell => "cell",
        Kind::Large => "large",
    }
}

// The block itself, its neighbours and its contents. Returns where the block begins.
fn fill(heap: &Heap, index: usize, address: u64, found: &mut Found) -> Result<Option<u64>> {
    let blocks = heap.blocks(&heap.pieces[index])?;
    let is_in = |block: &&Block| {
        address.checked_sub(block.address).is_some_and(|offset| offset < block.bytes)
    };
    let own = blocks.iter().find(is_in);
    let start = own.map_or(address, |own| own.address);
    let before = blocks.iter().rfind(|block| block.address < start).copied();
    let after = blocks.iter().find(|block| block.address > address).copied();
    let nearest = |block: Option<Block>, further: Result<Option<Block>>| {
        Ok::<_, anyhow::Error>(block.or(further?).as_ref().map(BlockLine::of))
    };
    found.before = nearest(before, last_before(heap, index))?;
    found.after = nearest(after, first_after(heap, index))?;
    if let Some(own) = own {
        found.offset = Some(address - own.address);
        found.block = Some(BlockLine::of(own));
        let bytes = heap.dump.bytes(own.address, own.bytes.min(SHOWN_BYTES), "the block");
        found.first_bytes = bytes.ok().map(|bytes| hexadecimal(&bytes));
    }
    Ok(own.map(|own| own.address))
}

// Of the pieces before one: some have no blocks yet.
fn last_before(heap: &Heap, index: usize) -> Result<Option<Block>> {
    let mut pieces = heap.pieces[..index].iter().rev();
    pieces.find_map(|piece| chosen(heap.blocks(piece), |blocks| blocks.last().copied())).transpose()
}

fn first_after(heap: &Heap, index: usize) -> Result<Option<Block>> {
    let mut pieces = heap.pieces[index + 1..].iter();
    pieces
        .find_map(|piece| chosen(heap.blocks(piece), |blocks| blocks.first().copied()))
        .transpose()
}

fn chosen(
    blocks: Result<Vec<Block>>,
    choose: impl Fn(&[Block]) -> Option<Block>,
) -> Option<Result<Block>> {
    blocks.map(|blocks| choose(&blocks)).transpose()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        // Writing to a String does not fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

impl Found {
    fn text(&self) -> String {
        let Some(label) = &self.label else {
            return format!("{}: no block: {}\n", self.address, self.nowhere());
        };
        let epoch = format!(
            "{} of epoch {:#x} {}, {}\n",
            self.place,
            self.epoch.unwrap_or_default(),
            text::label(Some(label)),
            self.state.unwrap_or_default()
        );
        let own = self.block.as_ref().map_or_else(
            || "no block: a gap".to_owned(),
            |block| format!("byte {} of {}", self.offset.unwrap_or_default(), block.text()),
        );
        let mut out = format!("{}: {own}\n  in a {epoch}", self.address);
        for (name, block) in [("before", &self.before), ("after", &self.after)] {
            let text = block.as_ref().map_or_else(|| "none".to_owned(), BlockLine::text);
            // Writing to a String does not fail.
            let _ = writeln!(out, "  {name}: {text}");
        }
        if let Some(calls) = &self.calls {
            let _ = writeln!(out, "  allocated by {}", dump_sites::calls_text(calls));
        }
        out + &self.contents()
    }

    fn nowhere(&self) -> &'static str {
        if self.place == "outside" {
            "not in the allocator's memory"
        } else {
            "memory that is nobody's"
        }
    }

    fn contents(&self) -> String {
        let Some(bytes) = &self.first_bytes else { return String::new() };
        let lines = bytes.as_bytes().chunks(32).enumerate();
        lines.fold(String::new(), |mut out, (line, digits)| {
            let _ = writeln!(out, "  +{:02x}  {}", line * 16, String::from_utf8_lossy(digits));
            out
        })
    }
}
