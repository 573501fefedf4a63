//! Writes the history, as long as that can be done.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use serde::Serialize;

use super::events::Events;
use super::store::{Bounds, Owner, Past, Row, Store};
use crate::commands::Subject;
use crate::host;
use crate::say::say;
use crate::text;

/// Two boots may give the same number to processes that start at the same time after them.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// The history of the processes that are looked at.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    store: Option<Store>,
    events: Events,
    rows: Vec<Row>,
    at_s: u64,
}

/// An answer.
#[derive(Serialize)]
struct Told {
    /// There is a file that is written.
    kept: bool,
    /// The server's clock, in seconds since 1970.
    now_s: u64,
    #[serde(flatten)]
    past: Past,
}

impl Recorder {
    /// Says so if the file cannot be had, and goes on without.
    pub fn new(path: &Path) -> Self {
        let boot = fs::read_to_string(BOOT).unwrap_or_default();
        let mut new = Self {
            path: path.to_owned(),
            store: None,
            events: Events::default(),
            rows: Vec::new(),
            at_s: 0,
        };
        let store = Store::open(path, Bounds::default(), boot.trim());
        new.store = new.or_without(store);
        new
    }

    fn or_without<T>(&self, result: Result<T>) -> Option<T> {
        let complain = |error| {
            let path = self.path.to_string_lossy();
            say(&text::printable(&format!(
                "no history is kept: cannot use {path}: {error:#}: name another file with \
                 --history FILE, or none with --history none"
            )));
        };
        result.map_err(complain).ok()
    }

    /// Whether there is anything to do.
    pub fn is_keeping(&self) -> bool {
        self.store.is_some()
    }

    /// Begins a look at all processes.
    pub fn begin(&mut self) {
        self.at_s = now_s();
    }

    /// Takes in what one process says.
    pub fn take(&mut self, subject: &Subject) {
        let owner = Owner {
            pid: subject.pid,
            start_ticks: subject.snapshot.header.start_ticks,
            name: subject.name.clone(),
        };
        self.rows.push(Row {
            owner,
            rss_bytes: subject.rss_bytes,
            live_bytes: subject.snapshot.totals().live_bytes,
            events: self.events.since_last(subject, self.at_s),
        });
    }

    /// Ends the look, and writes what it found.
    pub fn end(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        self.events.keep_seen(self.at_s);
        let Some(store) = &mut self.store else { return };
        let added = store.add(self.at_s, &rows);
        if self.or_without(added).is_none() {
            self.store = None;
        }
    }
}

/// The past of a process as JSON, whether there is a history or not.
pub fn told(recorder: Option<&Recorder>, pid: u32, after_s: u64) -> Result<String> {
    let store = recorder.and_then(|recorder| recorder.store.as_ref());
    let past = store.map(|store| store.past(pid, host::start_ticks(pid), after_s)).transpose()?;
    let kept = past.is_some();
    Ok(text::json_line(&Told { kept, now_s: now_s(), past: past.unwrap_or_default() })?)
}

/// The server's clock, in seconds since 1970.
pub fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
