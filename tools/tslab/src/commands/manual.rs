//! manual: the manual pages of the command and its subcommands, from what they say under `--help`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use clap::Command;
use clap_mangen::Man;

use super::Answer;

/// Writes a page for the command and one for each subcommand, and lists them.
pub fn run(command: Command, folder: &Path) -> Result<Answer> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let shown = command.get_subcommands().filter(|each| !each.is_hide_set());
    let mut answer = Answer::default();
    for each in shown.chain([&command]) {
        let name = format!("{}.1", each.get_display_name().unwrap_or("tslab"));
        let path = folder.join(&name);
        fs::write(&path, page(each.clone())?)
            .with_context(|| format!("cannot write {}", path.display()))?;
        answer.output.push_str(&name);
        answer.output.push('\n');
    }
    Ok(answer)
}

// A page is dated by the version that it belongs to. The date is a blank: an empty one would be
// left out, and the next word taken for it.
fn page(command: Command) -> Result<Vec<u8>> {
    let version = concat!("tslab ", env!("CARGO_PKG_VERSION"));
    let mut page = Vec::new();
    Man::new(command).date(" ").source(version).render(&mut page)?;
    Ok(page)
}
