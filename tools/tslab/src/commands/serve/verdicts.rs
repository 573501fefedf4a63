//! What `why` and `doctor` say of a process, as metrics.

use std::sync::Arc;

use super::pace::Pace;
use super::samples::{OfProcess, Samples};
use crate::commands::account::Kind;
use crate::commands::doctor::{self, Brief};
use crate::commands::{Subject, leaks, why};

/// Of one process.
#[derive(Debug)]
pub struct Verdict(Brief);

impl Verdict {
    /// Of a process that runs. `before`: an earlier look at it.
    pub fn of(before: Option<&Subject>, now: &Subject, limits: leaks::Limits, pace: Pace) -> Self {
        let account = if pace.walks() { why::account(now).ok() } else { None };
        Self(doctor::brief(before, now, limits, account))
    }

    /// Adds it to what a scrape gets.
    pub fn add(&self, samples: &mut Samples, subject: &Subject) {
        let name = subject.name.as_deref().unwrap_or_default();
        let mut out = OfProcess::new(samples, subject.pid, name);
        if let Some(account) = &self.0.account {
            for part in &account.parts {
                out.gauge("tslab_why_bytes", &[&name_of(part.part)], Some(part.bytes));
            }
            out.gauge("tslab_why_not_resident_bytes", &[], Some(account.not_resident_bytes));
        }
        for (cause, findings) in &self.0.causes {
            out.gauge("tslab_findings", &[&(*cause).into()], Some(*findings));
        }
    }
}

/// Of a process that has much memory resident.
#[cfg(test)]
pub fn of_resident(subject: &Subject) -> Verdict {
    use crate::commands::account::Account;
    use crate::smaps::Resident;

    let limits = leaks::Limits { after_ms: 0, open_after_ms: Some(600_000) };
    let resident = Resident { blocks_bytes: 1 << 30, ..Resident::default() };
    let Verdict(brief) = Verdict::of(None, subject, limits, Pace::Never);
    Verdict(Brief { account: Some(Account::of(subject, resident, 0)), ..brief })
}

// As in the JSON of `why`.
fn name_of(part: Kind) -> Arc<str> {
    let name = serde_json::to_value(part).ok();
    name.as_ref().and_then(|name| name.as_str()).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::serve::samples::Value::Gauge;
    use crate::fixture::sample;

    #[test]
    fn parts_and_findings_are_those_of_the_commands() {
        let subject = Subject::of_bytes(sample(42, 7).bytes());
        let verdict = of_resident(&subject);
        let account = verdict.0.account.as_ref().unwrap();
        let mut samples = Samples::default();
        verdict.add(&mut samples, &subject);
        let parts = samples.of("tslab_why_bytes");
        assert_eq!(parts.len(), account.parts.len());
        assert_eq!(&*parts[3].labels[2], "free_in_slabs");
        assert_eq!(parts[3].value, Gauge(account.bytes(Kind::FreeInSlabs)));
        let of = |cause: &str| {
            let all = samples.of("tslab_findings").iter();
            all.filter(|one| &*one.labels[2] == cause).map(|one| one.value.clone()).next()
        };
        assert_eq!((of("leak"), of("memory-refused")), (Some(Gauge(1)), Some(Gauge(0))));
        assert_eq!(of("slow-frees"), None, "it was not checked");
    }
}
