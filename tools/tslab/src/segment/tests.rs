//! What is read of files, whole or damaged.

use super::*;
use crate::fixture::{self, Image, Table, sample};
use crate::rows::{TABLES, bins, control, epochs, events, labels, process};

fn nothing(field: rows::Field) -> rows::Field {
    rows::Field { name: "nothing", ..field }
}

fn error_of(bytes: Vec<u8>) -> Error {
    Segment::open(bytes).map(|_| ()).expect_err("it cannot be read")
}

fn sample_bytes() -> Vec<u8> {
    sample(42, 7).bytes()
}

// The sample with a value of the header or of a description replaced.
fn with(at: usize, value: &[u8]) -> Vec<u8> {
    let mut bytes = sample_bytes();
    bytes[at..at + value.len()].copy_from_slice(value);
    bytes
}

fn is_damaged(bytes: Vec<u8>) -> bool {
    matches!(error_of(bytes), Error::Damaged(_))
}

#[test]
fn the_header_and_fields_are_found_by_name() {
    let segment = Segment::open(sample_bytes()).unwrap();
    let header = &segment.header;
    assert_eq!((header.pid, header.start_ticks, header.page_bytes), (42, 7, 4096));
    assert_eq!((header.told_ms, header.version.as_str()), (1_000_000, "0.1.0"));
    let epochs = segment.rows(epochs::TABLE).unwrap().unwrap();
    let survivors = epochs.column(epochs::SURVIVORS).unwrap();
    assert_eq!(survivors.each(7).collect::<Vec<_>>(), [0, 340, 17, 0]);
    assert_eq!((survivors.bits(), survivors.get(16)), (32, None));
    let labels = segment.rows(labels::TABLE).unwrap().unwrap();
    assert_eq!(labels.column(labels::TEXT).unwrap().text(7).as_deref(), Some("GET /upload"));
    assert!(epochs.column(nothing(epochs::ID)).is_none());
    assert!(segment.rows("nothing").unwrap().is_none());
}

#[test]
fn rows_are_seen_again_as_they_are_by_now() {
    let mut image = sample(42, 7);
    let rows = 10_000;
    let place = image.tables.iter().position(|table| table.name == "epochs").unwrap();
    image.tables[place] =
        Table::new("epochs", rows, vec![fixture::Field::long("id", Kind::Id, Unit::None)]);
    (0..rows as usize).for_each(|row| image.set("epochs", row, "id", row as u64));
    let segment = Segment::open(image.bytes()).unwrap();
    let epochs = segment.rows(epochs::TABLE).unwrap().unwrap();
    let (mut seen, mut times) = (Vec::new(), 0);
    let mut see = |now: &Rows| {
        let (then, ids) = (epochs.column(epochs::ID).unwrap(), now.column(epochs::ID).unwrap());
        let outside = [now.numbers().start.wrapping_sub(1), now.numbers().end];
        assert_eq!(outside.map(|row| ids.get(row)), [None; 2]);
        assert!(now.numbers().all(|row| ids.is_same(then, row)));
        seen.extend(now.numbers().filter_map(|row| ids.get(row)));
        times += 1;
    };
    segment.again(&epochs, &mut see).unwrap();
    assert!(seen.into_iter().eq(0..rows.into()) && times == 2);
}

#[test]
fn fields_have_places_in_the_file() {
    let segment = Segment::open(sample_bytes()).unwrap();
    let (at, bytes) = segment.place(epochs::ID, 7).unwrap();
    assert_eq!((long(&sample_bytes(), usize::try_from(at).unwrap()), bytes), (1 << 24 | 7, 8));
    assert_eq!(segment.place(control::SAMPLE_BYTES, 0).unwrap().1, 4);
    assert_eq!(segment.place(epochs::ID, 16), None);
    assert_eq!(segment.place(nothing(epochs::ID), 0), None);
    assert_eq!(segment.place(rows::Field { table: "nothing", ..epochs::ID }, 0), None);
}

#[test]
#[should_panic(expected = "bins.out")]
fn a_field_is_looked_up_in_its_own_table() {
    let segment = Segment::open(sample_bytes()).unwrap();
    let _ = segment.rows(epochs::TABLE).unwrap().unwrap().column(bins::OUT);
}

#[test]
fn files_that_end_too_early_are_named_so() {
    let bytes = sample_bytes();
    for length in 1..bytes.len() {
        let error = error_of(bytes[..length].to_vec());
        assert!(matches!(error, Error::CutShort { .. }), "{length}: {error}");
    }
    assert!(matches!(error_of(Vec::new()), Error::NotReady));
}

#[test]
fn files_that_are_not_ready_foreign_or_of_another_format_are_told_apart() {
    assert!(matches!(error_of(with(header::MAGIC.start, &[0; 8])), Error::NotReady));
    assert!(matches!(error_of(with(header::MAGIC.start, b"tslabXX\0")), Error::Foreign));
    assert!(matches!(error_of(b"\x7fELF".to_vec()), Error::Foreign));
    assert!(matches!(error_of(with(header::ABI, &2_u32.to_ne_bytes())), Error::Abi(2)));
    assert!(matches!(error_of(with(header::ABI, &0_u32.to_ne_bytes())), Error::Abi(0)));
}

#[test]
fn places_outside_of_the_file_are_damage() {
    let many = u32::MAX.to_ne_bytes();
    let far = u64::MAX.to_ne_bytes();
    let (first_table, first_field) = (header::SIZE, header::SIZE + TABLES.len() * table::SIZE);
    assert!(is_damaged(with(header::HEADER_BYTES, &[0; 4])), "a header without bytes");
    assert!(is_damaged(with(header::TABLES_AT, &far)), "tables");
    assert!(is_damaged(with(header::TABLES, &many)), "as many tables");
    assert!(is_damaged(with(header::TABLE_BYTES, &[0; 4])), "tables without bytes");
    assert!(is_damaged(with(header::TABLE_BYTES, &many)), "such large tables");
    assert!(is_damaged(with(header::FIELDS_AT, &far)), "fields");
    assert!(is_damaged(with(header::FIELDS, &many)), "as many fields");
    assert!(is_damaged(with(first_table + table::AT, &far)), "rows");
    assert!(is_damaged(with(first_table + table::ROW_BYTES, &many)), "such large rows");
    assert!(is_damaged(with(first_table + table::ROW_BYTES, &[0; 4])), "rows without bytes");
    assert!(is_damaged(with(first_table + table::ROWS, &many)), "as many rows");
    assert!(is_damaged(with(first_field + field::TABLE, &[99, 99])), "a field of no table");
    assert!(is_damaged(with(first_field + field::AT, &many)), "a field outside of its row");
    assert!(is_damaged(with(first_field + field::COUNT, &[255, 255])), "as many values");
    assert!(matches!(error_of(with(header::FILE_BYTES, &far)), Error::CutShort { .. }));
}

#[test]
fn a_table_that_no_memory_holds_is_damage() {
    struct Endless(Vec<u8>);
    impl Source for Endless {
        fn bytes(&self) -> io::Result<u64> {
            Ok(u64::MAX)
        }
        fn read_exact_at(&self, into: &mut [u8], at: u64) -> io::Result<()> {
            self.0.read_exact_at(into, at)
        }
    }
    let mut bytes = with(header::FILE_BYTES, &u64::MAX.to_ne_bytes());
    bytes[header::SIZE + table::MOST_ROWS..header::SIZE + table::IS_FULL].fill(0xff);
    let segment = Segment::open(Endless(bytes)).unwrap();
    assert!(matches!(segment.rows(process::TABLE), Err(Error::Damaged(_))));
}

#[test]
fn a_file_that_shrinks_meanwhile_is_cut_short() {
    struct Shrinking(Vec<u8>);
    impl Source for Shrinking {
        fn bytes(&self) -> io::Result<u64> {
            Ok(self.0.len() as u64 + 1000)
        }
        fn read_exact_at(&self, into: &mut [u8], at: u64) -> io::Result<()> {
            self.0.read_exact_at(into, at)
        }
    }
    let mut image = sample(42, 7);
    image.set("events", 0, "at_ns", 1); // the last table
    let mut bytes = image.bytes();
    bytes.truncate(bytes.len() - 1);
    let segment = Segment::open(Shrinking(bytes)).unwrap();
    assert!(segment.rows(process::TABLE).unwrap().is_some());
    assert!(matches!(segment.rows(events::TABLE), Err(Error::CutShort { .. })));
}

#[test]
fn fields_and_descriptions_of_newer_libraries_are_passed_over() {
    let mut image = sample(42, 7);
    image.more_bytes = 24;
    image.table("epochs").fields[2].kind = 9;
    image.table("epochs").fields[3].bytes = 3;
    image.table("process").fields[0].unit = 99;
    let segment = Segment::open(image.bytes()).unwrap();
    assert!(!segment.has(epochs::LABEL) && !segment.has(epochs::STATE));
    let process = segment.rows(process::TABLE).unwrap().unwrap();
    assert_eq!(process.fields()[0].unit, None);
    assert_eq!(process.column(process::OPEN_BYTES).unwrap().get(0), Some(1 << 20));
}

#[test]
fn labels_may_hold_any_bytes() {
    let mut image = Image::new(42, 7);
    image.text("labels", 2, b"a\xff\xfe\"\n");
    image.text("labels", 3, &[b'x'; 64]);
    let segment = Segment::open(image.bytes()).unwrap();
    let labels = segment.rows(labels::TABLE).unwrap().unwrap();
    let texts = labels.column(labels::TEXT).unwrap();
    assert_eq!(texts.text(2).as_deref(), Some("a\u{fffd}\u{fffd}\"\n"));
    assert_eq!(texts.text(3), Some("x".repeat(64)));
    assert_eq!(texts.text(usize::MAX), None);
}
