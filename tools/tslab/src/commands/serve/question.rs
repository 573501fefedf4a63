//! What those who come over HTTP want to know.

use super::form::Form;
use super::historian::Wanted;
use super::target::Target;
use crate::commands::leaks;

/// Which process, among those that have sampled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Whose {
    /// The one with this number.
    Pid(u32),
    /// The only one of this name.
    Name(String),
    /// The only one.
    Anyone,
}

/// What can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Question {
    /// The figures of all processes, for Prometheus.
    Metrics(Form),
    /// Which processes have files.
    Processes,
    /// What a process holds.
    Stats(Target),
    /// The epochs of a process.
    Epochs {
        /// The process.
        target: Target,
        /// Released epochs too, and closed ones without survivors.
        all: bool,
    },
    /// What the history has: the historian is asked for it, all else the agent.
    Past(Wanted),
    /// Where the resident memory of a process went.
    Why(Target),
    /// What is wrong with the memory of a process.
    Doctor(Target),
    /// What a process has sampled.
    Profile(Target),
    /// The same as a file for `pprof`.
    Heap(Whose),
    /// The epochs of a process whose objects outlived them.
    Leaks {
        /// The process.
        target: Target,
        /// From when on.
        limits: leaks::Limits,
    },
}

impl Question {
    /// Whether the system walks through page tables for the answer, which takes long.
    pub fn walks(&self) -> bool {
        matches!(self, Self::Why(_) | Self::Doctor(_))
    }

    /// Whether programs are read for the answer, which takes much memory for a moment.
    pub fn reads_programs(&self) -> bool {
        matches!(self, Self::Profile(_) | Self::Heap(_) | Self::Leaks { .. })
    }
}
