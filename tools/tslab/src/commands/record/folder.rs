//! The folder that dumps are written to. What is in it never takes more than its bound: the oldest
//! dumps of intervals go first, then those of signals. The newest peak replaces the one before.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::recorded::{Copies, remove};
use crate::text;

/// Why a dump was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Its time had come.
    Interval,
    /// Somebody asked for it.
    Signal,
    /// The process held more than ever before.
    Peak,
    /// The process had ended.
    Exit,
}

impl Why {
    /// What people read.
    pub fn text(self) -> &'static str {
        match self {
            Self::Interval => "interval",
            Self::Signal => "SIGUSR1",
            Self::Peak => "held most",
            Self::Exit => "as it ended",
        }
    }
}

/// One that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dump {
    /// Of its folder.
    pub name: String,
    /// What it was made for.
    pub why: Why,
    /// Since the recording began, in ms.
    pub at_ms: u64,
    /// What it takes on the disk.
    pub bytes: u64,
}

/// All of them, the oldest first.
#[derive(Debug)]
pub struct Folder {
    /// Where it is.
    pub path: PathBuf,
    /// Its bound.
    pub most_bytes: u64,
    /// What is in it.
    pub dumps: Vec<Dump>,
    /// Dumps that went again, or had no room, but for peaks that a newer one replaced.
    pub dropped: u64,
    numbers: [u64; 2],
}

impl Folder {
    /// Makes it, so that only its user can read what will be in it.
    pub fn make(path: &Path, most_bytes: u64) -> Result<Self> {
        let shown = text::printable(&path.to_string_lossy());
        let made = DirBuilder::new().mode(0o700).create(path);
        let is_there =
            made.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists);
        if is_there && !path.read_dir().is_ok_and(|mut files| files.next().is_none()) {
            bail!("{shown} is there and is no empty folder: name another place with -o");
        }
        if !is_there {
            made.with_context(|| format!("cannot make {shown}: name another place with -o"))?;
        }
        let path = path.to_owned();
        Ok(Self { path, most_bytes, dumps: Vec::new(), dropped: 0, numbers: [0; 2] })
    }

    /// What all dumps take.
    pub fn bytes(&self) -> u64 {
        self.dumps.iter().map(|dump| dump.bytes).sum()
    }

    /// Writes a dump if there can be room for it.
    pub fn keep(&mut self, why: Why, at_ms: u64, copies: &Copies) -> io::Result<()> {
        let bytes = copies.bytes();
        if bytes > self.most_bytes || !self.make_room(why, bytes)? {
            self.dropped += 1;
            return Ok(());
        }
        let name = self.name(why);
        copies.write(&self.path.join(&name))?;
        self.dumps.retain(|dump| dump.name != name);
        self.dumps.push(Dump { name, why, at_ms, bytes });
        Ok(())
    }

    /// Takes so much more for a dump, if there is room.
    pub fn extend(&mut self, place: usize, bytes: u64) -> bool {
        let has_room = self.bytes() + bytes <= self.most_bytes;
        if has_room {
            self.dumps[place].bytes += bytes;
        }
        has_room
    }

    fn name(&mut self, why: Why) -> String {
        let (kind, number) = match why {
            Why::Peak => return "peak".to_owned(),
            Why::Exit => return "exit".to_owned(),
            Why::Interval => ("at", &mut self.numbers[0]),
            Why::Signal => ("signal", &mut self.numbers[1]),
        };
        *number += 1;
        format!("{kind}-{number}")
    }

    // The peak goes only for another one, and what the process held as it ended for none.
    fn make_room(&mut self, why: Why, bytes: u64) -> io::Result<bool> {
        while self.bytes() + bytes > self.most_bytes {
            let of = |kind| self.dumps.iter().position(|dump| dump.why == kind);
            let of_peak = || if why == Why::Peak { of(Why::Peak) } else { None };
            let Some(place) = of(Why::Interval).or_else(|| of(Why::Signal)).or_else(of_peak) else {
                return Ok(false);
            };
            let gone = self.dumps.remove(place);
            self.dropped += u64::from(gone.why != Why::Peak);
            remove(&self.path.join(gone.name))?;
        }
        Ok(true)
    }
}

#[cfg(test)]
impl Folder {
    /// One that nothing can be written to.
    pub fn nowhere() -> Self {
        let path = PathBuf::from("/no/such");
        Self { path, most_bytes: 0, dumps: Vec::new(), dropped: 0, numbers: [0; 2] }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;
    use crate::recorded::About;

    struct Place(PathBuf);

    impl Place {
        fn new(test: &str) -> Self {
            let name = format!("tslab-folder-{}-{test}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn names(folder: &Folder) -> Vec<&str> {
        let names: Vec<_> = folder.dumps.iter().map(|dump| dump.name.as_str()).collect();
        let mut there: Vec<_> = fs::read_dir(&folder.path).unwrap().flatten().collect();
        there.retain(|entry| entry.path().is_dir());
        assert_eq!(there.len(), names.len());
        names
    }

    #[test]
    fn the_bound_holds_and_peaks_and_exits_stay() {
        let place = Place::new("bound");
        let source = place.0.with_extension("source");
        fs::write(&source, vec![7; 40_000]).unwrap();
        let file = File::open(&source).unwrap();
        let about = About { pid: u32::MAX, ..About::default() };
        let copies = Copies::take(&file, &about, None).unwrap();
        let each = copies.bytes();
        let mut folder = Folder::make(&place.0, 3 * each).unwrap();
        let mut keep = |why| {
            folder.keep(why, 0, &copies).unwrap();
            assert!(folder.bytes() <= 3 * each);
            names(&folder).join(" ")
        };
        assert_eq!(keep(Why::Peak), "peak");
        assert_eq!(keep(Why::Interval), "peak at-1");
        assert_eq!(keep(Why::Signal), "peak at-1 signal-1");
        assert_eq!(keep(Why::Interval), "peak signal-1 at-2");
        assert_eq!(keep(Why::Peak), "signal-1 peak");
        assert_eq!(keep(Why::Signal), "signal-1 peak signal-2");
        assert_eq!(keep(Why::Exit), "peak signal-2 exit");
        assert_eq!(keep(Why::Interval), "peak exit at-3");
        assert_eq!(folder.dropped, 4);
        let mut small = Folder::make(&place.0.join("small"), each - 1).unwrap();
        small.keep(Why::Peak, 0, &copies).unwrap();
        assert_eq!((small.dumps.len(), small.dropped), (0, 1));
        fs::remove_file(source).unwrap();
    }

    #[test]
    fn only_an_empty_folder_will_do() {
        let place = Place::new("empty");
        assert!(Folder::make(&place.0.join("no/such"), 1).is_err());
        Folder::make(&place.0, 1).unwrap();
        Folder::make(&place.0, 1).unwrap();
        fs::write(place.0.join("x"), "").unwrap();
        let error = Folder::make(&place.0, 1).unwrap_err().to_string();
        assert!(error.contains("no empty folder"), "{error}");
    }
}
