//! Two looks at a process, so that what happened between them is known.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

use super::{Setting, Subject, cannot_read};
use crate::host::Life;

/// Which looks are wanted.
#[derive(Clone, Debug, Args)]
#[group(skip)]
pub struct Arguments {
    /// How long to look at a process that runs, to see what changes; 0: one look
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = span)]
    over: Duration,

    /// Look at what changed since this earlier copy of the process's file; time counts from the
    /// last word in it
    #[arg(long, value_name = "FILE", conflicts_with = "over")]
    before: Option<PathBuf>,
}

/// A process, and what it was before.
#[derive(Debug)]
pub struct Looks {
    /// None: it has ended, or one look was wanted or enough.
    pub before: Option<Subject>,
    /// The last look.
    pub now: Subject,
}

fn span(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|_| "a number of seconds is wanted".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

impl Looks {
    /// Looks twice at a process that runs, if the first look says that it is worth it.
    pub fn take(
        setting: &Setting,
        target: &str,
        arguments: &Arguments,
        is_worth: impl FnOnce(&Subject) -> bool,
    ) -> Result<Self> {
        let first = Subject::find(setting, target)?;
        if let Some(path) = &arguments.before {
            let before = Self::earlier(path, &first)?;
            return Ok(Self { before: Some(before), now: first });
        }
        if first.life != Life::Alive || arguments.over.is_zero() || !is_worth(&first) {
            return Ok(Self { before: None, now: first });
        }
        std::thread::sleep(arguments.over);
        match Subject::find(setting, target) {
            Ok(now) if now.life == Life::Alive && now.is_process_of(&first) => {
                Ok(Self { before: Some(first), now })
            }
            // It ended meanwhile.
            _ => Ok(Self { before: None, now: first }),
        }
    }

    fn earlier(path: &Path, now: &Subject) -> Result<Subject> {
        let name = path.to_string_lossy();
        let before = Subject::read(path, true, None).with_context(|| cannot_read(&name))?;
        if !before.is_process_of(now) || before.as_of_ms > now.as_of_ms {
            bail!(
                "{} is no earlier file of process {}: copy the file of that process, wait, and \
                 name the copy with --before",
                crate::text::printable(&name),
                now.pid
            );
        }
        Ok(before)
    }
}
