//! The process that is recorded. Its statistics file stays open, and can be read when it has gone.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::asked::Asked;
use super::folder::Why;
use crate::commands::{NotFound, Setting, Subject, run as launch};
use crate::control::Wish;
use crate::helper::Helper;
use crate::host::{self, Life};
use crate::modules::Maps;
use crate::python;
use crate::recorded::{About, Copies, maps_of, program_of};
use crate::rows::{Field, process};
use crate::segment::{Segment, Source};
use crate::smaps;
use crate::text;

// A file is not there before its process has some memory.
const WAIT: Duration = Duration::from_millis(2);

// A file that is being made cannot be read at once.
const MOST_LOOKS: u32 = 1000;

/// It samples from its beginning on, if its environment says nothing else.
const SAMPLE: (&str, &str) = ("TSLAB_SAMPLE_BYTES", "512K");

/// The same, of a process that runs already.
const SAMPLE_BYTES: u32 = 512 << 10;

/// What is resident at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// Memory that is no file's.
    pub anonymous_bytes: u64,
    /// Of it, where blocks lie.
    pub blocks_bytes: u64,
    /// Of them, what nobody uses and has not gone back.
    pub idle_bytes: u64,
    /// `CLOCK_MONOTONIC` when a thread last told of itself, which then gives memory back, too.
    pub told_ms: u64,
    /// Whether the process has several threads.
    pub has_threads: bool,
}

/// A process, whether it runs or not.
#[derive(Debug)]
pub struct Watched {
    /// Its number here.
    pub pid: u32,
    /// As the system names it.
    pub name: Option<String>,
    /// What its dumps cannot tell of who allocated; None: nothing.
    pub gap: Option<String>,
    may_sample_more: bool,
    wish: Option<Wish>,
    start_ticks: u64,
    path: PathBuf,
    file: File,
    segment: Segment<File>,
    program: Option<String>,
    maps: Option<String>,
    child: Option<Child>,
    status: Option<ExitStatus>,
}

impl Watched {
    /// A process that runs.
    pub fn find(setting: &Setting, target: &str) -> Result<Self> {
        let subject = Subject::find(setting, target)?;
        if subject.life != Life::Alive {
            bail!(
                "process {} has ended, or runs another program now: `tslab stats` shows what its \
                 file says",
                subject.pid
            );
        }
        Self::of(&subject, host::open(&subject.path, false)?)
    }

    /// Starts a program, and waits until it has a file.
    pub fn start(setting: &Setting, mut command: Command) -> Result<Self> {
        let is_said = command.get_envs().any(|(name, _)| name == SAMPLE.0);
        if !is_said && std::env::var_os(SAMPLE.0).is_none() {
            command.env(SAMPLE.0, SAMPLE.1);
        }
        let mut child = command.spawn().with_context(|| launch::cannot_start(&command))?;
        let program = text::printable(&command.get_program().to_string_lossy());
        // Until it is waited for, nobody else gets its number.
        let start_ticks = host::start_ticks(child.id());
        for look in 1.. {
            let status = child.try_wait()?;
            match first_look(setting, child.id(), start_ticks) {
                Ok((subject, file)) => {
                    return Ok(Self { child: Some(child), status, ..Self::of(&subject, file)? });
                }
                Err(error) if status.is_none() && (is_absent(&error) || look < MOST_LOOKS) => {}
                Err(error) if is_absent(&error) => break,
                Err(error) => return Err(error.context(format!("{program} is not recorded"))),
            }
            std::thread::sleep(WAIT);
        }
        bail!(
            "{program} ended ({}) before it had a statistics file: it allocated next to nothing, \
             or was over at once, or its files lie elsewhere, which --directory names",
            child.wait()?
        );
    }

    fn of(subject: &Subject, file: File) -> Result<Self> {
        Ok(Self {
            pid: subject.pid,
            name: subject.name.clone(),
            gap: gap(subject),
            may_sample_more: subject.may_sample_more(),
            wish: None,
            start_ticks: subject.snapshot.header.start_ticks,
            path: subject.path.clone(),
            segment: Segment::open(file.try_clone()?)?,
            file,
            program: program_of(subject.pid),
            maps: maps_of(subject.pid),
            child: None,
            status: None,
        })
    }

    /// Asks it for samples of all for as long as it is watched, if it does not take them.
    pub fn ask_for_samples(&mut self) {
        if !self.may_sample_more {
            return;
        }
        self.gap = Some(match Wish::make(&self.path, SAMPLE_BYTES) {
            Ok(wish) => {
                self.wish = Some(wish);
                format!(
                    "process {} samples its allocations until the recording ends, a byte in {} on \
                     average, unless --no-samples is given; of what it allocated before dumps \
                     tell a part at most",
                    self.pid,
                    text::bytes(Some(SAMPLE_BYTES.into()))
                )
            }
            Err(error) => format!("dumps cannot say who allocated: {error:#}"),
        });
    }

    /// Whether it was started here.
    pub fn is_ours(&self) -> bool {
        self.child.is_some()
    }

    /// How it ended, if it was started here.
    pub fn status(&self) -> Option<String> {
        self.status.map(|status| status.to_string())
    }

    /// Whether it is gone.
    pub fn has_ended(&mut self) -> bool {
        if let Some(child) = &mut self.child {
            self.status = self.status.or_else(|| child.try_wait().ok().flatten());
            return self.status.is_some();
        }
        !host::runs(self.pid, self.start_ticks)
    }

    /// Looks at what it has mapped. False when it runs another program now.
    pub fn look(&mut self) -> bool {
        let maps = maps_of(self.pid);
        let is_alive = host::life(self.pid, self.start_ticks, &self.path) != Life::Stale;
        if is_alive && maps.is_some() {
            self.maps = maps;
        }
        is_alive
    }

    /// Passes SIGTERM on to a program that was started here. Ctrl-C reaches it anyway.
    pub fn pass_on(&self, asked: &Asked) -> Result<()> {
        let pid = self.child.as_ref().and_then(|child| Pid::from_raw(child.id().cast_signed()));
        match pid {
            Some(pid) if asked.to_terminate() => Ok(kill_process(pid, Signal::TERM)?),
            _ => Ok(()),
        }
    }

    /// What it holds now: what was opened, and is neither nobody's nor cached.
    pub fn held_bytes(&self) -> Result<u64> {
        let [open, free, cached] =
            self.figures([process::OPEN_BYTES, process::FREE_BYTES, process::CACHED_BYTES])?;
        let idle = free.unwrap_or_default().saturating_add(cached.unwrap_or_default());
        Ok(open.unwrap_or_default().saturating_sub(idle))
    }

    /// What it says that it held at most.
    pub fn peak_held_bytes(&self) -> Option<u64> {
        self.figures([process::PEAK_HELD_BYTES]).ok().and_then(|[peak]| peak)
    }

    fn figures<const N: usize>(&self, fields: [Field; N]) -> Result<[Option<u64>; N]> {
        let rows = self.segment.rows(process::TABLE)?;
        Ok(fields.map(|field| rows.as_ref()?.column(field)?.get(0)))
    }

    /// Its file with all rows that it has by now.
    pub fn segment(&self) -> Result<Segment<File>> {
        Ok(Segment::open(self.file.try_clone()?)?)
    }

    /// What it had mapped when it was last looked at.
    pub fn maps(&self) -> Option<Maps> {
        Some(Maps::of_copy(self.maps.clone()?, self.program.clone()))
    }

    /// Whether a helper gives memory back, or may come to.
    pub fn may_have_helper(&self) -> bool {
        Helper::of(self.pid) != Some(Helper::Never)
    }

    /// What is resident of it now; None when it has gone.
    pub fn moment(&self) -> Option<Moment> {
        let mappings = smaps::of_process(self.pid).ok()?;
        let places = self.figures([process::BLOCKS_AT, process::BLOCKS_BYTES]).ok()?;
        let idle = self.figures([process::DIRTY_BYTES, process::CACHED_BYTES]).ok()?;
        let [Some(start), Some(bytes)] = places else { return None };
        let blocks = start..start.saturating_add(bytes);
        let of_blocks = mappings.iter().filter(|mapping| blocks.contains(&mapping.start));
        Some(Moment {
            at_ns: host::now_ms().saturating_mul(1_000_000),
            anonymous_bytes: host::anonymous_bytes(self.pid)?,
            blocks_bytes: of_blocks.map(|mapping| mapping.rss_bytes).sum(),
            idle_bytes: idle.into_iter().flatten().sum(),
            told_ms: self.segment().ok()?.header.told_ms,
            has_threads: host::threads(self.pid)? > 1,
        })
    }

    /// What a dump is made of.
    pub fn copies(&mut self, why: Why, at_ms: u64) -> io::Result<Copies<'_>> {
        let is_there = why != Why::Exit;
        if is_there && let Some(maps) = maps_of(self.pid) {
            self.maps = Some(maps);
        }
        let about = About {
            pid: self.pid,
            program: self.program.clone(),
            why: why.text().to_owned(),
            at_ms,
            rss_bytes: if is_there { host::rss_bytes(self.pid) } else { None },
            now_ms: is_there.then(host::now_ms),
            helper: if is_there { Helper::of(self.pid) } else { None },
            hides_objects: is_there && python::hides_objects(self.pid),
        };
        Copies::take(&self.file, &about, self.maps.as_deref())
    }
}

fn gap(subject: &Subject) -> Option<String> {
    if subject.samples_all() {
        return subject.partial_note();
    }
    let pid = subject.pid;
    let none = format!(
        "process {pid} does not sample, and dumps cannot say who allocated: `tslab profile {pid} \
         --keep` begins that, for objects to come"
    );
    let more = format!("; `tslab profile {pid} --keep` samples all, of objects to come");
    Some(subject.partial_note().map_or(none, |note| note + &more))
}

// A file may be left of an earlier process that had the number.
fn first_look(setting: &Setting, pid: u32, start: Option<u64>) -> Result<(Subject, File)> {
    let subject = Subject::find(setting, &pid.to_string())?;
    if start.is_some_and(|start| start != subject.snapshot.header.start_ticks) {
        return Err(NotFound(format!("process {pid} has no statistics file yet")).into());
    }
    let file = host::open(&subject.path, false)?;
    if !has_figures(&Segment::open(file.try_clone()?)?)? {
        return Err(NotFound(format!("process {pid} has no figures yet")).into());
    }
    Ok((subject, file))
}

// A file that is being made has no rows at first. Whoever opens it then never finds any.
fn has_figures<S: Source>(segment: &Segment<S>) -> Result<bool> {
    Ok(segment.rows(process::TABLE)?.is_some_and(|rows| rows.len() > 0))
}

fn is_absent(error: &anyhow::Error) -> bool {
    error.is::<NotFound>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Image, sample, sampled};

    #[test]
    fn what_dumps_cannot_tell_is_said_before() {
        let of = |image: &Image| {
            let mut subject = Subject::of_bytes(image.bytes());
            subject.life = Life::Alive;
            gap(&subject)
        };
        let mut image = sampled();
        image.set("process", 0, "sample_bytes", 4096);
        assert_eq!(of(&image), None);
        image.set("process", 0, "sampling_since_ms", 5);
        assert!(of(&image).unwrap().ends_with("there are samples of a part at most"));
        image.set("process", 0, "sample_bytes", 0);
        let ended = of(&image).unwrap();
        assert!(ended.contains("has sampled nothing for") && ended.contains("--keep"), "{ended}");
        assert!(of(&sample(42, 7)).unwrap().contains("dumps cannot say who allocated"));
    }

    #[test]
    fn a_file_that_is_being_made_is_not_there_yet() {
        let mut image = Image::new(1, 2);
        let mut has = |rows| {
            image.table("process").rows = rows;
            has_figures(&Segment::open(image.bytes()).unwrap()).unwrap()
        };
        assert!(!has(0));
        assert!(has(1));
    }
}
