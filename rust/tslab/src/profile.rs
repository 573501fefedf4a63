//! profile: who allocated what lives, in the format of `pprof` (github.com/google/pprof,
//! proto/profile.proto).

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::Result;
use std::path::{Path, PathBuf};

use crate::epoch::outside;
use crate::message::{Message, gzip};
use crate::segment::{Column, Rows, Segment, number, piece, size};

// The types of samples, and their units; values are in this order.
const TYPES: [(&str, &str); 4] = [
    ("alloc_objects", "count"),
    ("alloc_space", "bytes"),
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
];

// What pprof leaves out: the allocator's functions, those of Rust that lead to it, and the ones in
// which malloc goes on (as in tools/tslab/src/names.rs).
const DROPPED: &str = "tsl_.*|tslab_.*|malloc|calloc|realloc|aligned_alloc|posix_memalign\
    |malloc_beyond_stock|calloc_counted|calloc_slow|new_again|new_slow|operator new(\\[\\])?\
    |(__rustc::)?__(rust|rdl|rg)_(alloc|realloc|alloc_zeroed)";

/// A heap profile of this process, for `go tool pprof`: what was allocated, and what of it lives,
/// by call stack and by the label of the epoch (`-tagroot epoch`). Addresses have no names yet:
/// pprof reads these from the program's file.
///
/// Allocations are sampled where option `sample_bytes` says so (docs/options.md), such as by
/// `TSLAB_SAMPLE_BYTES=512K` in the environment or by [`set_option`](crate::set_option); else the
/// profile is empty. It takes a few milliseconds.
///
/// # Errors
/// What reading the process's own statistics gave, which option `stats` switches off.
pub fn pprof() -> Result<Vec<u8>> {
    outside(|| Ok(gzip(&Profile::read()?.message().0)))
}

// A row of `sites`, and what it stands for.
#[derive(Default)]
struct Site {
    calls: Vec<u64>,
    label: String,
    class_bytes: u64, // 0: blocks of several sizes
    values: [f64; TYPES.len()],
}

struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    path: PathBuf,
}

#[derive(Default)]
struct Profile {
    period: u64,
    sites: BTreeMap<usize, Site>,
}

impl Profile {
    // Samples are read before the sites that they count in.
    fn read() -> Result<Self> {
        let segment = Segment::own()?;
        let period = segment.rows("process")?.column("weight_bytes")?.get(0);
        let (samples, again) = (segment.rows("samples")?, segment.rows("samples")?);
        let sites = segment.rows("sites")?;
        let mut profile = Self { period, sites: known_sites(&segment, &sites)? };
        profile.count_allocated(&sites)?;
        profile.count_living(&samples, &again)?;
        Ok(profile)
    }

    // A block of n bytes is sampled with the probability 1 - exp(-n / period).
    fn weight(&self, bytes: f64) -> f64 {
        if self.period == 0 || bytes <= 0.0 {
            return 1.0;
        }
        -1.0 / (-bytes / float(self.period)).exp_m1()
    }

    fn count_allocated(&mut self, sites: &Rows) -> Result<()> {
        let (objects, bytes) = (sites.column("allocations")?, sites.column("bytes")?);
        let period = Self { period: self.period, ..Self::default() };
        for (&row, site) in &mut self.sites {
            let (objects, bytes) = (float(objects.get(row)), float(bytes.get(row)));
            let weight = period.weight(bytes / objects.max(1.0));
            site.values[0] += objects * weight;
            site.values[1] += bytes * weight;
        }
        Ok(())
    }

    // A row that changed meanwhile may be of two blocks.
    fn count_living(&mut self, samples: &Rows, again: &Rows) -> Result<()> {
        let (site, bytes) = (samples.column("site")?, samples.column("bytes")?);
        let times = samples.column("times")?;
        for (row, (before, after)) in samples.each().zip(again.each()).enumerate() {
            let weight = self.weight(float(bytes.get(row))) * float(times.get(row));
            if let Some(site) =
                self.sites.get_mut(&place(site.get(row))).filter(|_| before == after)
            {
                site.values[2] += weight;
                site.values[3] += weight * float(bytes.get(row));
            }
        }
        Ok(())
    }

    fn message(&self) -> Message {
        let (mut message, mut texts) = (Message::default(), Texts::default());
        texts.number("");
        for (kind, unit) in TYPES {
            message.message(1, &texts.value_type(kind, unit));
        }
        let mut ids = BTreeMap::new();
        for call in self.sites.values().flat_map(|site| &site.calls) {
            let next = ids.len() as u64 + 1;
            ids.entry(*call).or_insert(next);
        }
        for site in self.sites.values() {
            message.message(2, &sample(site, &ids, &mut texts));
        }
        let mappings = mappings();
        for (id, mapping) in (1..).zip(&mappings) {
            message.message(3, &mapping_message(id, mapping, &mut texts));
        }
        for (&call, &id) in &ids {
            message.message(4, &location(id, call, &mappings));
        }
        message.number(7, texts.number(DROPPED));
        message.message(11, &texts.value_type("space", "bytes"));
        message.number(12, self.period);
        message.number(14, texts.number("inuse_space"));
        for text in &texts.all {
            message.bytes(6, text.as_bytes());
        }
        message
    }
}

// Every text once, by its place.
#[derive(Default)]
struct Texts {
    all: Vec<String>,
    places: HashMap<String, u64>,
}

impl Texts {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let place = self.all.len() as u64;
        self.all.push(text.to_owned());
        self.places.insert(text.to_owned(), place);
        place
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> Message {
        let mut message = Message::default();
        message.number(1, self.number(kind));
        message.number(2, self.number(unit));
        message
    }
}

fn known_sites(segment: &Segment, sites: &Rows) -> Result<BTreeMap<usize, Site>> {
    let (labels, classes) = (segment.rows("labels")?, segment.rows("classes")?);
    let (texts, bytes) = (labels.column("text")?, classes.column("bytes")?);
    let (label, class) = (sites.column("label")?, sites.column("class")?);
    let (depth, frames) = (sites.column("depth")?, sites.column("frames")?);
    let site = |row| Site {
        calls: calls(depth, frames, row),
        label: texts.text(place(label.get(row))),
        class_bytes: bytes.get(place(class.get(row))),
        values: <_>::default(),
    };
    let all = (0..sites.len()).map(|row| (row, site(row)));
    Ok(all.filter(|(_, site)| !site.calls.is_empty()).collect())
}

// A row of another table.
fn place(row: u64) -> usize {
    usize::try_from(row).unwrap_or(usize::MAX)
}

// A return address is that behind a call.
fn calls(depth: Column, frames: Column, row: usize) -> Vec<u64> {
    frames.list(row).take(place(depth.get(row))).map(|address| address.saturating_sub(1)).collect()
}

fn sample(site: &Site, ids: &BTreeMap<u64, u64>, texts: &mut Texts) -> Message {
    let (mut message, mut label) = (Message::default(), Message::default());
    let mut bytes = Message::default();
    let locations: Vec<_> = site.calls.iter().map(|call| ids[call]).collect();
    message.numbers(1, &locations);
    message.numbers(2, &site.values.map(whole));
    label.number(1, texts.number("epoch"));
    label.number(2, texts.number(&site.label));
    message.message(3, &label);
    bytes.number(1, texts.number("bytes"));
    bytes.number(3, site.class_bytes);
    bytes.number(4, texts.number("bytes"));
    message.message(3, &bytes);
    message
}

fn location(id: u64, call: u64, mappings: &[Mapping]) -> Message {
    let mut message = Message::default();
    let place = mappings.iter().position(|each| (each.start..each.end).contains(&call));
    message.number(1, id);
    message.number(2, place.map_or(0, |place| place as u64 + 1));
    message.number(3, call);
    message
}

fn mapping_message(id: u64, mapping: &Mapping, texts: &mut Texts) -> Message {
    let mut message = Message::default();
    message.number(1, id);
    message.number(2, mapping.start);
    message.number(3, mapping.end);
    message.number(4, mapping.offset);
    message.number(5, texts.number(&mapping.path.to_string_lossy()));
    message.number(6, texts.number(&build_id(&mapping.path).unwrap_or_default()));
    message
}

// Code that files brought, the program's first.
fn mappings() -> Vec<Mapping> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let program = fs::read_link("/proc/self/exe").unwrap_or_default();
    let mut found: Vec<_> = maps.lines().filter_map(mapping).collect();
    found.sort_by_key(|mapping| mapping.path != program);
    found
}

// "start-end permissions offset device inode path"
fn mapping(line: &str) -> Option<Mapping> {
    let (range, rest) = line.split_once(' ')?;
    let (permissions, rest) = rest.split_once(' ')?;
    let path = &rest[rest.find('/')?..];
    let (start, end) = range.split_once('-')?;
    let parse = |text| u64::from_str_radix(text, 16).ok();
    let offset = parse(rest.split(' ').next()?)?;
    permissions.contains('x').then_some(())?;
    Some(Mapping { start: parse(start)?, end: parse(end)?, offset, path: path.into() })
}

// In a note of a 64-bit ELF file.
fn build_id(path: &Path) -> Option<String> {
    const MOST_BYTES: usize = 4096;
    let file = File::open(path).ok()?;
    let header = piece(&file, 0, 64).ok().filter(|bytes| bytes.starts_with(b"\x7fELF\x02"))?;
    let (at, bytes, count) = (number(&header, 32, 8), size(&header, 54, 2), size(&header, 56, 2));
    let segments = piece(&file, at, bytes * count).ok().filter(|_| bytes >= 56)?;
    let notes = segments.chunks_exact(bytes).filter(|segment| number(segment, 0, 4) == 4);
    let read = |note: &[u8]| piece(&file, number(note, 8, 8), size(note, 32, 8).min(MOST_BYTES));
    notes.filter_map(|note| read(note).ok()).find_map(|notes| id_in(&notes))
}

// 4 bytes of name, a length, type 3, "GNU", then the id.
fn id_in(notes: &[u8]) -> Option<String> {
    let is_id = |note: &[u8]| note[..4] == [4, 0, 0, 0] && note[8..] == *b"\x03\0\0\0GNU\0";
    let at = notes.windows(16).position(is_id)?;
    notes.get(at + 16..)?.get(..size(notes, at + 4, 4)).map(hexadecimal)
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |value| char::from_digit(u32::from(value), 16);
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).filter_map(digit).collect()
}

#[expect(clippy::cast_precision_loss, reason = "digits beyond the 15th do not matter")]
fn float(value: u64) -> f64 {
    value as f64
}

#[expect(clippy::cast_possible_truncation, reason = "what is too large becomes the largest")]
#[expect(clippy::cast_sign_loss, reason = "nothing is negative")]
fn whole(value: f64) -> u64 {
    value.round() as u64
}
