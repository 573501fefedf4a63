//! What the user asks for, one file a command.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::absence::Facts;
use crate::host::{self, Entry, Life};
use crate::python;
use crate::recorded::Recorded;
use crate::sampling::{Reach, Sampling};
use crate::segment::Segment;
use crate::snapshot::Snapshot;
use crate::text;

mod account;
pub mod advise;
pub mod callers;
pub mod completions;
pub mod core_dump;
mod counted;
mod default_epoch;
pub mod diff;
pub mod doctor;
mod dump_sites;
pub mod epochs;
pub mod gc;
mod growth;
mod ignored;
mod kept;
pub mod leaks;
mod looks;
pub mod manual;
pub mod observe;
mod outlived;
pub mod profile;
pub mod ps;
pub mod purge;
pub mod record;
pub mod run;
pub mod serve;
pub mod stats;
mod survivors;
pub mod top;
pub mod watch;
pub mod why;

#[cfg(test)]
mod fuzz;

/// How a command is to work, whichever it is.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Where the statistics files lie.
    pub directory: PathBuf,
    /// JSON instead of text.
    pub json: bool,
}

impl Identity {
    /// Name and number, for people.
    fn who(&self) -> String {
        let name = self.name.as_deref().map(crate::text::printable).unwrap_or_default();
        format!("{name} {}", self.pid).trim_start().to_owned()
    }
}

/// What a command has to say.
#[derive(Debug, Default)]
pub struct Answer {
    /// For standard output.
    pub output: String,
    /// For standard error: what limits the output's worth.
    pub notes: Vec<String>,
    /// What the command looks for is there.
    pub found: bool,
    /// The command could not do all that it should.
    pub failed: bool,
}

impl Setting {
    /// Makes the output, in the form that is wanted.
    fn output<T: Serialize>(&self, report: &T, text: impl FnOnce(&T) -> String) -> Result<String> {
        Ok(if self.json { crate::text::json(report)? } else { text(report) })
    }
}

/// Whether a process is named by its number, and not by a file.
fn is_pid(target: &str) -> bool {
    !target.is_empty() && target.bytes().all(|byte| byte.is_ascii_digit())
}

/// A process that does not exist, or has no statistics file.
#[derive(Debug)]
pub struct NotFound(String);

impl fmt::Display for NotFound {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for NotFound {}

/// Writes to standard output at once. False when nobody reads there any more.
fn show(output: &str) -> Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(output.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error).context("cannot write the output"),
        Ok(()) => Ok(true),
    }
}

/// A process whose file was read.
#[derive(Debug)]
pub struct Subject {
    /// Its number here; in its container it may have another.
    pub pid: u32,
    /// Where the file lies.
    pub path: PathBuf,
    /// What the file says.
    pub snapshot: Snapshot,
    /// Whether it still changes.
    pub life: Life,
    /// The moment that ages count to: now, or the last one that a process told of which tells no
    /// more.
    pub as_of_ms: u64,
    /// Of the process, as the system knows it; after its end, as its file does.
    pub name: Option<String>,
    /// Memory of it that is resident.
    pub rss_bytes: Option<u64>,
    /// The folder of `record` that it was read from.
    pub recorded: Option<Recorded>,
}

/// Which process, in every command's JSON.
#[derive(Debug, Serialize)]
pub struct Identity {
    pid: u32,
    /// When it began, in clock ticks since boot: a number of a process may return.
    start_ticks: u64,
    name: Option<String>,
    life: Life,
    version: String,
    /// Between its last word and now, or None when it is of another boot.
    last_word_ms: Option<u64>,
    /// Tables of which rows are missing.
    full_tables: Vec<String>,
}

impl Subject {
    /// `pid`: the process's number here.
    fn of_entry(entry: &Entry, pid: u32) -> Result<Self> {
        let subject = Self::read(&entry.path, false, Some(pid))?;
        let header = &subject.snapshot.header;
        if (header.pid, header.start_ticks) != (entry.pid, entry.start_ticks) {
            bail!(
                "it says that it is of process {}, unlike its name: it is a copy, or damaged; \
                 name it by its path to read it",
                header.pid
            );
        }
        Ok(subject)
    }

    /// Reads a file, of whichever process it is if no `pid` is given; of a folder of `record`, that
    /// in it.
    fn read(path: &Path, follow_links: bool, pid: Option<u32>) -> Result<Self> {
        let recorded = if follow_links { Recorded::at(path) } else { None };
        let Some(recorded) = recorded else {
            return Self::of_file(host::open(path, follow_links)?, path, pid);
        };
        let (path, about) = (recorded.statistics(), recorded.about());
        let subject = Self::of_file(host::open(&path, true)?, &path, pid)?;
        // The process ran on after its last word in the copy.
        let as_of_ms = subject.as_of_ms.max(about.now_ms.unwrap_or_default());
        let rss_bytes = about.rss_bytes;
        Ok(Self { as_of_ms, rss_bytes, recorded: Some(recorded), ..subject })
    }

    // `path`: where the file lies, or lay when it was opened.
    fn of_file(file: File, path: &Path, pid: Option<u32>) -> Result<Self> {
        let segment = Segment::open(file)?;
        let snapshot = Snapshot::read(&segment)?;
        let pid = pid.unwrap_or(snapshot.header.pid);
        let life = host::life(pid, snapshot.header.start_ticks, path);
        let is_alive = life == Life::Alive;
        Ok(Self {
            pid,
            path: path.to_owned(),
            as_of_ms: if is_alive { host::now_ms() } else { snapshot.last_ms() },
            name: if is_alive { host::name(pid) } else { snapshot.name.clone() },
            rss_bytes: if is_alive { host::rss_bytes(pid) } else { None },
            recorded: None,
            snapshot,
            life,
        })
    }

    /// Finds the file of `target`, a process or a path, and reads it. Where a number has returned,
    /// a process is named as its file is, such as 42.777. Fails with `NotFound` when there is no
    /// such process, or no file of it.
    pub fn find(setting: &Setting, target: &str) -> Result<Self> {
        if let Some(entry) = host::entry_named(&setting.directory, target) {
            return Self::of_named(&entry, target);
        }
        if !is_pid(target) {
            return Self::read(Path::new(target), true, None).with_context(|| cannot_read(target));
        }
        let pid = target.parse().map_err(|_| NotFound(format!("there is no process {target}")))?;
        let entry = entry_of(&setting.directory, pid)?;
        Self::of_entry(&entry, pid).with_context(|| cannot_read(&entry.path.to_string_lossy()))
    }

    fn of_named(entry: &Entry, target: &str) -> Result<Self> {
        if !entry.path.exists() {
            return Err(NotFound(format!("there is no file of process {target}")).into());
        }
        let path = entry.path.to_string_lossy();
        Self::of_entry(entry, entry.pid).with_context(|| cannot_read(&path))
    }

    /// Since the process made its file, or until its last word, in ms.
    fn lived_ms(&self) -> u64 {
        self.as_of_ms.saturating_sub(self.snapshot.header.made_ms)
    }

    /// Whether both are of one process.
    fn is_process_of(&self, other: &Self) -> bool {
        let (own, others) = (&self.snapshot.header, &other.snapshot.header);
        (own.pid, own.start_ticks) == (others.pid, others.start_ticks)
    }

    /// What every report begins with.
    pub fn identity(&self) -> Identity {
        let header = &self.snapshot.header;
        Identity {
            pid: self.pid,
            start_ticks: header.start_ticks,
            name: self.name.clone(),
            life: self.life,
            version: header.version.clone(),
            last_word_ms: host::now_ms().checked_sub(header.told_ms),
            full_tables: self.snapshot.full_tables.clone(),
        }
    }

    /// Whether only what outlives its epoch is sampled.
    pub fn samples_watched(&self) -> bool {
        self.reach() == Some(Reach::Watched)
    }

    fn reach(&self) -> Option<Reach> {
        self.snapshot.sampling.as_ref().map(Sampling::reach)
    }

    /// Whether there are samples, and they are of all that is allocated now, or that lives.
    pub fn samples_all(&self) -> bool {
        let is_all = |sampling: &Sampling| sampling.reach() == Reach::All || !sampling.is_partial();
        self.snapshot.has_samples() && self.snapshot.sampling.as_ref().is_some_and(is_all)
    }

    /// Whether there are samples, if only of a part.
    pub fn has_profile(&self) -> bool {
        let is_any = |sampling: &Sampling| sampling.sites.iter().any(|site| site.allocations > 0);
        let sampling = self.snapshot.sampling.as_ref();
        self.samples_all() || self.snapshot.has_samples() && sampling.is_some_and(is_any)
    }

    /// Whether it runs, and could be asked for samples of all.
    pub fn may_sample_more(&self) -> bool {
        self.life == Life::Alive && self.reach().is_some_and(|reach| reach != Reach::All)
    }

    /// Of what samples are missing; None: they are of all that lives, or there are none.
    pub fn partial_note(&self) -> Option<String> {
        let pid = self.pid;
        let sampling = self.snapshot.sampling.as_ref().filter(|sampling| sampling.is_partial())?;
        let ago = text::age(Some(self.as_of_ms.saturating_sub(sampling.since_ms)));
        Some(match sampling.reach() {
            Reach::Watched => format!(
                "process {pid} samples only epochs of labels whose objects outlive them, unless \
                 it is asked for more"
            ),
            Reach::Nothing => {
                format!("process {pid} has sampled nothing for {ago}, and perhaps a part before")
            }
            Reach::All => format!(
                "of what process {pid} allocated more than {ago} ago there are samples of a part \
                 at most"
            ),
        })
    }

    /// What limits the worth of the figures.
    pub fn notes(&self) -> Vec<String> {
        let pid = self.pid;
        let life = match self.life {
            _ if self.recorded.is_some() => None,
            Life::Alive => None,
            Life::Stale => Some(format!(
                "process {pid} does not use this file any more, or never did: \
                 ages count to the last moment in it"
            )),
            Life::Dead => Some(format!(
                "process {pid} has ended: ages count to the last moment that it told of"
            )),
        };
        let full = self.snapshot.full_tables.iter().map(|table| {
            format!(
                "the system had no memory for all rows of table {table:?}: figures are too low; \
                 make room in /dev/shm"
            )
        });
        life.into_iter().chain(full).collect()
    }

    /// What its Python hides, of a process that runs.
    fn hidden_note(&self) -> Option<String> {
        let runs = self.life == Life::Alive && self.recorded.is_none();
        runs.then(|| python::note_of_process(self.pid)).flatten()
    }
}

fn cannot_read(what: &str) -> String {
    format!("cannot read {}", crate::text::printable(what))
}

// Of several processes that died with this number, the last one. Never one that died when another
// has the number now.
fn entry_of(directory: &Path, pid: u32) -> Result<Entry> {
    let newest = host::entries(directory)?.into_iter().rfind(|entry| entry.pid == pid);
    if let Some(entry) = newest.as_ref().filter(|entry| host::runs(pid, entry.start_ticks)) {
        return Ok(entry.clone());
    }
    let started = host::start_ticks(pid);
    let own = newest.clone().filter(|dead| started.is_none_or(|now| now == dead.start_ticks));
    host::entry_in_container(pid)
        .or(own)
        .ok_or_else(|| NotFound(no_file(directory, pid, newest.as_ref())).into())
}

// `earlier`: of a process that had the number before.
fn no_file(directory: &Path, pid: u32, earlier: Option<&Entry>) -> String {
    if host::start_ticks(pid).is_none() {
        return format!("there is no process {pid}, and no file of it in {}", directory.display());
    }
    let cause = Facts::of(pid, directory).cause();
    let earlier = earlier.map(|entry| {
        let path = entry.path.to_string_lossy();
        let path = crate::text::printable(&path);
        format!(
            "; {path} is of an earlier process {pid}, which has ended: name that path to read it"
        )
    });
    format!(
        "process {pid} has no statistics file in {}: {cause}{}",
        directory.display(),
        earlier.unwrap_or_default()
    )
}

#[cfg(test)]
impl Subject {
    /// A process that has ended.
    fn of_snapshot(snapshot: Snapshot) -> Self {
        let as_of_ms = snapshot.last_ms();
        let pid = snapshot.header.pid;
        let path = PathBuf::new();
        let (name, rss_bytes, recorded) = (None, None, None);
        Self { pid, path, snapshot, life: Life::Dead, as_of_ms, name, rss_bytes, recorded }
    }

    fn of_bytes(bytes: Vec<u8>) -> Self {
        let segment = Segment::open(bytes).expect("a file without damage");
        Self::of_snapshot(Snapshot::read(&segment).expect("a file without damage"))
    }
}
