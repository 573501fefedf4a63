//! `why`, on files and mappings as processes leave them.

mod common;
mod place;
#[path = "../src/rows.rs"]
mod rows;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use common::sample;
use place::Directory;

const PID: u32 = 4_200_000_000;
const MIB: u64 = 1 << 20;

// What lives, what is at hand, and no caches: see `sample`.
const KNOWN_BYTES: u64 = 419_520 + 2_432;

// Slabs and large blocks of the default epoch, and what epochs 3 and 7 hold.
const HELD_BYTES: u64 = 131_072 + 200_000 + 262_144 + 49_152;

/// The mappings of a process whose allocator has so much memory resident in blocks.
fn smaps(files: &Directory, blocks_kib: u64, name: &str) -> PathBuf {
    let base = 1 << 44;
    let mappings = [
        (base, MIB, "rw-p", "", 4),
        (base + 16 * MIB, 32 * MIB, "rw-p", name, blocks_kib),
        (base + 80 * MIB, MIB, "rw-p", name, 20),
        (1 << 45, MIB, "r-xp", "/usr/bin/server", 1000),
        ((1 << 45) + MIB, MIB, "rw-p", "", 80),
        (1 << 46, MIB, "rw-s", "/dev/shm/tslab.4200000000.7", 28),
        (1 << 47, MIB, "rw-p", "[stack]", 16),
    ];
    let mut text = String::new();
    for (start, bytes, access, name, rss) in mappings {
        let end = start + bytes;
        writeln!(text, "{start:x}-{end:x} {access} 00000000 00:00 0      {name}").unwrap();
        writeln!(text, "Rss:      {rss} kB\nAnonHugePages:  0 kB\nSwap:    0 kB").unwrap();
    }
    let path = files.path("smaps");
    fs::write(&path, text).unwrap();
    path
}

fn why(files: &Directory, smaps: &Path) -> serde_json::Value {
    files.json(&["why", &PID.to_string(), "--smaps", smaps.to_str().unwrap()])
}

fn bytes(account: &serde_json::Value, kind: &str) -> u64 {
    let mut parts = account["parts"].as_array().unwrap().iter();
    parts.find(|part| part["part"] == kind).unwrap()["bytes"].as_u64().unwrap()
}

#[test]
fn the_parts_add_up_to_what_is_resident() {
    let files = Directory::new();
    files.add(&sample(PID, 7));
    for (blocks_kib, name) in [(420, "[anon:tslab]"), (420, ""), (300, ""), (900, "[anon:tslab]")] {
        let account = why(&files, &smaps(&files, blocks_kib, name));
        assert_eq!(account["resident_bytes"], (blocks_kib + 24 + 28) * 1024);
        assert_eq!(account["rss_bytes"], (blocks_kib + 24 + 28 + 1000 + 80 + 16) * 1024);
        let parts = account["parts"].as_array().unwrap();
        let sum: u64 = parts.iter().map(|part| part["bytes"].as_u64().unwrap()).sum();
        let not_resident = account["not_resident_bytes"].as_u64().unwrap();
        assert_eq!(sum - not_resident, (blocks_kib + 24 + 28) * 1024);
        assert_eq!(not_resident, KNOWN_BYTES.saturating_sub(blocks_kib * 1024));
        assert_eq!(account["held_bytes"], HELD_BYTES);
        let free = (blocks_kib * 1024).saturating_sub(KNOWN_BYTES);
        let in_slabs = free.min(HELD_BYTES - KNOWN_BYTES);
        assert_eq!(bytes(&account, "free_in_slabs"), in_slabs);
        assert_eq!(bytes(&account, "untold"), free - in_slabs);
        assert_eq!(bytes(&account, "residual"), 0);
        assert_eq!((bytes(&account, "records"), bytes(&account, "large")), (24 << 10, 331_072));
    }
}

#[test]
fn people_read_where_the_memory_went() {
    let files = Directory::new();
    files.add(&sample(PID, 7));
    let path = smaps(&files, 500, "");
    let arguments = ["why", &PID.to_string(), "--smaps", path.to_str().unwrap()];
    let output = files.run(&arguments);
    assert_eq!(output.code, Some(0), "{}", output.errors);
    let expected = "\
process 4200000000  RSS 1.6 MiB, of which the allocator has 552.0 KiB
epochs hold 627.3 KiB, resident or not

    BYTES    %  OF THE ALLOCATOR'S MEMORY
 86.4 KiB   16  live objects, and their rounding to size classes
323.3 KiB   59  live blocks of whole units, and their rounding
  2.4 KiB    0  free objects that threads keep at hand
 87.9 KiB   16  free in slabs and cells that hold live objects
 24.0 KiB    4  the allocator's own records
 28.0 KiB    5  statistics file
      0 B    0  residual: resident, and none of the above
552.0 KiB  100  resident

     BYTES  OF THE REST OF RSS
1000.0 KiB  files: the program and its libraries
  80.0 KiB  memory of its own: stacks of threads, and what it maps itself
  16.0 KiB  stack of the first thread

     HELD       LIVE  EPOCHS  LABELS THAT HOLD MOST
323.3 KiB  211.7 KiB       0  \"default\"
256.0 KiB  151.3 KiB       1  \"batch\"
 48.0 KiB   46.8 KiB       1  \"GET /upload\"

     FREE       HELD  SLABS  SIZE CLASSES WITH MOST FREE MEMORY
109.3 KiB  128.0 KiB      2  128 B
 59.0 KiB   64.0 KiB      1  256 B
";
    assert_eq!(output.text, expected);
}

#[test]
fn errors_say_what_to_do() {
    let files = Directory::new();
    files.add(&sample(PID, 7));
    let pid = PID.to_string();
    let ended = files.run(&["why", &pid]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.errors.contains("name it with --smaps"), "{}", ended.errors);
    let path = files.path("nothing").to_string_lossy().into_owned();
    let missing = files.run(&["why", &pid, "--smaps", &path]);
    assert!(missing.errors.contains("a copy of /proc/PID/smaps"), "{}", missing.errors);
    let most = smaps(&files, 30_000, "");
    let residual = files.run(&["why", &pid, "--smaps", most.to_str().unwrap()]);
    assert!(residual.errors.contains("look again when it works"), "{}", residual.errors);
    fs::write(&path, "something else\n").unwrap();
    let other = files.run(&["why", &pid, "--smaps", &path]);
    assert!(other.errors.contains("it lists no mappings"), "{}", other.errors);
    fs::write(&path, "1000-2000 rw-p 0 0 0\nRss: 4 kB\n").unwrap();
    let foreign = files.run(&["why", &pid, "--smaps", &path]);
    assert!(foreign.errors.contains("lies where its allocator's memory"), "{}", foreign.errors);
    assert_eq!(foreign.code, Some(2));
    let mut older = sample(PID - 1, 7);
    older.forget("process", "blocks_at");
    files.add(&older);
    let path = smaps(&files, 500, "").to_string_lossy().into_owned();
    let silent = files.run(&["why", &(PID - 1).to_string(), "--smaps", &path]);
    assert!(silent.errors.contains("came with the library"), "{}", silent.errors);
}
