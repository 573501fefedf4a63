//! This machine: the statistics files that lie here, and the processes that they are of.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::fs::OFlags;
use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// Where the library puts its files.
pub const DIRECTORY: &str = "/dev/shm";

/// A statistics file, by its name `tslab.PID.START`.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where it lies.
    pub path: PathBuf,
    /// Whose it is.
    pub pid: u32,
    /// When the process started: field 22 of /proc/PID/stat.
    pub start_ticks: u64,
}

/// Whether a file still changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Life {
    /// Its process runs.
    Alive,
    /// Its process runs, and does not use it: the file is a copy, or of a program that the process
    /// ran before it called exec.
    Stale,
    /// Its process has ended.
    Dead,
}

impl Life {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Stale => "stale",
            Self::Dead => "dead",
        }
    }
}

/// `CLOCK_MONOTONIC`, in ms.
pub fn now_ms() -> u64 {
    clock_ms(ClockId::Monotonic)
}

fn clock_ms(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    let (seconds, nanoseconds) = (now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs());
    seconds * 1000 + nanoseconds / 1_000_000
}

/// The statistics files of a directory, by process.
pub fn entries(directory: &Path) -> Result<Vec<Entry>> {
    let listed = fs::read_dir(directory).with_context(|| {
        format!("cannot list {}: name the files' place with --directory", directory.display())
    })?;
    let mut entries: Vec<_> = listed.filter_map(|entry| entry_of(&entry.ok()?.path())).collect();
    entries.sort_by_key(|entry| (entry.pid, entry.start_ticks));
    Ok(entries)
}

fn entry_of(path: &Path) -> Option<Entry> {
    let (pid, start) = path.file_name()?.to_str()?.strip_prefix("tslab.")?.split_once('.')?;
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(pid) && is_number(start)).then_some(())?;
    let (pid, start_ticks) = (pid.parse().ok()?, start.parse().ok()?);
    Some(Entry { path: path.to_owned(), pid, start_ticks })
}

/// The file of the process that its number and its start name, such as "42.777", whether or not it
/// is there.
pub fn entry_named(directory: &Path, name: &str) -> Option<Entry> {
    let is_name = name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_name.then(|| entry_of(&directory.join(format!("tslab.{name}"))))?
}

/// The file of a process in a container, which has a directory and a number of its own there.
pub fn entry_in_container(pid: u32) -> Option<Entry> {
    let pid_there = pid_there(pid)?;
    let start_ticks = stat(pid)?.start_ticks;
    let name = format!("tslab.{pid_there}.{start_ticks}");
    let path = Path::new("/proc").join(pid.to_string()).join("root/dev/shm").join(name);
    path.exists().then_some(Entry { path, pid: pid_there, start_ticks })
}

/// The number that a process has itself.
pub fn pid_there(pid: u32) -> Option<u32> {
    let status = fs::read(format!("/proc/{pid}/status")).ok()?;
    let numbers = status_value(&String::from_utf8_lossy(&status), "NSpid:")?;
    numbers.split_ascii_whitespace().last()?.parse().ok()
}

/// All processes that this one sees, by their numbers here.
pub fn processes() -> impl Iterator<Item = u32> {
    let found = fs::read_dir("/proc").into_iter().flatten().flatten();
    found.filter_map(|process| process.file_name().to_str()?.parse().ok())
}

fn status_value(status: &str, name: &str) -> Option<String> {
    Some(status.lines().find_map(|line| line.strip_prefix(name))?.trim().to_owned())
}

/// Opens a file to read it. What lies in a directory that anyone may write to can be anything:
/// links are not followed there, and nothing is waited for.
pub fn open(path: &Path, follow_links: bool) -> Result<File> {
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    flags.set(OFlags::NOFOLLOW, !follow_links);
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(|error| anyhow::anyhow!("{}", refused(&error)))?;
    if !file.metadata()?.is_file() {
        bail!("it is not a regular file: name a process, or its statistics file");
    }
    Ok(file)
}

/// Whether it is a file that this user may not read.
pub fn is_closed(path: &Path) -> bool {
    let access = rustix::fs::access(path, rustix::fs::Access::READ_OK);
    matches!(access, Err(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM))
}

fn refused(error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::PermissionDenied => "run this command as the user of that process, or root",
        io::ErrorKind::NotFound => "`tslab ps` lists the processes that have one",
        _ => "check that it is a statistics file",
    };
    format!("it cannot be opened ({error}): {advice}")
}

// What /proc/PID/stat says.
struct Stat {
    state: char,
    threads: u64,
    start_ticks: u64,
}

// The fields are counted from the process's name, which is the second and ends with the last ')'.
fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let name_end = text.iter().rposition(|&byte| byte == b')')?;
    let fields = str::from_utf8(&text[name_end + 1..]).ok()?;
    let fields: Vec<_> = fields.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    Some(Stat {
        state: field(3)?.chars().next()?,
        threads: field(20)?.parse().ok()?,
        start_ticks: field(22)?.parse().ok()?,
    })
}

impl Stat {
    // One whose first thread has ended looks like a zombie, but for its other threads.
    fn has_ended(&self) -> bool {
        match self.state {
            'Z' => self.threads <= 1,
            'X' | 'x' => true,
            _ => false,
        }
    }
}

/// Whether a process runs.
pub fn runs(pid: u32, start_ticks: u64) -> bool {
    stat(pid).is_some_and(|stat| stat.start_ticks == start_ticks && !stat.has_ended())
}

/// When the process that has this number now began, in the unit of its file's name.
pub fn start_ticks(pid: u32) -> Option<u64> {
    Some(stat(pid)?.start_ticks)
}

/// Whether a process is there only for its parent to ask how it ended.
pub fn has_ended(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| stat.has_ended())
}

/// How long ago a process began.
pub fn age_ms(pid: u32) -> Option<u64> {
    let began_ms = stat(pid)?.start_ticks.checked_mul(1000)? / clock_ticks_per_second();
    clock_ms(ClockId::Boottime).checked_sub(began_ms)
}

/// Whether a process still writes to this file.
pub fn life(pid: u32, start_ticks: u64, path: &Path) -> Life {
    if !runs(pid, start_ticks) {
        Life::Dead
    } else if maps(pid, path).unwrap_or(true) {
        Life::Alive
    } else {
        Life::Stale
    }
}

/// A process's name, as the system knows it.
pub fn name(pid: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned())
}

/// Memory of a process that is resident, in bytes.
pub fn rss_bytes(pid: u32) -> Option<u64> {
    status_bytes(pid, "VmRSS:")
}

/// Of it, memory that is no file's.
pub fn anonymous_bytes(pid: u32) -> Option<u64> {
    status_bytes(pid, "RssAnon:")
}

/// Its threads, the first one included.
pub fn threads(pid: u32) -> Option<u64> {
    status_of(pid, "Threads:")?.trim().parse().ok()
}

fn status_bytes(pid: u32, name: &str) -> Option<u64> {
    let value = status_of(pid, name)?;
    let kibibytes: u64 = value.strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

fn status_of(pid: u32, name: &str) -> Option<String> {
    let status = fs::read(format!("/proc/{pid}/status")).ok()?;
    status_value(&String::from_utf8_lossy(&status), name)
}

/// What tells a file from others, also in /proc/PID/maps of a process that sees it elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Identity {
    inode: u64,
    name: String,
}

impl Identity {
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_owned();
        Some(Self { inode: fs::metadata(path).ok()?.ino(), name })
    }

    // A line such as `7f00-7f01 rw-s 00000000 00:18 42   /dev/shm/tslab.1.2`.
    fn in_line(line: &str) -> Option<Self> {
        let inode = line.split_ascii_whitespace().nth(4)?.parse().ok()?;
        let name = line.rsplit_once('/')?.1.to_owned();
        Some(Self { inode, name })
    }
}

/// The maps of a process; of one whose first thread has ended, those of another thread. None when
/// the system does not tell.
pub fn maps_text(pid: u32) -> Option<String> {
    let read = |path: PathBuf| fs::read(path).ok().filter(|text| !text.is_empty());
    let of_thread = || {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
        threads.flatten().find_map(|thread| read(thread.path().join("maps")))
    };
    let text = read(format!("/proc/{pid}/maps").into()).or_else(of_thread)?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

fn maps(pid: u32, path: &Path) -> Option<bool> {
    let identity = Identity::of(path)?;
    Some(maps_text(pid)?.lines().any(|line| Identity::in_line(line).as_ref() == Some(&identity)))
}

/// The statistics files that some process uses, whatever the number of that process is here.
pub struct InUse(HashSet<Identity>);

impl InUse {
    /// Looks through all processes that this one may look at.
    pub fn now() -> Self {
        let mut files = HashSet::new();
        for pid in processes() {
            let text = maps_text(pid).unwrap_or_default();
            let lines = text.lines().filter(|line| line.contains("/tslab."));
            files.extend(lines.filter_map(Identity::in_line));
        }
        Self(files)
    }

    /// Whether a process uses this file.
    pub fn has(&self, path: &Path) -> bool {
        Identity::of(path).is_some_and(|identity| self.0.contains(&identity))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_start() -> u64 {
        stat(std::process::id()).unwrap().start_ticks
    }

    #[test]
    fn names_of_files_are_understood_and_others_passed_over() {
        let entry = entry_of(Path::new("/x/tslab.42.7")).unwrap();
        assert_eq!((entry.pid, entry.start_ticks), (42, 7));
        for name in [
            "tslab.42",
            "tslab.42.",
            "tslab..7",
            "tslab.+1.7",
            "tslab.1.7.8",
            "tslab.1.-7",
            "x.1.7",
        ] {
            assert!(entry_of(Path::new(name)).is_none(), "{name}");
        }
        assert!(entry_of(Path::new("tslab.99999999999.7")).is_none());
    }

    #[test]
    fn the_own_process_runs_and_another_of_its_number_does_not() {
        let pid = std::process::id();
        assert!(runs(pid, own_start()));
        assert!(!runs(pid, own_start() + 1));
        assert!(!runs(u32::MAX, 1));
    }

    #[test]
    fn a_file_that_the_process_does_not_map_is_stale() {
        let path = std::env::current_exe().unwrap();
        assert_eq!(life(std::process::id(), own_start(), &path), Life::Alive);
        assert_eq!(life(std::process::id(), own_start(), Path::new("Cargo.toml")), Life::Stale);
    }

    #[test]
    fn lines_of_maps_are_understood() {
        let line = "7f00-7f01 rw-s 00000000 00:18 42   /dev/shm/tslab.1.2";
        let identity = Identity::in_line(line).unwrap();
        assert_eq!((identity.inode, identity.name.as_str()), (42, "tslab.1.2"));
        assert!(Identity::in_line("7f00-7f01 rw-p 00000000 00:00 0 ").is_none());
        assert!(Identity::in_line("").is_none());
    }

    #[test]
    fn values_of_a_status_are_found_by_name() {
        let status = "Name:\tx\nNSpid:\t4242\t7\nVmRSS:\t  12 kB\n";
        assert_eq!(status_value(status, "NSpid:").as_deref(), Some("4242\t7"));
        assert_eq!(status_value(status, "VmRSS:").as_deref(), Some("12 kB"));
        assert_eq!(status_value(status, "Threads:"), None);
    }

    #[test]
    fn the_own_process_has_a_name_and_memory() {
        let pid = std::process::id();
        assert!(name(pid).is_some_and(|name| !name.is_empty()));
        assert!(rss_bytes(pid).is_some_and(|bytes| bytes > 4096));
        assert!(now_ms() > 0);
        assert!(age_ms(pid).is_some_and(|age_ms| age_ms < 3_600_000));
        assert!(!has_ended(pid));
    }
}
