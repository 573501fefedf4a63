//! What a scrape gets, process by process, and what is remembered until the next one.

use std::collections::{HashMap, HashSet};

use super::counters::Counters;
use super::figures;
use super::find::Files;
use super::limits::Limits;
use super::samples::{Samples, Value};
use crate::commands::Subject;
use crate::host;

/// A process, whatever other process gets its number later: number and start.
type Key = (u32, u64);

/// The counters of all processes.
#[derive(Debug)]
pub struct Ledger {
    limits: Limits,
    counters: HashMap<Key, Counters>,
    /// Since the last scrape ended.
    seen: HashSet<Key>,
    read_errors: u64,
}

impl Ledger {
    /// Of processes that are yet to be seen.
    pub fn new(limits: Limits) -> Self {
        Self { limits, counters: HashMap::new(), seen: HashSet::new(), read_errors: 0 }
    }

    /// Adds the figures of a process.
    pub fn add(&mut self, samples: &mut Samples, subject: &Subject) {
        let key = (subject.pid, subject.snapshot.header.start_ticks);
        self.seen.insert(key);
        let counters = self.counters.entry(key).or_default();
        counters.update(subject, self.limits);
        let name = subject.name.as_deref().unwrap_or_default();
        figures::add(samples, name, subject, counters, self.limits);
    }

    /// Adds the figures of the server itself, and ends the scrape.
    pub fn close(&mut self, samples: &mut Samples, files: Files) {
        self.read_errors = self.read_errors.saturating_add(files.unreadable);
        let mut add = |metric, value| samples.add(metric, Vec::new(), value);
        add("tslab_processes", Value::Gauge(self.seen.len() as u64));
        add("tslab_unreadable_files", Value::Gauge(files.unreadable));
        add("tslab_abandoned_files", Value::Gauge(files.abandoned));
        add("tslab_read_errors_total", Value::Counter(self.read_errors));
        let version = vec![env!("CARGO_PKG_VERSION").into()];
        samples.add("tslab_build_info", version, Value::Gauge(1));
        let seen = std::mem::take(&mut self.seen);
        // One that could not be read this time goes on counting the next time.
        self.counters.retain(|key, _| seen.contains(key) || host::runs(key.0, key.1));
    }
}
