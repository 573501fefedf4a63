//! What all processes of this machine tell at one moment.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::commands::{Subject, epochs};
use crate::host::{self, Entry, Life};
use crate::rows::process;
use crate::snapshot::{DEFAULT_EPOCH, Snapshot, Totals};

/// Which process: numbers are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks.
    pub start_ticks: u64,
}

/// A process.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Which one.
    pub key: Key,
    /// As the system knows it.
    pub name: String,
    /// Memory that is resident.
    pub rss_bytes: Option<u64>,
    /// What its file says, or why it cannot be read.
    pub told: Result<Told, String>,
}

/// What a file says.
#[derive(Clone, Debug)]
pub struct Told {
    /// Of the library.
    pub version: String,
    /// Figures of the whole process.
    pub totals: Totals,
    /// Free and not given back.
    pub dirty_bytes: Option<u64>,
    /// Epochs of interest, as a tree.
    pub epochs: Vec<epochs::Row>,
    /// Size classes that hold something, those that hold most first.
    pub classes: Vec<ClassRow>,
    /// Objects allocated so far.
    pub allocations: Option<u64>,
}

/// A size class.
#[derive(Clone, Debug)]
pub struct ClassRow {
    /// Size of an object.
    pub bytes: Option<u64>,
    /// Live ones.
    pub objects: Option<u64>,
    /// Its slabs.
    pub held_bytes: Option<u64>,
}

/// Where processes are looked for.
pub struct Host {
    directory: PathBuf,
    // Files whose processes do not run: there may be many, and they stay what they are.
    ended: HashSet<PathBuf>,
}

impl Host {
    /// `directory`: where the statistics files lie.
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), ended: HashSet::new() }
    }

    /// All processes that run and have a file.
    pub fn look(&mut self) -> Result<Vec<Sample>> {
        let mut samples = Vec::new();
        let entries = host::entries(&self.directory)?;
        for entry in entries {
            if self.ended.contains(&entry.path) {
                continue;
            }
            if host::runs(entry.pid, entry.start_ticks) {
                samples.extend(Sample::of(&entry));
            } else {
                self.ended.insert(entry.path);
            }
        }
        Ok(samples)
    }
}

impl Sample {
    // None when the process uses another file by now: it has become another program.
    fn of(entry: &Entry) -> Option<Self> {
        let subject = Subject::of_entry(entry, entry.pid);
        let is_stale = subject.as_ref().is_ok_and(|subject| subject.life == Life::Stale);
        (!is_stale).then(|| Self {
            key: Key { pid: entry.pid, start_ticks: entry.start_ticks },
            name: host::name(entry.pid).unwrap_or_default(),
            rss_bytes: host::rss_bytes(entry.pid),
            told: subject.map(|subject| Told::of(&subject)).map_err(|error| format!("{error:#}")),
        })
    }
}

impl Told {
    /// Of a process whose file was read.
    pub fn of(subject: &Subject) -> Self {
        let snapshot = &subject.snapshot;
        let mut epochs = epochs::Report::of(subject, false).epochs;
        if let Some(place) = epochs.iter().position(|row| row.epoch == DEFAULT_EPOCH) {
            epochs[..=place].rotate_right(1);
        }
        Self {
            version: snapshot.header.version.clone(),
            totals: snapshot.totals(),
            dirty_bytes: snapshot.process_figure(process::DIRTY_BYTES),
            epochs,
            classes: classes(snapshot),
            allocations: snapshot.work.allocations,
        }
    }
}

fn classes(snapshot: &Snapshot) -> Vec<ClassRow> {
    let rows = snapshot.classes.iter().map(|class| ClassRow {
        bytes: class.bytes,
        objects: class.live,
        held_bytes: class.held_bytes(),
    });
    let is_used = |row: &ClassRow| row.held_bytes != Some(0) || row.objects != Some(0);
    let mut rows: Vec<_> = rows.filter(is_used).collect();
    rows.sort_by_key(|row| Reverse(row.held_bytes));
    rows
}

#[cfg(test)]
impl Sample {
    /// Of a process that would run.
    pub fn of_subject(subject: &Subject) -> Self {
        let header = &subject.snapshot.header;
        Self {
            key: Key { pid: header.pid, start_ticks: header.start_ticks },
            name: "server".to_owned(),
            rss_bytes: Some(1 << 20),
            told: Ok(Told::of(subject)),
        }
    }
}
