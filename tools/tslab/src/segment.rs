//! The statistics file as it lies there: a header, tables of rows, and the fields of each table.
//!
//! A field is found by the names of its table and itself; where it lies is read from the file
//! (`include/tslab_stats.h`). Nothing in the file is trusted: every place is checked against the
//! file's size before it is read, and data is copied with `pread`, so that a file that shrinks
//! meanwhile costs an error and not the reader's life.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::buffer::Buffer;
use crate::rows::{self, ABI, Kind, MAGIC, Unit, field, header, table};

// More than any library writes: what is beyond is damage, and must not cost the reader's memory.
const MOST_DESCRIPTOR_BYTES: u64 = 16 << 20;
const MOST_ROWS_BYTES: u64 = 2 << 30;

const AGAIN_BYTES: usize = 64 << 10;

/// Where the bytes come from.
pub trait Source {
    /// How many there are now.
    fn bytes(&self) -> io::Result<u64>;
    /// Fills `into` from offset `at`.
    fn read_exact_at(&self, into: &mut [u8], at: u64) -> io::Result<()>;
}

impl Source for File {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_exact_at(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, into, at)
    }
}

/// Why a file cannot be read, and what to do.
#[derive(Debug)]
pub enum Error {
    /// Its beginning is not written yet.
    NotReady,
    /// Something else.
    Foreign,
    /// Of another format.
    Abi(u32),
    /// It ends too early.
    CutShort {
        /// Where it should end at least.
        needed: u64,
        /// Where it ends.
        bytes: u64,
    },
    /// It contradicts itself.
    Damaged(String),
    /// There is no memory for so many bytes.
    NoMemory(u64),
    /// The system refused.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::NotReady => write!(
                out,
                "its beginning is not written yet: try again in a moment; \
                 if its process is dead, `tslab gc` removes it"
            ),
            Self::Foreign => write!(
                out,
                "it is not a statistics file of tslab: name a process, \
                 or a file such as /dev/shm/tslab.PID.START"
            ),
            Self::Abi(abi) => write!(
                out,
                "its format is number {abi}, and this command reads number {ABI}: \
                 use the command that came with the library of that process"
            ),
            Self::CutShort { needed, bytes } => write!(
                out,
                "it is cut short, with {bytes} bytes of {needed}: copy the whole file again"
            ),
            Self::Damaged(what) => write!(
                out,
                "it is damaged, {what}: copy it again; if it is the original, \
                 something else wrote to it, and its figures are lost"
            ),
            Self::NoMemory(bytes) => write!(
                out,
                "there is no memory for {bytes} bytes of it: read it on a larger machine"
            ),
            Self::Io(error) => write!(out, "the system refused to read it: {error}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn damaged(what: impl Into<String>) -> Error {
    Error::Damaged(what.into())
}

/// What the file says of its process and itself.
#[derive(Clone, Debug)]
pub struct Header {
    /// The process, in its own PID namespace.
    pub pid: u32,
    /// Field 22 of /proc/PID/stat.
    pub start_ticks: u64,
    /// Of a page; 0: damaged.
    pub page_bytes: u32,
    /// `CLOCK_MONOTONIC` when the file was made, in ms.
    pub made_ms: u64,
    /// `CLOCK_MONOTONIC` when the process last wrote to it, in ms.
    pub told_ms: u64,
    /// Of the library.
    pub version: String,
}

/// A field of a table: where its values lie in a row.
#[derive(Clone, Debug)]
pub struct Field {
    /// Unique in its table.
    pub name: String,
    /// Of each value; none: this reader does not know it.
    pub unit: Option<Unit>,
    /// Of each value.
    pub kind: Kind,
    at: usize,
    width: usize,
    count: usize,
}

/// A table: rows of one kind, one behind the other.
#[derive(Debug)]
pub struct Table {
    /// Unique in the file.
    pub name: String,
    /// The system had no memory for further rows, which are missing.
    pub is_full: bool,
    at: u64,
    row_bytes: u32,
    rows: u32,
    most_rows: u32,
    fields: Vec<Field>,
}

impl Table {
    fn bytes(&self) -> u64 {
        u64::from(self.row_bytes) * u64::from(self.rows)
    }

    fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|known| known.name == name)
    }
}

/// A file whose descriptions are read and checked.
#[derive(Debug)]
pub struct Segment<S> {
    /// Of the file.
    pub header: Header,
    /// All of them, also those that this reader does not know.
    pub tables: Vec<Table>,
    source: S,
}

impl<S: Source> Segment<S> {
    /// Reads the header and the descriptions of tables and fields.
    pub fn open(source: S) -> Result<Self, Error> {
        let header = read_header(&source)?;
        let limit = file_end(&source, &header)?;
        let mut tables = read_tables(&source, &header, limit)?;
        read_fields(&source, &header, limit, &mut tables)?;
        Ok(Self { header: understand(&header), tables, source })
    }

    /// A copy of a table's rows; none when the file has no such table.
    pub fn rows(&self, table: &str) -> Result<Option<Rows<'_>>, Error> {
        let Some(table) = self.tables.iter().find(|known| known.name == table) else {
            return Ok(None);
        };
        if table.bytes() > MOST_ROWS_BYTES {
            return Err(damaged(format!("table {:?} claims {} rows", table.name, table.rows)));
        }
        let data = read(&self.source, table.at, table.bytes())?;
        Ok(Some(Rows { table, numbers: 0..table.rows as usize, data }))
    }

    /// Shows the rows of a table as they are by now, as many at a time as stay in the cache.
    pub fn again(&self, rows: &Rows, mut show: impl FnMut(&Rows)) -> Result<(), Error> {
        let (table, row_bytes) = (rows.table, rows.table.row_bytes as usize);
        let most = (AGAIN_BYTES / row_bytes.max(1)).clamp(1, rows.len().max(1));
        let mut some = Rows { table, numbers: 0..0, data: room((most * row_bytes) as u64)? };
        while some.numbers.end < rows.len() {
            let start = some.numbers.end;
            some.numbers = start..rows.len().min(start + most);
            let bytes = some.numbers.len() * row_bytes;
            let at = table.at + (start * row_bytes) as u64;
            read_into(&self.source, &mut some.data[..bytes], at)?;
            show(&some);
        }
        Ok(())
    }
}

impl<S> Segment<S> {
    /// Whether the file has a field.
    pub fn has(&self, field: rows::Field) -> bool {
        self.find(field).is_some()
    }

    /// Where in the file a field of a row lies, and how many bytes a value has; none when there is
    /// no such field or row.
    pub fn place(&self, field: rows::Field, row: u32) -> Option<(u64, usize)> {
        let (table, field) = self.find(field)?;
        let in_table = || u64::from(row) * u64::from(table.row_bytes) + field.at as u64;
        (row < table.rows).then(|| (table.at + in_table(), field.width))
    }

    fn find(&self, field: rows::Field) -> Option<(&Table, &Field)> {
        let table = self.tables.iter().find(|known| known.name == field.table)?;
        Some((table, table.field(field.name)?))
    }
}

/// Rows of a table, as they were when they were read.
#[derive(Debug)]
pub struct Rows<'a> {
    table: &'a Table,
    numbers: Range<usize>,
    data: Buffer,
}

impl<'a> Rows<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Which of the table's they are.
    pub fn numbers(&self) -> Range<usize> {
        self.numbers.clone()
    }

    /// Of the table.
    pub fn name(&self) -> &'a str {
        &self.table.name
    }

    /// How many the format has room for.
    pub fn most(&self) -> u64 {
        self.table.most_rows.into()
    }

    /// What the table consists of.
    pub fn fields(&self) -> &'a [Field] {
        &self.table.fields
    }

    /// The values of a field of the table in all rows; none when the file does not have it.
    pub fn column(&self, field: rows::Field) -> Option<Column<'_>> {
        debug_assert_eq!(field.table, self.table.name, "{field}");
        self.table.field(field.name).map(|field| self.values(field))
    }

    /// The same of one of `fields`.
    pub fn values(&self, field: &Field) -> Column<'_> {
        let row_bytes = self.table.row_bytes as usize;
        let rows = &self.data[..self.numbers.len() * row_bytes];
        Column {
            data: rows.get(field.at..).unwrap_or_default(),
            first: self.numbers.start,
            row_bytes,
            width: field.width,
            count: field.count,
        }
    }
}

/// The values of one field, by row.
#[derive(Clone, Copy, Debug)]
pub struct Column<'a> {
    data: &'a [u8],
    first: usize,
    row_bytes: usize,
    width: usize,
    count: usize,
}

impl<'a> Column<'a> {
    /// How many bits a value has.
    pub fn bits(self) -> u32 {
        // At most 64: widths are checked when the file is opened.
        u32::try_from(self.width * 8).unwrap_or(u64::BITS)
    }

    /// How many values a row has.
    pub fn count(self) -> usize {
        self.count
    }

    /// The first value of a row; none when there is no such row.
    pub fn get(self, row: usize) -> Option<u64> {
        self.behind(row)?.get(..self.width).map(unsigned)
    }

    /// All values of a row, such as one a size class; none when there is no such row.
    pub fn each(self, row: usize) -> impl Iterator<Item = u64> + 'a {
        let bytes = self.bytes(row).unwrap_or_default();
        bytes.chunks_exact(self.width).map(unsigned)
    }

    /// Whether all values of a row are 0, or there is no such row.
    pub fn is_zero(self, row: usize) -> bool {
        const ZEROS: [u8; 512] = [0; 512];
        let bytes = self.bytes(row).unwrap_or_default();
        bytes.chunks(ZEROS.len()).all(|part| *part == ZEROS[..part.len()])
    }

    /// Whether all values of a row are the same in both.
    pub fn is_same(self, other: Self, row: usize) -> bool {
        self.bytes(row) == other.bytes(row)
    }

    /// The row's text, up to its 0; bytes that are not UTF-8 become U+FFFD.
    pub fn text(self, row: usize) -> Option<String> {
        self.bytes(row).map(text)
    }

    fn bytes(self, row: usize) -> Option<&'a [u8]> {
        self.behind(row)?.get(..self.width * self.count)
    }

    // From the row's first value on, up to the end of all rows.
    fn behind(self, row: usize) -> Option<&'a [u8]> {
        let start = row.checked_sub(self.first)?.checked_mul(self.row_bytes)?;
        self.data.get(start..)
    }
}

// A number in the byte order of the machine.
fn unsigned(bytes: &[u8]) -> u64 {
    match bytes.len() {
        1 => byte(bytes, 0).into(),
        2 => short(bytes, 0).into(),
        4 => word(bytes, 0).into(),
        _ => long(bytes, 0),
    }
}

fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or_default()
}

fn short(bytes: &[u8], at: usize) -> u16 {
    bytes[at..].first_chunk().map_or(0, |bytes| u16::from_ne_bytes(*bytes))
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn read_into(source: &impl Source, into: &mut [u8], at: u64) -> Result<(), Error> {
    source.read_exact_at(into, at).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::CutShort {
            needed: at.saturating_add(into.len() as u64),
            bytes: source.bytes().unwrap_or_default(),
        },
        _ => Error::Io(error),
    })
}

fn room(bytes: u64) -> Result<Buffer, Error> {
    Buffer::of(bytes).ok_or(Error::NoMemory(bytes))
}

// Callers have checked that the file is so large.
fn read(source: &impl Source, at: u64, bytes: u64) -> Result<Buffer, Error> {
    let mut data = room(bytes)?;
    read_into(source, &mut data, at)?;
    Ok(data)
}

fn read_header(source: &impl Source) -> Result<[u8; header::SIZE], Error> {
    let mut header = [0; header::SIZE];
    let bytes = source.bytes()?;
    let there = usize::try_from(bytes).unwrap_or(header::SIZE).min(header::SIZE);
    read_into(source, &mut header[..there], 0)?;
    let magic = &header[header::MAGIC];
    if magic.iter().all(|&byte| byte == 0) {
        return Err(Error::NotReady);
    }
    if !MAGIC.starts_with(&magic[..there.min(MAGIC.len())]) {
        return Err(Error::Foreign);
    }
    if there < header::SIZE {
        return Err(Error::CutShort { needed: header::SIZE as u64, bytes });
    }
    match word(&header, header::ABI) {
        ABI => Ok(header),
        abi => Err(Error::Abi(abi)),
    }
}

fn understand(header: &[u8; header::SIZE]) -> Header {
    Header {
        pid: word(header, header::PID),
        page_bytes: word(header, header::PAGE_BYTES),
        start_ticks: long(header, header::START_TICKS),
        made_ms: long(header, header::MADE_MS),
        told_ms: long(header, header::TOLD_MS),
        version: text(&header[header::VERSION]),
    }
}

// Behind the last byte that the file may use.
fn file_end(source: &impl Source, header: &[u8]) -> Result<u64, Error> {
    let (needed, bytes) = (long(header, header::FILE_BYTES), source.bytes()?);
    if (word(header, header::HEADER_BYTES) as usize) < header::SIZE {
        return Err(damaged("its header is too small"));
    }
    if needed > bytes {
        return Err(Error::CutShort { needed, bytes });
    }
    Ok(needed)
}

// `count` descriptions of `each` bytes, of which this reader understands the first `least`.
struct Descriptions {
    at: u64,
    count: u32,
    each: u32,
    least: usize,
}

impl Descriptions {
    fn read(&self, source: &impl Source, limit: u64) -> Result<Buffer, Error> {
        let bytes = u64::from(self.count) * u64::from(self.each);
        let ends_inside = self.at.checked_add(bytes).is_some_and(|end| end <= limit);
        if (self.each as usize) < self.least || bytes > MOST_DESCRIPTOR_BYTES || !ends_inside {
            return Err(damaged("its descriptions of tables and fields lie outside of it"));
        }
        read(source, self.at, bytes)
    }
}

fn read_tables(source: &impl Source, header: &[u8], limit: u64) -> Result<Vec<Table>, Error> {
    let place = Descriptions {
        at: long(header, header::TABLES_AT),
        count: word(header, header::TABLES),
        each: word(header, header::TABLE_BYTES),
        least: table::SIZE,
    };
    let data = place.read(source, limit)?;
    data.chunks_exact(place.each as usize).map(|bytes| table_of(bytes, limit)).collect()
}

fn table_of(bytes: &[u8], limit: u64) -> Result<Table, Error> {
    let table = Table {
        name: text(&bytes[table::NAME]),
        at: long(bytes, table::AT),
        row_bytes: word(bytes, table::ROW_BYTES),
        rows: word(bytes, table::ROWS),
        most_rows: word(bytes, table::MOST_ROWS),
        is_full: word(bytes, table::IS_FULL) != 0,
        fields: Vec::new(),
    };
    let ends_inside = table.at.checked_add(table.bytes()).is_some_and(|end| end <= limit);
    let has_bytes = table.row_bytes > 0 || table.rows == 0;
    if table.rows > table.most_rows || !has_bytes || !ends_inside {
        return Err(damaged(format!("its table {:?} lies outside of it", table.name)));
    }
    Ok(table)
}

fn read_fields(
    source: &impl Source,
    header: &[u8],
    limit: u64,
    tables: &mut [Table],
) -> Result<(), Error> {
    let place = Descriptions {
        at: long(header, header::FIELDS_AT),
        count: word(header, header::FIELDS),
        each: word(header, header::FIELD_BYTES),
        least: field::SIZE,
    };
    let data = place.read(source, limit)?;
    for bytes in data.chunks_exact(place.each as usize) {
        add_field(bytes, tables)?;
    }
    Ok(())
}

fn add_field(bytes: &[u8], tables: &mut [Table]) -> Result<(), Error> {
    let name = text(&bytes[field::NAME]);
    let (at, width, count) = (
        word(bytes, field::AT) as usize,
        usize::from(short(bytes, field::BYTES)),
        usize::from(short(bytes, field::COUNT)),
    );
    let Some(table) = tables.get_mut(usize::from(short(bytes, field::TABLE))) else {
        return Err(damaged(format!("its field {name:?} is of no table")));
    };
    if at + width * count > table.row_bytes as usize {
        return Err(damaged(format!("its field {name:?} lies outside of its row")));
    }
    // Kinds and widths of libraries to come are passed over.
    let kind = Kind::of(byte(bytes, field::KIND).into());
    let Some(kind) = kind.filter(|_| matches!(width, 1 | 2 | 4 | 8) && count > 0) else {
        return Ok(());
    };
    let unit = Unit::of(byte(bytes, field::UNIT).into());
    table.fields.push(Field { name, unit, kind, at, width, count });
    Ok(())
}

#[cfg(test)]
impl Source for Vec<u8> {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_exact_at(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        let start = usize::try_from(at).unwrap_or(usize::MAX);
        let there = self.get(start..).and_then(|bytes| bytes.get(..into.len()));
        into.copy_from_slice(there.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
