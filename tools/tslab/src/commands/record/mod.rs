//! record: keeps what a process holds when it holds most, at intervals, when somebody asks, and as
//! it ends.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;

use super::{Answer, Setting, Subject, profile, run as launch, watch};
use crate::say::say;
use crate::text::{self, Align, Grid};

mod asked;
mod folder;
mod watched;

pub(super) use asked::Asked;
use folder::{Dump, Folder, Why};
pub(super) use watched::{Moment, Watched};

const POLL: Duration = Duration::from_millis(100);

// How often it is looked whether the process runs another program: every so many polls.
const POLLS_A_LOOK: u32 = 10;

/// What `record` is asked.
#[derive(Debug, Args)]
pub struct Arguments {
    /// A process
    #[arg(value_name = "PID", required_unless_present = "program", conflicts_with = "program")]
    target: Option<String>,

    /// A folder for the dumps, which is made
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,

    /// Dump at this interval, too
    #[arg(long, value_name = "SECONDS", value_parser = watch::interval)]
    every: Option<Duration>,

    /// By how many percent what is held must exceed the last peak to be dumped as the next one
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    peak: f64,

    /// The most bytes that all dumps take on the disk, such as 64M
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = most_bytes)]
    most: u64,

    /// Do not ask the process for samples while it is recorded
    #[arg(long, conflicts_with = "program")]
    no_samples: bool,

    /// The library to load into PROGRAM; otherwise as with `tslab run`
    #[arg(long, value_name = "FILE", requires = "program")]
    library: Option<PathBuf>,

    /// A program to start on the allocator, and its arguments
    #[arg(last = true)]
    program: Vec<OsString>,
}

const HELP: &str = "\
The dumps are folders in DIR:
  peak      what the process held when it held most; a new one replaces the last
  at-N      the Nth of an interval; the oldest make room for others, then the oldest signal-N
  signal-N  the Nth for which this command got SIGUSR1
  exit      what it held last
Each is named where other commands want a PID: `tslab stats DIR/peak`, `tslab profile DIR/peak`,
`tslab diff DIR/at-1 DIR/peak`. The process itself is recorded, not its children. Ctrl-C ends the
recording of a PID; a PROGRAM is recorded until it ends. It samples its allocations, a byte in
512 KiB: a PROGRAM if its environment does not say TSLAB_SAMPLE_BYTES; a PID, if it does not sample
all already, until the recording ends.

Exit status: 0; 2: something could not be done, or not be written";

/// What stands below the options.
pub fn help() -> &'static str {
    HELP
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if percent >= 0.0 && percent.is_finite() => Ok(percent),
        _ => Err("a percentage from 0 on is wanted".to_owned()),
    }
}

fn most_bytes(text: &str) -> Result<u64, String> {
    let bytes = profile::number_of_bytes(text).filter(|&bytes| bytes > 0);
    bytes.ok_or_else(|| "a number of bytes such as 64M is wanted".to_owned())
}

#[derive(Debug, Serialize)]
struct Report {
    pid: u32,
    name: Option<String>,
    directory: String,
    recorded_ms: u64,
    /// Whether the process had ended; otherwise the recording was.
    ended: bool,
    /// How the program ended that was started here.
    status: Option<String>,
    /// What the process says that it held at most since its file was made.
    peak_held_bytes: Option<u64>,
    bytes: u64,
    most_bytes: u64,
    /// Dumps that went again for lack of room, or never had any.
    dropped: u64,
    dumps: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    #[serde(rename = "dump")]
    name: String,
    why: Why,
    at_ms: u64,
    held_bytes: Option<u64>,
    live_bytes: Option<u64>,
    rss_bytes: Option<u64>,
    bytes: u64,
}

/// Records until the process ends or somebody interrupts.
pub fn run(setting: &Setting, arguments: &Arguments) -> Result<Answer> {
    let asked = Asked::listen()?;
    let (mut watched, mut folder) = begin(setting, arguments)?;
    announce(&watched, &folder);
    let mut recording = Recording {
        folder: &mut folder,
        begun: Instant::now(),
        every: arguments.every,
        intervals: 0,
        growth: 1.0 + arguments.peak / 100.0,
        peak_bytes: None,
        error: None,
    };
    let ended = recording.follow(&mut watched, &asked)?;
    let (recorded_ms, error) = (ms(recording.begun.elapsed()), recording.error);
    let report = Report::of(&watched, &mut folder, recorded_ms, ended)?;
    let failed = error.is_some() || report.dumps.is_empty();
    let mut notes = Vec::from_iter(error);
    notes.extend(report.notes());
    Ok(Answer { output: setting.output(&report, Report::text)?, notes, found: false, failed })
}

// What can be refused comes before a program is started.
fn begin(setting: &Setting, arguments: &Arguments) -> Result<(Watched, Folder)> {
    let make = || Folder::make(&arguments.output, arguments.most);
    if let Some(target) = &arguments.target {
        let (mut watched, folder) = (Watched::find(setting, target)?, make()?);
        if !arguments.no_samples {
            watched.ask_for_samples();
        }
        return Ok((watched, folder));
    }
    let command = launch::command(arguments.library.as_deref(), &arguments.program)?;
    let folder = make()?;
    Ok((Watched::start(setting, command)?, folder))
}

fn announce(watched: &Watched, folder: &Folder) {
    say(&format!(
        "recording process {} into {}, at most {}",
        watched.pid,
        text::printable(&folder.path.to_string_lossy()),
        text::bytes(Some(folder.most_bytes))
    ));
    if let Some(gap) = &watched.gap {
        say(gap);
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

// A process that is looked at again and again.
struct Recording<'a> {
    folder: &'a mut Folder,
    begun: Instant,
    every: Option<Duration>,
    // Of which dumps were made, or missed.
    intervals: u32,
    // What is held must be so many times the last peak.
    growth: f64,
    peak_bytes: Option<u64>,
    // The first that kept a dump from being written.
    error: Option<String>,
}

impl Recording<'_> {
    // Whether the process ended.
    fn follow(&mut self, watched: &mut Watched, asked: &Asked) -> Result<bool> {
        for poll in 0_u32.. {
            let ended = watched.has_ended();
            if ended || (poll.is_multiple_of(POLLS_A_LOOK) && !watched.look()) {
                self.dump(Why::Exit, watched);
                return Ok(true);
            }
            if asked.to_end() && !watched.is_ours() {
                return Ok(false);
            }
            watched.pass_on(asked)?;
            self.poll(watched, asked)?;
            std::thread::sleep(POLL);
        }
        Ok(false)
    }

    fn poll(&mut self, watched: &mut Watched, asked: &Asked) -> Result<()> {
        if asked.to_dump() {
            self.dump(Why::Signal, watched);
        }
        if self.is_time() {
            self.dump(Why::Interval, watched);
        }
        let held_bytes = watched.held_bytes()?;
        if self.is_peak(held_bytes) {
            self.peak_bytes = Some(held_bytes);
            self.dump(Why::Peak, watched);
        }
        Ok(())
    }

    // Of several intervals that were missed, one is made up for.
    fn is_time(&mut self) -> bool {
        let Some(every) = self.every else { return false };
        let due = self.begun.elapsed().as_millis() / every.as_millis();
        let due = u32::try_from(due).unwrap_or(u32::MAX);
        let is_due = due > self.intervals;
        self.intervals = self.intervals.max(due);
        is_due
    }

    #[expect(clippy::cast_precision_loss, reason = "a percentage is no exact number")]
    fn is_peak(&self, held_bytes: u64) -> bool {
        let exceeds =
            |peak: u64| held_bytes > peak && held_bytes as f64 > peak as f64 * self.growth;
        self.peak_bytes.is_none_or(exceeds)
    }

    fn dump(&mut self, why: Why, watched: &mut Watched) {
        let at_ms = ms(self.begun.elapsed());
        let kept =
            watched.copies(why, at_ms).and_then(|copies| self.folder.keep(why, at_ms, &copies));
        if let Err(error) = kept {
            self.error.get_or_insert_with(|| {
                let place = text::printable(&self.folder.path.to_string_lossy());
                format!("cannot write a dump to {place} ({error}): name another place with -o")
            });
        }
    }
}

// What the dumps tell; those with samples get a profile, in which functions have names.
fn rows(folder: &mut Folder) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for place in 0..folder.dumps.len() {
        let Dump { name, why, at_ms, .. } = folder.dumps[place].clone();
        let path = folder.path.join(&name);
        let subject = Subject::read(&path, true, None)
            .with_context(|| format!("cannot read {}", path.display()))?;
        if subject.snapshot.has_samples() {
            let json = text::json(&profile::report(&subject, &profile::of_subject(&subject)))?;
            let recorded = subject.recorded.as_ref().context("it is a folder")?;
            recorded.add("profile.json", json.as_bytes(), |bytes| folder.extend(place, bytes))?;
        }
        let totals = subject.snapshot.totals();
        rows.push(Row {
            name,
            why,
            at_ms,
            held_bytes: totals.held_bytes,
            live_bytes: totals.live_bytes,
            rss_bytes: subject.rss_bytes,
            bytes: folder.dumps[place].bytes,
        });
    }
    Ok(rows)
}

impl Report {
    fn of(watched: &Watched, folder: &mut Folder, recorded_ms: u64, ended: bool) -> Result<Self> {
        let dumps = rows(folder)?;
        Ok(Self {
            pid: watched.pid,
            name: watched.name.clone(),
            directory: folder.path.to_string_lossy().into_owned(),
            recorded_ms,
            ended,
            status: watched.status(),
            peak_held_bytes: watched.peak_held_bytes(),
            bytes: folder.bytes(),
            most_bytes: folder.most_bytes,
            dropped: folder.dropped,
            dumps,
        })
    }

    fn text(&self) -> String {
        let name = self.name.as_deref().map(text::printable).unwrap_or_default();
        let mut out = format!("recorded {}", format!("{name} {}", self.pid).trim_start());
        // Writing to a String does not fail.
        let _ = writeln!(
            out,
            " for {}, until {}: {}, {} of at most {}",
            text::age(Some(self.recorded_ms)),
            match (&self.status, self.ended) {
                (Some(status), _) => format!("it ended ({status})"),
                (None, true) => "it ended".to_owned(),
                (None, false) => "it was enough".to_owned(),
            },
            text::count(Some(self.dumps.len() as u64), "dump"),
            text::bytes(Some(self.bytes)),
            text::bytes(Some(self.most_bytes)),
        );
        out + &self.grid().render()
    }

    fn grid(&self) -> Grid {
        let mut grid = Grid::new(&[
            ("DUMP", Align::Left),
            ("WHY", Align::Left),
            ("AFTER", Align::Right),
            ("HELD", Align::Right),
            ("LIVE", Align::Right),
            ("RSS", Align::Right),
        ]);
        for row in &self.dumps {
            let path = PathBuf::from(&self.directory).join(&row.name);
            grid.row(vec![
                text::printable(&path.to_string_lossy()),
                row.why.text().to_owned(),
                text::age(Some(row.at_ms)),
                text::bytes(row.held_bytes),
                text::bytes(row.live_bytes),
                text::bytes(row.rss_bytes),
            ]);
        }
        grid
    }

    // What limits the dumps' worth.
    fn notes(&self) -> Vec<String> {
        let dropped = (self.dropped > 0).then(|| {
            format!(
                "{} for lack of room: --most allows more",
                text::count_of(
                    usize::try_from(self.dropped).unwrap_or(usize::MAX),
                    "dump is missing",
                    "dumps are missing"
                )
            )
        });
        let peak = self.dumps.iter().find(|row| row.why == Why::Peak);
        let recorded = peak.and_then(|row| row.held_bytes);
        let missed =
            self.peak_held_bytes.zip(recorded).filter(|(peak, held)| peak / 20 * 19 > *held);
        let missed = missed.map(|(peak, _)| {
            format!(
                "the process held {} before the recording began, or for less than {} ms",
                text::bytes(Some(peak)),
                POLL.as_millis()
            )
        });
        dropped.into_iter().chain(missed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(folder: &mut Folder, every: Option<Duration>, growth: f64) -> Recording<'_> {
        let begun = Instant::now();
        Recording { folder, begun, every, intervals: 0, growth, peak_bytes: None, error: None }
    }

    #[test]
    fn a_peak_is_higher_than_the_last_by_so_much() {
        let mut folder = Folder::nowhere();
        let mut recording = recording(&mut folder, None, 1.05);
        assert!(recording.is_peak(0));
        recording.peak_bytes = Some(1000);
        assert!(!recording.is_peak(1050) && recording.is_peak(1051) && !recording.is_peak(10));
        recording.growth = 1.0;
        assert!(!recording.is_peak(1000) && recording.is_peak(1001));
    }

    #[test]
    fn an_interval_comes_once() {
        let mut folder = Folder::nowhere();
        let hour = Duration::from_secs(3600);
        assert!(!recording(&mut folder, None, 1.0).is_time());
        assert!(!recording(&mut folder, Some(hour), 1.0).is_time());
        let mut recording = recording(&mut folder, Some(hour), 1.0);
        recording.every = Some(Duration::from_millis(1));
        std::thread::sleep(Duration::from_millis(5));
        assert!(recording.is_time());
        recording.every = Some(hour);
        assert!(!recording.is_time());
    }

    #[test]
    fn numbers_are_checked() {
        assert_eq!((most_bytes("64M"), percent("0.5")), (Ok(64 << 20), Ok(0.5)));
        for text in ["", "0", "-1", "x"] {
            assert!(most_bytes(text).is_err(), "{text}");
        }
        for text in ["", "-1", "nan", "inf"] {
            assert!(percent(text).is_err(), "{text}");
        }
    }
}
