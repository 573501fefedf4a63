//! A program that was started, and is ended when it is of no more use.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::folder;

/// From one look at a program to the next.
pub const LOOK: Duration = Duration::from_millis(100);

/// It may have to write what it knows.
const PATIENCE: Duration = Duration::from_secs(10);

/// Ended when it is dropped.
#[derive(Debug)]
pub struct Started {
    name: &'static str,
    child: Child,
    log: PathBuf,
    is_over: bool,
}

impl Started {
    /// What it writes goes to a log in the folder.
    pub fn begin(name: &'static str, mut command: Command, place: &Path) -> Result<Self> {
        folder::make(place)?;
        let file_name = name.rsplit(' ').next().unwrap_or(name).to_lowercase();
        let log = place.join(format!("{file_name}.log"));
        let cannot = || format!("cannot write {}", log.display());
        let out = File::create(&log).with_context(cannot)?;
        let errors = out.try_clone().with_context(cannot)?;
        // A process group of its own: Ctrl-C reaches this command alone, which ends the others.
        command.process_group(0);
        let child = command.stdin(Stdio::null()).stdout(out).stderr(errors).spawn();
        let child = child.with_context(|| format!("cannot start {name}"))?;
        Ok(Self { name, child, log, is_over: false })
    }

    /// For people.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What it says behind these words, once it says so. None: it is to end before.
    pub fn wait_for(&mut self, words: &str, is_over: &dyn Fn() -> bool) -> Result<Option<String>> {
        while !is_over() {
            if let Some(how) = self.ended()? {
                bail!("{} ended: {how}", self.name);
            }
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            let mut lines = log.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            let said = lines.find_map(|line| Some(line.split_once(words)?.1.trim().to_owned()));
            if said.is_some() {
                return Ok(said);
            }
            thread::sleep(LOOK);
        }
        Ok(None)
    }

    /// How it ended by itself, with what it said last; once.
    pub fn ended(&mut self) -> Result<Option<String>> {
        if self.is_over {
            return Ok(None);
        }
        let Some(status) = self.child.try_wait()? else { return Ok(None) };
        self.is_over = true;
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let last = log.lines().next_back().unwrap_or("it said nothing");
        Ok(Some(format!("{status}; {last} ({})", self.log.display())))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        // It may be gone meanwhile.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let end = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > end {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::sleep(LOOK / 10);
        }
    }
}
