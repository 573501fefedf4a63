//! What a process is asked for: the fields of its statistics file that others write.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use rustix::fs::OFlags;

use crate::rows::{Field, control, process};
use crate::segment::Segment;

// A process that has just begun to tell of itself makes the field when it comes by next.
const TRIES: u32 = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

// A field of the table `control`.
#[derive(Debug)]
struct Asked {
    file: File,
    at: u64,
}

impl Asked {
    fn open(path: &Path, field: Field) -> Result<Self> {
        let file = open(path)?;
        let at = place(&file, field, 4)?;
        Ok(Self { file, at })
    }

    fn read(&self) -> Result<u32> {
        read(&self.file, self.at).context("cannot read what the process is asked for")
    }

    // Four aligned bytes: the process reads the old value or the new one.
    fn write(&self, value: u32) -> Result<()> {
        let written = self.file.write_all_at(&value.to_ne_bytes(), self.at);
        written.context("cannot write to the process's statistics file")
    }

    // Makes the next request, and returns its number; 0 is none. Of requests that two make at the
    // same time, one is made.
    fn ask_next(&self) -> Result<u32> {
        let number = self.read()?.wrapping_add(1).max(1);
        self.write(number)?;
        Ok(number)
    }
}

/// A wish, until it is taken back.
#[derive(Debug)]
pub struct Wish {
    asked: Asked,
    before: u32,
    is_kept: bool,
}

impl Wish {
    /// Asks a process for samples, one in `bytes` on average.
    pub fn make(path: &Path, bytes: u32) -> Result<Self> {
        let asked = Asked::open(path, control::SAMPLE_BYTES)?;
        let before = asked.read()?;
        asked.write(bytes)?;
        Ok(Self { asked, before, is_kept: false })
    }

    /// The statistics file, also when it has no name any more.
    pub fn file(&self) -> Result<File> {
        Ok(self.asked.file.try_clone()?)
    }

    /// The wish stays.
    pub fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Wish {
    /// What was asked for before is asked for again. The process may have ended.
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = self.asked.write(self.before);
        }
    }
}

/// A request to give idle memory back, which the process follows once.
#[derive(Debug)]
pub struct Request {
    asked: Asked,
    // Where the process says which one it followed last.
    followed_at: u64,
    number: u32,
}

impl Request {
    /// Asks a process.
    pub fn make(path: &Path) -> Result<Self> {
        let asked = Asked::open(path, control::PURGE_REQUEST)?;
        let followed_at = place(&asked.file, process::PURGE_REQUEST, 8)?;
        let number = asked.ask_next()?;
        Ok(Self { asked, followed_at, number })
    }

    /// Whether the process has given memory back.
    pub fn is_followed(&self) -> Result<bool> {
        let mut bytes = [0; 8];
        self.asked.file.read_exact_at(&mut bytes, self.followed_at)?;
        Ok(u64::from_ne_bytes(bytes) == u64::from(self.number))
    }

    /// The statistics file, also when it has no name any more.
    pub fn file(&self) -> Result<File> {
        Ok(self.asked.file.try_clone()?)
    }
}

/// Asks a process to sample what it watches faster for a minute (`tell/watch.h`).
pub fn hurry(path: &Path) -> Result<()> {
    Asked::open(path, control::WATCH_REQUEST)?.ask_next().map(drop)
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
                "the process cannot be asked, since {} cannot be written ({error}): \
                 run this command as the user of that process, or root",
                path.display()
            )
        })?;
    if !file.metadata()?.is_file() {
        bail!("{} is not a regular file", path.display());
    }
    Ok(file)
}

// `bytes`: of a value.
fn place(file: &File, field: Field, bytes: usize) -> Result<u64> {
    for _ in 0..TRIES {
        let segment = Segment::open(file.try_clone()?)?;
        match segment.place(field, 0) {
            Some((at, wide)) if wide == bytes => return Ok(at),
            _ if !segment.has(field) => break,
            _ => thread::sleep(BETWEEN_TRIES),
        }
    }
    bail!(
        "the process cannot be asked for this: its library is too old, or it has not allocated \
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
    use crate::rows::NO_SAMPLES;

    fn file(name: &str, image: &Image) -> PathBuf {
        let name = format!("tslab-control-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, image.bytes()).unwrap();
        path
    }

    fn asked(path: &Path) -> u32 {
        let file = File::open(path).unwrap();
        read(&file, place(&file, control::SAMPLE_BYTES, 4).unwrap()).unwrap()
    }

    #[test]
    fn a_wish_is_taken_back_unless_it_is_kept() {
        let mut image = sample(42, 7);
        image.set("control", 0, "sample_bytes", NO_SAMPLES.into());
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
    fn a_request_has_the_next_number_and_is_over_when_the_process_says_so() {
        let mut image = sample(42, 7);
        image.set("control", 0, "purge_request", u32::MAX.into());
        image.set("process", 0, "purge_request", u32::MAX.into());
        let path = file("request", &image);
        let asked = |number: u32| {
            let request = Request::make(&path).unwrap();
            assert_eq!(request.number, number);
            assert!(!request.is_followed().unwrap() && request.file().is_ok());
            request
        };
        let request = asked(1);
        request.asked.file.write_all_at(&1u64.to_ne_bytes(), request.followed_at).unwrap();
        assert!(request.is_followed().unwrap());
        asked(2);
        let written = fs::read(&path).unwrap();
        let differ = image.bytes().iter().zip(&written).filter(|(one, other)| one != other).count();
        assert!(differ <= 4 + 8, "{differ}");
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn each_request_to_hurry_has_the_next_number() {
        let mut image = sample(42, 7);
        image.set("control", 0, "watch_request", u32::MAX.into());
        let path = file("hurry", &image);
        let number = || {
            let file = File::open(&path).unwrap();
            read(&file, place(&file, control::WATCH_REQUEST, 4).unwrap()).unwrap()
        };
        for wanted in 1..=2 {
            hurry(&path).unwrap();
            assert_eq!(number(), wanted);
        }
        image.set("control", 0, "watch_request", 2);
        assert_eq!(fs::read(&path).unwrap(), image.bytes());
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn nothing_is_written_where_there_is_no_such_field() {
        let mut older = sample(42, 7);
        older.tables.retain(|table| table.name != "control");
        let path = file("older", &older);
        let error = Wish::make(&path, 4096).unwrap_err();
        assert!(error.to_string().contains("too old"), "{error}");
        assert!(Request::make(&path).unwrap_err().to_string().contains("too old"));
        assert!(hurry(&path).unwrap_err().to_string().contains("too old"));
        assert_eq!(fs::read(&path).unwrap(), older.bytes());
        fs::write(&path, "something else").unwrap();
        assert!(Wish::make(&path, 4096).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"something else");
        fs::remove_file(path).unwrap();
        assert!(Wish::make(Path::new("/nothing"), 4096).is_err());
        assert!(Wish::make(Path::new("/dev/null"), 4096).is_err());
    }
}
