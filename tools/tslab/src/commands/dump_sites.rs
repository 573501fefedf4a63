//! Who allocated the live blocks of a dump, as far as they were sampled: `samples` of the process's
//! statistics file, which gives each sampled block's call stack.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use anyhow::{Result, bail};
use serde::Serialize;

use super::survivors::Call;
use super::{Setting, Subject};
use crate::dump::file::Dump;
use crate::dump::heap::Block;
use crate::host;
use crate::modules::Maps;
use crate::names::Names;
use crate::rows::process;
use crate::sampling::{LiveSample, Sampling, whole};
use crate::text;

// In text; JSON has all.
const SHOWN_CALLS: usize = 3;
const SHOWN_SITES: usize = 20;

/// Live blocks of one class that were allocated by the same calls in epochs of one label.
#[derive(Debug, Serialize)]
pub(super) struct SiteLine {
    label: Option<String>,
    /// None: blocks of whole units.
    class_bytes: Option<u64>,
    /// How many live blocks were sampled.
    samples: u64,
    /// For how many they stand.
    estimated_objects: u64,
    /// How large these are.
    estimated_bytes: u64,
    /// Innermost first, without the allocator's own.
    calls: Vec<Call>,
}

/// What the statistics file says of a dump's blocks.
pub(super) struct Sites {
    sampling: Sampling,
    by_address: HashMap<u64, LiveSample>,
    live: Vec<LiveSample>,
    names: Names,
    /// What is missing in them.
    pub note: Option<String>,
}

impl Sites {
    /// Of the file that is named, else of the one that the process left here. `base`: where the
    /// dump's region begins. Where there is no such file, or it has no samples, a text says so.
    pub fn find(
        setting: &Setting,
        named: Option<&Path>,
        dump: &Dump,
        base: u64,
    ) -> Result<Result<Self, String>> {
        let found = match named {
            Some(path) => Some(named_file(setting, path, dump.pid, base)?),
            None => dump.pid.and_then(|pid| file_left(setting, pid, base)),
        };
        Ok(match found {
            None => Err(nothing_left(setting, dump.pid)),
            Some(subject) => Self::of(subject, dump).ok_or_else(|| {
                "who allocated is not known: the process did not sample its allocations \
                 (TSLAB_SAMPLE_BYTES=512K in its environment)"
                    .to_owned()
            }),
        })
    }

    fn of(subject: Subject, dump: &Dump) -> Option<Self> {
        let note = subject.partial_note();
        let sampling = subject.snapshot.sampling.filter(|sampling| !sampling.live.is_empty())?;
        let stacks = sampling.live.iter().flat_map(|live| sampling.sites[live.site].calls());
        let calls: BTreeSet<_> = stacks.collect();
        let maps = Maps::of_dump(dump.files.clone(), dump.written);
        let by_address = sampling.live.iter().map(|live| (live.address, *live)).collect();
        let names = Names::of(Some(&maps), &calls);
        Some(Self { sampling, by_address, live: Vec::new(), names, note })
    }

    /// Notes that a block lives. A sample of a block that does not is of another moment.
    pub fn add(&mut self, block: &Block) {
        self.live.extend(self.by_address.get(&block.address));
    }

    /// Who allocated the block at an address, if it was sampled.
    pub fn calls(&self, address: u64) -> Option<Vec<Call>> {
        Some(self.calls_of(self.by_address.get(&address)?))
    }

    fn calls_of(&self, live: &LiveSample) -> Vec<Call> {
        let calls = self.names.user_calls(&self.sampling.sites[live.site]);
        let lines = calls.iter().flat_map(|call| self.names.lines(*call));
        lines.map(|line| Call::of(&line)).collect()
    }

    /// Those that stand for more bytes first.
    pub fn lines(&self) -> Vec<SiteLine> {
        let mut groups = BTreeMap::<_, Vec<&LiveSample>>::new();
        for live in &self.live {
            let site = &self.sampling.sites[live.site];
            let key = (&site.label, site.class_bytes, self.calls_of(live));
            groups.entry(key).or_default().push(live);
        }
        let line = |((label, class_bytes, calls), group): ((&Option<String>, _, _), Vec<_>)| {
            let objects = |live: &&LiveSample| self.sampling.objects(live);
            let bytes = |live: &&LiveSample| objects(live) * crate::sampling::float(live.bytes);
            SiteLine {
                label: label.clone(),
                class_bytes,
                samples: group.len() as u64,
                estimated_objects: whole(group.iter().map(objects).sum()),
                estimated_bytes: whole(group.iter().map(bytes).sum()),
                calls,
            }
        };
        let mut lines: Vec<_> = groups.into_iter().map(line).collect();
        lines.sort_by_key(|line| Reverse(line.estimated_bytes));
        lines
    }

    /// Bytes from sample to sample on average.
    pub fn mean_bytes(&self) -> u64 {
        self.sampling.mean_bytes()
    }
}

fn region_at(subject: &Subject) -> Option<u64> {
    let mut figures = subject.snapshot.process.iter();
    figures.find(|figure| figure.name == process::REGION_AT.name)?.value
}

fn named_file(setting: &Setting, path: &Path, pid: Option<u32>, base: u64) -> Result<Subject> {
    let name = path.to_string_lossy();
    // A name of digits alone would be taken for a process.
    let target = if path.is_absolute() { name.into_owned() } else { format!("./{name}") };
    let subject = Subject::find(setting, &target)?;
    let own = subject.snapshot.header.pid;
    // Memory begins at one of few places; a process that has just made its file tells of none yet.
    let told = region_at(&subject).unwrap_or_default();
    if let Some(cause) = difference((own, told), (pid, base)) {
        bail!("{} is of another process: {cause}", text::printable(&target));
    }
    Ok(subject)
}

// Number and place that a file tells, and those of the dump.
fn difference((own, told): (u32, u64), (pid, base): (Option<u32>, u64)) -> Option<String> {
    if let Some(pid) = pid.filter(|&pid| pid != own) {
        return Some(format!("its number is {own}, that of the dump {pid}"));
    }
    let place = || format!("its memory begins at {told:#x}, that of the dump at {base:#x}");
    (told != base).then(place)
}

// Of several processes that had the number, the one whose memory lay where the dump's does.
fn file_left(setting: &Setting, pid: u32, base: u64) -> Option<Subject> {
    let entries = host::entries(&setting.directory).ok()?;
    let own = entries.iter().rev().filter(|entry| entry.pid == pid);
    let subjects = own.filter_map(|entry| Subject::of_entry(entry, pid).ok());
    subjects.into_iter().find(|subject| region_at(subject) == Some(base))
}

fn nothing_left(setting: &Setting, pid: Option<u32>) -> String {
    let whose = pid.map_or_else(|| "of it".to_owned(), |pid| format!("of process {pid}"));
    format!(
        "who allocated is not known: there is no statistics file {whose} in {}; name a copy with \
         --stats",
        setting.directory.display()
    )
}

/// For people.
pub(super) fn text(lines: &[SiteLine]) -> String {
    let line = |line: &SiteLine| {
        format!(
            "{:>12}  {:>10}  {}  {}\n",
            format!("~{}", line.estimated_objects),
            format!("~{}", text::bytes(Some(line.estimated_bytes))),
            text::label(line.label.as_deref()),
            calls_text(&line.calls)
        )
    };
    let shown: String = lines.iter().take(SHOWN_SITES).map(line).collect();
    match lines.len().checked_sub(SHOWN_SITES).filter(|&further| further > 0) {
        Some(further) => format!("{shown}{further} further sites: --json has them\n"),
        None => shown,
    }
}

/// The innermost calls in a line.
pub(super) fn calls_text(calls: &[Call]) -> String {
    let each = calls
        .iter()
        .take(SHOWN_CALLS)
        .map(|call| format!("{}  {}", call.name(), call.place()).trim_end().to_owned());
    each.collect::<Vec<_>>().join("  <-  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_of_the_dumped_process_by_number_and_place() {
        assert_eq!(difference((7, 0x1000), (Some(7), 0x1000)), None);
        assert_eq!(difference((7, 0x1000), (None, 0x1000)), None);
        let number = difference((8, 0x1000), (Some(7), 0x1000));
        assert_eq!(number.as_deref(), Some("its number is 8, that of the dump 7"));
        let place = difference((7, 0), (Some(7), 0x1000)).unwrap();
        assert_eq!(place, "its memory begins at 0x0, that of the dump at 0x1000");
    }
}
