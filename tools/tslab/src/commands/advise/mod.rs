//! advise: runs an unchanged program once, and says where in its source a scope belongs.

use std::env;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use serde::Serialize;

use super::record::{Asked, Moment, Watched};
use super::{Answer, Setting, profile, run as launch};
use crate::events::Events;
use crate::names::Names;
use crate::python;
use crate::sampling::{Sampling, float, whole};
use crate::say::say;
use crate::text;

mod apart;
mod groups;
mod idle;
mod patch;
mod phases;
mod places;
mod predicted;
mod program;
mod rounds;
mod spans;
mod stacks;
mod verdict;

use places::Place;
use predicted::{Course, Resident};
use rounds::Run;
use spans::{Phase, Spans, Thread};
use stacks::Stacks;
use verdict::{Kind, Verdict};

const POLL: Duration = Duration::from_millis(20);

// How often it is looked at what the process has mapped: every so many polls.
const POLLS_A_LOOK: u32 = 10;

// The label of the epoch that needs not be opened.
const DEFAULT: &str = "default";

// A second and thread.
const SAMPLES: &str = "20000";

/// What `advise` is asked.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Bytes from sample to sample on average; with fewer, shorter calls are told apart
    #[arg(long, value_name = "BYTES", default_value = "32K", value_parser = profile::parse_bytes)]
    bytes: u32,

    /// Write a patch sketch of the first place into this file
    #[arg(long, value_name = "FILE")]
    patch: Option<PathBuf>,

    /// The library to load into PROGRAM; otherwise as with `tslab run`
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,

    /// The program to run on the allocator until it ends, and its arguments
    #[arg(required = true, last = true)]
    program: Vec<OsString>,
}

const HELP: &str = "\
PROGRAM need not be changed, nor know epochs; debugging information (-g) names its lines. What it
prints comes out on stderr. Its allocations and their frees are sampled with call stacks, up to a
million events. A function is named when of what it allocates, what it calls included, nine of ten
bytes are dead before its next round, and a scope would save a tenth of what is resident; of several
inside each other, the innermost. Phases go from one moment at which little lives to the next.
Rounds are worked out from the samples, not counted: a function that calls another in a loop may
seem to have the rounds of the loop, and where calls are shorter than the space between samples,
several may seem to be one. Stacks are known up to 32 calls. What is resident is predicted for a
scope around each call with what outlives it made outside.

Exit status:
  0  done; 1: no epoch would help, or too little is known to say so; 2: something could not be
  done, as where nothing was sampled";

/// What stands below the options.
pub fn help() -> &'static str {
    HELP
}

#[derive(Debug, Serialize)]
struct Report {
    pid: u32,
    name: Option<String>,
    /// How the program ended.
    status: Option<String>,
    ran_ms: u64,
    sample_bytes: u64,
    samples: usize,
    /// For which there was no room.
    samples_lost: u64,
    /// What could not be told any more.
    events_cut: bool,
    /// The program opens epochs, and what these release is not known.
    has_epochs: bool,
    allocated_bytes: u64,
    resident: Resident,
    verdict: Verdict,
    places: Vec<Place>,
    /// Where no place was found: what comes closest.
    others: Vec<Place>,
    by_phase: Spans<Phase>,
    by_thread: Spans<Thread>,
}

/// Runs the program, and says what its samples tell.
pub fn run(setting: &Setting, arguments: &Arguments) -> Result<Answer> {
    let asked = Asked::listen()?;
    let mut command = launch::command(arguments.library.as_deref(), &arguments.program)?;
    check_program(Path::new(command.get_program()))?;
    command.env("TSLAB_SAMPLE_BYTES", arguments.bytes.to_string());
    command.env("TSLAB_SAMPLE_RATE", SAMPLES).env("TSLAB_SAMPLE_EVENTS", "1");
    command.stdout(io::stderr().as_fd().try_clone_to_owned()?);
    let begun = Instant::now();
    let mut watched = Watched::start(setting, command)?;
    let may_have_helper = watched.may_have_helper();
    let moments = follow(&mut watched, &asked)?;
    let ran_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let report = Report::of(&watched, Course { moments: &moments, may_have_helper }, ran_ms)?;
    if let Some(file) = &arguments.patch {
        write_patch(file, report.places.first())?;
    }
    let output = setting.output(&report, Report::text)?;
    let found = !report.verdict.helps();
    Ok(Answer { output, notes: report.notes(), found, failed: false })
}

fn check_program(program: &Path) -> Result<()> {
    if program::has_own_malloc(program) {
        bail!(
            "{} is linked statically to an allocator of its own, which its calls of malloc reach \
             instead of this one: link it without, to be advised on",
            text::printable(&program.to_string_lossy())
        );
    }
    if let Some(note) = python::note(program, env::var_os(python::VARIABLE).as_deref()) {
        say(&note);
    }
    Ok(())
}

// Also when there is nothing to write: a file from before would tell of another run.
fn write_patch(file: &Path, place: Option<&Place>) -> Result<()> {
    let lines = place.map(Place::patch).unwrap_or_default();
    let content: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    let shown = || format!("cannot write {}", text::printable(&file.to_string_lossy()));
    fs::write(file, content).with_context(shown)
}

fn follow(watched: &mut Watched, asked: &Asked) -> Result<Vec<Moment>> {
    let mut moments = Vec::new();
    for poll in 0_u32.. {
        if watched.has_ended() {
            break;
        }
        if poll.is_multiple_of(POLLS_A_LOOK) && !watched.look() {
            bail!("the program runs another one now, of which nothing is known: name that one");
        }
        watched.pass_on(asked)?;
        moments.extend(watched.moment());
        std::thread::sleep(POLL);
    }
    Ok(moments)
}

impl Report {
    fn of(watched: &Watched, course: Course, ran_ms: u64) -> Result<Self> {
        let segment = watched.segment()?;
        let older = || anyhow!("the library does not tell of events: use the one of this command");
        let sampling = Sampling::read(&segment)?.with_context(older)?;
        let events = Events::read(&segment)?.with_context(older)?;
        if events.all.is_empty() || course.moments.is_empty() {
            bail!(
                "nothing was sampled before the program ended ({}): give it more to do, or fewer \
                 --bytes",
                watched.status().unwrap_or_default()
            );
        }
        let calls = sampling.sites.iter().flat_map(crate::sampling::Site::calls).collect();
        let names = Names::of(watched.maps().as_ref(), &calls);
        let stacks = Stacks::of(&sampling.sites, &names);
        let objects = rounds::objects(&events, &sampling);
        let run = Run { events: &events.all, stacks: &stacks, objects: &objects };
        let (by_phase, by_thread) = (spans::by_phase(&run, course), spans::by_thread(&run, course));
        let mut places = places::find(&run, course);
        let span = by_phase.helps().then_some("phase");
        let span = span.or_else(|| by_thread.helps().then_some("thread"));
        let verdict = Verdict::of(&run, &places, span);
        if verdict.kind != Kind::Scope {
            places.found.clear();
        }
        places.vain.append(&mut places.others);
        Ok(Self {
            pid: watched.pid,
            name: watched.name.clone(),
            status: watched.status(),
            ran_ms,
            sample_bytes: sampling.mean_bytes(),
            samples: objects.len(),
            samples_lost: sampling.lost,
            events_cut: events.is_cut,
            has_epochs: sampling.sites.iter().any(|site| site.label.as_deref() != Some(DEFAULT)),
            allocated_bytes: whole(objects.iter().map(|object| object.bytes).sum()),
            resident: by_phase.measured,
            verdict,
            places: places.found,
            others: places.vain,
            by_phase,
            by_thread,
        })
    }

    fn text(&self) -> String {
        let name = self.name.as_deref().map(text::printable).unwrap_or_default();
        let mut out = format!(
            "{name} {} ran for {} ({}): {} samples of {} allocated\n\
             resident: {} at the peak, {} at the lowest behind it\n\n{}\n",
            self.pid,
            text::age(Some(self.ran_ms)),
            self.status.as_deref().unwrap_or_default(),
            text::rate(float(self.samples as u64)),
            text::bytes(Some(self.allocated_bytes)),
            text::bytes(Some(self.resident.peak_bytes)),
            text::bytes(Some(self.resident.trough_bytes)),
            self.verdict.text,
        );
        for (number, place) in self.places.iter().enumerate() {
            // Writing to a String does not fail.
            let _ = write!(out, "\n{}. {}", number + 1, place.text(true));
        }
        if self.verdict.kind == Kind::Outlives {
            self.others.iter().for_each(|place| out.push_str(&place.text(false)));
        }
        if self.verdict.kind != Kind::Thin {
            self.add_spans(&mut out);
        }
        out
    }

    fn add_spans(&self, out: &mut String) {
        if self.by_phase.count > 1 {
            out.push_str(&self.by_phase.text("phase"));
        }
        for phase in self.by_phase.largest.iter().filter(|_| self.by_phase.count > 1) {
            out.push_str(&phase.text());
        }
        if self.by_thread.count > 1 {
            out.push_str(&self.by_thread.text("thread"));
        }
        for thread in self.by_thread.largest.iter().filter(|_| self.by_thread.count > 1) {
            out.push_str(&thread.text());
        }
    }

    fn notes(&self) -> Vec<String> {
        let cut = "there were more events than the file has room for, and what came later is not \
                   known: run the program for a shorter time, or with more --bytes";
        let epochs = "the program opens epochs already, and of what these release it is not known \
                      when it ended: read the advice for what lies outside of them";
        let lost = "some samples found no room: run the program with more --bytes";
        let idle = "a program that is silent gives no memory back, and what epochs leave stays \
                    idle: TSLAB_HELPER=always in its environment gives it back";
        let stays = self.places.iter().chain(&self.others).any(Place::leaves_idle);
        let notes = [
            (stays, idle),
            (self.events_cut, cut),
            (self.has_epochs, epochs),
            (self.samples_lost > 0, lost),
        ];
        notes.iter().filter(|(is_so, _)| *is_so).map(|(_, note)| (*note).to_owned()).collect()
    }
}
