//! The agent: reads the processes that are asked for.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;

use super::Limits;
use super::desk::{Question, Whose};
use super::encode::{self, Metric};
use super::find::Finder;
use super::ledger::Ledger;
use super::samples::{Samples, Value};
use crate::commands::{NotFound, Setting, epochs, leaks, profile, ps, stats};

/// Reads the processes of this machine.
#[derive(Debug)]
pub struct Agent {
    setting: Setting,
    metrics: Arc<[Metric]>,
    finder: Finder,
    ledger: Ledger,
}

impl Agent {
    /// Of the processes that have files in this directory.
    pub fn new(directory: &Path, limits: Limits) -> Result<Self> {
        Ok(Self {
            setting: Setting { directory: directory.to_owned(), json: true },
            metrics: encode::metrics()?,
            finder: Finder::default(),
            ledger: Ledger::new(limits),
        })
    }

    /// What a command says in JSON, all figures as OpenMetrics, or a file for `pprof`.
    pub fn answer(&mut self, question: &Question) -> Result<Vec<u8>> {
        let setting = &self.setting;
        let answer = match question {
            Question::Metrics => return Ok(self.scrape()?.into_bytes()),
            Question::Heap(whose) => {
                let pid = self.find_sampled(whose)?;
                return profile::pprof_so_far(&self.setting, &pid.to_string());
            }
            Question::Processes => ps::run(setting),
            Question::Stats(pid) => stats::run(setting, &pid.to_string()),
            Question::Epochs { pid, all } => epochs::run(setting, &pid.to_string(), *all),
            Question::Profile(pid) => profile::so_far(setting, &pid.to_string()),
            Question::Leaks { pid, limits } => leaks::run(setting, &pid.to_string(), *limits),
        };
        Ok(answer?.output.into_bytes())
    }

    fn find_sampled(&mut self, whose: &Whose) -> Result<u32> {
        let (mut pids, advice) = (Vec::new(), "/api/v1/processes lists all processes");
        let name = match whose {
            Whose::Pid(pid) => return Ok(*pid),
            Whose::Name(name) => Some(name.as_str()),
            Whose::Anyone => None,
        };
        let Self { setting, finder, .. } = self;
        finder.find(&setting.directory, &mut |subject| {
            let is_meant = name.is_none() || subject.name.as_deref() == name;
            if is_meant && subject.snapshot.has_samples() {
                pids.push(subject.pid);
            }
        });
        match pids[..] {
            [pid] => Ok(pid),
            [] => Err(NotFound(format!("no such process has sampled: {advice}")).into()),
            _ => {
                let many = format!("{} such processes have sampled", pids.len());
                let advice = format!("add pid=NUMBER or process=NAME to the path: {advice}");
                Err(NotFound(format!("{many}: {advice}")).into())
            }
        }
    }

    // One process after the other, so that one alone is in memory.
    fn scrape(&mut self) -> Result<String> {
        let start = Instant::now();
        let mut samples = Samples::default();
        let Self { setting, finder, ledger, .. } = self;
        let files =
            finder.find(&setting.directory, &mut |subject| ledger.add(&mut samples, subject));
        ledger.close(&mut samples, files);
        let seconds = Value::Seconds(start.elapsed().as_secs_f64());
        samples.add("tslab_scrape_duration_seconds", Vec::new(), seconds);
        Ok(encode::openmetrics(Arc::clone(&self.metrics), samples)?)
    }
}
