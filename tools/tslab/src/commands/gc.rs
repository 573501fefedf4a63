//! gc: removes the files that processes left behind.

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::MetadataExt;

use anyhow::Result;
use serde::Serialize;

use super::{Answer, Setting, Subject};
use crate::host::{self, Entry, InUse, Life};
use crate::segment;
use crate::text;

#[derive(Debug, Serialize)]
struct Report {
    dry_run: bool,
    removed: Vec<Removed>,
    kept: Vec<Kept>,
}

#[derive(Debug, Serialize)]
struct Removed {
    path: String,
    pid: u32,
    /// Memory that the file took.
    bytes: u64,
}

// A file that looks left behind, which stays all the same.
#[derive(Debug, Serialize)]
struct Kept {
    path: String,
    pid: u32,
    why: String,
    failed: bool,
}

/// Removes the files that no process uses, or says which ones it would remove.
pub fn run(setting: &Setting, dry_run: bool) -> Result<Answer> {
    let mut report = Report { dry_run, removed: Vec::new(), kept: Vec::new() };
    let mut entries = host::entries(&setting.directory)?;
    entries.retain(|entry| !matches!(verdict(entry), Verdict::Used));
    if !entries.is_empty() {
        let in_use = InUse::now();
        for entry in &entries {
            report.clear(entry, &in_use);
        }
    }
    Ok(Answer {
        output: setting.output(&report, Report::text)?,
        failed: report.kept.iter().any(|kept| kept.failed),
        ..Answer::default()
    })
}

enum Verdict {
    Used,
    LeftBehind,
    // By its process, as it seems, but it cannot be read.
    Unknown(String),
}

fn verdict(entry: &Entry) -> Verdict {
    match host::life(entry.pid, entry.start_ticks, &entry.path) {
        Life::Alive => Verdict::Used,
        Life::Dead => Verdict::LeftBehind,
        Life::Stale => match Subject::of_entry(entry, entry.pid) {
            Ok(subject) if subject.life == Life::Stale => Verdict::LeftBehind,
            Ok(_) => Verdict::Used,
            // Who is about to use a new file has not written its header yet.
            Err(error) if matches!(error.downcast_ref(), Some(segment::Error::NotReady)) => {
                Verdict::Used
            }
            Err(error) => Verdict::Unknown(format!("{error:#}")),
        },
    }
}

impl Report {
    fn clear(&mut self, entry: &Entry, in_use: &InUse) {
        let path = entry.path.to_string_lossy().into_owned();
        // A process of another PID namespace has another number here, under which nobody lives.
        if in_use.has(&entry.path) {
            let why = "another process uses it, perhaps of a container".to_owned();
            return self.kept.push(Kept { path, pid: entry.pid, why, failed: false });
        }
        // The program that its process runs since exec may have a file of the same name by now.
        match verdict(entry) {
            Verdict::Used => return,
            Verdict::LeftBehind => (),
            Verdict::Unknown(error) => {
                let why = format!("{error}; remove it yourself if nobody needs it");
                return self.kept.push(Kept { path, pid: entry.pid, why, failed: false });
            }
        }
        let bytes = fs::symlink_metadata(&entry.path).map_or(0, |file| file.blocks() * 512);
        match if self.dry_run { Ok(()) } else { fs::remove_file(&entry.path) } {
            Ok(()) => self.removed.push(Removed { path, pid: entry.pid, bytes }),
            Err(error) => {
                let why = format!("{error}: run this command as its owner, or root");
                self.kept.push(Kept { path, pid: entry.pid, why, failed: true });
            }
        }
    }

    fn text(&self) -> String {
        if self.removed.is_empty() && self.kept.is_empty() {
            return "no process has left a file behind\n".to_owned();
        }
        let verb = if self.dry_run { "would remove" } else { "removed" };
        let mut out = String::new();
        // Writing to a String does not fail.
        for file in &self.removed {
            let path = text::printable(&file.path);
            let _ = writeln!(out, "{verb} {path}  {}", text::bytes(Some(file.bytes)));
        }
        for file in &self.kept {
            let _ = writeln!(out, "kept {}  {}", text::printable(&file.path), file.why);
        }
        out
    }
}
