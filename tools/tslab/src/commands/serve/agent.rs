//! The agent: reads the processes that are asked for.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;

use super::encode::{self, Metric};
use super::find::Finder;
use super::ledger::Ledger;
use super::limits::Limits;
use super::question::{Question, Whose};
use super::samples::{Samples, Value};
use super::watch::Found;
use crate::commands::{NotFound, Setting, Subject, epochs, leaks, profile, ps, stats};
use crate::text;

/// Of the processes that a question may mean, so many are named.
const MOST_NAMED: usize = 8;

/// Reads the processes of this machine.
#[derive(Debug)]
pub struct Agent {
    setting: Setting,
    metrics: Arc<[Metric]>,
    finder: Finder,
    ledger: Ledger,
    found: Arc<Found>,
}

impl Agent {
    /// Of the processes that have files in this directory. `found`: what the watch knows of them.
    pub fn new(directory: &Path, limits: Limits, found: Arc<Found>) -> Result<Self> {
        Ok(Self {
            setting: Setting { directory: directory.to_owned(), json: true },
            metrics: encode::metrics()?,
            finder: Finder::default(),
            ledger: Ledger::new(limits),
            found,
        })
    }

    /// What a command says in JSON, all figures for Prometheus, or a file for `pprof`.
    pub fn answer(&mut self, question: &Question) -> Result<Vec<u8>> {
        let setting = &self.setting;
        let answer = match question {
            Question::Metrics(form) => {
                let text = form.of(self.scrape()?, &self.metrics);
                return Ok(text.into_bytes());
            }
            Question::Heap(whose) => {
                let pid = self.find_sampled(whose)?;
                return profile::pprof_so_far(&self.setting, &pid.to_string());
            }
            Question::Processes => ps::run(setting, true),
            Question::Stats(target) => stats::run(setting, &target.to_string()),
            Question::Epochs { target, all } => epochs::run(setting, &target.to_string(), *all),
            Question::Profile(target) => profile::so_far(setting, &target.to_string()),
            Question::Leaks { target, limits } => {
                let now = Subject::find(setting, &target.to_string())?;
                let before = self.found.before(&now);
                leaks::run_between(setting, before.as_deref(), &now, *limits)
            }
            Question::Why(_) | Question::Doctor(_) => unreachable!("the walker is asked"),
            Question::Past(_) => unreachable!("the historian is asked"),
        };
        Ok(answer?.output.into_bytes())
    }

    fn find_sampled(&mut self, whose: &Whose) -> Result<u32> {
        let name = match whose {
            Whose::Pid(pid) => return Ok(*pid),
            Whose::Name(name) => Some(name.as_str()),
            Whose::Anyone => None,
        };
        let Self { setting, finder, .. } = self;
        let (mut all, mut parts) = (Vec::new(), Vec::new());
        finder.find(&setting.directory, &mut |subject| {
            let is_meant = name.is_none() || subject.name.as_deref() == name;
            if is_meant && subject.has_profile() {
                let found = if subject.samples_all() { &mut all } else { &mut parts };
                found.push((subject.pid, subject.name.clone().unwrap_or_default()));
            }
        });
        let found = if all.is_empty() { parts } else { all };
        match found[..] {
            [(pid, _)] => Ok(pid),
            _ => Err(NotFound(not_one(&found)).into()),
        }
    }

    // One process after the other, so that one alone is in memory.
    fn scrape(&mut self) -> Result<String> {
        let start = Instant::now();
        let mut samples = Samples::default();
        let Self { setting, finder, ledger, found, .. } = self;
        found.wait();
        let files = finder.find(&setting.directory, &mut |subject| {
            ledger.add(&mut samples, &subject);
            if let Some(verdict) = found.verdict(&subject) {
                verdict.add(&mut samples, &subject);
            }
            found.sites().add(&mut samples, &subject);
        });
        ledger.close(&mut samples, files);
        let seconds = Value::Seconds(start.elapsed().as_secs_f64());
        samples.add("tslab_scrape_duration_seconds", Vec::new(), seconds);
        Ok(encode::openmetrics(Arc::clone(&self.metrics), samples)?)
    }
}

fn not_one(found: &[(u32, String)]) -> String {
    if found.is_empty() {
        return "no such process has sampled any allocation: `tslab profile PID --keep` lets one \
                sample all, and /api/v1/processes lists them"
            .to_owned();
    }
    let told = |(pid, name): &(u32, String)| format!("pid={pid} ({})", text::printable(name));
    let mut names: Vec<_> = found.iter().take(MOST_NAMED).map(told).collect();
    if found.len() > MOST_NAMED {
        names.push(format!("{} more", found.len() - MOST_NAMED));
    }
    format!(
        "{} such processes have sampled: add one of them to the path as pid=NUMBER, or as \
         process=NAME: {}",
        found.len(),
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_processes_some_are_named() {
        let found: Vec<_> = (1..=20).map(|pid| (pid, "worker".to_owned())).collect();
        let said = not_one(&found);
        assert!(said.starts_with("20 such processes") && said.ends_with(", 12 more"), "{said}");
        assert!(said.contains("pid=8 (worker)") && !said.contains("pid=9"), "{said}");
        assert!(not_one(&found[..8]).ends_with("pid=8 (worker)"));
    }
}
