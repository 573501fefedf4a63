//! tslab: shows what processes on the tslab allocator do with their memory.
//!
//! It reads the statistics files that these processes write (`include/tslab_stats.h`), and never
//! writes to them, but for two fields by which `profile` asks for samples and `purge` for memory.
//! `core` reads core dumps instead.

mod absence;
mod buffer;
mod commands;
mod control;
mod decades;
mod dump;
mod elf;
mod environment;
mod events;
#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod fixture;
mod held;
mod helper;
mod holdings;
mod host;
mod labels;
mod live;
mod modules;
mod names;
#[cfg(test)]
#[path = "../tests/openmetrics/mod.rs"]
mod openmetrics;
mod perf_map;
mod profile;
mod python;
mod recorded;
mod refusals;
mod rows;
mod sampling;
mod say;
mod segment;
mod smaps;
mod snapshot;
mod symbols;
mod text;
mod work;

use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};

use commands::{
    Answer, Setting, advise, callers, completions, core_dump, diff, doctor, epochs, gc, leaks,
    manual, observe, profile as profiler, ps, purge, record, run as launch, serve, stats, top,
    watch, why,
};
use say::say;

const EXITS: &str = "\
Exit status:
  0  done
  1  `leaks` found some, `doctor` has findings, `diff --fail-on` found growth
  2  something could not be done: standard error says what, and what to do";

const RUN_EXITS: &str = "\
Exit status: the program's, and its signals; 2: it could not be started";

/// Shows what processes on the tslab allocator do with their memory
#[derive(Debug, Parser)]
#[command(name = "tslab", version, after_help = EXITS)]
struct Arguments {
    /// Write JSON instead of text
    #[arg(long, global = true)]
    json: bool,

    /// Where the statistics files lie; those of a container lie in /proc/PID/root/dev/shm
    #[arg(long, global = true, value_name = "DIR", default_value = host::DIRECTORY)]
    directory: PathBuf,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the processes that have a statistics file
    #[command(after_help = EXITS)]
    Ps {
        /// A line for each, also for those that have ended and for other users' files
        #[arg(long)]
        all: bool,
    },

    /// Show one process: totals, size classes, and what it says of itself
    #[command(after_help = EXITS)]
    Stats {
        /// A process, or the path of a statistics file
        #[arg(value_name = "PID")]
        target: String,
    },

    /// Show the epochs of one process as a tree, the larger ones first
    #[command(after_help = EXITS)]
    Epochs {
        /// A process, or the path of a statistics file
        #[arg(value_name = "PID")]
        target: String,

        /// Show released epochs too, and closed ones without survivors
        #[arg(long)]
        all: bool,
    },

    /// Show the epochs that were closed long ago and still have objects
    #[command(after_help = EXITS)]
    Leaks(leaks::Arguments),

    /// Show where the memory of one process went: parts that add up to what is resident
    #[command(after_help = EXITS)]
    Why(why::Arguments),

    /// Look for what is wrong with one process's memory, and say what to do
    #[command(after_help = doctor_help())]
    Doctor(doctor::Arguments),

    /// Show what changes in one process, a line a second
    #[command(after_help = EXITS)]
    Watch(watch::Arguments),

    /// Show all processes, and one of them from close by, as they change
    #[command(after_help = EXITS)]
    Top(top::Arguments),

    /// Keep what a process holds: when it holds most, at intervals, on SIGUSR1, and as it ends
    #[command(after_help = record::help())]
    Record(record::Arguments),

    /// Run an unchanged program, and say where in its source a scope belongs
    #[command(after_help = advise::help())]
    Advise(advise::Arguments),

    /// Compare two looks at a process, by epoch label, size class and call stack
    #[command(after_help = EXITS)]
    Diff(diff::Arguments),

    /// Start an unchanged program on the allocator
    #[command(after_help = RUN_EXITS)]
    Run(launch::Arguments),

    /// Write who allocates, and who allocated what lives, for pprof or flame graphs
    #[command(after_help = EXITS)]
    Profile(profiler::Arguments),

    /// Ask a process to give the memory back that it keeps idle
    #[command(after_help = EXITS)]
    Purge(purge::Arguments),

    /// Show what lived in a process that crashed, from its core dump
    #[command(after_help = EXITS)]
    Core(core_dump::Arguments),

    /// Remove the files of processes that have ended or, by exec, run something else
    #[command(after_help = EXITS)]
    Gc {
        /// Only say which ones
        #[arg(long)]
        dry_run: bool,
    },

    /// Serve the figures of all processes over HTTP: for Prometheus at /metrics, JSON below /api
    #[command(after_help = EXITS)]
    Serve(serve::Arguments),

    /// Start `serve`, Prometheus and Grafana with the dashboards, for this machine alone
    #[command(after_help = EXITS)]
    Observe(observe::Arguments),

    /// Write a script by which a shell completes the words of this command
    #[command(after_help = EXITS)]
    Completions(completions::Arguments),

    /// Name who allocated what lives in a process, for `serve`
    #[command(hide = true)]
    Callers {
        /// The process
        pid: u32,
    },

    /// Write the manual pages of this command
    #[command(hide = true)]
    Manual {
        /// Where to
        folder: PathBuf,
    },
}

fn doctor_help() -> String {
    format!("Causes, and from when on they count:\n{}\n{EXITS}", doctor::thresholds())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments) {
        Ok(answer) => tell(&answer),
        Err(error) => {
            say(&format!("{error:#}"));
            ExitCode::from(2)
        }
    }
}

fn run(arguments: Arguments) -> Result<Answer> {
    let setting = Setting { directory: arguments.directory, json: arguments.json };
    match arguments.command {
        Command::Ps { all } => ps::run(&setting, all),
        Command::Stats { target } => stats::run(&setting, &target),
        Command::Epochs { target, all } => epochs::run(&setting, &target, all),
        Command::Leaks(arguments) => leaks::run(&setting, &arguments),
        Command::Why(arguments) => why::run(&setting, &arguments),
        Command::Doctor(arguments) => doctor::run(&setting, &arguments),
        Command::Watch(arguments) => watch::run(&setting, &arguments),
        Command::Top(arguments) => top::run(&setting, &arguments),
        Command::Record(arguments) => record::run(&setting, &arguments),
        Command::Advise(arguments) => advise::run(&setting, &arguments),
        Command::Diff(arguments) => diff::run(&setting, &arguments),
        Command::Run(arguments) => launch::run(&arguments),
        Command::Profile(arguments) => profiler::run(&setting, &arguments),
        Command::Purge(arguments) => purge::run(&setting, &arguments),
        Command::Core(arguments) => core_dump::run(&setting, &arguments),
        Command::Gc { dry_run } => gc::run(&setting, dry_run),
        Command::Serve(arguments) => serve::run(&setting, &arguments),
        Command::Observe(arguments) => observe::run(&setting, &arguments),
        Command::Completions(arguments) => completions::run(&Arguments::command(), &arguments),
        Command::Callers { pid } => callers::run(&setting, pid),
        Command::Manual { folder } => manual::run(Arguments::command(), &folder),
    }
}

fn tell(answer: &Answer) -> ExitCode {
    answer.notes.iter().for_each(|note| say(note));
    let mut out = io::stdout().lock();
    let written = out.write_all(answer.output.as_bytes()).and_then(|()| out.flush());
    match written {
        // Who reads only the first lines, such as `head`, has what they want.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            say(&format!("cannot write the output: {error}"));
            ExitCode::from(2)
        }
        _ if answer.failed => ExitCode::from(2),
        _ => ExitCode::from(u8::from(answer.found)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    // Of what stands for something in a command: arguments, groups of them, and options.
    fn assert_unique<'a>(command: &str, names: impl Iterator<Item = &'a str>) {
        let mut known = BTreeSet::new();
        for name in names {
            assert!(known.insert(name), "{command}: {name:?} has two meanings");
        }
    }

    fn check(command: &clap::Command) {
        let name = command.get_name();
        let arguments = command.get_arguments().map(|argument| argument.get_id().as_str());
        let groups = command.get_groups().map(|group| group.get_id().as_str());
        assert_unique(name, arguments.chain(groups));
        assert_unique(name, command.get_arguments().filter_map(clap::Arg::get_long));
        command.get_subcommands().for_each(check);
    }

    // The parser's own checks are in a build with debug assertions alone.
    #[test]
    fn no_word_of_a_command_has_two_meanings() {
        check(&Arguments::command());
        Arguments::command().debug_assert();
    }
}
