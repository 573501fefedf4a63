//! Where time is lost.

use serde_json::Value;

use super::finding::{Finding, Found, MIB, Patient, Rank, reaches, shown};
use crate::rows::process;
use crate::snapshot::Class;
use crate::text;

// From when on counts count, a second.
const PURGES: u64 = 100;
const PURGED_BYTES: u64 = 64 * MIB;
const PURGED_PERCENT: u64 = 50;
const OPENED: u64 = 1_000;
const OPENED_PERCENT: u64 = 5;
const SENT: u64 = 100_000;
const SENT_PERCENT: u64 = 50;
const RETURNED: u64 = 100_000;
const RETURNED_PERCENT: u64 = 50;

/// Memory is given back only to be taken again: resident memory does not become less.
pub(super) fn purge_churn(patient: &Patient) -> Found {
    let purges = patient.grew(|snapshot| snapshot.process_figure(process::PURGES))?;
    let bytes = patient.grew(|snapshot| snapshot.process_figure(process::PURGED_BYTES))?;
    let again = bytes.saturating_sub(patient.shrank_bytes()?);
    let is_often = patient.a_second(purges)? >= PURGES;
    let is_much = patient.a_second(bytes)? >= PURGED_BYTES;
    if !is_often || !is_much || !reaches(again, PURGED_PERCENT, bytes) {
        return Some(Vec::new());
    }
    let what = format!(
        "{purges} purges gave back {} {}, of which {} are resident again",
        shown(bytes),
        patient.span(),
        shown(again)
    );
    let limit_bytes = patient.snapshot().process_figure(process::SOFT_LIMIT_BYTES);
    let evidence = [
        ("purges", Value::from(purges)),
        ("purged_bytes", Value::from(bytes)),
        ("resident_again_bytes", Value::from(again)),
        ("soft_limit_bytes", Value::from(limit_bytes)),
        ("over_ms", Value::from(patient.over_ms())),
    ];
    let advice = churn_advice(limit_bytes);
    Some(vec![Finding::new("purge-churn", Rank::Slow, what, &evidence, advice)])
}

// None: the file does not tell the limit.
fn churn_advice(limit_bytes: Option<u64>) -> String {
    match limit_bytes {
        Some(0) => "raise option purge_delay_ms: what goes back is needed again soon".to_owned(),
        Some(limit) => format!(
            "raise option soft_limit, which is {}, where the process comes near it, otherwise \
             purge_delay_ms: what goes back is needed again soon",
            shown(limit)
        ),
        None => "raise option soft_limit if it is set, otherwise purge_delay_ms: what goes back \
                 is needed again soon"
            .to_owned(),
    }
}

// What a class did between the looks.
struct Deed<'a> {
    class: &'a Class,
    allocations: u64,
    opened: u64,
    returned: u64,
}

fn deeds<'a>(patient: &'a Patient) -> Option<Vec<Deed<'a>>> {
    let before = &patient.before?.snapshot.classes;
    let grown = |before: Option<u64>, now: Option<u64>| Some(now?.saturating_sub(before?));
    let deed = |(before, class): (&Class, &'a Class)| {
        Some(Deed {
            class,
            allocations: grown(before.allocations, class.allocations)?,
            opened: grown(before.opened, class.opened)?,
            returned: grown(before.returned, class.returned)?,
        })
    };
    let all = before.iter().zip(&patient.snapshot().classes).map(deed);
    all.collect::<Option<Vec<_>>>().filter(|all| !all.is_empty())
}

impl Deed<'_> {
    // Slabs are opened again and again, and each for few objects. One that fills up once is opened
    // for as many as it holds.
    fn opens_for_few(&self, patient: &Patient) -> Option<bool> {
        let room = self.opened.saturating_mul(self.class.capacity?);
        let is_often = patient.a_second(self.opened)? >= OPENED;
        let is_much = reaches(self.opened, OPENED_PERCENT, self.allocations);
        Some(is_often && is_much && room > self.allocations.saturating_mul(2))
    }

    fn evidence(&self, patient: &Patient, name: &'static str, count: u64) -> [(&str, Value); 4] {
        [
            ("class_bytes", Value::from(self.class.bytes)),
            (name, Value::from(count)),
            ("allocations", Value::from(self.allocations)),
            ("over_ms", Value::from(patient.over_ms())),
        ]
    }
}

// What only a change of the program cures is no finding in one that was never changed.
fn is_unchanged(patient: &Patient) -> Option<Vec<Finding>> {
    (!patient.knows_epochs()).then(Vec::new)
}

/// Allocations take the slow path, since slabs come and go.
pub(super) fn slow_slabs(patient: &Patient) -> Found {
    if let Some(none) = is_unchanged(patient) {
        return Some(none);
    }
    let deeds = deeds(patient)?;
    let judged = deeds.iter().map(|deed| Some((deed.opens_for_few(patient)?, deed)));
    let judged: Vec<_> = judged.collect::<Option<_>>()?;
    let slow: Vec<_> = judged.iter().filter(|(is_slow, _)| *is_slow).collect();
    let worst = slow.iter().max_by_key(|(_, deed)| deed.opened);
    let Some((_, deed)) = worst else { return Some(Vec::new()) };
    let what = format!(
        "class {} B opened {} slabs of {} for {} objects {} (such classes: {})",
        text::number(deed.class.bytes),
        deed.opened,
        text::count(deed.class.capacity, "object"),
        deed.allocations,
        patient.span(),
        slow.len(),
    );
    let evidence = deed.evidence(patient, "opened", deed.opened);
    let advice = "let several short epochs be one: each opens slabs of its own".to_owned();
    Some(vec![Finding::new("slow-slabs", Rank::Slow, what, &evidence, advice)])
}

/// Frees take the slow path, since other threads do them.
pub(super) fn slow_frees(patient: &Patient) -> Found {
    if let Some(none) = is_unchanged(patient) {
        return Some(none);
    }
    let sent = patient.grew(|snapshot| snapshot.holdings.sent)?;
    let allocated = patient.grew(|snapshot| snapshot.work.allocations)?;
    if patient.a_second(sent)? < SENT || !reaches(sent, SENT_PERCENT, allocated) {
        return Some(Vec::new());
    }
    let what = format!(
        "{sent} objects were freed by other threads than allocated them {}, beside {allocated} \
         allocations",
        patient.span()
    );
    let evidence = [
        ("sent", Value::from(sent)),
        ("allocations", Value::from(allocated)),
        ("over_ms", Value::from(patient.over_ms())),
    ];
    let advice = "let the thread that allocates free, or give the work an epoch and release it as \
                  a whole"
        .to_owned();
    Some(vec![Finding::new("slow-frees", Rank::Slow, what, &evidence, advice)])
}

/// Frees take the slow path, since more objects of a class are freed than threads keep at hand.
pub(super) fn slow_bins(patient: &Patient) -> Found {
    if let Some(none) = is_unchanged(patient) {
        return Some(none);
    }
    let deeds = deeds(patient)?;
    let is_slow = |deed: &&Deed| {
        patient.a_second(deed.returned).is_some_and(|rate| rate >= RETURNED)
            && reaches(deed.returned, RETURNED_PERCENT, deed.allocations)
    };
    let worst = deeds.iter().filter(is_slow).max_by_key(|deed| deed.returned);
    let Some(deed) = worst else { return Some(Vec::new()) };
    let what = format!(
        "{} freed objects of class {} B found no room at hand {}, beside {} allocations",
        deed.returned,
        text::number(deed.class.bytes),
        patient.span(),
        deed.allocations
    );
    let evidence = deed.evidence(patient, "returned", deed.returned);
    let advice = "give what is freed together an epoch, and release it as a whole".to_owned();
    Some(vec![Finding::new("slow-bins", Rank::Slow, what, &evidence, advice)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::tests::{Case, healthy, in_a_second, report, said, with};
    use crate::fixture::{Image, TOLD_MS};

    #[test]
    fn purges_count_when_there_are_many_a_second_and_memory_stays_resident() {
        let churn_of = |purges: u64, bytes: u64, shrank: u64| {
            let now = with(&[("purges", 5 + purges), ("purged_bytes", bytes)]);
            let before = Image { told_ms: TOLD_MS - 1000, ..healthy() };
            let rss_bytes = Some([100 * MIB + shrank, 100 * MIB]);
            report(&Case { before: Some(before), now, rss_bytes, ..Case::default() }).findings
        };
        let churn = |purges, shrank| churn_of(purges, 64 * MIB, shrank);
        let expected = "purge-churn: 100 purges gave back 64.0 MiB in 1.0 s, of which 32.0 MiB are \
                        resident again -> raise option purge_delay_ms";
        assert!(said(&churn(100, 32 * MIB)).starts_with(expected), "{:?}", churn(100, 32 * MIB));
        assert!(churn(99, 32 * MIB).is_empty() && churn(100, 32 * MIB + 1).is_empty());
        assert!(churn_of(100, 64 * MIB - 1, 0).is_empty());
    }

    #[test]
    fn slabs_opened_for_few_objects_are_slow() {
        let slabs = |opened: u64, allocations: u64, capacity: u64| {
            let mut image = healthy();
            image.set_class("bins", 1, "allocations", 3, allocations);
            image.set_class("bins", 1, "opened", 3, opened);
            image.set("classes", 3, "capacity", capacity);
            in_a_second(image)
        };
        let expected = "slow-slabs: class 512 B opened 1000 slabs of 128 objects for 20000 objects \
                        in 1.0 s (such";
        let found = said(&slabs(1_000, 20_000, 128));
        assert!(found.starts_with(expected), "{found}");
        assert!(slabs(999, 19_980, 128).is_empty() && slabs(1_000, 20_001, 128).is_empty());
        // As many as each holds: filled once.
        assert!(slabs(1_000, 20_000, 20).is_empty());
    }

    #[test]
    fn frees_by_other_threads_are_slow_when_there_are_many() {
        let frees = |sent: u64, allocations: u64| {
            let mut image = healthy();
            image.set_class("bins", 1, "allocations", 1, 1_000 + allocations);
            image.set_class("bins", 1, "sent", 1, 5 + sent);
            image.set_class("bins", 1, "taken", 1, 3 + sent);
            in_a_second(image)
        };
        let found = said(&frees(100_000, 200_000));
        assert!(found.starts_with("slow-frees: 100000 objects were freed by other"), "{found}");
        assert!(frees(99_999, 100_000).is_empty() && frees(100_000, 200_001).is_empty());
    }

    #[test]
    fn frees_without_room_at_hand_are_slow_when_there_are_many() {
        let frees = |returned: u64, allocations: u64| {
            let mut image = healthy();
            image.set_class("bins", 1, "allocations", 1, 1_000 + allocations);
            image.set_class("bins", 1, "returned", 1, returned);
            in_a_second(image)
        };
        let expected = "slow-bins: 100000 freed objects of class 128 B found no room at hand in \
                        1.0 s, beside 200000 allocations -> give what is freed together an epoch";
        let found = said(&frees(100_000, 200_000));
        assert!(found.starts_with(expected), "{found}");
        assert!(frees(99_999, 100_000).is_empty() && frees(100_000, 200_001).is_empty());
    }
}
