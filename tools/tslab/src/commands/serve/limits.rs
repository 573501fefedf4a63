//! What the command line says of the figures.

use crate::commands::leaks;

/// What figures to make.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Labels of epochs told apart in each process.
    pub most_labels: usize,
    /// Call sites told apart in each process that samples; 0: none are.
    pub most_sites: usize,
    /// Ms since an epoch was closed after which its objects are leak candidates.
    pub leak_after_ms: u64,
}

/// How long an epoch may be open, as `doctor` has it.
const OPEN_AFTER_MS: u64 = 600_000;

impl Limits {
    /// From when on `doctor` finds something in an epoch.
    pub fn of_findings(self) -> leaks::Limits {
        leaks::Limits { after_ms: self.leak_after_ms, open_after_ms: Some(OPEN_AFTER_MS) }
    }
}
