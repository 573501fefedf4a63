//! What a process has mapped: which file an address lies in, and where in it.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::host;

/// What the kernel puts behind the name of a file that has no name any more.
const DELETED: &str = " (deleted)";

/// A mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Its first address.
    pub start: u64,
    /// The address behind it.
    pub end: u64,
    /// Where in the file it begins, in bytes.
    pub offset: u64,
    /// It holds code.
    pub is_executable: bool,
    /// The file as the process sees it, or what the kernel calls it; empty: the process's own
    /// memory.
    pub path: String,
}

impl Mapping {
    /// A line such as `7f00-7f01 r-xp 00001000 08:01 42   /usr/lib/libc.so.6`.
    pub fn of_line(line: &str) -> Option<Self> {
        let mut rest = line;
        let mut next = || {
            let (word, after) = rest.trim_start().split_once(' ').unwrap_or((rest.trim(), ""));
            rest = after;
            word
        };
        let (start, end) = next().split_once('-')?;
        let access = next();
        let offset = next();
        let (_device, _inode) = (next(), next());
        Some(Self {
            start: u64::from_str_radix(start, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
            offset: u64::from_str_radix(offset, 16).ok()?,
            is_executable: access.contains('x'),
            path: rest.trim().to_owned(),
        })
    }

    /// Whether it is of a file.
    pub fn is_file(&self) -> bool {
        self.path.starts_with('/')
    }

    /// The last part of its name, without what the kernel adds.
    pub fn name(&self) -> &str {
        let path = self.path.strip_suffix(DELETED).unwrap_or(&self.path);
        path.rsplit('/').next().unwrap_or(path)
    }

    /// Where in the file an address of it lies.
    pub fn file_offset(&self, address: u64) -> u64 {
        address.wrapping_sub(self.start).wrapping_add(self.offset)
    }
}

/// The mappings of a process.
#[derive(Clone, Debug, Default)]
pub struct Maps {
    /// Its number here.
    pub pid: u32,
    /// As the system tells them.
    pub text: String,
    /// The same, by address.
    mappings: Vec<Mapping>,
    // The program's path.
    main: Option<String>,
    // They are of an earlier moment, and the process may have ended.
    is_copy: bool,
    // The process's own directories.
    root: PathBuf,
    // Files that were changed later are others than those that were mapped. None: not known.
    until: Option<SystemTime>,
}

impl Maps {
    /// None when the system does not tell.
    pub fn of_process(pid: u32) -> Option<Self> {
        let text = host::maps_text(pid)?;
        let main = fs::read_link(format!("/proc/{pid}/exe")).ok();
        let main = main.map(|path| path.to_string_lossy().into_owned());
        Some(Self::of_text(pid, text, main))
    }

    /// Those of a process as they were. Of the files it had mapped, those are read that are there
    /// and are the same.
    pub fn of_copy(text: String, program: Option<String>) -> Self {
        Self { is_copy: true, ..Self::of_text(u32::MAX, text, program) }
    }

    fn of_text(pid: u32, text: String, main: Option<String>) -> Self {
        let mut mappings: Vec<_> = text.lines().filter_map(Mapping::of_line).collect();
        mappings.sort_by_key(|mapping| mapping.start);
        let root = Path::new("/proc").join(pid.to_string()).join("root");
        Self { pid, text, mappings, main, is_copy: false, root, until: None }
    }

    /// Those of a process that ran here and was dumped at a moment.
    pub fn of_dump(mut mappings: Vec<Mapping>, until: Option<SystemTime>) -> Self {
        mappings.sort_by_key(|mapping| mapping.start);
        Self { mappings, root: PathBuf::from("/"), until, ..Self::default() }
    }

    /// The mapping that an address lies in.
    pub fn find(&self, address: u64) -> Option<&Mapping> {
        let behind = self.mappings.partition_point(|mapping| mapping.start <= address);
        let mapping = self.mappings.get(behind.checked_sub(1)?)?;
        (address < mapping.end).then_some(mapping)
    }

    /// The code of the program itself.
    pub fn main(&self) -> Option<&Mapping> {
        self.mappings.iter().find(|mapping| mapping.is_executable && self.is_main(mapping))
    }

    fn is_main(&self, mapping: &Mapping) -> bool {
        mapping.is_file() && self.main.as_deref() == Some(mapping.path.as_str())
    }

    /// The file behind a mapping. One that was replaced on the disk can be had of the kernel alone,
    /// which wants rights for it, unless it is the program. None when it cannot be read.
    pub fn open(&self, mapping: &Mapping) -> Option<File> {
        if self.is_copy {
            return self.open_same(mapping);
        }
        let process = Path::new("/proc").join(self.pid.to_string());
        let range = format!("{:x}-{:x}", mapping.start, mapping.end);
        let of_kernel = open(&process.join("map_files").join(range));
        let of_program = || if self.is_main(mapping) { open(&process.join("exe")) } else { None };
        let is_there = mapping.is_file() && !mapping.path.ends_with(DELETED);
        let by_name = || if is_there { self.open_path(&mapping.path) } else { None };
        let is_same = |file: &File| {
            let changed = file.metadata().ok().and_then(|about| about.modified().ok());
            self.until.is_none() || self.until.zip(changed).is_some_and(|(end, at)| at <= end)
        };
        of_kernel.or_else(of_program).or_else(by_name).filter(is_same)
    }

    /// The debugging information that a distribution keeps apart from its programs, for the process
    /// or for us.
    pub fn open_debug(&self, build_id: &str) -> Option<File> {
        let (first, rest) = build_id.split_at_checked(2).filter(|(_, rest)| !rest.is_empty())?;
        let path = format!("/usr/lib/debug/.build-id/{first}/{rest}.debug");
        self.open_path(&path).or_else(|| open(Path::new(&path)))
    }

    // One that was replaced since has another number.
    fn open_same(&self, mapping: &Mapping) -> Option<File> {
        let file = mapping.is_file().then(|| open(Path::new(&mapping.path)))??;
        let is_its = |line: &&str| line.ends_with(&format!(" {}", mapping.path));
        let line = self.text.lines().find(is_its)?;
        let inode: u64 = line.split_ascii_whitespace().nth(4)?.parse().ok()?;
        (file.metadata().ok()?.ino() == inode).then_some(file)
    }

    // A file by its name in the process's own directories.
    fn open_path(&self, path: &str) -> Option<File> {
        open(&self.root.join(path.trim_start_matches('/')))
    }
}

fn open(path: &Path) -> Option<File> {
    host::open(path, true).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
5000-6000 r--p 00000000 08:01 42   /opt/a server
6000-8000 r-xp 00001000 08:01 42   /opt/a server
9000-a000 rw-p 00000000 00:00 0 
b000-c000 r-xp 00000000 08:01 43   /usr/lib/libx.so.1 (deleted)
d000-e000 r-xp 00000000 00:00 0    [vdso]
nonsense
";

    fn maps() -> Maps {
        Maps::of_text(u32::MAX, TEXT.to_owned(), Some("/opt/a server".to_owned()))
    }

    #[test]
    fn addresses_lie_in_mappings_and_these_in_files() {
        let maps = maps();
        let code = maps.find(0x7fff).unwrap();
        assert_eq!((code.path.as_str(), code.name()), ("/opt/a server", "a server"));
        assert_eq!((code.file_offset(0x7fff), code.is_executable), (0x2fff, true));
        assert_eq!(maps.find(0x8000), None);
        assert_eq!(maps.find(0x4fff), None);
        assert_eq!(maps.find(u64::MAX), None);
        assert!(!maps.find(0x9000).unwrap().is_file());
        assert_eq!(maps.find(0xb000).unwrap().name(), "libx.so.1");
        assert_eq!(maps.find(0xd123).unwrap().name(), "[vdso]");
        assert_eq!(maps.main().map(|main| main.start), Some(0x6000));
    }

    #[test]
    fn files_that_changed_after_a_dump_are_others() {
        let path = std::env::current_exe().unwrap();
        let mapping = Mapping {
            start: 0x1000,
            end: 0x2000,
            offset: 0,
            is_executable: true,
            path: path.to_string_lossy().into_owned(),
        };
        let changed = fs::metadata(&path).unwrap().modified().unwrap();
        let earlier = changed.checked_sub(std::time::Duration::from_secs(1));
        for (until, is_had) in [(None, true), (Some(changed), true), (earlier, false)] {
            let maps = Maps::of_dump(vec![mapping.clone()], until);
            let found = maps.find(0x1800).unwrap();
            assert_eq!(maps.open(found).is_some(), is_had, "{until:?}");
        }
    }

    #[test]
    fn files_that_cannot_be_had_are_none() {
        let maps = maps();
        for address in [0x6000, 0x9000, 0xb000, 0xd000] {
            assert!(maps.open(maps.find(address).unwrap()).is_none());
        }
        for build_id in ["", "a", "ab", "ü", "abcdef"] {
            assert!(maps.open_debug(build_id).is_none(), "{build_id}");
        }
    }

    #[test]
    fn the_own_program_is_found_and_can_be_read() {
        let maps = Maps::of_process(std::process::id()).unwrap();
        let main = maps.main().unwrap();
        assert!(maps.open(main).is_some());
        assert!(maps.find(main.start).is_some_and(Mapping::is_file));
        assert!(Maps::of_process(u32::MAX).is_none());
    }

    #[test]
    fn files_are_had_of_a_copy_as_long_as_they_are_the_same() {
        let own = Maps::of_process(std::process::id()).unwrap();
        let main = own.main().unwrap();
        let copy = |text: String| Maps::of_copy(text, own.main.clone());
        assert!(copy(own.text.clone()).open(main).is_some());
        let replaced = copy(TEXT.replace("/opt/a server", &main.path));
        assert!(replaced.open(replaced.main().unwrap()).is_none());
    }
}
