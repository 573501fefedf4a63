//! doctor: what is wrong with one process's memory, and what to do about it.

mod epochs;
mod finding;
mod live;
mod memory;
mod pinned;
mod refusals;
mod speed;
mod tables;

#[cfg(test)]
mod situations;

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::account::Account;
use super::growth::Growths;
use super::ignored::{self, Ignored};
use super::looks::{self, Looks};
use super::outlived::Outlived;
use super::{Answer, Identity, Setting, Subject, leaks, why};
use crate::helper::Helper;
use crate::host::Life;
use crate::python;
use crate::text;
use finding::{Finding, Found, Patient};

/// What `doctor` is asked.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// A process, or the path of a statistics file
    #[arg(value_name = "PID")]
    target: String,

    /// How long an epoch must have been closed for its survivors to count as leaked; if not said
    /// 60, of a process that has ended at most a tenth of its life
    #[arg(long, value_name = "SECONDS")]
    after: Option<u64>,

    /// How long an epoch may be open
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    open_after: u64,

    #[command(flatten)]
    looks: looks::Arguments,

    #[command(flatten)]
    ignored: ignored::Arguments,
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

// A process that runs has one; of others an earlier copy of the file will do.
const SECOND_LOOK: &str = "a second look at it while it runs (or --before)";
const RESIDENT_TWICE: &str = "what was resident at two looks while it runs";

// What hurts as much is shown in this order.
const CHECKS: [Check; 18] = [
    Check {
        name: "memory-refused",
        threshold: "the system refused memory once",
        needs: "process.memory_refused",
        look: refusals::memory_refused,
    },
    Check {
        name: "limit-refused",
        threshold: "a hard limit refused memory once",
        needs: "process.limits_refused",
        look: refusals::limit_refused,
    },
    Check {
        name: "near-limit",
        threshold: "an epoch holds 90 % of its hard limit, or its soft limit",
        needs: "epochs.held_bytes",
        look: epochs::near_limit,
    },
    Check {
        name: "leak",
        threshold: "objects that outlived epochs by --after and do not turn over; in shared ones, \
                    if they grow",
        needs: "epochs, heaps or bins",
        look: epochs::leak,
    },
    Check {
        name: "pinned-epochs",
        threshold: "4 closed epochs of a label hold 1 MiB, 1 % of all, and four times their \
                    survivors; unless they share or leak",
        needs: "epochs.held_bytes, or what lives",
        look: pinned::pinned,
    },
    Check {
        name: "scope-left-open",
        threshold: "a scope open in an epoch closed longer ago than --after",
        needs: "heaps.scopes",
        look: epochs::scope_left_open,
    },
    Check {
        name: "open-too-long",
        threshold: "epochs open for longer than --open-after, but the default and shared ones",
        needs: "epochs.opened_ms",
        look: epochs::open_too_long,
    },
    Check {
        name: "live-growth",
        threshold: "64 MiB outside of epochs, at the peak, grow as since the start; or 1 MiB of \
                    samples of all ages",
        needs: SECOND_LOOK,
        look: live::growth,
    },
    Check {
        name: "retention",
        threshold: "64 MiB free in slabs and cells, a fifth of them, and not on its way back",
        needs: "epochs.held_bytes, or what lives",
        look: memory::retention,
    },
    Check {
        name: "dirty",
        threshold: "64 MiB free, a quarter of what is in use, and not on its way back",
        needs: SECOND_LOOK,
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
        threshold: "256 MiB of RSS that are not the allocator's, and half of it",
        needs: "RSS of a process that runs",
        look: memory::outside,
    },
    Check {
        name: "purge-refused",
        threshold: "the system refused pages between the looks, or more often than it took any",
        needs: "process.purges_refused, or process.purges",
        look: refusals::purge_refused,
    },
    Check {
        name: "purge-churn",
        threshold: "100 purges and 64 MiB a second, of which half is resident again",
        needs: RESIDENT_TWICE,
        look: speed::purge_churn,
    },
    Check {
        name: "slow-slabs",
        threshold: "1,000 slabs of a class a second, for 20 allocations each at most, half unused",
        needs: SECOND_LOOK,
        look: speed::slow_slabs,
    },
    Check {
        name: "slow-frees",
        threshold: "100,000 frees a second by other threads, and half of all allocations",
        needs: SECOND_LOOK,
        look: speed::slow_frees,
    },
    Check {
        name: "slow-bins",
        threshold: "100,000 freed objects of a class a second find no room at hand, half of all",
        needs: SECOND_LOOK,
        look: speed::slow_bins,
    },
    Check {
        name: "full-table",
        threshold: "9 of 10 rows of a table, no memory for rows, or no place for a label",
        needs: "epochs",
        look: tables::full_table,
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
    /// Between the two looks. None: there was one.
    over_ms: Option<u64>,
    findings: Vec<Finding>,
    not_checked: Vec<NotChecked>,
}

/// Looks for everything.
pub fn run(setting: &Setting, arguments: &Arguments) -> Result<Answer> {
    let ignored = arguments.ignored.read()?;
    let looks = Looks::take(setting, &arguments.target, &arguments.looks, |_| true)?;
    let patient = looks.patient(arguments, &ignored);
    let report = Report::of(&patient);
    let note = ignored.functions_note().map(str::to_owned);
    let undecided = [epochs::undecided(&patient), live::undecided(&patient)];
    let further = note.into_iter().chain(undecided.into_iter().flatten());
    Ok(Answer {
        output: setting.output(&report, Report::text)?,
        notes: looks.now.notes().into_iter().chain(further).collect(),
        found: !report.findings.is_empty(),
        failed: false,
    })
}

/// The same of a look, and of an earlier one if there was any.
pub fn run_between(
    setting: &Setting,
    before: Option<&Subject>,
    now: &Subject,
    limits: leaks::Limits,
) -> Result<Answer> {
    let ignored = Ignored::default();
    let report = Report::of(&Patient::of(before, now, limits, &ignored, why::account(now).ok()));
    Ok(Answer { output: setting.output(&report, Report::text)?, ..Answer::default() })
}

/// What is found, without its words.
#[derive(Debug)]
pub struct Brief {
    /// None: the file or the system does not tell.
    pub account: Option<Account>,
    /// Findings of each cause that was looked for.
    pub causes: BTreeMap<&'static str, u64>,
}

/// Looks for everything. `before`: an earlier look. `account`: None if nobody knows what is
/// resident.
pub fn brief(
    before: Option<&Subject>,
    now: &Subject,
    limits: leaks::Limits,
    account: Option<Account>,
) -> Brief {
    let ignored = Ignored::default();
    let patient =
        Patient { names_calls: false, ..Patient::of(before, now, limits, &ignored, account) };
    let report = Report::of(&patient);
    let is_checked = |name: &str| report.not_checked.iter().all(|check| check.cause != name);
    let checked = CHECKS.iter().map(|check| check.name).filter(|name| is_checked(name));
    let mut causes: BTreeMap<_, _> = checked.map(|name| (name, 0)).collect();
    for finding in &report.findings {
        *causes.entry(finding.cause).or_default() += 1;
    }
    Brief { account: patient.account, causes }
}

impl Looks {
    fn patient<'a>(&'a self, arguments: &Arguments, ignored: &'a Ignored) -> Patient<'a> {
        let limits = leaks::Limits {
            after_ms: leaks::after_ms(arguments.after, &self.now),
            open_after_ms: Some(arguments.open_after.saturating_mul(1000)),
        };
        let account = why::account(&self.now).ok();
        Patient::of(self.before.as_ref(), &self.now, limits, ignored, account)
    }
}

impl<'a> Patient<'a> {
    fn of(
        before: Option<&'a Subject>,
        subject: &'a Subject,
        limits: leaks::Limits,
        ignored: &'a Ignored,
        account: Option<Account>,
    ) -> Self {
        let after_ms = limits.after_ms;
        Self {
            subject,
            before,
            account,
            helper: helper(subject),
            hides_objects: hides_objects(subject),
            growths: Growths::read(before, subject, after_ms),
            outlived: Outlived::read(subject, after_ms),
            ignored,
            names_calls: true,
            after_ms,
            open_after_ms: limits.open_after_ms.unwrap_or(u64::MAX),
        }
    }
}

// What the system says now, or said as the process was recorded.
fn helper(subject: &Subject) -> Option<Helper> {
    match &subject.recorded {
        Some(recorded) => recorded.about().helper,
        None if subject.life == Life::Alive => Helper::of(subject.pid),
        None => None,
    }
}

fn hides_objects(subject: &Subject) -> bool {
    match &subject.recorded {
        Some(recorded) => recorded.about().hides_objects,
        None => subject.life == Life::Alive && python::hides_objects(subject.pid),
    }
}

impl Report {
    fn of(patient: &Patient) -> Self {
        let (mut findings, mut not_checked) = (Vec::new(), Vec::new());
        for check in &CHECKS {
            match (check.look)(patient) {
                Some(found) => findings.extend(found),
                None => {
                    not_checked.push(NotChecked { cause: check.name, missing: check.needs });
                }
            }
        }
        findings.sort_by_key(|finding| finding.rank);
        let (identity, over_ms) = (patient.subject.identity(), patient.over_ms());
        Self { identity, over_ms, findings, not_checked }
    }

    fn text(&self) -> String {
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
        let mut not_checked: Vec<_> = self.not_checked.iter().collect();
        not_checked.sort_by_key(|check| check.missing);
        for checks in not_checked.chunk_by(|one, next| one.missing == next.missing) {
            let causes: Vec<_> = checks.iter().map(|check| check.cause).collect();
            let missing = checks[0].missing;
            let _ = writeln!(out, "not checked: {}, for lack of {missing}", causes.join(", "));
        }
        out
    }
}

/// The report of a process that runs, between two looks at it, whatever its files say.
#[cfg(test)]
pub(super) fn between(before: &Subject, now: &Subject) -> String {
    let ignored = Ignored::default();
    let report = Report::of(&Patient {
        subject: now,
        before: Some(before),
        account: None,
        helper: None,
        hides_objects: false,
        growths: Growths::read(Some(before), now, 0),
        outlived: Outlived::read(now, 0),
        ignored: &ignored,
        names_calls: true,
        after_ms: 0,
        open_after_ms: 0,
    });
    report.text() + &text::json(&report).expect("JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Subject;
    use crate::commands::account::Account;
    use crate::fixture::{Image, TOLD_MS, sample};
    use crate::smaps::Resident;

    /// What is looked at.
    pub struct Case {
        /// The first look; None: there is one look alone.
        pub before: Option<Image>,
        pub now: Image,
        /// Resident at both looks.
        pub rss_bytes: Option<[u64; 2]>,
        /// Of it, where blocks lie.
        pub blocks_bytes: Option<u64>,
        pub helper: Option<Helper>,
        pub hides_objects: bool,
        /// None: as of a process that has ended.
        pub after_ms: Option<u64>,
    }

    impl Default for Case {
        fn default() -> Self {
            Self {
                before: None,
                now: healthy(),
                rss_bytes: None,
                blocks_bytes: None,
                helper: None,
                hides_objects: false,
                after_ms: None,
            }
        }
    }

    /// What is found.
    pub fn report(case: &Case) -> Report {
        of_patient(case, Report::of)
    }

    /// What is told of a case.
    pub fn of_patient<T>(case: &Case, told: impl FnOnce(&Patient) -> T) -> T {
        let subject = |image: &Image, look: usize| Subject {
            rss_bytes: case.rss_bytes.map(|rss| rss[look]),
            ..Subject::of_bytes(image.bytes())
        };
        let before = case.before.as_ref().map(|image| subject(image, 0));
        let (before, now) = (before.as_ref(), subject(&case.now, 1));
        let resident = |blocks_bytes| Resident { blocks_bytes, ..Resident::default() };
        let after_ms = case.after_ms.unwrap_or_else(|| leaks::after_ms(None, &now));
        told(&Patient {
            subject: &now,
            before,
            account: case.blocks_bytes.map(|bytes| Account::of(&now, resident(bytes), 0)),
            helper: case.helper,
            hides_objects: case.hides_objects,
            growths: Growths::read(before, &now, after_ms),
            outlived: Outlived::read(&now, after_ms),
            ignored: &Ignored::default(),
            names_calls: true,
            after_ms,
            open_after_ms: 600_000,
        })
    }

    fn at_one_look(image: &Image) -> Report {
        let subject = Subject::of_bytes(image.bytes());
        Report::of(&Patient {
            subject: &subject,
            before: None,
            account: None,
            helper: None,
            hides_objects: false,
            growths: Growths::read(None, &subject, 60_000),
            outlived: Outlived::read(&subject, 60_000),
            ignored: &Ignored::default(),
            names_calls: true,
            after_ms: 60_000,
            open_after_ms: 600_000,
        })
    }

    /// What is found in a file, as (cause, text, advice).
    pub fn findings(image: &Image) -> Vec<Finding> {
        at_one_look(image).findings
    }

    /// What is found between the healthy process and a second later.
    pub fn in_a_second(now: Image) -> Vec<Finding> {
        let before = Image { told_ms: TOLD_MS - 1000, ..healthy() };
        report(&Case { before: Some(before), now, ..Case::default() }).findings
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

    /// The healthy process, but for these figures of its own.
    pub fn with(values: &[(&str, u64)]) -> Image {
        let mut image = healthy();
        image.set_all("process", 0, values);
        image
    }

    /// The one finding, for people.
    pub fn said(found: &[Finding]) -> String {
        assert_eq!(found.len(), 1, "{found:?}");
        format!("{}: {} -> {}", found[0].cause, found[0].what, found[0].advice)
    }

    /// The one that is found in a file.
    pub fn only(image: &Image) -> String {
        said(&findings(image))
    }

    #[test]
    fn a_healthy_process_is_called_so() {
        let expected = "nothing found: 11 checks passed\n\
                        not checked: outside, for lack of RSS of a process that runs\n\
                        not checked: live-growth, dirty, slow-slabs, slow-frees, slow-bins, for \
                        lack of a second look at it while it runs (or --before)\n\
                        not checked: purge-churn, for lack of what was resident at two looks \
                        while it runs\n";
        assert_eq!(at_one_look(&healthy()).text(), expected);
        assert!(in_a_second(healthy()).is_empty());
    }

    #[test]
    fn a_file_that_does_not_tell_is_not_called_healthy() {
        let mut image = healthy();
        image.tables.retain(|table| table.name == "process");
        image.forget("process", "purges_refused");
        let report = at_one_look(&image);
        let causes: Vec<_> = report.not_checked.iter().map(|check| check.cause).collect();
        assert!(causes.contains(&"leak") && causes.contains(&"purge-refused"), "{causes:?}");
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
