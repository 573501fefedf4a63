//! doctor: what is wrong with one process's memory, and what to do about it.

mod epochs;
mod finding;
mod memory;

use std::fmt::Write;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::{Answer, Identity, Setting, Subject};
use crate::text;
use finding::{Finding, Found, Patient};

/// What `doctor` is asked.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// A process, or the path of a statistics file
    #[arg(value_name = "PID")]
    target: String,

    /// How long an epoch must have been closed for its survivors to count as leaked
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    after: u64,

    /// How long an epoch may be open
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    open_after: u64,
}

/// Why a check cannot say anything: fields that the file does not have.
#[derive(Debug, Serialize)]
struct NotChecked {
    cause: &'static str,
    missing: &'static str,
}

/// A cause that is looked for.
struct Check {
    name: &'static str,
    /// From when on it counts, for the documentation.
    threshold: &'static str,
    needs: &'static str,
    look: fn(&Patient) -> Found,
}

// In the order in which findings are shown: what hurts first.
const CHECKS: [Check; 16] = [
    Check {
        name: "memory-refused",
        threshold: "the system refused memory once",
        needs: "process.memory_refused",
        look: memory::memory_refused,
    },
    Check {
        name: "limit-refused",
        threshold: "a hard limit refused memory once",
        needs: "process.limits_refused",
        look: memory::limit_refused,
    },
    Check {
        name: "near-limit",
        threshold: "an epoch holds 90 % of its hard limit, or its soft limit",
        needs: "epochs.held_bytes",
        look: epochs::near_limit,
    },
    Check {
        name: "leak",
        threshold: "objects in epochs closed longer ago than --after",
        needs: "epochs, heaps or bins",
        look: epochs::leak,
    },
    Check {
        name: "scope-left-open",
        threshold: "a scope open in an epoch closed longer ago than --after",
        needs: "heaps.scopes",
        look: epochs::scope_left_open,
    },
    Check {
        name: "open-too-long",
        threshold: "epochs open for longer than --open-after, but the default one",
        needs: "epochs.opened_ms",
        look: epochs::open_too_long,
    },
    Check {
        name: "retention",
        threshold: "64 MiB free in slabs and cells, and more than lives there",
        needs: "process.open_bytes, or what lives",
        look: memory::retention,
    },
    Check {
        name: "dirty",
        threshold: "64 MiB free and not given back, and a quarter of what is in use",
        needs: "process.dirty_bytes",
        look: memory::dirty,
    },
    Check {
        name: "thread-caches",
        threshold: "64 MiB in threads' caches, and a quarter of what lives",
        needs: "heaps.cached_units, or bins.hot",
        look: memory::thread_caches,
    },
    Check {
        name: "outside",
        threshold: "256 MiB of RSS that are not the allocator's, and 3 times what lives",
        needs: "RSS of a process that runs",
        look: memory::outside,
    },
    Check {
        name: "purge-refused",
        threshold: "the system refused once to take pages back",
        needs: "process.purges_refused",
        look: memory::purge_refused,
    },
    Check {
        name: "purge-churn",
        threshold: "1,000 purges, and 100 a second since the file was made",
        needs: "process.purges",
        look: memory::purge_churn,
    },
    Check {
        name: "slow-slabs",
        threshold: "100,000 allocations of a class, 1 of 20 opens a slab, half of it unused",
        needs: "bins.opened",
        look: memory::slow_slabs,
    },
    Check {
        name: "slow-frees",
        threshold: "1,000,000 frees by other threads, and half of all allocations",
        needs: "bins.sent",
        look: memory::slow_frees,
    },
    Check {
        name: "slow-bins",
        threshold: "1,000,000 freed objects of a class found no room at hand, half of all",
        needs: "bins.returned",
        look: memory::slow_bins,
    },
    Check {
        name: "full-table",
        threshold: "9 of 10 rows of a table, no memory for rows, or no place for a label",
        needs: "epochs",
        look: memory::full_table,
    },
];

/// The causes and from when on they count, one a line.
pub fn thresholds() -> String {
    let width = CHECKS.iter().map(|check| check.name.len()).max().unwrap_or_default();
    CHECKS.iter().fold(String::new(), |mut out, check| {
        // Writing to a String does not fail.
        let _ = writeln!(out, "  {:<width$}  {}", check.name, check.threshold);
        out
    })
}

#[derive(Debug, Serialize)]
pub(super) struct Report {
    #[serde(flatten)]
    identity: Identity,
    findings: Vec<Finding>,
    not_checked: Vec<NotChecked>,
}

/// Looks for everything.
pub fn run(setting: &Setting, arguments: &Arguments) -> Result<Answer> {
    let subject = Subject::find(setting, &arguments.target)?;
    let report = Report::of(&subject, arguments.after, arguments.open_after);
    Ok(Answer {
        output: setting.output(&report, Report::text)?,
        notes: subject.notes(),
        found: !report.findings.is_empty(),
        failed: false,
    })
}

impl Report {
    pub(super) fn of(subject: &Subject, after: u64, open_after: u64) -> Self {
        let ms = |seconds: u64| seconds.saturating_mul(1000);
        let (after_ms, open_after_ms) = (ms(after), ms(open_after));
        let patient = Patient { subject, after_ms, open_after_ms };
        let (mut findings, mut not_checked) = (Vec::new(), Vec::new());
        for check in &CHECKS {
            match (check.look)(&patient) {
                Some(found) => findings.extend(found),
                None => {
                    not_checked.push(NotChecked { cause: check.name, missing: check.needs });
                }
            }
        }
        Self { identity: subject.identity(), findings, not_checked }
    }

    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a String does not fail.
        for finding in &self.findings {
            let _ = writeln!(out, "{}: {}", finding.cause, finding.what);
            let _ = writeln!(out, "  -> {}", finding.advice);
        }
        if self.findings.is_empty() {
            let checked = CHECKS.len() - self.not_checked.len();
            let _ = writeln!(
                out,
                "nothing found: {} passed",
                text::count(Some(checked as u64), "check")
            );
        }
        for check in &self.not_checked {
            let _ = writeln!(out, "not checked: {}, for lack of {}", check.cause, check.missing);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Image, sample};

    /// What is found in a file, as (cause, text, advice).
    pub fn findings(image: &Image) -> Vec<Finding> {
        Report::of(&Subject::of_bytes(image.bytes()), 60, 600).findings
    }

    /// Causes alone.
    pub fn causes(image: &Image) -> Vec<&'static str> {
        findings(image).iter().map(|finding| finding.cause).collect()
    }

    /// A process without any cause.
    pub fn healthy() -> Image {
        let mut image = sample(42, 7);
        image.set_all("epochs", 7, &[("state", 0), ("closed_ms", 0), ("opened_ms", 999_000)]);
        image
    }

    #[test]
    fn a_healthy_process_is_called_so() {
        let subject = Subject::of_bytes(healthy().bytes());
        let report = Report::of(&subject, 60, 600);
        let expected = "nothing found: 15 checks passed\n\
                        not checked: outside, for lack of RSS of a process that runs\n";
        assert_eq!(report.text(), expected);
    }

    #[test]
    fn a_file_that_does_not_tell_is_not_called_healthy() {
        let mut image = healthy();
        image.tables.retain(|table| table.name == "process");
        image.forget("process", "purges");
        let report = Report::of(&Subject::of_bytes(image.bytes()), 60, 600);
        let causes: Vec<_> = report.not_checked.iter().map(|check| check.cause).collect();
        assert!(causes.contains(&"leak") && causes.contains(&"purge-churn"), "{causes:?}");
        assert!(!causes.contains(&"memory-refused"));
        assert!(report.text().contains("not checked: leak, for lack of epochs, heaps or bins\n"));
    }

    #[test]
    fn every_finding_has_figures_and_one_advice() {
        let mut image = sample(42, 7);
        image.set_all("process", 0, &[("memory_refused", 2), ("limits_refused", 1)]);
        image.set_all("process", 0, &[("purges_refused", 3), ("dirty_bytes", 1 << 30)]);
        for finding in findings(&image) {
            assert!(!finding.evidence.is_empty(), "{finding:?}");
            assert!(finding.what.contains(|char: char| char.is_ascii_digit()), "{finding:?}");
            assert!(!finding.advice.is_empty() && !finding.advice.contains('\n'), "{finding:?}");
        }
    }

    #[test]
    fn the_documentation_has_the_thresholds_of_the_code() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
        let readme = std::fs::read_to_string(path).unwrap();
        assert!(readme.contains(&thresholds()), "{}", thresholds());
    }
}
