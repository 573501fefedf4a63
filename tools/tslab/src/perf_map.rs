//! Functions that a process compiled itself: /tmp/perf-PID.map, as runtimes write it for `perf`.
//!
//! A line has a start, a length (both hexadecimal) and a name. A runtime uses memory again: of the
//! lines that hold an address the last one counts. The file lies where anyone may write, so it must
//! be of the process's user or of root, and must have changed since the process began.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::host;
use crate::symbols::{Line, short_name};

// What lies further behind is not read.
const MOST_BYTES: u64 = 256 << 20;
// Clocks of files and of processes differ by as much.
const CLOCK_ERROR: Duration = Duration::from_secs(1);

/// What the map of a process says of some addresses, in their order; None where it says nothing.
/// The addresses are sorted. Nothing at all when there is no map that can be trusted.
pub fn lines(pid: u32, addresses: &[u64]) -> Option<Vec<Option<Line>>> {
    let file = host::open(&path(pid)?, false).ok()?;
    is_of_process(&file, pid).then(|| named(file, addresses))
}

// In the process's own directories, under the number that it has itself.
fn path(pid: u32) -> Option<PathBuf> {
    let name = format!("perf-{}.map", host::pid_there(pid)?);
    Some(Path::new("/proc").join(pid.to_string()).join("root/tmp").join(name))
}

fn is_of_process(file: &File, pid: u32) -> bool {
    let process = fs::metadata(Path::new("/proc").join(pid.to_string()));
    let (Ok(file), Ok(process)) = (file.metadata(), process) else { return false };
    let is_own = [0, process.uid()].contains(&file.uid());
    let age = host::age_ms(pid).map(|age_ms| Duration::from_millis(age_ms) + CLOCK_ERROR);
    let began = age.and_then(|age| SystemTime::now().checked_sub(age));
    is_own && began.zip(file.modified().ok()).is_some_and(|(began, changed)| changed >= began)
}

fn named(map: impl Read, addresses: &[u64]) -> Vec<Option<Line>> {
    let mut found = vec![None; addresses.len()];
    let mut map = BufReader::new(map.take(MOST_BYTES));
    let mut text = Vec::new();
    while map.read_until(b'\n', &mut text).is_ok_and(|length| length != 0) {
        if let Some((start, end, name)) = entry(&text) {
            let from = addresses.partition_point(|&address| address < start);
            let count = addresses[from..].partition_point(|&address| address < end);
            let line = (count != 0).then(|| line(&String::from_utf8_lossy(name)));
            found[from..from + count].fill(line);
        }
        text.clear();
    }
    found
}

// From which address on, up to which, and its name.
fn entry(text: &[u8]) -> Option<(u64, u64, &[u8])> {
    let mut words = text.trim_ascii().splitn(3, |&byte| byte == b' ');
    let mut number = || u64::from_str_radix(str::from_utf8(words.next()?).ok()?, 16).ok();
    let (start, bytes) = (number()?, number()?);
    Some((start, start.checked_add(bytes)?, words.next()?))
}

// Of CPython `py::FUNCTION:FILE`, of V8 `KIND:TIERFUNCTION FILE:LINE:COLUMN`; others only name it.
fn line(name: &str) -> Line {
    let of_interpreter = || of_python(name).or_else(|| of_v8(name));
    let (function, file, number) = of_interpreter().unwrap_or((name, None, None));
    let function = if function.is_empty() { "(anonymous)" } else { function };
    Line { function: short_name(function), file: file.map(short_name), number }
}

type Parts<'a> = (&'a str, Option<&'a str>, Option<u32>);

fn of_python(name: &str) -> Option<Parts<'_>> {
    let (function, file) = name.strip_prefix("py::")?.split_once(':')?;
    Some((function, Some(file), None))
}

fn of_v8(name: &str) -> Option<Parts<'_>> {
    let (kind, rest) = name.split_once(':')?;
    let is_script = ["JS", "Eval", "Script", "Function", "LazyCompile"].contains(&kind);
    let rest = is_script.then_some(rest)?.trim_start_matches(['~', '^', '+', '*']);
    let Some((function, place)) = rest.split_once(' ') else { return Some((rest, None, None)) };
    let mut parts = place.rsplitn(3, ':');
    let (_column, number) = (parts.next(), parts.next().and_then(|number| number.parse().ok()));
    Some((function, Some(parts.next().unwrap_or(place)), number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(map: &str, address: u64) -> Option<String> {
        Some(named(map.as_bytes(), &[address]).remove(0)?.function)
    }

    #[test]
    fn addresses_lie_in_functions_and_the_last_one_counts() {
        let map = "1000 100 old\n2000 10 other one\n1080 80 new\n";
        for (address, name) in [
            (0x0fff, None),
            (0x1000, Some("old")),
            (0x107f, Some("old")),
            (0x1080, Some("new")),
            (0x10ff, Some("new")),
            (0x1100, None),
            (0x200f, Some("other one")),
            (0x2010, None),
        ] {
            assert_eq!(function(map, address).as_deref(), name, "{address:#x}");
        }
        let all = named(map.as_bytes(), &[0x1000, 0x1090, 0x2000, 0x3000]);
        let is_known: Vec<_> = all.iter().map(Option::is_some).collect();
        assert_eq!(is_known, [true, true, true, false]);
    }

    #[test]
    fn what_is_no_entry_is_passed_over() {
        let map =
            "\nx 10 a\n1000\n1000 10\n1000 y a\nffffffffffffffff 2 a\n1000 10 right\n\u{fffd}";
        assert_eq!(function(map, 0x1001).as_deref(), Some("right"));
        assert_eq!(function("1000 0 a\n", 0x1000), None);
        assert_eq!(function("1000 10 at the end", 0x1000).as_deref(), Some("at the end"));
        assert_eq!(named(&b"1000 10 \xff\xff\n"[..], &[0x1000])[0].as_ref().map(|_| ()), Some(()));
        let long = format!("1000 10 {}\n", "n".repeat(1 << 20));
        assert!(function(&long, 0x1000).is_some_and(|name| name.len() < 2000));
    }

    #[test]
    fn names_of_interpreters_have_sources() {
        let of = |name: &str| {
            let line = line(name);
            (line.function, line.file.unwrap_or_default(), line.number)
        };
        let expected = |function: &str, file: &str, number| (function.into(), file.into(), number);
        assert_eq!(of("py::serve:/a/b.py"), expected("serve", "/a/b.py", None));
        assert_eq!(of("py::<module>:/a b.py"), expected("<module>", "/a b.py", None));
        assert_eq!(of("JS:*handle /a b.js:3:23"), expected("handle", "/a b.js", Some(3)));
        assert_eq!(of("JS:^ file:///a.js:7:35"), expected("(anonymous)", "file:///a.js", Some(7)));
        assert_eq!(of("LazyCompile:~x a.js"), expected("x", "a.js", None));
        assert_eq!(of("Builtin:Call"), expected("Builtin:Call", "", None));
        assert_eq!(of("void A::b(int)"), expected("void A::b(int)", "", None));
    }

    // A map of the own process in a directory of its own.
    fn written(name: &str) -> PathBuf {
        let name = format!("tslab-perf-map-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, "1000 10 a\n").unwrap();
        path
    }

    #[test]
    fn only_what_changed_since_the_process_began_counts() {
        let pid = std::process::id();
        let path = written("age");
        let file = File::options().write(true).open(&path).unwrap();
        assert!(is_of_process(&file, pid));
        assert!(!is_of_process(&file, u32::MAX));
        let before = SystemTime::now() - Duration::from_secs(7 * 24 * 3600);
        file.set_modified(before).unwrap();
        assert!(!is_of_process(&file, pid));
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn another_users_map_does_not_count() {
        let pid = std::process::id();
        let path = written("owner");
        let file = File::open(&path).unwrap();
        let other = std::os::unix::fs::chown(&path, Some(4242), None);
        // Who may not give files away owns them all.
        assert_eq!(is_of_process(&file, pid), other.is_err());
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn without_a_map_nothing_is_known() {
        assert_eq!(lines(std::process::id(), &[0x1000]), None);
        assert_eq!(lines(u32::MAX, &[0x1000]), None);
    }
}
