//! purge: asks a process to give the memory back that it keeps idle.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;

use super::{Answer, Identity, Setting, Subject};
use crate::control::Request;
use crate::helper::Helper;
use crate::host::{self, Life};
use crate::rows::process;
use crate::text;

const TICK: Duration = Duration::from_millis(10);

/// What `purge` is asked.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// A process
    #[arg(value_name = "PID")]
    target: String,

    /// How long to wait until it has given memory back; 0: only ask
    #[arg(long, value_name = "SECONDS", default_value_t = 2)]
    wait: u32,
}

#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    identity: Identity,
    /// Whether it did within the time that was waited.
    followed: bool,
    waited_ms: u64,
    /// Idle, when it was asked.
    idle_bytes: Option<u64>,
    /// Meanwhile, to the system.
    given_back_bytes: Option<u64>,
    rss_before_bytes: Option<u64>,
    rss_bytes: Option<u64>,
    #[serde(skip)]
    helper: Option<Helper>,
}

/// Asks, and waits for what comes of it.
pub fn run(setting: &Setting, arguments: &Arguments) -> Result<Answer> {
    let before = Subject::find(setting, &arguments.target)?;
    let pid = before.pid;
    if before.life != Life::Alive {
        bail!("process {pid} has ended, or runs another program now: nobody is there to be asked");
    }
    let begun = Instant::now();
    let request = Request::make(&before.path)?;
    let followed = wait(&request, pid, Duration::from_secs(arguments.wait.into()))?;
    let waited_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let after = Subject::of_file(request.file()?, &before.path, Some(pid))?;
    if !followed && after.life != Life::Alive {
        bail!("process {pid} ended before it gave memory back");
    }
    let report = Report::of(&before, &after, followed, waited_ms);
    Ok(Answer { output: setting.output(&report, Report::text)?, ..Answer::default() })
}

// Whether the process has followed the request before the time was over, or its end.
fn wait(request: &Request, pid: u32, most: Duration) -> Result<bool> {
    let begun = Instant::now();
    loop {
        if request.is_followed()? {
            return Ok(true);
        }
        if begun.elapsed() >= most || host::start_ticks(pid).is_none() {
            return Ok(false);
        }
        thread::sleep(TICK);
    }
}

impl Report {
    fn of(before: &Subject, after: &Subject, followed: bool, waited_ms: u64) -> Self {
        let figure = |subject: &Subject, field| subject.snapshot.process_figure(field);
        let idle = || {
            let dirty = figure(before, process::DIRTY_BYTES)?;
            Some(dirty.saturating_add(figure(before, process::CACHED_BYTES)?))
        };
        let given_back = || {
            let purged = figure(after, process::PURGED_BYTES)?;
            Some(purged.saturating_sub(figure(before, process::PURGED_BYTES)?))
        };
        Self {
            identity: after.identity(),
            followed,
            waited_ms,
            idle_bytes: idle(),
            given_back_bytes: given_back(),
            rss_before_bytes: before.rss_bytes,
            rss_bytes: after.rss_bytes,
            helper: Helper::of(after.pid),
        }
    }

    fn text(&self) -> String {
        let who = self.identity.who();
        if self.followed {
            return format!(
                "{who} gave {} back within {}; RSS: {}, before {}\n",
                text::bytes(self.given_back_bytes),
                text::age(Some(self.waited_ms)),
                text::bytes(self.rss_bytes),
                text::bytes(self.rss_before_bytes)
            );
        }
        let when = match self.helper {
            Some(Helper::Runs) => "when its helper wakes, which may take a second",
            _ => "when it next allocates",
        };
        format!("asked; {who} gives back {when}; idle: {}\n", text::bytes(self.idle_bytes))
    }
}
