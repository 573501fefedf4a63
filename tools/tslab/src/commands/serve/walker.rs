//! The walker: answers what the system walks through a process's page tables for. That takes time
//! in proportion to what is resident, and nobody else waits for it.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;

use super::limits::Limits;
use super::question::Question;
use super::watch::Found;
use crate::commands::{Setting, Subject, doctor, why};

/// Looks at what is resident, when somebody asks.
#[derive(Debug)]
pub struct Walker {
    setting: Setting,
    limits: Limits,
    found: Arc<Found>,
}

impl Walker {
    /// Of the processes that have files in this directory. `found`: what the watch knows of them.
    pub fn new(directory: &Path, limits: Limits, found: Arc<Found>) -> Self {
        Self { setting: Setting { directory: directory.to_owned(), json: true }, limits, found }
    }

    /// What a command says in JSON.
    pub fn answer(&self, question: &Question) -> Result<Vec<u8>> {
        let setting = &self.setting;
        let answer = match question {
            Question::Why(target) => why::of_process(setting, &target.to_string()),
            Question::Doctor(target) => {
                let now = Subject::find(setting, &target.to_string())?;
                let before = self.found.before(&now);
                doctor::run_between(setting, before.as_deref(), &now, self.limits.of_findings())
            }
            _ => unreachable!("the agent is asked"),
        };
        Ok(answer?.output.into_bytes())
    }
}
