//! What `record` keeps of a process at one moment: a folder with copies of its statistics file and
//! of what the system says of it. Every command that reads a statistics file reads such a folder.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::SeekFrom as Place;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::helper::Helper;
use crate::host;
use crate::modules::Maps;

const STATISTICS: &str = "statistics";
const MAPS: &str = "maps";
const SMAPS: &str = "smaps";
const ABOUT: &str = "about.json";

/// What a file of a folder takes at least.
const BLOCK_BYTES: u64 = 4096;

/// What the copies do not tell.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct About {
    /// The process, as it is numbered here.
    pub pid: u32,
    /// Its program, as the system names it.
    pub program: Option<String>,
    /// Why the copies were made.
    pub why: String,
    /// Since the recording began, in ms.
    pub at_ms: u64,
    /// What was resident; None: the process had ended.
    pub rss_bytes: Option<u64>,
    /// `CLOCK_MONOTONIC` then, in ms; None: the process had ended.
    pub now_ms: Option<u64>,
    /// None: the process had ended, or the system did not tell.
    pub helper: Option<Helper>,
    /// It is a Python whose small objects lie in arenas of its own.
    pub hides_objects: bool,
}

/// A folder that was written.
#[derive(Clone, Debug)]
pub struct Recorded {
    folder: PathBuf,
}

/// A folder to be.
#[derive(Debug)]
pub struct Copies<'a> {
    file: &'a File,
    extents: Vec<(u64, u64)>,
    file_bytes: u64,
    // By name.
    texts: Vec<(&'static str, Vec<u8>)>,
}

impl Recorded {
    /// None when the path is no folder of `record`.
    pub fn at(path: &Path) -> Option<Self> {
        let folder = path.to_owned();
        path.join(STATISTICS).is_file().then_some(Self { folder })
    }

    /// The copy of the statistics file.
    pub fn statistics(&self) -> PathBuf {
        self.folder.join(STATISTICS)
    }

    /// The copy of /proc/PID/smaps, if the process was still there.
    pub fn smaps(&self) -> Option<PathBuf> {
        let path = self.folder.join(SMAPS);
        path.exists().then_some(path)
    }

    /// What else is known; of a damaged folder nothing.
    pub fn about(&self) -> About {
        let text = fs::read(self.folder.join(ABOUT)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// What the process had mapped.
    pub fn maps(&self) -> Option<Maps> {
        let text = fs::read(self.folder.join(MAPS)).ok()?;
        let text = String::from_utf8_lossy(&text).into_owned();
        Some(Maps::of_copy(text, self.about().program))
    }
}

impl<'a> Copies<'a> {
    /// Takes what the system says now. `maps`: of a process that has ended, as they were.
    pub fn take(file: &'a File, about: &About, maps: Option<&str>) -> io::Result<Self> {
        let mut texts = vec![(ABOUT, serde_json::to_vec_pretty(about)?)];
        texts.extend(maps.map(|maps| (MAPS, maps.as_bytes().to_vec())));
        let smaps = about.rss_bytes.and_then(|_| smaps(about.pid));
        texts.extend(smaps.map(|smaps| (SMAPS, smaps)));
        let file_bytes = file.metadata()?.len();
        Ok(Self { file, extents: extents(file, file_bytes)?, file_bytes, texts })
    }

    /// What the folder takes on a disk.
    pub fn bytes(&self) -> u64 {
        let statistics: u64 = self.extents.iter().map(|(from, to)| on_disk(to - from)).sum();
        let texts: u64 = self.texts.iter().map(|(_, text)| on_disk(text.len() as u64)).sum();
        statistics + texts + BLOCK_BYTES
    }

    /// Writes them to a folder in the place of what was there: whoever sees it sees all of it.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let begun = folder.with_extension("begun");
        remove(&begun)?;
        fs::create_dir(&begun)?;
        let written = self
            .write_files(&begun)
            .and_then(|()| remove(folder))
            .and_then(|()| fs::rename(&begun, folder));
        if written.is_err() {
            remove(&begun)?;
        }
        written
    }

    fn write_files(&self, folder: &Path) -> io::Result<()> {
        for (name, text) in &self.texts {
            create(&folder.join(name))?.write_all(text)?;
        }
        let mut out = create(&folder.join(STATISTICS))?;
        for &(from, to) in &self.extents {
            out.seek(SeekFrom::Start(from))?;
            let mut part = self.file;
            part.seek(SeekFrom::Start(from))?;
            io::copy(&mut part.take(to - from), &mut out)?;
        }
        out.set_len(self.file_bytes)
    }
}

impl Recorded {
    /// Adds a file if `may`, which is told how much it takes on a disk, has nothing against it.
    pub fn add(&self, name: &str, text: &[u8], may: impl FnOnce(u64) -> bool) -> io::Result<()> {
        if may(on_disk(text.len() as u64)) {
            create(&self.folder.join(name))?.write_all(text)?;
        }
        Ok(())
    }
}

/// Deletes a folder, if it is there.
pub fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The mappings of a process that runs, to be kept.
pub fn maps_of(pid: u32) -> Option<String> {
    host::maps_text(pid)
}

/// Its program.
pub fn program_of(pid: u32) -> Option<String> {
    let path = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    Some(path.to_string_lossy().into_owned())
}

fn on_disk(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK_BYTES) * BLOCK_BYTES
}

fn smaps(pid: u32) -> Option<Vec<u8>> {
    fs::read(format!("/proc/{pid}/smaps")).ok().filter(|text| !text.is_empty())
}

// Labels are for the user alone, as the statistics file is.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

// Where in the file there is something: most of it are holes.
fn extents(file: &File, file_bytes: u64) -> io::Result<Vec<(u64, u64)>> {
    let mut extents = Vec::new();
    let mut at = 0;
    while at < file_bytes {
        let from = match rustix::fs::seek(file, Place::Data(at)) {
            Err(Errno::NXIO) => break,
            from => from?,
        };
        let to = rustix::fs::seek(file, Place::Hole(from))?.min(file_bytes);
        if to <= from {
            break;
        }
        extents.push((from, to));
        at = to;
    }
    Ok(extents)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Self {
            let name = format!("tslab-recorded-{}-{test}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn holes_stay_holes_and_the_rest_is_copied() {
        let folder = Folder::new("holes");
        let source = folder.0.join("source");
        let mut file = File::options().create_new(true).read(true).write(true).open(&source);
        let file = file.as_mut().unwrap();
        file.write_all(b"begin").unwrap();
        file.seek(SeekFrom::Start(64 << 20)).unwrap();
        file.write_all(b"end").unwrap();
        file.set_len(128 << 20).unwrap();
        let about = About { pid: u32::MAX, why: "test".into(), ..About::default() };
        let copies = Copies::take(file, &about, Some("5000-6000 r-xp 0 08:01 42   /a\n")).unwrap();
        assert!(copies.bytes() <= 64 << 10, "{}", copies.bytes());
        let path = folder.0.join("peak");
        copies.write(&path).unwrap();
        let recorded = Recorded::at(&path).unwrap();
        assert_eq!(fs::read(recorded.statistics()).unwrap(), fs::read(&source).unwrap());
        assert_eq!((recorded.about().why.as_str(), recorded.smaps()), ("test", None));
        assert!(recorded.maps().unwrap().find(0x5000).is_some());
        assert!(!path.with_extension("begun").exists());
        assert!(Recorded::at(&folder.0).is_none());
    }
}
