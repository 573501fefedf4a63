//! The process's own heap profile, read as pprof would.

use std::process::Command;
use std::time::{Duration, Instant};

use tslab::{Epoch, TemporalSlab, pprof, set_option};

#[global_allocator]
static ALLOCATOR: TemporalSlab = TemporalSlab;

const BLOCK_BYTES: usize = 1000;
const ROUND: usize = 2000;
const PATIENCE: Duration = Duration::from_secs(60);

/// A field of a message: its number, and its value or its bytes.
enum Field<'a> {
    Number(u64, u64),
    Bytes(u64, &'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    while let Some((&first, rest)) = bytes.split_first() {
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        shift += 7;
        if first < 0x80 {
            break;
        }
    }
    value
}

fn fields(mut bytes: &[u8]) -> Vec<Field<'_>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = varint(&mut bytes);
        if key.is_multiple_of(8) {
            found.push(Field::Number(key >> 3, value));
        } else {
            let (inside, rest) = bytes.split_at(usize::try_from(value).unwrap());
            found.push(Field::Bytes(key >> 3, inside));
            bytes = rest;
        }
    }
    found
}

/// The messages or texts in a field.
fn each(message: &[u8], wanted: u64) -> Vec<&[u8]> {
    let inside = |field| match field {
        Field::Bytes(number, inside) if number == wanted => Some(inside),
        _ => None,
    };
    fields(message).into_iter().filter_map(inside).collect()
}

fn number(message: &[u8], wanted: u64) -> u64 {
    let found = fields(message).into_iter().find_map(|field| match field {
        Field::Number(number, value) if number == wanted => Some(value),
        _ => None,
    });
    found.unwrap_or_default()
}

fn numbers(message: &[u8], wanted: u64) -> Vec<u64> {
    let packed = each(message, wanted).concat();
    let mut rest = packed.as_slice();
    let mut found = Vec::new();
    while !rest.is_empty() {
        found.push(varint(&mut rest));
    }
    found
}

/// What the blocks of a gzip file hold, which are not compressed.
fn unpacked(file: &[u8]) -> Vec<u8> {
    assert_eq!(file[..4], [0x1f, 0x8b, 8, 0]);
    let (mut at, mut bytes, mut is_last) = (10, Vec::new(), false);
    while !is_last {
        is_last = file[at] == 1;
        let length = usize::from(u16::from_le_bytes([file[at + 1], file[at + 2]]));
        bytes.extend_from_slice(&file[at + 5..at + 5 + length]);
        at += 5 + length;
    }
    assert_eq!(file.len(), at + 8);
    assert_eq!(file[at + 4..], u32::try_from(bytes.len()).unwrap().to_le_bytes());
    bytes
}

/// The values of all samples of an epoch's label, by their types.
fn sum_of(profile: &[u8], label: &str) -> [u64; 4] {
    let texts = each(profile, 6);
    let text = |place| texts[usize::try_from(place).unwrap()];
    let mut sum = [0; 4];
    for sample in each(profile, 2) {
        let labels = each(sample, 3);
        let is_wanted = labels.iter().any(|&each| {
            text(number(each, 1)) == b"epoch" && text(number(each, 2)) == label.as_bytes()
        });
        for (sum, value) in sum.iter_mut().zip(numbers(sample, 2)).filter(|_| is_wanted) {
            *sum += value;
        }
    }
    sum
}

/// Fills an epoch until its samples show in a profile; in the secure build there are none.
fn sampled(request: &Epoch, kept: &mut Vec<Vec<u8>>, label: &str) -> Vec<u8> {
    set_option("sample_bytes", "4K").unwrap();
    set_option("sample_rate", "0").unwrap();
    let begin = Instant::now();
    // Threads notice the option in passing, and the first profile may be asked for too early.
    loop {
        request.enter(|| kept.extend((0..ROUND).map(|_| vec![1_u8; BLOCK_BYTES])));
        let profile = pprof().map(|file| unpacked(&file)).unwrap_or_default();
        if sum_of(&profile, label)[3] > 0 || (cfg!(feature = "secure") && !profile.is_empty()) {
            return profile;
        }
        assert!(begin.elapsed() < PATIENCE, "nothing is sampled");
    }
}

#[test]
fn a_profile_names_the_epochs_of_what_lives() {
    let label = "GET /upload";
    let (request, mut kept) = (Epoch::open(label).unwrap(), Vec::with_capacity(100 * ROUND));
    let before = sum_of(&sampled(&request, &mut kept, label), label);
    let bytes = (10 * ROUND * BLOCK_BYTES) as u64;
    request.enter(|| kept.extend((0..10 * ROUND).map(|_| vec![1_u8; BLOCK_BYTES])));
    let after = sum_of(&unpacked(&pprof().unwrap()), label);
    let grown = [0, 1, 2, 3].map(|at| after[at] - before[at]);
    if cfg!(feature = "secure") {
        assert_eq!(after, [0; 4]);
        return;
    }
    for space in [grown[1], grown[3]] {
        assert!((bytes / 10 * 8..bytes / 10 * 13).contains(&space), "{grown:?} of {bytes} bytes");
    }
    assert!((grown[3] / 1100..grown[3] / 900).contains(&grown[2]), "{grown:?}");
    // What was allocated stays counted.
    kept.clear();
    let end = sum_of(&unpacked(&pprof().unwrap()), label);
    assert!(end[3] < after[3] / 10, "{end:?} after {after:?}");
    assert!(end[1] >= after[1], "{end:?} after {after:?}");
}

#[test]
fn the_program_is_the_first_mapping_and_calls_lie_in_mappings() {
    let (request, mut kept) = (Epoch::open("mapped").unwrap(), Vec::new());
    let profile = sampled(&request, &mut kept, "mapped");
    let (texts, mappings) = (each(&profile, 6), each(&profile, 3));
    let place = usize::try_from(number(mappings[0], 5)).unwrap();
    let program = std::env::current_exe().unwrap();
    assert_eq!(String::from_utf8_lossy(texts[place]), program.to_string_lossy());
    let build_id = texts[usize::try_from(number(mappings[0], 6)).unwrap()];
    let notes = Command::new("readelf").arg("-n").arg(program).output().unwrap().stdout;
    let told = String::from_utf8_lossy(&notes);
    assert!(told.contains(&format!("Build ID: {}\n", String::from_utf8_lossy(build_id))), "{told}");
    assert!(texts[0].is_empty() && texts.contains(&&b"inuse_space"[..]));
    let locations = each(&profile, 4);
    assert_eq!(locations.is_empty(), cfg!(feature = "secure"));
    for location in locations {
        let (mapping, address) = (number(location, 2), number(location, 3));
        let mapping = mappings[usize::try_from(mapping).unwrap().checked_sub(1).unwrap()];
        assert!((number(mapping, 2)..number(mapping, 3)).contains(&address), "{address:#x}");
    }
}
