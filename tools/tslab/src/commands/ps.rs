//! ps: the processes on this machine that have a statistics file.

use anyhow::Result;
use serde::Serialize;

use super::{Answer, Setting, Subject};
use crate::host::{self, Entry, Life};
use crate::text::{self, Align, Grid};

#[derive(Debug, Serialize)]
struct Report {
    processes: Vec<Process>,
}

#[derive(Debug, Serialize)]
struct Process {
    pid: u32,
    path: String,
    name: Option<String>,
    life: Life,
    version: Option<String>,
    last_word_ms: Option<u64>,
    rss_bytes: Option<u64>,
    live_bytes: Option<u64>,
    epochs_open: Option<u64>,
    epochs_closed_with_survivors: Option<u64>,
    /// Why the file cannot be read.
    error: Option<String>,
}

/// Lists the processes.
pub fn run(setting: &Setting) -> Result<Answer> {
    let entries = host::entries(&setting.directory)?;
    let report = Report { processes: entries.iter().map(Process::of).collect() };
    Ok(Answer {
        output: setting.output(&report, Report::text)?,
        notes: report.note().into_iter().collect(),
        ..Answer::default()
    })
}

impl Process {
    fn of(entry: &Entry) -> Self {
        match Subject::of_entry(entry, entry.pid) {
            Ok(subject) => Self::read(entry, &subject),
            Err(error) => Self::unreadable(entry, &error),
        }
    }

    fn read(entry: &Entry, subject: &Subject) -> Self {
        let (totals, identity) = (subject.snapshot.totals(), subject.identity());
        Self {
            pid: entry.pid,
            path: entry.path.to_string_lossy().into_owned(),
            name: identity.name,
            life: identity.life,
            version: Some(identity.version),
            last_word_ms: identity.last_word_ms,
            rss_bytes: subject.rss_bytes,
            live_bytes: totals.live_bytes,
            epochs_open: totals.epochs_open,
            epochs_closed_with_survivors: totals.epochs_closed_with_survivors,
            error: None,
        }
    }

    fn unreadable(entry: &Entry, error: &anyhow::Error) -> Self {
        let life = host::life(entry.pid, entry.start_ticks, &entry.path);
        let runs = life != Life::Dead;
        Self {
            pid: entry.pid,
            path: entry.path.to_string_lossy().into_owned(),
            name: if runs { host::name(entry.pid) } else { None },
            life,
            version: None,
            last_word_ms: None,
            rss_bytes: if runs { host::rss_bytes(entry.pid) } else { None },
            live_bytes: None,
            epochs_open: None,
            epochs_closed_with_survivors: None,
            error: Some(format!("{error:#}")),
        }
    }

    fn texts(&self) -> Vec<String> {
        let or_unknown = |text: &Option<String>| {
            text.as_deref().map_or_else(|| text::NOT_KNOWN.to_owned(), text::printable)
        };
        vec![
            self.pid.to_string(),
            self.life.name().to_owned(),
            or_unknown(&self.version),
            text::age(self.last_word_ms),
            text::bytes(self.rss_bytes),
            text::bytes(self.live_bytes),
            text::number(self.epochs_open),
            text::number(self.epochs_closed_with_survivors),
            or_unknown(&self.name),
            self.error.as_deref().map(text::printable).unwrap_or_default(),
        ]
    }
}

impl Report {
    fn note(&self) -> Option<String> {
        let left = self.processes.iter().filter(|process| process.life != Life::Alive).count();
        (left > 0)
            .then(|| format!("files that processes left behind: {left}; `tslab gc` removes them"))
    }

    fn text(&self) -> String {
        if self.processes.is_empty() {
            return "no process has a statistics file\n".to_owned();
        }
        let mut grid = Grid::new(&[
            ("PID", Align::Right),
            ("LIFE", Align::Left),
            ("VERSION", Align::Left),
            ("LAST WORD", Align::Right),
            ("RSS", Align::Right),
            ("LIVE", Align::Right),
            ("OPEN", Align::Right),
            ("CLOSED", Align::Right),
            ("NAME", Align::Left),
            ("", Align::Left),
        ]);
        self.processes.iter().for_each(|process| grid.row(process.texts()));
        grid.render()
    }
}
