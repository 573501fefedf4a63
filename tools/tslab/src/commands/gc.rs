//! gc: removes the files that processes left behind.

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::MetadataExt;

use anyhow::Result;
use serde::Serialize;

use super::{Answer, Setting};
use crate::host::{self, Entry, InUse, Life};
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

// A file of a process that looks dead, which stays all the same.
#[derive(Debug, Serialize)]
struct Kept {
    path: String,
    pid: u32,
    why: String,
    failed: bool,
}

/// Removes the files of dead processes, or says which ones it would remove.
pub fn run(setting: &Setting, dry_run: bool) -> Result<Answer> {
    let mut report = Report { dry_run, removed: Vec::new(), kept: Vec::new() };
    let entries = host::entries(&setting.directory)?;
    let is_dead =
        |entry: &Entry| host::life(entry.pid, entry.start_ticks, &entry.path) == Life::Dead;
    let dead: Vec<_> = entries.into_iter().filter(is_dead).collect();
    if !dead.is_empty() {
        let in_use = InUse::now();
        for entry in &dead {
            report.clear(entry, &in_use);
        }
    }
    Ok(Answer {
        output: setting.output(&report, Report::text)?,
        failed: report.kept.iter().any(|kept| kept.failed),
        ..Answer::default()
    })
}

impl Report {
    fn clear(&mut self, entry: &Entry, in_use: &InUse) {
        let path = entry.path.to_string_lossy().into_owned();
        // A process of another PID namespace has another number here, under which nobody lives.
        if in_use.has(&entry.path) {
            let why = "a process of another container uses it".to_owned();
            return self.kept.push(Kept { path, pid: entry.pid, why, failed: false });
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
            return "no dead process has left a file\n".to_owned();
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
