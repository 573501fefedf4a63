//! why: where the resident memory of one process went.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;

use super::account::{Account, Kind, Part};
use super::{Answer, Identity, Setting, Subject};
use crate::host::Life;
use crate::recorded::Recorded;
use crate::rows::{Field, process};
use crate::smaps::{self, Mapping, Place, Region};
use crate::snapshot::Snapshot;
use crate::text::{self, Align, Grid};

// Of what is resident: a note says where so much of it may come from.
const MUCH_PERCENT: u64 = 2;

const NOT_RESIDENT: &str = "of these not resident: never written to, given back in place, in swap";

// The shares of labels and classes that are shown.
const MOST_SHOWN: usize = 5;

/// What `why` is asked.
#[derive(Debug, Args)]
pub struct Arguments {
    /// A process, or the path of a statistics file
    #[arg(value_name = "PID")]
    target: String,

    /// A copy of /proc/PID/smaps to read instead, taken when the statistics file was copied
    #[arg(long, value_name = "FILE")]
    smaps: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    identity: Identity,
    /// Of the process, as its mappings say.
    rss_bytes: u64,
    /// Of the allocator's memory, in swap.
    swap_bytes: u64,
    #[serde(flatten)]
    account: Account,
    /// What is resident beside the allocator's memory.
    others: Vec<Other>,
    /// Of all epochs, by label: those that hold most.
    labels: Vec<Label>,
    /// Of all slabs, by size class: those with most free memory.
    classes: Vec<Class>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Other {
    what: &'static str,
    bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Label {
    #[serde(rename = "label")]
    text: Option<Arc<str>>,
    epochs: u64,
    live_bytes: Option<u64>,
    held_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Class {
    bytes: u64,
    slabs: u64,
    slab_bytes: u64,
    free_bytes: u64,
}

/// Shares the memory of a process out to what it is made of.
pub fn run(setting: &Setting, arguments: &Arguments) -> Result<Answer> {
    let subject = Subject::find(setting, &arguments.target)?;
    let mappings = mappings(&subject, arguments.smaps.as_deref())?;
    let report = Report::of(&subject, &mappings)?;
    let mut notes = subject.notes();
    notes.extend(report.missing_note());
    notes.extend(subject.hidden_note());
    notes.extend(report.residual_note(&subject));
    Ok(Answer { output: setting.output(&report, Report::text)?, notes, ..Answer::default() })
}

/// The same of a process that runs.
pub fn of_process(setting: &Setting, target: &str) -> Result<Answer> {
    run(setting, &Arguments { target: target.to_owned(), smaps: None })
}

fn mappings(subject: &Subject, copy: Option<&Path>) -> Result<Vec<Mapping>> {
    let recorded = subject.recorded.as_ref().and_then(Recorded::smaps);
    if let Some(copy) = copy.or(recorded.as_deref()) {
        let path = text::printable(&copy.to_string_lossy());
        return smaps::of_file(copy)
            .with_context(|| format!("cannot read {path}: name a copy of /proc/PID/smaps"));
    }
    if subject.life != Life::Alive {
        bail!(
            "process {} is not there any more, and what was resident of it is not known: copy \
             /proc/PID/smaps together with the statistics file, and name it with --smaps",
            subject.pid
        );
    }
    smaps::of_process(subject.pid)
}

fn place(snapshot: &Snapshot) -> Option<Place> {
    let addresses = |start: Field, bytes: Field| {
        let start = snapshot.process_figure(start)?;
        Some(start..start.saturating_add(snapshot.process_figure(bytes)?))
    };
    Some(Place {
        region: addresses(process::REGION_AT, process::REGION_BYTES)?,
        blocks: addresses(process::BLOCKS_AT, process::BLOCKS_BYTES)?,
    })
}

/// What the allocator's memory is made of, and how much of it is resident. Fails where the file or
/// the system does not tell.
pub(super) fn account(subject: &Subject) -> Result<Account> {
    Ok(Report::of(subject, &mappings(subject, None)?)?.account)
}

impl Report {
    fn of(subject: &Subject, mappings: &[Mapping]) -> Result<Self> {
        let snapshot = &subject.snapshot;
        let Some(place) = place(snapshot) else {
            bail!(
                "process {} does not tell where its allocator's memory lies: use the command that \
                 came with the library of that process",
                subject.pid
            );
        };
        let Some(region) = Region::find(mappings, &place) else {
            bail!(
                "none of the mappings of process {} lies where its allocator's memory does: are \
                 they of another process?",
                subject.pid
            );
        };
        let resident = region.resident();
        let is_other = |mapping: &&Mapping| !region.has(mapping) && !is_statistics(mapping);
        let statistics = mappings.iter().filter(|mapping| is_statistics(mapping));
        let account = Account::of(subject, resident, rss(statistics));
        Ok(Self {
            identity: subject.identity(),
            rss_bytes: rss(mappings.iter()),
            swap_bytes: resident.swap_bytes,
            account,
            others: others(mappings.iter().filter(is_other)),
            labels: labels(snapshot),
            classes: classes(snapshot),
        })
    }

    // What was freed is told of when some thread comes by a slow path, and not while all sleep.
    fn residual_note(&self, subject: &Subject) -> Option<String> {
        let is_residual = |part: &&Part| part.part == Kind::Residual;
        let residual = self.account.parts.iter().find(is_residual)?.bytes;
        let much = self.account.resident_bytes / 100 * MUCH_PERCENT;
        let silent_ms = subject.as_of_ms.saturating_sub(subject.snapshot.header.told_ms);
        (residual > much).then(|| {
            format!(
                "the residual may have been freed since the process last told of its caches, {} \
                 ago or longer: look again when it works",
                text::age(Some(silent_ms))
            )
        })
    }

    fn missing_note(&self) -> Option<String> {
        let missing = &self.account.not_told;
        (!missing.is_empty()).then(|| {
            format!(
                "the file does not tell {}: what it would explain is in the residual; use the \
                 command that came with the library of that process",
                missing.join(", ")
            )
        })
    }

    fn text(&self) -> String {
        let more = [self.others_grid(), self.label_grid(), self.class_grid()];
        let parts = format!("{}\n{}", self.summary(), self.parts_grid().render());
        more.iter().flatten().fold(parts, |out, grid| format!("{out}\n{}", grid.render()))
    }

    fn summary(&self) -> String {
        let name = self.identity.name.as_deref().map(text::printable).unwrap_or_default();
        let mut out = format!("process {}  {name}", self.identity.pid).trim_end().to_owned();
        // Writing to a String does not fail.
        let _ = writeln!(
            out,
            "  RSS {}, of which the allocator has {}",
            text::bytes(Some(self.rss_bytes)),
            text::bytes(Some(self.account.resident_bytes))
        );
        let _ =
            writeln!(out, "epochs hold {}, resident or not", text::bytes(self.account.held_bytes));
        if self.swap_bytes > 0 {
            let _ = writeln!(out, "further {} in swap", text::bytes(Some(self.swap_bytes)));
        }
        out
    }

    fn parts_grid(&self) -> Grid {
        let (account, all) = (&self.account, self.account.whole_bytes());
        let mut grid = Grid::new(&[
            ("BYTES", Align::Right),
            ("%", Align::Right),
            ("OF THE ALLOCATOR'S MEMORY", Align::Left),
        ]);
        let mut row = |bytes: u64, what: &str| {
            grid.row(vec![text::bytes(Some(bytes)), percent(bytes, all), what.to_owned()]);
        };
        let is_shown = |part: &&Part| part.bytes != 0 || part.part == Kind::Residual;
        for part in account.parts.iter().filter(is_shown) {
            row(part.bytes, part.part.text());
        }
        if account.not_resident_bytes > 0 {
            row(all, "all of these");
            row(account.not_resident_bytes, NOT_RESIDENT);
        }
        row(account.resident_bytes, "resident");
        grid
    }

    fn others_grid(&self) -> Option<Grid> {
        let mut grid = Grid::new(&[("BYTES", Align::Right), ("OF THE REST OF RSS", Align::Left)]);
        for other in &self.others {
            grid.row(vec![text::bytes(Some(other.bytes)), other.what.to_owned()]);
        }
        (!self.others.is_empty()).then_some(grid)
    }

    fn label_grid(&self) -> Option<Grid> {
        let mut grid = Grid::new(&[
            ("HELD", Align::Right),
            ("LIVE", Align::Right),
            ("EPOCHS", Align::Right),
            ("LABELS THAT HOLD MOST", Align::Left),
        ]);
        for label in &self.labels {
            grid.row(vec![
                text::bytes(Some(label.held_bytes)),
                text::bytes(label.live_bytes),
                label.epochs.to_string(),
                text::label(label.text.as_deref()),
            ]);
        }
        (!self.labels.is_empty()).then_some(grid)
    }

    fn class_grid(&self) -> Option<Grid> {
        let mut grid = Grid::new(&[
            ("FREE", Align::Right),
            ("HELD", Align::Right),
            ("SLABS", Align::Right),
            ("SIZE CLASSES WITH MOST FREE MEMORY", Align::Left),
        ]);
        for class in &self.classes {
            grid.row(vec![
                text::bytes(Some(class.free_bytes)),
                text::bytes(Some(class.slab_bytes)),
                class.slabs.to_string(),
                format!("{} B", class.bytes),
            ]);
        }
        (!self.classes.is_empty()).then_some(grid)
    }
}

fn percent(part: u64, whole: u64) -> String {
    let whole = u128::from(whole.max(1));
    ((u128::from(part) * 100 + whole / 2) / whole).to_string()
}

fn rss<'a>(mappings: impl Iterator<Item = &'a Mapping>) -> u64 {
    mappings.map(|mapping| mapping.rss_bytes).fold(0, u64::saturating_add)
}

fn is_statistics(mapping: &Mapping) -> bool {
    mapping.name.starts_with("/dev/shm/tslab.")
}

fn kind_of(mapping: &Mapping) -> &'static str {
    let is_shared =
        |name: &str| ["/dev/shm/", "/memfd:", "/SYSV"].iter().any(|known| name.starts_with(known));
    match mapping.name.as_str() {
        "" => "memory of its own: stacks of threads, and what it maps itself",
        "[heap]" => "heap of the system (brk)",
        "[stack]" => "stack of the first thread",
        name if is_shared(name) => "shared memory",
        name if name.starts_with('/') => "files: the program and its libraries",
        _ => "what the kernel maps",
    }
}

fn others<'a>(mappings: impl Iterator<Item = &'a Mapping>) -> Vec<Other> {
    let mut kinds = BTreeMap::<_, u64>::new();
    for mapping in mappings.filter(|mapping| mapping.rss_bytes > 0) {
        let sum = kinds.entry(kind_of(mapping)).or_default();
        *sum = sum.saturating_add(mapping.rss_bytes);
    }
    let mut others: Vec<_> = kinds.into_iter().map(|(what, bytes)| Other { what, bytes }).collect();
    others.sort_by_key(|other| Reverse(other.bytes));
    others
}

fn labels(snapshot: &Snapshot) -> Vec<Label> {
    let mut labels = BTreeMap::<_, Label>::new();
    for epoch in &snapshot.epochs {
        let held = epoch.own_bytes.unwrap_or_default();
        let label = labels.entry(epoch.label.clone()).or_insert_with(|| Label {
            text: epoch.label.clone(),
            live_bytes: Some(0),
            ..Label::default()
        });
        let live = epoch.live.bytes;
        label.epochs += u64::from(epoch.is_the_programs());
        label.held_bytes = label.held_bytes.saturating_add(held);
        label.live_bytes = label.live_bytes.zip(live).map(|(sum, live)| sum.saturating_add(live));
    }
    let mut labels: Vec<_> = labels.into_values().filter(|label| label.held_bytes > 0).collect();
    labels.sort_by_key(|label| Reverse(label.held_bytes));
    labels.truncate(MOST_SHOWN);
    labels
}

// Free memory in slabs that heaps have, by size class: what is neither live, at hand nor on its
// way back.
fn classes(snapshot: &Snapshot) -> Vec<Class> {
    let class = |class: &crate::snapshot::Class| {
        let (bytes, slabs) = (class.bytes?, class.slabs?);
        let (slab_bytes, free_bytes) = (class.held_bytes()?, class.spare_bytes()?);
        (free_bytes > 0).then_some(Class { bytes, slabs, slab_bytes, free_bytes })
    };
    let mut classes: Vec<_> = snapshot.classes.iter().filter_map(class).collect();
    classes.sort_by_key(|class| Reverse(class.free_bytes));
    classes.truncate(MOST_SHOWN);
    classes
}

/// The report of a process with much and with little memory, whatever it is.
#[cfg(test)]
pub(super) fn of_any_memory(subject: &Subject) -> String {
    let memory = |rss_bytes| {
        let start = subject.snapshot.process_figure(process::REGION_AT).unwrap_or_default();
        let mapping = Mapping { start, end: u64::MAX, rss_bytes, ..Mapping::default() };
        match Report::of(subject, &[mapping]) {
            Ok(report) => report.text() + &text::json(&report).expect("JSON"),
            Err(unknown) => unknown.to_string(),
        }
    };
    memory(4096) + &memory(u64::MAX)
}
