//! What is read of files, whole or damaged.

use super::*;
use crate::fixture::{self, Image, Table, sample};

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
    let epochs = segment.rows("epochs").unwrap().unwrap();
    let survivors = epochs.column("survivors").unwrap();
    assert_eq!(survivors.each(7).collect::<Vec<_>>(), [0, 340, 17, 0]);
    assert_eq!((survivors.bits(), survivors.get(16)), (32, None));
    let labels = segment.rows("labels").unwrap().unwrap();
    assert_eq!(labels.column("text").unwrap().text(7).as_deref(), Some("GET /upload"));
    assert!(epochs.column("nothing").is_none());
    assert!(segment.rows("nothing").unwrap().is_none());
}

#[test]
fn rows_are_seen_again_as_they_are_by_now() {
    let mut image = sample(42, 7);
    let rows = 10_000;
    let place = image.tables.iter().position(|table| table.name == "epochs").unwrap();
    image.tables[place] = Table::new("epochs", rows, vec![fixture::long("id", 2, 0)]);
    (0..rows as usize).for_each(|row| image.set("epochs", row, "id", row as u64));
    let segment = Segment::open(image.bytes()).unwrap();
    let epochs = segment.rows("epochs").unwrap().unwrap();
    let (mut seen, mut times) = (Vec::new(), 0);
    let mut see = |now: &Rows| {
        let (then, ids) = (epochs.column("id").unwrap(), now.column("id").unwrap());
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
    let (at, bytes) = segment.place("epochs", 7, "id").unwrap();
    assert_eq!((long(&sample_bytes(), usize::try_from(at).unwrap()), bytes), (1 << 24 | 7, 8));
    assert_eq!(segment.place("control", 0, "sample_bytes").unwrap().1, 4);
    assert_eq!(segment.place("epochs", 16, "id"), None);
    assert_eq!(segment.place("epochs", 0, "nothing"), None);
    assert_eq!(segment.place("nothing", 0, "id"), None);
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
    assert!(matches!(error_of(with(0, &[0; 8])), Error::NotReady));
    assert!(matches!(error_of(with(0, b"tslabXX\0")), Error::Foreign));
    assert!(matches!(error_of(b"\x7fELF".to_vec()), Error::Foreign));
    assert!(matches!(error_of(with(8, &2_u32.to_ne_bytes())), Error::Abi(2)));
    assert!(matches!(error_of(with(8, &0_u32.to_ne_bytes())), Error::Abi(0)));
}

#[test]
fn places_outside_of_the_file_are_damage() {
    let many = u32::MAX.to_ne_bytes();
    let far = u64::MAX.to_ne_bytes();
    let (first_table, first_field) = (112, 112 + 9 * 40);
    assert!(is_damaged(with(12, &[0; 4])), "a header without bytes");
    assert!(is_damaged(with(24, &far)), "tables");
    assert!(is_damaged(with(32, &many)), "as many tables");
    assert!(is_damaged(with(36, &[0; 4])), "tables without bytes");
    assert!(is_damaged(with(36, &many)), "such large tables");
    assert!(is_damaged(with(40, &far)), "fields");
    assert!(is_damaged(with(48, &many)), "as many fields");
    assert!(is_damaged(with(first_table + 16, &far)), "rows");
    assert!(is_damaged(with(first_table + 24, &many)), "such large rows");
    assert!(is_damaged(with(first_table + 24, &[0; 4])), "rows without bytes");
    assert!(is_damaged(with(first_table + 32, &many)), "as many rows");
    assert!(is_damaged(with(first_field + 32, &[99, 99])), "a field of no table");
    assert!(is_damaged(with(first_field + 36, &many)), "a field outside of its row");
    assert!(is_damaged(with(first_field + 42, &[255, 255])), "as many values");
    assert!(matches!(error_of(with(16, &far)), Error::CutShort { .. }));
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
    let mut bytes = with(16, &u64::MAX.to_ne_bytes());
    bytes[112 + 28..112 + 36].fill(0xff);
    let segment = Segment::open(Endless(bytes)).unwrap();
    assert!(matches!(segment.rows("process"), Err(Error::Damaged(_))));
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
    let mut bytes = sample_bytes();
    bytes.truncate(bytes.len() - 1);
    let segment = Segment::open(Shrinking(bytes)).unwrap();
    assert!(segment.rows("process").unwrap().is_some());
    assert!(matches!(segment.rows("samples"), Err(Error::CutShort { .. })));
}

#[test]
fn fields_and_descriptions_of_newer_libraries_are_passed_over() {
    let mut image = sample(42, 7);
    image.more_bytes = 24;
    image.table("epochs").fields[2].kind = 9;
    image.table("epochs").fields[3].bytes = 3;
    image.table("process").fields[0].unit = 99;
    let segment = Segment::open(image.bytes()).unwrap();
    assert!(!segment.has("epochs", "label") && !segment.has("epochs", "state"));
    let process = segment.rows("process").unwrap().unwrap();
    assert_eq!(process.fields()[0].unit, Unit::Other);
    assert_eq!(process.column("open_bytes").unwrap().get(0), Some(1 << 20));
}

#[test]
fn labels_may_hold_any_bytes() {
    let mut image = Image::new(42, 7);
    image.text("labels", 2, b"a\xff\xfe\"\n");
    image.text("labels", 3, &[b'x'; 64]);
    let segment = Segment::open(image.bytes()).unwrap();
    let labels = segment.rows("labels").unwrap().unwrap();
    let texts = labels.column("text").unwrap();
    assert_eq!(texts.text(2).as_deref(), Some("a\u{fffd}\u{fffd}\"\n"));
    assert_eq!(texts.text(3), Some("x".repeat(64)));
    assert_eq!(texts.text(usize::MAX), None);
}
