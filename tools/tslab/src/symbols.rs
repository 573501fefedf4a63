//! What an ELF file tells of its code: functions, inlined ones too, and lines of their sources.
//!
//! Of DWARF where it is there, of symbol tables otherwise. The file may be anything: what cannot be
//! understood is left out, and nothing larger than a bound is read.

use std::borrow::Cow;
use std::fmt::Write;
use std::io::{Read, Seek};

use addr2line::gimli::{DwarfSections, EndianSlice, RunTimeEndian};
use addr2line::{Context, demangle_auto};
use object::read::{ReadCache, ReadRef};
use object::{
    Object, ObjectSection, ObjectSegment, ObjectSymbol, ObjectSymbolTable, SymbolIndex, SymbolKind,
};

use crate::text;

// A section that is larger, or becomes so when it is unpacked, is left out.
const MOST_SECTION_BYTES: u64 = 2 << 30;
// A symbol without a size, as in assembly, may be the last one before much that has no name.
const MOST_UNSIZED_BYTES: u64 = 4096;
// Names of templates may be longer than this, and are of no use then.
const MOST_NAME_CHARS: usize = 1000;

/// A function, and a line in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line {
    /// As it is written in its source.
    pub function: String,
    /// The source.
    pub file: Option<String>,
    /// Of the line, counted from 1.
    pub number: Option<u32>,
}

/// What is at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The address as the file's own tables have it.
    pub address: u64,
    /// Innermost first: functions that were inlined stand before those that they became part of.
    pub lines: Vec<Line>,
}

/// What a file tells of some of its addresses.
#[derive(Clone, Debug, Default)]
pub struct Resolved {
    /// Hexadecimal; empty when it has none.
    pub build_id: String,
    /// In the order of the question.
    pub places: Vec<Place>,
}

/// Names what lies at `offsets` of the file. `debug_file` finds a file with debugging information
/// by a build id. None when the file is not understood.
pub fn resolve<F: Read + Seek>(
    file: F,
    offsets: &[u64],
    debug_file: impl FnOnce(&str) -> Option<F>,
) -> Option<Resolved> {
    let cache = ReadCache::new(file);
    let object = object::File::parse(&cache).ok()?;
    let build_id = hexadecimal(object.build_id().ok().flatten().unwrap_or_default());
    let addresses = offsets.iter().map(|offset| address_of(&object, *offset).unwrap_or(*offset));
    let mut places: Vec<_> =
        addresses.map(|address| Place { address, lines: Vec::new() }).collect();
    let debug_cache = debug_file(&build_id).map(ReadCache::new);
    let debug = debug_cache.as_ref().and_then(|cache| object::File::parse(cache).ok());
    for object in debug.iter().chain([&object]) {
        add_lines(&mut places, object);
    }
    for object in debug.iter().chain([&object]) {
        add_symbols(&mut places, object);
    }
    Some(Resolved { build_id, places })
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        // Writing to a String does not fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

// Where a place of the file is loaded to, as its program headers have it.
fn address_of<'a, R: ReadRef<'a>>(object: &object::File<'a, R>, offset: u64) -> Option<u64> {
    object.segments().find_map(|segment| {
        let (start, bytes) = segment.file_range();
        let inside = offset.checked_sub(start).filter(|&inside| inside < bytes)?;
        segment.address().checked_add(inside)
    })
}

// ---- DWARF

fn section<'a, R: ReadRef<'a>>(object: &object::File<'a, R>, name: &str) -> Cow<'a, [u8]> {
    let section = object.section_by_name(name);
    let range = section.as_ref().and_then(|section| section.compressed_file_range().ok());
    let fits = range.is_some_and(|range| {
        range.uncompressed_size.max(range.compressed_size) <= MOST_SECTION_BYTES
    });
    let data = section.filter(|_| fits).and_then(|section| section.uncompressed_data().ok());
    data.unwrap_or_default()
}

// Lines of the places that have none yet.
fn add_lines<'a, R: ReadRef<'a>>(places: &mut [Place], object: &object::File<'a, R>) {
    let endian = if object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let load = |id: addr2line::gimli::SectionId| Ok::<_, ()>(section(object, id.name()));
    let Ok(sections) = DwarfSections::load(load) else { return };
    let dwarf = sections.borrow(|section| EndianSlice::new(section, endian));
    let Ok(context) = Context::from_dwarf(dwarf) else { return };
    for place in places.iter_mut().filter(|place| place.lines.is_empty()) {
        place.lines = lines_at(&context, place.address);
    }
}

type Reader<'a> = EndianSlice<'a, RunTimeEndian>;

fn lines_at(context: &Context<Reader>, address: u64) -> Vec<Line> {
    let mut lines = Vec::new();
    // The library looks at the address behind as well.
    if address == u64::MAX {
        return lines;
    }
    let Ok(mut frames) = context.find_frames(address).skip_all_loads() else { return lines };
    while let Ok(Some(frame)) = frames.next() {
        let name = frame.function.as_ref().and_then(|function| function.demangle().ok());
        let location = frame.location.as_ref();
        lines.push(Line {
            function: name.map(|name| short_name(&name)).unwrap_or_default(),
            file: location.and_then(|location| location.file).map(ToOwned::to_owned),
            number: location.and_then(|location| location.line).filter(|&line| line > 0),
        });
    }
    lines
}

/// A name of bounded length.
pub fn short_name(name: &str) -> String {
    text::shortened(name, MOST_NAME_CHARS)
}

// ---- Symbol tables

// A function in the table of all symbols, or in that of those that other files use.
#[derive(Clone, Copy)]
struct Symbol {
    address: u64,
    bytes: u64,
    is_dynamic: bool,
    index: SymbolIndex,
}

// Functions of the places that have none yet.
fn add_symbols<'a, R: ReadRef<'a>>(places: &mut [Place], object: &object::File<'a, R>) {
    let is_nameless = |place: &&mut Place| {
        place.lines.last().is_none_or(|outermost| outermost.function.is_empty())
    };
    let symbols = functions(object);
    for place in places.iter_mut().filter(is_nameless) {
        let Some(function) = name_at(object, &symbols, place.address) else { continue };
        match place.lines.last_mut() {
            Some(line) => line.function = function,
            None => place.lines.push(Line { function, ..Line::default() }),
        }
    }
}

fn functions<'a, R: ReadRef<'a>>(object: &object::File<'a, R>) -> Vec<Symbol> {
    let all = object.symbols().map(|symbol| (symbol, false));
    let dynamic = object.dynamic_symbols().map(|symbol| (symbol, true));
    let code = all.chain(dynamic).filter(|(symbol, _)| {
        symbol.kind() == SymbolKind::Text && symbol.is_definition() && symbol.address() != 0
    });
    let mut symbols: Vec<_> = code
        .map(|(symbol, is_dynamic)| Symbol {
            address: symbol.address(),
            bytes: symbol.size(),
            is_dynamic,
            index: symbol.index(),
        })
        .collect();
    symbols.sort_by_key(|symbol| symbol.address);
    symbols
}

// Of several names of a function the one with the fewest signs before it: not `__libc_malloc`.
fn name_at<'a, R: ReadRef<'a>>(
    object: &object::File<'a, R>,
    symbols: &[Symbol],
    address: u64,
) -> Option<String> {
    let behind = symbols.partition_point(|symbol| symbol.address <= address);
    let start = symbols.get(behind.checked_sub(1)?)?.address;
    let first = symbols.partition_point(|symbol| symbol.address < start);
    let bytes = |symbol: &Symbol| match symbol.bytes {
        0 => MOST_UNSIZED_BYTES,
        bytes => bytes,
    };
    let inside = symbols[first..behind].iter().filter(|symbol| address - start < bytes(symbol));
    let names = inside.filter_map(|symbol| name_of(object, *symbol));
    names.min_by_key(|name| (name.len() - name.trim_start_matches('_').len(), name.clone()))
}

fn name_of<'a, R: ReadRef<'a>>(object: &object::File<'a, R>, symbol: Symbol) -> Option<String> {
    let table =
        if symbol.is_dynamic { object.dynamic_symbol_table() } else { object.symbol_table() };
    let found = table?.symbol_by_index(symbol.index).ok()?;
    let name = String::from_utf8_lossy(found.name_bytes().ok()?).into_owned();
    (!name.is_empty()).then(|| short_name(&demangle_auto(Cow::Owned(name), None)))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Cursor;

    use super::*;
    use crate::fixture::Random;
    use crate::modules::Maps;

    #[inline(never)]
    fn a_function_of_the_test() -> u32 {
        line!()
    }

    // The tests' own program, and where in it that function lies.
    fn own() -> (File, u64) {
        let maps = Maps::of_process(std::process::id()).unwrap();
        let address = (a_function_of_the_test as fn() -> u32) as usize as u64;
        let mapping = maps.find(address).unwrap();
        (maps.open(mapping).unwrap(), mapping.file_offset(address))
    }

    #[test]
    fn functions_and_lines_are_named() {
        let (file, offset) = own();
        let resolved = resolve(file, &[offset, u64::MAX], |_| None).unwrap();
        let [place, nowhere] = resolved.places.as_slice() else { panic!("two places") };
        let outermost = place.lines.last().unwrap();
        assert!(outermost.function.ends_with("tests::a_function_of_the_test"), "{outermost:?}");
        assert!(outermost.file.as_ref().is_some_and(|file| file.ends_with("symbols.rs")));
        assert!(outermost.number.is_some_and(|line| line.abs_diff(a_function_of_the_test()) <= 1));
        assert_eq!(nowhere.lines, []);
    }

    #[test]
    fn without_dwarf_symbol_tables_name_functions() {
        let (file, offset) = own();
        let cache = ReadCache::new(file);
        let object = object::File::parse(&cache).unwrap();
        let address = address_of(&object, offset).unwrap();
        let mut places = [Place { address, lines: Vec::new() }, Place::default()];
        add_symbols(&mut places, &object);
        let name = &places[0].lines[0].function;
        assert!(name.ends_with("tests::a_function_of_the_test"), "{name}");
        assert_eq!((&places[0].lines[0].file, places[1].lines.len()), (&None, 0));
    }

    #[test]
    fn what_is_no_program_is_not_understood() {
        let text = File::open("Cargo.toml").unwrap();
        assert!(resolve(text, &[0], |_| None).is_none());
        let empty = File::open("/dev/null").unwrap();
        assert!(resolve(empty, &[0], |_| None).is_none());
    }

    // In headers, where places and sizes stand, and anywhere.
    fn damage(bytes: &mut [u8], random: &mut Random) {
        let end = [4096, bytes.len()][random.below(2)];
        let at = random.below(end);
        bytes[at] = [0, 0xff, 0x80, bytes[at] ^ (1 << random.below(8))][random.below(4)];
    }

    #[test]
    fn damaged_programs_harm_nobody() {
        let (mut file, offset) = own();
        let mut whole = Vec::new();
        file.read_to_end(&mut whole).unwrap();
        let mut random = Random(1);
        for _ in 0..20 {
            let mut bytes = whole.clone();
            for _ in 0..=random.below(1000) {
                damage(&mut bytes, &mut random);
            }
            resolve(Cursor::new(bytes), &[offset, 0, offset + 4096], |_| None);
        }
    }

    #[test]
    fn names_are_of_bounded_length() {
        assert_eq!(short_name("main"), "main");
        assert_eq!(short_name(&"ü".repeat(5000)).chars().count(), MOST_NAME_CHARS + 3);
        assert_eq!(hexadecimal(&[0, 0xab]), "00ab");
    }
}
