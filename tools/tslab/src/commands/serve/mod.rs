//! serve: the figures of all processes of this machine, over HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::builder::RangedU64ValueParser;

use super::{Answer, Setting};
use crate::host;
use limits::Limits;
use pace::Pace;

mod access;
mod agent;
mod api;
mod counters;
mod desk;
mod earlier;
mod encode;
mod events;
mod figures;
mod find;
mod form;
mod historian;
mod holders;
mod http;
mod labels;
mod ledger;
mod limits;
mod namer;
mod pace;
mod page;
mod place;
mod question;
mod refusal;
mod samples;
mod schema;
mod sites;
mod spare;
mod store;
mod target;
mod verdicts;
mod walker;
mod watch;

#[cfg(test)]
pub(super) mod tests;

/// What the command line says.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// Where to listen; port 0: any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9464")]
    listen: SocketAddr,

    /// Answer only those who send the token in this file, as `Authorization: Bearer TOKEN`; without
    /// this option, `TSLAB_SERVE_TOKEN` may hold it
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Let everyone read who reaches the address, without a token
    #[arg(long)]
    insecure_no_token: bool,

    /// Labels of epochs to tell apart in each process; the others are summed up as "other"
    #[arg(long, value_name = "COUNT", default_value_t = 16)]
    labels: usize,

    /// Call sites to tell apart in each process that samples, those that hold most; the others are
    /// summed up as "other"; 1000 at most. 0: no program is read for their names, and
    /// `tslab_site_live_bytes` is missing
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = site_count())]
    sites: usize,

    /// For how long an epoch must have been closed until its objects are taken for leaks
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    after: u64,

    /// Where to keep the history, or "none"; without this option, root's is in /var/lib/tslab,
    /// others' in `$XDG_STATE_HOME/tslab`
    #[arg(long, value_name = "FILE|none")]
    history: Option<PathBuf>,

    /// How often to ask the system what is resident of each process, part by part, which takes it
    /// time in proportion; without it `tslab_why_bytes` is missing, and findings are the file's
    #[arg(long, value_name = "SECONDS|never", default_value = "10", value_parser = Pace::parse)]
    looks: Pace,
}

fn site_count() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(0..=1000)
}

impl Arguments {
    fn limits(&self) -> Limits {
        let leak_after_ms = self.after.saturating_mul(1000);
        Limits { most_labels: self.labels, most_sites: self.sites, leak_after_ms }
    }
}

/// Where the history lies unless the command line says otherwise.
pub fn usual_history() -> Option<PathBuf> {
    place::find(None)
}

/// Serves until the process is told to end.
pub fn run(setting: &Setting, arguments: &Arguments) -> Result<Answer> {
    let token = access::Token::find(arguments.token_file.as_deref())?;
    let is_open = arguments.insecure_no_token;
    access::check_reach(arguments.listen, token.is_some() || is_open)?;
    // Told now, while somebody looks.
    host::entries(&setting.directory)?;
    let desk = desk::Desk::new(&setting.directory, arguments.limits())?;
    let history = place::find(arguments.history.as_deref());
    http::serve(arguments.listen, token, &Arc::new(desk), history.as_deref(), arguments.looks)?;
    Ok(Answer::default())
}
