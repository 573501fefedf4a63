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
    /// The file is of another user, and may not be read.
    of_other_user: bool,
}

/// Lists the processes. `all`: in the text, a line also for each that has ended or is of another
/// user.
pub fn run(setting: &Setting, all: bool) -> Result<Answer> {
    let entries = host::entries(&setting.directory)?;
    let report = Report { processes: entries.iter().map(Process::of).collect() };
    Ok(Answer {
        output: setting.output(&report, |report| report.text(all))?,
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
            of_other_user: false,
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
            of_other_user: host::is_closed(&entry.path),
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

    fn text(&self, all: bool) -> String {
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
        let folded = Folded::of(&self.processes, all);
        folded.shown.iter().for_each(|process| grid.row(process.texts()));
        let table = if folded.shown.is_empty() { String::new() } else { grid.render() };
        table + &folded.text()
    }
}

// The processes with a line of their own, and those that share one.
struct Folded<'a> {
    shown: Vec<&'a Process>,
    ended: Vec<&'a Process>,
    others: usize,
}

impl<'a> Folded<'a> {
    fn of(processes: &'a [Process], all: bool) -> Self {
        let mut folded = Self { shown: Vec::new(), ended: Vec::new(), others: 0 };
        for process in processes {
            if all {
                folded.shown.push(process);
            } else if process.of_other_user {
                folded.others += 1;
            } else if process.life == Life::Dead && process.error.is_none() {
                folded.ended.push(process);
            } else {
                folded.shown.push(process);
            }
        }
        folded
    }

    fn text(&self) -> String {
        [self.ended_text(), self.others_text()].into_iter().flatten().collect()
    }

    fn ended_text(&self) -> Option<String> {
        let ended_ms = |process: &&&Process| process.last_word_ms.unwrap_or(u64::MAX);
        let last = self.ended.iter().min_by_key(ended_ms)?;
        let has_survivors = |process: &&&Process| {
            process.epochs_closed_with_survivors.is_some_and(|epochs| epochs > 0)
        };
        let name = last.name.as_deref().map(|name| format!(" ({})", text::printable(name)));
        Some(format!(
            "ended: {}, the last of them {}{}; {} with survivors in closed epochs; \
             `tslab ps --all` lists them\n",
            text::count_of(self.ended.len(), "process", "processes"),
            last.pid,
            name.unwrap_or_default(),
            self.ended.iter().filter(has_survivors).count()
        ))
    }

    fn others_text(&self) -> Option<String> {
        let files = text::count_of(self.others, "file", "files");
        let text = format!("of other users: {files}, which only they and root may read\n");
        (self.others > 0).then_some(text)
    }
}
