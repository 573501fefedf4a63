//! observe: the agent, Prometheus and Grafana together, for this machine alone.

use std::env;
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::{Answer, Setting, run, serve};
use crate::say::say;
use setup::{Ports, Setup};
use started::Started;

mod folder;
mod port;
mod setup;
mod started;

const GRAFANA_HOME: &str = "/usr/share/grafana";

/// What the command line says.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// Where to keep figures and logs, and the configuration, which is written anew; without this
    /// option, root's are in /var/lib/tslab/observe, others' in `$XDG_STATE_HOME/tslab/observe`
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Show the configuration and the commands, and start nothing
    #[arg(long)]
    print: bool,

    /// Of the agent and its page
    #[arg(long, value_name = "PORT", value_parser = port::parser())]
    #[arg(default_value_t = setup::USUAL.agent)]
    port: u16,

    /// Of Prometheus
    #[arg(long, value_name = "PORT", value_parser = port::parser())]
    #[arg(default_value_t = setup::USUAL.prometheus)]
    prometheus_port: u16,

    /// Of Grafana
    #[arg(long, value_name = "PORT", value_parser = port::parser())]
    #[arg(default_value_t = setup::USUAL.grafana)]
    grafana_port: u16,
}

// A program to start, which is installed or is not.
struct Part {
    name: &'static str,
    port: u16,
    /// By which option it gets another port.
    option: &'static str,
    command: Option<Command>,
    /// What to install.
    missing: &'static str,
}

/// Starts what is installed, and ends it when it is told to end.
pub fn run(setting: &Setting, arguments: &Arguments) -> Result<Answer> {
    let setup = Setup { folder: folder(arguments.dir.as_deref())?, ports: arguments.ports() };
    let agent = agent(setting, arguments.dir.is_some(), &setup)?;
    let others = [prometheus(&setup), grafana(&setup)];
    if arguments.print {
        return Ok(Answer { output: shown(&setup, &agent, &others), ..Answer::default() });
    }
    check_ports(setup.ports.agent, &others)?;
    setup.write()?;
    observe(&setup.folder, agent, others)
}

impl Arguments {
    fn ports(&self) -> Ports {
        Ports { agent: self.port, prometheus: self.prometheus_port, grafana: self.grafana_port }
    }
}

// Absolute, as Grafana's own folder is not this one.
fn folder(named: Option<&Path>) -> Result<PathBuf> {
    let beside_history = || Some(serve::usual_history()?.parent()?.join("observe"));
    let Some(folder) = named.map(Path::to_owned).or_else(beside_history) else {
        bail!("there is neither $XDG_STATE_HOME nor $HOME: name a folder with --dir");
    };
    std::path::absolute(&folder).with_context(|| format!("cannot find {}", folder.display()))
}

// Without a folder of its own it goes on with the history of `tslab serve`.
fn agent(setting: &Setting, has_own_folder: bool, setup: &Setup) -> Result<Command> {
    let itself = env::current_exe().context("cannot find the command itself")?;
    let mut command = Command::new(itself);
    command.arg("--directory").arg(&setting.directory);
    command.arg("serve").args(["--listen", &format!("{}:{}", setup::HOST, setup.ports.agent)]);
    if has_own_folder {
        command.arg("--history").arg(setup.folder.join("history.db"));
    }
    Ok(command)
}

// Programs that find theirs in use say so in their logs, if at all.
fn check_ports(agent: u16, others: &[Part]) -> Result<()> {
    let installed = others.iter().filter(|part| part.command.is_some());
    let wanted = installed.map(|part| (part.port, part.option));
    port::check_all(std::iter::once((agent, "--port")).chain(wanted))
}

fn prometheus(setup: &Setup) -> Part {
    let command = run::find_program(OsStr::new("prometheus")).ok().map(|program| {
        let mut command = Command::new(program);
        command.args(setup.prometheus_arguments());
        command
    });
    let missing = "Debian has it as the package `prometheus`; others: https://prometheus.io";
    let (port, option) = (setup.ports.prometheus, "--prometheus-port");
    Part { name: "Prometheus", port, option, command, missing }
}

// Newer ones have a command `grafana server` in the place of `grafana-server`.
fn grafana(setup: &Setup) -> Part {
    let old = run::find_program(OsStr::new("grafana-server")).ok().map(Command::new);
    let command = old.or_else(|| {
        let mut command = Command::new(run::find_program(OsStr::new("grafana")).ok()?);
        command.arg("server");
        Some(command)
    });
    let command = command.map(|mut command| {
        let home = grafana_home(Path::new(command.get_program()));
        command.args(setup.grafana_arguments(&home));
        command
    });
    let missing = "https://grafana.com/docs/grafana has packages, and compose.yaml in dashboards/ \
                   a container";
    Part { name: "Grafana", port: setup.ports.grafana, option: "--grafana-port", command, missing }
}

// Of an unpacked archive: bin/ and conf/ lie beside each other.
fn grafana_home(program: &Path) -> PathBuf {
    let program = program.canonicalize().unwrap_or_else(|_| program.to_owned());
    let beside = program.parent().and_then(Path::parent);
    let own = beside.filter(|home| home.join("conf/defaults.ini").is_file());
    own.map_or_else(|| GRAFANA_HOME.into(), Path::to_owned)
}

// For a shell.
fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_=./:,@%+".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn shown(setup: &Setup, agent: &Command, others: &[Part]) -> String {
    let mut out = setup.text();
    // Writing to a String does not fail.
    let _ = writeln!(out, "$ {}", line(agent));
    for part in others {
        let _ = match &part.command {
            Some(command) => writeln!(out, "$ {}", line(command)),
            None => writeln!(out, "# {} is not installed: {}", part.name, part.missing),
        };
    }
    out
}

fn observe(folder: &Path, agent: Command, others: [Part; 2]) -> Result<Answer> {
    let ends = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&ends))?;
    }
    let is_over = || ends.load(Ordering::Relaxed);
    let mut agent = Started::begin("the agent", agent, folder)?;
    let Some(url) = agent.wait_for("serving ", &is_over)? else { return Ok(Answer::default()) };
    say(&format!("the page: {url}"));
    let mut running = Vec::new();
    for part in others {
        running.extend(begin(part, folder)?);
    }
    say("Ctrl-C ends all of them");
    while !is_over() {
        thread::sleep(started::LOOK);
        if let Some(how) = agent.ended()? {
            bail!("the agent ended: {how}");
        }
        // The others go on.
        for part in &mut running {
            if let Some(how) = part.ended()? {
                say(&format!("{} ended: {how}", part.name()));
            }
        }
    }
    Ok(Answer::default())
}

fn begin(part: Part, folder: &Path) -> Result<Option<Started>> {
    let Some(command) = part.command else {
        say(&format!("{} is not installed: {}", part.name, part.missing));
        return Ok(None);
    };
    let started = Started::begin(part.name, command, folder)?;
    say(&format!("{}: http://{}:{}/", part.name, setup::HOST, part.port));
    Ok(Some(started))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_can_be_given_to_a_shell() {
        let mut command = Command::new("/bin/x");
        command.args(["--dir=/y", "a b", "it's", ""]);
        assert_eq!(line(&command), r"/bin/x --dir=/y 'a b' 'it'\''s' ''");
    }
}
