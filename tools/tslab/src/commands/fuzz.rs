//! Damaged files: whatever is in them, every command gives an answer or an error.

use std::env;

use super::serve::tests::checked_scrape;
use super::{Subject, epochs, leaks, profile, stats};
use super::{diff, doctor, top, watch, why};
use crate::fixture::{Random, add_samples, sample};
use crate::segment::Segment;
use crate::snapshot::Snapshot;
use crate::text;

/// `FUZZ_FILES` says otherwise.
const FILES: usize = 20_000;

fn read(bytes: Vec<u8>, with_json: bool) -> bool {
    let snapshot = Segment::open(bytes).and_then(|segment| Snapshot::read(&segment));
    let Ok(snapshot) = snapshot else { return false };
    let subject = Subject::of_snapshot(snapshot);
    let limits = leaks::Limits { after_ms: 0, open_after_ms: Some(0) };
    let stats = stats::Report::of(&subject);
    let epochs = epochs::Report::of(&subject, true);
    let mut shown = stats.text() + &epochs.text();
    if let Ok(leaks) = leaks::Report::of(&subject, limits) {
        shown += &leaks.text();
    }
    if with_json {
        shown += &text::json(&stats).unwrap();
        shown += &text::json(&epochs).unwrap();
        shown += &read_closely(&subject);
        shown += &profile::every_format(&subject);
    }
    assert!(!shown.chars().any(|char| char.is_control() && char != '\n'), "{shown:?}");
    if with_json {
        checked_scrape(subject);
    }
    true
}

fn read_closely(subject: &Subject) -> String {
    let whole = Subject::of_bytes(sample(42, 7).bytes());
    [
        doctor::between(&whole, subject),
        doctor::between(subject, &whole),
        why::of_any_memory(subject),
        watch::between(&whole, subject),
        watch::between(subject, &whole),
        diff::between(&whole, subject),
        diff::between(subject, &whole),
        top::frame_of(subject),
    ]
    .concat()
}

// Values at which places, counts and sums break.
fn value(random: &mut Random) -> [u8; 8] {
    let exponent = random.below(64);
    let near = (1_u64 << exponent).wrapping_add(random.below(3) as u64).wrapping_sub(1);
    [0, u64::MAX, near, near.wrapping_neg()][random.below(4)].to_ne_bytes()
}

fn damage(bytes: &mut [u8], random: &mut Random) {
    // Half of it where the file describes itself.
    let end = [1024, bytes.len()][random.below(2)];
    let at = random.below(end - 8);
    match random.below(3) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at & !3..][..4].copy_from_slice(&value(random)[..4]),
        _ => bytes[at & !7..][..8].copy_from_slice(&value(random)),
    }
}

#[test]
fn damaged_files_harm_nobody() {
    let mut image = sample(42, 7);
    add_samples(&mut image);
    let whole = image.bytes();
    let mut random = Random(1);
    let mut readable = 0;
    let files = env::var("FUZZ_FILES").map_or(FILES, |text| text.parse().expect("a number"));
    for number in 0..files {
        let mut bytes = whole.clone();
        for _ in 0..=random.below(4) {
            damage(&mut bytes, &mut random);
        }
        if random.below(16) == 0 {
            bytes.truncate(random.below(whole.len()));
        }
        readable += usize::from(read(bytes, number % 8 == 0));
    }
    // The test reaches the figures, and the checks before them.
    assert!((files / 10..files * 9 / 10).contains(&readable), "{readable} of {files}");
}
