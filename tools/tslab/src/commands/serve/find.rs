//! The processes of this machine that can be read now.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::commands::Subject;
use crate::host::{self, Entry, Life};
use crate::say::say;
use crate::text;

/// The files that are not read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Files {
    /// Of processes that run, or their directory: it cannot be read.
    pub unreadable: u64,
    /// Of processes that have ended, or use them no more.
    pub abandoned: u64,
}

/// Finds processes, and says once what is wrong with a file.
#[derive(Debug, Default)]
pub struct Finder {
    complaints: HashMap<PathBuf, String>,
    is_silent: bool,
}

impl Finder {
    /// One whose complaints another one makes.
    pub fn silent() -> Self {
        Self { is_silent: true, ..Self::default() }
    }

    /// Gives each process that runs and whose file can be read to `take`, once. Looks through the
    /// directory, and through containers if it is the usual one.
    pub fn find(&mut self, directory: &Path, take: &mut dyn FnMut(Subject)) -> Files {
        let mut round = Round {
            take,
            taken: HashSet::new(),
            judged: HashSet::new(),
            complaints: HashMap::new(),
            abandoned: 0,
        };
        match host::entries(directory) {
            Ok(entries) => entries.iter().for_each(|entry| round.read(entry, entry.pid)),
            Err(error) => round.complain(directory, &error),
        }
        if directory == Path::new(host::DIRECTORY) {
            round.read_containers();
        }
        let Round { complaints, abandoned, .. } = round;
        self.tell(&complaints);
        self.complaints = complaints;
        Files { unreadable: self.complaints.len() as u64, abandoned }
    }

    fn tell(&self, complaints: &HashMap<PathBuf, String>) {
        for (path, complaint) in complaints.iter().filter(|_| !self.is_silent) {
            if self.complaints.get(path) != Some(complaint) {
                let path = text::printable(&path.to_string_lossy());
                say(&format!("passed over {path}: {}", text::printable(complaint)));
            }
        }
    }
}

struct Round<'a> {
    take: &'a mut dyn FnMut(Subject),
    taken: HashSet<u32>,
    /// The processes of which a file was looked at.
    judged: HashSet<u32>,
    complaints: HashMap<PathBuf, String>,
    abandoned: u64,
}

impl Round<'_> {
    // `pid`: the process's number here. One that ends meanwhile is no reason for a complaint. What
    // has no name has ended; a second file of a process, under a number with zeros before it, is
    // somebody's joke.
    fn read(&mut self, entry: &Entry, pid: u32) {
        let runs = || host::runs(pid, entry.start_ticks);
        if !runs() {
            self.abandoned += 1;
            return;
        }
        self.judged.insert(pid);
        match Subject::of_entry(entry, pid) {
            Ok(subject)
                if subject.life == Life::Alive
                    && subject.name.is_some()
                    && self.taken.insert(pid) =>
            {
                (self.take)(subject);
            }
            Err(error) if runs() => self.complain(&entry.path, &error),
            Ok(_) | Err(_) => self.abandoned += 1,
        }
    }

    // Those whose files lie elsewhere, or bear another number.
    fn read_containers(&mut self) {
        for pid in host::processes() {
            if self.judged.contains(&pid) {
                continue;
            }
            if let Some(entry) = host::entry_in_container(pid) {
                self.read(&entry, pid);
            }
        }
    }

    fn complain(&mut self, path: &Path, error: &anyhow::Error) {
        self.complaints.insert(path.to_owned(), format!("{error:#}"));
    }
}
