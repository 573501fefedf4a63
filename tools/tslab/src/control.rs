//! What a process is asked for: the one field of its statistics file that others write.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use rustix::fs::OFlags;

use crate::segment::Segment;

/// In place of bytes: nothing is to be sampled.
pub const NOTHING: u32 = u32::MAX;

// A process that has just begun to tell of itself makes the field when it comes by next.
const TRIES: u32 = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// A wish, until it is taken back.
#[derive(Debug)]
pub struct Wish {
    file: File,
    at: u64,
    before: u32,
    is_kept: bool,
}

impl Wish {
    /// Asks a process for samples, one in `bytes` on average.
    pub fn make(path: &Path, bytes: u32) -> Result<Self> {
        let file = open(path)?;
        let at = place(&file)?;
        let before = read(&file, at).context("cannot read what the process is asked for")?;
        let wish = Self { file, at, before, is_kept: false };
        wish.write(bytes)?;
        Ok(wish)
    }

    /// The statistics file, also when it has no name any more.
    pub fn file(&self) -> Result<File> {
        Ok(self.file.try_clone()?)
    }

    /// The wish stays.
    pub fn keep(mut self) {
        self.is_kept = true;
    }

    // Four aligned bytes: the process reads the old value or the new one.
    fn write(&self, bytes: u32) -> Result<()> {
        let written = self.file.write_all_at(&bytes.to_ne_bytes(), self.at);
        written.context("cannot write to the process's statistics file")
    }
}

impl Drop for Wish {
    /// What was asked for before is asked for again. The process may have ended.
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = self.write(self.before);
        }
    }
}

// Only this command opens a statistics file to write, and only here. Whether it is one is checked
// before anything is written.
fn open(path: &Path) -> Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(|error| {
            anyhow!(
                "the process cannot be asked for samples, since {} cannot be written ({error}): \
                 run this command as the user of that process, or root",
                path.display()
            )
        })?;
    if !file.metadata()?.is_file() {
        bail!("{} is not a regular file", path.display());
    }
    Ok(file)
}

fn place(file: &File) -> Result<u64> {
    for _ in 0..TRIES {
        let segment = Segment::open(file.try_clone()?)?;
        match segment.place("control", 0, "sample_bytes") {
            Some((at, 4)) => return Ok(at),
            _ if !segment.has("control", "sample_bytes") => break,
            _ => thread::sleep(BETWEEN_TRIES),
        }
    }
    bail!(
        "the process cannot be asked for samples: its library is too old, or it has not allocated \
         for long; with a newer library, try again while it is busy"
    )
}

fn read(file: &File, at: u64) -> Result<u32> {
    let mut bytes = [0; 4];
    file.read_exact_at(&mut bytes, at)?;
    Ok(u32::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::fixture::{Image, sample};

    fn file(name: &str, image: &Image) -> PathBuf {
        let name = format!("tslab-control-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, image.bytes()).unwrap();
        path
    }

    fn asked(path: &Path) -> u32 {
        let file = File::open(path).unwrap();
        read(&file, place(&file).unwrap()).unwrap()
    }

    #[test]
    fn a_wish_is_taken_back_unless_it_is_kept() {
        let mut image = sample(42, 7);
        image.set("control", 0, "sample_bytes", NOTHING.into());
        let path = file("wish", &image);
        let whole = fs::read(&path).unwrap();
        let wish = Wish::make(&path, 65_536).unwrap();
        assert_eq!(asked(&path), 65_536);
        assert!(wish.file().is_ok());
        drop(wish);
        assert_eq!(fs::read(&path).unwrap(), whole);
        Wish::make(&path, 4096).unwrap().keep();
        assert_eq!(asked(&path), 4096);
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn nothing_is_written_where_there_is_no_such_field() {
        let mut older = sample(42, 7);
        older.tables.retain(|table| table.name != "control");
        let path = file("older", &older);
        let error = Wish::make(&path, 4096).unwrap_err();
        assert!(error.to_string().contains("too old"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), older.bytes());
        fs::write(&path, "something else").unwrap();
        assert!(Wish::make(&path, 4096).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"something else");
        fs::remove_file(path).unwrap();
        assert!(Wish::make(Path::new("/nothing"), 4096).is_err());
        assert!(Wish::make(Path::new("/dev/null"), 4096).is_err());
    }
}
