//! What the system or a limit refused.

use serde_json::Value;

use super::finding::{Finding, Found, Patient, Rank, shown};
use crate::rows::{Field, process};
use crate::text;

// How often something was refused, and for people, also how much of it is recent.
fn refusals(patient: &Patient, field: Field, what: &str) -> Option<(u64, String)> {
    let times = patient.snapshot().process_figure(field)?;
    let recent = patient.grew(|snapshot| snapshot.process_figure(field));
    let recent = recent.map(|recent| format!(", {recent} of them {}", patient.span()));
    let times_text = text::count(Some(times), "time");
    Some((times, format!("{what} {times_text}{}", recent.unwrap_or_default())))
}

/// Whether the system takes no pages back: it refused between the looks, or more often than not.
/// What it refused once, long ago, is not the cause of anything now.
pub(super) fn keeps_pages(patient: &Patient) -> Option<bool> {
    let figure = |field| patient.snapshot().process_figure(field);
    Some(patient.is_refusing() || figure(process::PURGES_REFUSED)? > figure(process::PURGES)?)
}

fn refused(
    patient: &Patient,
    cause: &'static str,
    field: Field,
    what: &str,
    advice: &str,
) -> Found {
    let (times, what) = refusals(patient, field, what)?;
    if times == 0 {
        return Some(Vec::new());
    }
    let evidence = [(field.name, Value::from(times))];
    Some(vec![Finding::new(cause, Rank::Refused, what, &evidence, advice.to_owned())])
}

/// The system gave no memory.
pub(super) fn memory_refused(patient: &Patient) -> Found {
    let advice = format!(
        "compare /proc/{0}/limits, the number of lines of /proc/{0}/maps with vm.max_map_count, \
         and CommitLimit in /proc/meminfo: the one that is reached must be raised",
        patient.subject.pid
    );
    let what = "the system refused memory";
    refused(patient, "memory-refused", process::MEMORY_REFUSED, what, &advice)
}

/// An epoch's hard limit gave none.
pub(super) fn limit_refused(patient: &Patient) -> Found {
    let advice = "raise hard_limit_bytes of the epoch whose HELD is close to it in `tslab epochs`, \
                  or let its on_limit make room: callers have got NULL";
    let what = "hard limits refused memory";
    refused(patient, "limit-refused", process::LIMITS_REFUSED, what, advice)
}

/// Pages stay although they are free.
pub(super) fn purge_refused(patient: &Patient) -> Found {
    let what = "the system refused to take free pages back";
    let field = process::PURGES_REFUSED;
    let (times, what) = refusals(patient, field, what)?;
    if !keeps_pages(patient)? {
        return Some(Vec::new());
    }
    let dirty = patient.snapshot().process_figure(process::DIRTY_BYTES).unwrap_or_default();
    let what = format!("{what}; {} are free and not given back", shown(dirty));
    let evidence = [(field.name, Value::from(times)), ("dirty_bytes", Value::from(dirty))];
    let advice = format!(
        "look at VmLck of /proc/{}/status: memory that the program locks (mlock, mlockall) cannot \
         be given back",
        patient.subject.pid
    );
    Some(vec![Finding::new("purge-refused", Rank::of_bytes(dirty), what, &evidence, advice)])
}

#[cfg(test)]
mod tests {
    use crate::commands::doctor::tests::{causes, in_a_second, only, said, with};

    #[test]
    fn refusals_count_from_the_first_on() {
        for (field, cause) in
            [("memory_refused", "memory-refused"), ("limits_refused", "limit-refused")]
        {
            assert_eq!(causes(&with(&[(field, 1)])), [cause]);
        }
        let thrice = with(&[("limits_refused", 3)]);
        assert!(only(&thrice).contains("refused memory 3 times ->"), "{}", only(&thrice));
        assert!(said(&in_a_second(thrice)).contains("refused memory 3 times, 3 of them in 1.0 s"));
    }

    #[test]
    fn refused_purges_count_while_they_go_on_or_outnumber_the_others() {
        let refused = |times| with(&[("purges_refused", times), ("purges", 5)]);
        assert_eq!(causes(&refused(6)), ["purge-refused"]);
        assert!(causes(&refused(5)).is_empty());
        assert!(only(&refused(6)).contains("look at VmLck of /proc/42/status"));
        let findings = in_a_second(refused(1));
        assert_eq!(findings[0].cause, "purge-refused", "{findings:?}");
    }
}
