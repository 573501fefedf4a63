//! completions: what a shell needs to complete the command's words.

use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_complete::Shell;

use super::Answer;

/// What `completions` is asked.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// The shell
    #[arg(value_parser = ["bash", "fish", "zsh"])]
    shell: String,
}

/// Writes the script for a shell.
pub fn run(command: &Command, arguments: &Arguments) -> Result<Answer> {
    let shell: Shell = arguments.shell.parse().ok().context("there is no script for this shell")?;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut shown(command), "tslab", &mut script);
    Ok(Answer { output: String::from_utf8(script)?, ..Answer::default() })
}

// The scripts would offer hidden subcommands, too.
fn shown(command: &Command) -> Command {
    let subcommands = command.get_subcommands().filter(|each| !each.is_hide_set());
    Command::new("tslab")
        .version(env!("CARGO_PKG_VERSION"))
        .args(command.get_arguments().cloned())
        .subcommands(subcommands.cloned())
}
