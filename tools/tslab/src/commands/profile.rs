//! profile: who allocates, and who allocated what lives, for tools that draw call stacks.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::{Answer, NotFound, Setting, Subject};
use crate::control::Wish;
use crate::host::{self, Life};
use crate::modules::Maps;
use crate::names::Names;
use crate::profile::filter::{self, Filter};
use crate::profile::lifetimes;
use crate::profile::{Profile, View, calls_of, folded, heap_v2, pprof};
use crate::rows::NO_SAMPLES;
use crate::sampling::{Sampling, Site, whole};
use crate::text;

// What the library takes (option sample_bytes).
const LEAST_BYTES: u64 = 4096;
const MOST_BYTES: u64 = 1 << 31;

mod report;

pub use report::report;

const TICK: Duration = Duration::from_millis(50);
const MOST_FILES: u32 = 9999;

/// What a profile is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For `pprof`: a gzip'd protocol buffer with names
    Pprof,
    /// For `pprof` and `jeprof`: the text of gperftools, without names
    #[value(name = "heap_v2")]
    HeapV2,
    /// For flame graphs: a stack a line, with bytes
    Folded,
    /// For programs
    Json,
}

impl Format {
    fn ending(self) -> &'static str {
        match self {
            Self::Pprof => "pb.gz",
            Self::HeapV2 => "heap",
            Self::Folded => "folded",
            Self::Json => "json",
        }
    }

    fn shown_by(self) -> Option<&'static str> {
        match self {
            Self::Pprof => Some("go tool pprof -http=:"),
            Self::HeapV2 => Some("go tool pprof -http=: PROGRAM"),
            Self::Folded => Some("inferno-flamegraph < "),
            Self::Json => None,
        }
    }
}

/// Which process, for how long, and what becomes of it.
#[derive(Args, Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Arguments {
    /// A process, or the path of a statistics file
    #[arg(value_name = "PID")]
    target: String,

    /// Where to write; `-`: standard output [default: tslab.PID.NUMBER.pb.gz, or as FORMAT ends]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// How long to sample that often, if the process does not already; 0: show what was sampled so
    /// far
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    seconds: u32,

    /// Bytes from sample to sample on average, such as 64K
    #[arg(long, value_name = "BYTES", default_value = "512K", value_parser = parse_bytes)]
    bytes: u32,

    /// What to write
    #[arg(long, value_enum, default_value_t = Format::Pprof)]
    format: Format,

    /// In `folded` count what lives, and let `pprof` show that first: the default
    #[arg(long, conflicts_with = "cumulative")]
    live: bool,

    /// In `folded` count all that was allocated, and let `pprof` show that first
    #[arg(long)]
    cumulative: bool,

    /// Show on standard output how long freed blocks lived and how old those are that live, the
    /// stacks with most that died within 10 ms first
    #[arg(long, conflicts_with_all = ["output", "format", "cumulative"])]
    lifetimes: bool,

    #[command(flatten)]
    filter: Filter,

    /// Let the process go on sampling
    #[arg(long, conflicts_with = "stop")]
    keep: bool,

    /// Show what was sampled, and let the process end sampling, whoever asked for it
    #[arg(long)]
    stop: bool,
}

/// A number of bytes, perhaps with K, M or G behind it.
pub(super) fn number_of_bytes(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 1 << 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 1 << 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// The same, as far as the library takes it for the distance of samples.
pub(super) fn parse_bytes(text: &str) -> Result<u32> {
    let bytes = number_of_bytes(text);
    let bytes = bytes.filter(|bytes| (LEAST_BYTES..=MOST_BYTES).contains(bytes));
    let bytes = bytes.and_then(|bytes| u32::try_from(bytes).ok());
    bytes.ok_or_else(|| anyhow!("a number of bytes from 4K to 2G is needed"))
}

/// What a process sampled, with names as far as it runs; nothing if it did not sample.
pub fn of_subject(subject: &Subject) -> Profile {
    let empty = Sampling::default();
    let sampling = subject.snapshot.sampling.as_ref().unwrap_or(&empty);
    Profile::of(sampling, names(subject, &calls_of(sampling)), subject.as_of_ms)
}

/// Names for calls of a process: one that runs tells them, or what was recorded of it.
pub(super) fn names(subject: &Subject, calls: &BTreeSet<u64>) -> Names {
    let maps = match &subject.recorded {
        _ if calls.is_empty() => None,
        Some(recorded) => recorded.maps(),
        None if subject.life == Life::Alive => Maps::of_process(subject.pid),
        None => None,
    };
    Names::of(maps.as_ref(), calls)
}

/// The samples that a process has taken so far, in JSON, also if it has stopped sampling. Fails
/// with `NotFound` when there are none.
pub fn so_far(setting: &Setting, target: &str) -> Result<Answer> {
    let subject = find_sampled(setting, target)?;
    let output = text::json(&report(&subject, &of_subject(&subject)))?;
    Ok(Answer { output, ..Answer::default() })
}

/// The same for `pprof`.
pub fn pprof_so_far(setting: &Setting, target: &str) -> Result<Vec<u8>> {
    let subject = find_sampled(setting, target)?;
    let look = Look { subject, asked_for: None, before_bytes: 0, has_earlier: true, goes_on: true };
    Ok(pprof::bytes(&of_subject(&look.subject), &look.frame(View::Live))?)
}

fn find_sampled(setting: &Setting, target: &str) -> Result<Subject> {
    let subject = Subject::find(setting, target)?;
    if subject.has_profile() {
        return Ok(subject);
    }
    let pid = subject.pid;
    let none = || format!("process {pid} has not sampled any allocation");
    let why = subject.partial_note().unwrap_or_else(none);
    Err(NotFound(format!("{why}: `tslab profile {pid} --keep` lets it sample all")).into())
}

/// Writes a profile, after sampling for a while if need be.
pub fn run(setting: &Setting, arguments: &Arguments) -> Result<Answer> {
    if setting.json && !matches!(arguments.format, Format::Json | Format::Pprof) {
        bail!("--json and --format do not agree: leave one of them out");
    }
    let mut look = Look::take(Subject::find(setting, &arguments.target)?, arguments)?;
    let empty = look.leave(&arguments.filter);
    let profile = of_subject(&look.subject);
    let mut answer = if profile.mean_bytes == 0 && arguments.stop {
        Answer::default()
    } else {
        look.write(&profile, setting, arguments)?
    };
    let subject = &look.subject;
    if arguments.stop {
        Wish::make(&subject.path, NO_SAMPLES)?.keep();
        answer.notes.push(format!("process {} is asked to end sampling", subject.pid));
    }
    answer.notes.extend(subject.notes());
    answer.notes.extend(look.notes(&profile));
    answer.notes.extend(empty);
    Ok(answer)
}

// A process whose samples are to be shown.
struct Look {
    subject: Subject,
    // How long was waited for them, if they were asked for.
    asked_for: Option<Duration>,
    // How often it sampled before that; 0: not at all.
    before_bytes: u64,
    // Samples from before that are among them.
    has_earlier: bool,
    goes_on: bool,
}

impl Look {
    fn take(subject: Subject, arguments: &Arguments) -> Result<Self> {
        let Some(sampling) = &subject.snapshot.sampling else {
            bail!(
                "process {} runs on version {} of the library, which does not sample",
                subject.pid,
                text::printable(&subject.snapshot.header.version)
            );
        };
        let is_alive = subject.life == Life::Alive;
        let may_ask = is_alive && arguments.seconds > 0 && !arguments.stop;
        if may_ask && !samples_as_often(sampling, arguments.bytes) {
            return Self::ask(&subject, sampling, arguments);
        }
        if sampling.weight_bytes == 0 && !arguments.stop {
            bail!(
                "process {} has not sampled any allocation: {}",
                subject.pid,
                if is_alive { "leave --seconds out" } else { WITHOUT_SAMPLES }
            );
        }
        Ok(Self { subject, asked_for: None, before_bytes: 0, has_earlier: true, goes_on: false })
    }

    fn ask(subject: &Subject, before: &Sampling, arguments: &Arguments) -> Result<Self> {
        announce(subject, arguments);
        let wish = Wish::make(&subject.path, arguments.bytes)?;
        let waited = wait(subject, Duration::from_secs(arguments.seconds.into()))?;
        let mut after = Subject::of_file(wish.file()?, &subject.path, Some(subject.pid))?;
        if arguments.keep {
            wish.keep();
        } else {
            drop(wish);
        }
        let sampling = after.snapshot.sampling.clone().unwrap_or_default();
        if !samples_as_often(&sampling, arguments.bytes) && sampling.taken == before.taken {
            bail!(
                "process {} did not begin to sample within {}: it allocated nothing for which \
                 its threads needed memory, or its library is the secure build; \
                 try again with more --seconds while it is busy",
                subject.pid,
                text::age(u64::try_from(waited.as_millis()).ok())
            );
        }
        after.snapshot.sampling = Some(sampling.since(before));
        Ok(Self {
            subject: after,
            asked_for: Some(waited),
            before_bytes: before.sample_bytes,
            has_earlier: !before.live.is_empty(),
            goes_on: arguments.keep,
        })
    }

    // Leaves what is wanted, and says what there is when that is nothing.
    fn leave(&mut self, filter: &Filter) -> Option<String> {
        let sampling = self.subject.snapshot.sampling.as_mut()?;
        let all = sampling.clone();
        filter.apply(sampling, self.subject.as_of_ms);
        let is_left = |site: &Site| site.allocations > 0;
        let was_any = all.sites.iter().any(is_left);
        let is_none = sampling.live.is_empty() && !sampling.sites.iter().any(is_left);
        (was_any && is_none).then(|| filter::nothing_note(&all))
    }

    // What limits the profile's worth.
    fn notes(&self, profile: &Profile) -> Vec<String> {
        let pid = self.subject.pid;
        let mut notes = Vec::new();
        let may_be_named = self.subject.life == Life::Alive || self.subject.recorded.is_some();
        if !may_be_named && !profile.samples.is_empty() {
            notes.push("functions are not named, since no process runs to look them up in".into());
        }
        notes.extend(self.subject.hidden_note());
        if self.asked_for.is_some() {
            notes.push(match self.before_bytes {
                0 if self.has_earlier => format!(
                    "of what process {pid} allocated before it was asked the profile has a part \
                     at most"
                ),
                0 => format!(
                    "what process {pid} allocated before it was asked to sample is not in the \
                     profile"
                ),
                bytes => format!(
                    "of what process {pid} allocated before it was asked the profile has what \
                     lives, by samples of a byte in {}",
                    text::bytes(Some(bytes))
                ),
            });
        }
        notes.extend(self.partial_note());
        if self.goes_on {
            notes.push(format!(
                "process {pid} goes on sampling; `tslab profile {pid} --stop` ends that"
            ));
        }
        if profile.lost > 0 {
            notes.push(format!(
                "{} further samples were lost, since the tables are full: sample with more --bytes",
                profile.lost
            ));
        }
        notes
    }

    // Of a process that was asked for all just now something else is said.
    fn partial_note(&self) -> Option<String> {
        let note = self.subject.partial_note()?;
        match self.asked_for {
            Some(_) => (self.before_bytes != 0).then_some(note),
            None if self.subject.may_sample_more() => Some(note + ": leave --seconds out"),
            None => Some(note),
        }
    }

    fn write(&self, profile: &Profile, setting: &Setting, arguments: &Arguments) -> Result<Answer> {
        if arguments.lifetimes && !setting.json {
            return Ok(Answer { output: self.lifetimes(profile), ..Answer::default() });
        }
        let format = if setting.json { Format::Json } else { arguments.format };
        let bytes = self.bytes(profile, format, arguments)?;
        let is_standard = match &arguments.output {
            Some(path) => path == Path::new("-"),
            None => setting.json,
        };
        if is_standard {
            show(&bytes, format)?;
            return Ok(Answer::default());
        }
        let (mut file, path) = match &arguments.output {
            Some(path) => (create(path)?, path.clone()),
            None => create_numbered(self.subject.pid, format)?,
        };
        let written = file.write_all(&bytes);
        written.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Answer { output: summary(profile, format, &path), ..Answer::default() })
    }

    fn bytes(&self, profile: &Profile, format: Format, arguments: &Arguments) -> Result<Vec<u8>> {
        let view = if arguments.cumulative { View::Cumulative } else { View::Live };
        Ok(match format {
            Format::Pprof => pprof::bytes(profile, &self.frame(view))?,
            Format::HeapV2 => heap_v2::text(profile).into_bytes(),
            Format::Folded => folded::text(profile, view).into_bytes(),
            Format::Json => text::json(&report(&self.subject, profile))?.into_bytes(),
        })
    }

    fn lifetimes(&self, profile: &Profile) -> String {
        let sampling = self.subject.snapshot.sampling.as_ref();
        let text = |sampling| lifetimes::text(sampling, profile, self.subject.as_of_ms);
        sampling.map(text).unwrap_or_default()
    }

    fn frame(&self, view: View) -> pprof::Frame {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ago = Duration::from_millis(host::now_ms().saturating_sub(self.subject.as_of_ms));
        pprof::Frame {
            time_nanos: nanos(now.saturating_sub(ago)),
            duration_nanos: nanos(self.asked_for.unwrap_or_default()),
            gap: self.subject.partial_note(),
            view,
        }
    }
}

const WITHOUT_SAMPLES: &str = "start it with TSLAB_SAMPLE_BYTES=512K in its environment";

// What people read of it.
fn summary(profile: &Profile, format: Format, path: &Path) -> String {
    let total = profile.total();
    let amount = |bytes, objects| {
        format!("{} in {}", text::bytes(Some(whole(bytes))), objects_text(whole(objects)))
    };
    let path = text::printable(&path.to_string_lossy());
    let shown_by = format.shown_by().map(|tool| format!("show it: {tool} {path}\n"));
    let allocated = (total.alloc_objects > 0.0)
        .then(|| format!("allocated  about {}\n", amount(total.alloc_bytes, total.alloc_objects)));
    format!(
        "wrote {path}: {}, a byte in {} on average, of {}\n\
         live       about {}\n{}{}",
        text::count(Some(profile.taken), "sample"),
        text::bytes(Some(profile.mean_bytes)),
        text::count(Some(profile.stacks() as u64), "call stack"),
        amount(total.bytes, total.objects),
        allocated.unwrap_or_default(),
        shown_by.unwrap_or_default()
    )
}

fn objects_text(objects: u64) -> String {
    text::count(Some(objects), "object")
}

// What takes long is said before. Nobody is left to tell when standard error is closed.
fn samples_as_often(sampling: &Sampling, bytes: u32) -> bool {
    sampling.sample_bytes != 0 && sampling.sample_bytes <= u64::from(bytes)
}

fn announce(subject: &Subject, arguments: &Arguments) {
    let _ = writeln!(
        io::stderr(),
        "tslab: process {} samples its allocations for {} s, a byte in {} on average; Ctrl-C ends \
         that early",
        subject.pid,
        arguments.seconds,
        text::bytes(Some(arguments.bytes.into())),
    );
}

// Until the time is over, somebody interrupts, or the process has ended. Later on an interrupt ends
// this command, as if nobody had caught it.
fn wait(subject: &Subject, time: Duration) -> Result<Duration> {
    let (is_interrupted, is_over) =
        (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&is_over))?;
        signal_hook::flag::register(signal, Arc::clone(&is_interrupted))?;
    }
    let began = Instant::now();
    let start_ticks = subject.snapshot.header.start_ticks;
    while let Some(left) = time.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
        if is_interrupted.load(Ordering::Relaxed) || !host::runs(subject.pid, start_ticks) {
            break;
        }
        thread::sleep(left.min(TICK));
    }
    is_over.store(true, Ordering::Relaxed);
    Ok(began.elapsed())
}

fn show(bytes: &[u8], format: Format) -> Result<()> {
    let mut out = io::stdout().lock();
    if format == Format::Pprof && out.is_terminal() {
        bail!("standard output is a terminal, which shows no such file: name one with -o");
    }
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("cannot write the output")
        }
        _ => Ok(()),
    }
}

// Labels and names of functions are for the user alone, as the statistics file is.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

fn create(path: &Path) -> Result<File> {
    let file = options().create(true).truncate(true).open(path);
    file.with_context(|| format!("cannot write {}", path.display()))
}

// The first name that is free: what was written before stays.
fn create_numbered(pid: u32, format: Format) -> Result<(File, PathBuf)> {
    for number in 1..=MOST_FILES {
        let path = PathBuf::from(format!("tslab.{pid}.{number}.{}", format.ending()));
        match options().create_new(true).open(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => {
                let advice = format!("cannot write {}: name another place with -o", path.display());
                return Err(error).context(advice);
            }
            Ok(file) => return Ok((file, path)),
        }
    }
    bail!("there are {MOST_FILES} profiles of process {pid} here: name a file with -o")
}

/// What can be shown of the profile of a damaged file.
#[cfg(test)]
pub(super) fn every_format(subject: &Subject) -> String {
    let profile = of_subject(subject);
    let gap = subject.partial_note();
    let frame = pprof::Frame { time_nanos: 0, duration_nanos: 0, gap, view: View::Live };
    assert!(pprof::bytes(&profile, &frame).is_ok());
    let texts = [
        text::json(&report(subject, &profile)).expect("it can be written"),
        folded::text(&profile, View::Cumulative),
        heap_v2::text(&profile),
        subject
            .snapshot
            .sampling
            .as_ref()
            .map_or_else(String::new, |one| lifetimes::text(one, &profile, subject.as_of_ms)),
    ];
    texts.concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{TOLD_MS, sampled};

    fn subject() -> Subject {
        Subject::of_bytes(sampled().bytes())
    }

    #[test]
    fn sizes_are_understood() {
        let sizes = [("4096", 4096), ("64K", 65_536), ("1m", 1 << 20), ("2G", 1 << 31)];
        for (text, bytes) in sizes {
            assert_eq!(parse_bytes(text).unwrap(), bytes);
        }
        for text in ["", "K", "4095", "3G", "1T", "-1", "99999999999999999999", "4.5M", "64ü"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_format_is_written() {
        let mut look = Look {
            subject: subject(),
            asked_for: Some(Duration::from_secs(1)),
            before_bytes: 0,
            has_earlier: false,
            goes_on: true,
        };
        let arguments = Arguments {
            target: String::new(),
            output: None,
            seconds: 1,
            bytes: 4096,
            format: Format::Pprof,
            live: false,
            cumulative: true,
            lifetimes: false,
            filter: Filter::default(),
            keep: false,
            stop: false,
        };
        let profile = of_subject(&look.subject);
        let start = |format| look.bytes(&profile, format, &arguments).unwrap()[..9].to_vec();
        assert!(start(Format::Pprof).starts_with(&[0x1f, 0x8b]));
        assert_eq!(start(Format::HeapV2), b"heap prof");
        assert_eq!(start(Format::Folded), b"0x2000;0x");
        assert_eq!(start(Format::Json), b"{\n  \"pid\"");
        let summary = summary(&profile, Format::Pprof, Path::new("a\nb"));
        let expected = "wrote a\\nb: 40 samples, a byte in 4.0 KiB on average, of 4 call stacks\n\
                        live       about 118.0 KiB in 148 objects\n";
        assert!(summary.starts_with(expected), "{summary}");
        assert_eq!(look.notes(&profile).len(), 4);
        assert!(look.notes(&profile)[1].ends_with("is not in the profile"));
        look.has_earlier = true;
        assert!(look.notes(&profile)[1].ends_with("has a part at most"));
        look.before_bytes = 1 << 21;
        assert!(look.notes(&profile)[1].ends_with("by samples of a byte in 2.0 MiB"));
    }

    // What a process says of itself, and what is said of its samples when nobody asks for others.
    #[test]
    fn what_is_missing_in_samples_of_a_part_is_said() {
        let note = |told: &[(&str, u64)]| {
            let mut image = sampled();
            image.set_all("process", 0, told);
            let mut subject = Subject::of_bytes(image.bytes());
            subject.life = Life::Alive;
            let (asked_for, before_bytes) = (None, 0);
            let look = Look { subject, asked_for, before_bytes, has_earlier: true, goes_on: false };
            look.partial_note()
        };
        let since = ("sampling_since_ms", TOLD_MS - 5_000);
        assert_eq!(note(&[("sample_bytes", 4096)]), None);
        let watched = note(&[("watch_bytes", 4096), since]).unwrap();
        assert!(watched.starts_with("process 42 samples only epochs of labels whose"), "{watched}");
        assert!(watched.ends_with("asked for more: leave --seconds out"), "{watched}");
        let ended = note(&[since]).unwrap();
        assert!(ended.starts_with("process 42 has sampled nothing for 5.0 s"), "{ended}");
        let begun = note(&[("sample_bytes", 4096), since]).unwrap();
        let expected = "of what process 42 allocated more than 5.0 s ago there are samples of a \
                        part at most";
        assert_eq!(begun, expected);
    }
}
