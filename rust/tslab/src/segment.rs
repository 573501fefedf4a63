//! segment: the statistics file of this process (`tslab_stats.h`).

use std::fs::{self, File};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileExt;
use std::process;

// What is known of the file beforehand: the header, and where texts of the descriptors end.
const MAGIC: &[u8] = b"tslabst\0\x01\0\0\0";
const HEADER_BYTES: usize = 56;
const TABLE_NAME_BYTES: usize = 16;
const FIELD_NAME_BYTES: usize = 32;

pub(crate) struct Segment {
    file: File,
    tables: Rows,
    fields: Rows,
}

/// Rows of one kind, as they were at one moment.
pub(crate) struct Rows {
    bytes: Vec<u8>,
    row_bytes: usize,
    fields: Vec<Field>,
}

struct Field {
    name: String,
    at: usize,
    bytes: usize,
    count: usize,
}

/// A field of all rows.
#[derive(Clone, Copy)]
pub(crate) struct Column<'a> {
    rows: &'a Rows,
    field: &'a Field,
}

impl Segment {
    pub(crate) fn own() -> Result<Self> {
        let fields = fs::read_to_string("/proc/self/stat")?;
        // Field 22. The second one is the name, which ends with the last parenthesis.
        let start = fields.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(19));
        let start = start.ok_or(ErrorKind::InvalidData)?;
        let file = File::open(format!("/dev/shm/tslab.{}.{start}", process::id()))?;
        let header = piece(&file, 0, HEADER_BYTES)?;
        if !header.starts_with(MAGIC) {
            return Err(Error::new(ErrorKind::InvalidData, "statistics of another version"));
        }
        // Offset, length and number.
        let descriptors = |at, count, bytes| -> Result<Rows> {
            let (count, row_bytes) = (size(&header, count, 4), size(&header, bytes, 4));
            let bytes = piece(&file, number(&header, at, 8), count * row_bytes)?;
            Ok(Rows { bytes, row_bytes, fields: Vec::new() })
        };
        let (tables, fields) = (descriptors(24, 32, 36)?, descriptors(40, 48, 52)?);
        Ok(Self { file, tables, fields })
    }

    /// The rows that may be read now.
    pub(crate) fn rows(&self, name: &str) -> Result<Rows> {
        let mut tables = self.tables.each().enumerate();
        let found = tables.find(|(_, table)| text(&table[..TABLE_NAME_BYTES]) == name);
        let (index, table) = found.ok_or(ErrorKind::NotFound)?;
        let (row_bytes, rows) = (size(table, 24, 4), self.rows_now(index)?);
        let fields = self.fields.each().filter(|field| size(field, 32, 2) == index);
        let field = |field: &[u8]| Field {
            name: text(&field[..FIELD_NAME_BYTES]),
            at: size(field, 36, 4),
            bytes: size(field, 40, 2),
            count: size(field, 42, 2),
        };
        let fields = fields.map(field).collect();
        let bytes = piece(&self.file, number(table, 16, 8), rows * row_bytes)?;
        Ok(Rows { bytes, row_bytes, fields })
    }

    // It grows.
    fn rows_now(&self, table: usize) -> Result<usize> {
        let header = piece(&self.file, 0, HEADER_BYTES)?;
        let at = number(&header, 24, 8) + (table * self.tables.row_bytes) as u64;
        Ok(size(&piece(&self.file, at + 32, 4)?, 0, 4))
    }
}

impl Rows {
    pub(crate) fn each(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.row_bytes)
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() / self.row_bytes
    }

    pub(crate) fn column(&self, name: &str) -> Result<Column<'_>> {
        let field = self.fields.iter().find(|field| field.name == name);
        let field = field.ok_or(ErrorKind::NotFound)?;
        Ok(Column { rows: self, field })
    }
}

impl<'a> Column<'a> {
    fn bytes(self, row: usize) -> &'a [u8] {
        let row = self.rows.each().nth(row).unwrap_or_default();
        row.get(self.field.at..)
            .and_then(|rest| rest.get(..self.field.bytes * self.field.count))
            .unwrap_or_default()
    }

    /// 0 where there is no such row.
    pub(crate) fn get(self, row: usize) -> u64 {
        self.list(row).next().unwrap_or_default()
    }

    pub(crate) fn list(self, row: usize) -> impl Iterator<Item = u64> + 'a {
        let width = self.field.bytes;
        self.bytes(row).chunks_exact(width).map(move |value| number(value, 0, width))
    }

    pub(crate) fn text(self, row: usize) -> String {
        text(self.bytes(row))
    }
}

/// A piece of a file.
pub(crate) fn piece(file: &File, at: u64, bytes: usize) -> Result<Vec<u8>> {
    let mut read = vec![0; bytes];
    file.read_exact_at(&mut read, at)?;
    Ok(read)
}

/// An integer of `width` bytes.
pub(crate) fn number(bytes: &[u8], at: usize, width: usize) -> u64 {
    let mut whole = [0; 8];
    whole[..width].copy_from_slice(&bytes[at..at + width]);
    u64::from_le_bytes(whole)
}

/// The same, where it is a size of something in memory.
pub(crate) fn size(bytes: &[u8], at: usize, width: usize) -> usize {
    usize::try_from(number(bytes, at, width)).unwrap_or(usize::MAX)
}

// Up to the 0 at its end.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
