//! What is wrong with epochs, one finding a label.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::finding::{Finding, Found, Patient, Rank, percent, reaches};
use crate::commands::growth::Verdict;
use crate::rows::EpochState;
use crate::snapshot::{DEFAULT_EPOCH, Epoch};
use crate::text;

const NEAR_PERCENT: u64 = 90;

// Of many labels those are shown that hold most.
const MOST_LABELS: usize = 10;

/// Epochs with the same label.
pub(super) struct Group<'a> {
    pub label: Option<&'a str>,
    pub epochs: Vec<&'a Epoch>,
    pub own_bytes: u64,
}

fn groups<'a>(patient: &'a Patient, which: impl Fn(&Epoch) -> bool) -> Vec<Group<'a>> {
    most(all_groups(patient, which))
}

/// Of groups in order, those that are shown.
pub(super) fn most(mut groups: Vec<Group>) -> Vec<Group> {
    groups.truncate(MOST_LABELS);
    groups
}

/// What some epochs come to, by label; those that hold most first.
pub(super) fn all_groups<'a>(
    patient: &'a Patient,
    which: impl Fn(&Epoch) -> bool,
) -> Vec<Group<'a>> {
    let snapshot = &patient.subject.snapshot;
    let mut groups = BTreeMap::<_, Group>::new();
    let chosen = snapshot.epochs.iter().filter(|epoch| epoch.row != DEFAULT_EPOCH);
    for epoch in chosen.filter(|epoch| which(epoch)) {
        let label = epoch.label.as_deref();
        let empty = || Group { label, epochs: Vec::new(), own_bytes: 0 };
        let group = groups.entry(label).or_insert_with(empty);
        let bytes = epoch.own_bytes.unwrap_or_default();
        group.own_bytes = group.own_bytes.saturating_add(bytes);
        group.epochs.push(epoch);
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|group| Reverse(group.own_bytes));
    groups
}

impl Group<'_> {
    pub fn sum(&self, value: impl Fn(&Epoch) -> Option<u64>) -> u64 {
        self.epochs.iter().filter_map(|epoch| value(epoch)).fold(0, u64::saturating_add)
    }

    fn most(&self, value: impl Fn(&Epoch) -> Option<u64>) -> Option<u64> {
        self.epochs.iter().filter_map(|epoch| value(epoch)).max()
    }

    fn count(&self) -> String {
        let count = text::count(Some(self.epochs.len() as u64), "epoch");
        format!("{count} {}", text::label(self.label))
    }

    pub fn evidence(&self, more: &[(&'static str, u64)]) -> Vec<(&'static str, Value)> {
        let mut evidence = vec![
            ("label", Value::from(self.label)),
            ("epochs", Value::from(self.epochs.len())),
            ("held_bytes", Value::from(self.own_bytes)),
        ];
        evidence.extend(more.iter().map(|(name, value)| (*name, Value::from(*value))));
        evidence
    }
}

pub(super) fn is_older(ms: Option<u64>, limit_ms: u64) -> bool {
    ms.is_some_and(|ms| ms > limit_ms)
}

/// Open there. None: there are none, or the file does not tell.
pub(super) fn scopes(patient: &Patient, epoch: &Epoch) -> Option<u64> {
    let by_row = patient.snapshot().holdings.open_scopes.as_ref()?;
    by_row.get(usize::try_from(epoch.row).ok()?).copied().filter(|&scopes| scopes > 0)
}

// Closed, and a thread is inside.
fn is_left(patient: &Patient, epoch: &Epoch) -> bool {
    let closed_ms = epoch.since_closed_ms(patient.subject.as_of_ms);
    let is_over = matches!(epoch.state, Some(EpochState::Closed | EpochState::Released));
    is_over && scopes(patient, epoch).is_some() && is_older(closed_ms, patient.after_ms)
}

// What a thread is inside of may be freed yet, and what turns over will be.
fn is_leaking(patient: &Patient, epoch: &Epoch) -> bool {
    let closed_ms = epoch.since_closed_ms(patient.subject.as_of_ms);
    let turns_over = || {
        let growth = patient.growths.of(epoch);
        growth.is_some_and(|growth| growth.verdict == Verdict::TurnsOver)
    };
    epoch.has_survivors()
        && is_older(closed_ms, patient.after_ms)
        && !is_left(patient, epoch)
        && !patient.ignored.has_label(epoch.label.as_deref())
        && !turns_over()
}

// Objects of a shared epoch may be those of requests in flight, or of a cache: only samples tell,
// and only more and more of them are a leak. The verdict is of samples of all ages.
fn is_growing(patient: &Patient, epoch: &Epoch) -> bool {
    let growth = patient.growths.of(epoch);
    epoch.is_shared()
        && growth.is_some_and(|growth| growth.verdict == Verdict::Grows)
        && patient.outlived.objects(epoch).is_some_and(|objects| objects > 0)
        && !patient.ignored.has_label(epoch.label.as_deref())
}

fn is_open_too_long(patient: &Patient, epoch: &Epoch) -> bool {
    let open_ms = epoch.since_opened_ms(patient.subject.as_of_ms);
    epoch.state == Some(EpochState::Open) && is_older(open_ms, patient.open_after_ms)
}

/// Whether it is one that `leak` is about.
pub(super) fn is_leak(patient: &Patient, epoch: &Epoch) -> bool {
    is_leaking(patient, epoch) || is_growing(patient, epoch)
}

/// Whether a finding here tells of the epoch's memory.
pub(super) fn is_told(patient: &Patient, epoch: &Epoch) -> bool {
    let is_told = [is_leak, is_left, is_open_too_long];
    epoch.row != DEFAULT_EPOCH && is_told.iter().any(|is_told| is_told(patient, epoch))
}

/// Objects outlived their epochs.
pub(super) fn leak(patient: &Patient) -> Found {
    let subject = patient.subject;
    subject.snapshot.missing.is_empty().then_some(())?;
    let closed = groups(patient, |epoch| is_leaking(patient, epoch));
    let shared = groups(patient, |epoch| is_growing(patient, epoch));
    let shared = shared.iter().map(|group| shared_leak(patient, group));
    Some(closed.iter().map(|group| closed_leak(patient, group)).chain(shared).collect())
}

fn closed_leak(patient: &Patient, group: &Group) -> Finding {
    let objects = group.sum(|epoch| epoch.live.objects);
    let bytes = group.sum(|epoch| epoch.live.bytes);
    let closed_ms = group.most(|epoch| epoch.since_closed_ms(patient.subject.as_of_ms));
    let what = format!(
        "{} closed up to {} ago, with {} of {} in {}",
        group.count(),
        text::age(closed_ms),
        text::count(Some(objects), "object"),
        text::bytes(Some(bytes)),
        text::bytes(Some(group.own_bytes))
    );
    let figures =
        [("objects", objects), ("bytes", bytes), ("closed_ms", closed_ms.unwrap_or_default())];
    leak_of(patient, group, what, &figures)
}

/// Of the shared epochs whose objects outlived theirs and may be a leak's or a cache's, the one
/// that has most.
pub(super) fn undecided(patient: &Patient) -> Option<String> {
    let is_undecided = |epoch: &Epoch| {
        let growth = patient.growths.of(epoch);
        epoch.is_shared()
            && growth.is_some_and(|growth| growth.verdict == Verdict::NotKnown)
            && patient.outlived.objects(epoch).is_some_and(|objects| objects > 0)
            && !patient.ignored.has_label(epoch.label.as_deref())
    };
    let groups = groups(patient, is_undecided);
    let epoch = groups.first()?.epochs.first()?;
    Some(format!(
        "of {} in the shared epoch {} about {} outlived theirs: whether they become more, a look \
         of a minute tells (--over 60)",
        text::count(epoch.live.objects, "object"),
        text::label(epoch.label.as_deref()),
        patient.outlived.objects(epoch)?
    ))
}

// There is one shared epoch a label.
fn shared_leak(patient: &Patient, group: &Group) -> Finding {
    let objects = group.sum(|epoch| patient.outlived.objects(epoch));
    let live = group.sum(|epoch| epoch.live.objects);
    let what = format!(
        "of {} in the shared epoch {} about {objects} outlived the epochs that they were allocated \
         in, in {}",
        text::count(Some(live), "object"),
        text::label(group.label),
        text::bytes(Some(group.own_bytes))
    );
    leak_of(patient, group, what, &[("objects", objects), ("live_objects", live)])
}

fn leak_of(
    patient: &Patient,
    group: &Group,
    what: String,
    figures: &[(&'static str, u64)],
) -> Finding {
    let growth = patient.growths.of(group.epochs[0]);
    let growth_text = growth.map(|growth| format!("; {}", growth.text())).unwrap_or_default();
    let advice = format!(
        "`tslab leaks {}` lists their size classes: find what the code under this label keeps, and \
         allocate that outside of the epoch",
        patient.subject.pid
    );
    let mut evidence = group.evidence(figures);
    evidence.push(("verdict", json!(growth.map(|growth| growth.verdict))));
    Finding::new("leak", Rank::of_bytes(group.own_bytes), what + &growth_text, &evidence, advice)
}

/// Epochs are open for too long.
pub(super) fn open_too_long(patient: &Patient) -> Found {
    let subject = patient.subject;
    let epochs = &subject.snapshot.epochs;
    let is_known = |epoch: &Epoch| epoch.state.is_some() && epoch.opened_ms.is_some();
    let others = || epochs.iter().filter(|epoch| epoch.row != DEFAULT_EPOCH);
    (!epochs.is_empty() && others().all(is_known)).then_some(())?;
    let finding = |group: &Group| {
        let oldest_ms = group.most(|epoch| epoch.since_opened_ms(subject.as_of_ms));
        let live = group.sum(|epoch| epoch.live.bytes);
        let what = format!(
            "{} open for up to {}, with {} live in {}",
            group.count(),
            text::age(oldest_ms),
            text::bytes(Some(live)),
            text::bytes(Some(group.own_bytes))
        );
        let figures = [("open_ms", oldest_ms.unwrap_or_default()), ("live_bytes", live)];
        let advice = "close it on every path that leaves the code that opened it, or let \
                      --open-after be as long as it is meant to live"
            .to_owned();
        let rank = Rank::of_bytes(group.own_bytes);
        Finding::new("open-too-long", rank, what, &group.evidence(&figures), advice)
    };
    Some(groups(patient, |epoch| is_open_too_long(patient, epoch)).iter().map(finding).collect())
}

/// Threads are still inside of closed epochs.
pub(super) fn scope_left_open(patient: &Patient) -> Found {
    let subject = patient.subject;
    subject.snapshot.holdings.open_scopes.as_ref()?;
    let finding = |group: &Group| {
        let open = group.sum(|epoch| scopes(patient, epoch));
        let closed_ms = group.most(|epoch| epoch.since_closed_ms(subject.as_of_ms));
        let what = format!(
            "{} closed up to {} ago, and {} still open there",
            group.count(),
            text::age(closed_ms),
            text::count(Some(open), "scope")
        );
        let figures = [("scopes", open), ("closed_ms", closed_ms.unwrap_or_default())];
        let advice = "let each thread leave its scope before the epoch is closed: until then the \
                      epoch's memory stays"
            .to_owned();
        let rank = Rank::of_bytes(group.own_bytes);
        Finding::new("scope-left-open", rank, what, &group.evidence(&figures), advice)
    };
    Some(groups(patient, |epoch| is_left(patient, epoch)).iter().map(finding).collect())
}

/// Epochs are close to a limit.
pub(super) fn near_limit(patient: &Patient) -> Found {
    let epochs = &patient.subject.snapshot.epochs;
    epochs.iter().all(|epoch| epoch.held_bytes.is_some()).then_some(())?;
    (!epochs.is_empty()).then_some(())?;
    let near = |epoch: &&Epoch| limit_of(epoch).is_some();
    let mut near: Vec<_> = epochs.iter().filter(near).collect();
    near.sort_by_key(|epoch| Reverse(epoch.held_bytes));
    near.truncate(MOST_LABELS);
    Some(near.into_iter().filter_map(limit_finding).collect())
}

// The limit that an epoch is close to, and its name. The hard one hurts more.
fn limit_of(epoch: &Epoch) -> Option<(u64, &'static str)> {
    let held = epoch.held_bytes?;
    let hard = epoch.hard_limit_bytes.filter(|limit| reaches(held, NEAR_PERCENT, *limit));
    let soft = epoch.soft_limit_bytes.filter(|limit| held >= *limit);
    hard.map(|limit| (limit, "hard")).or(soft.map(|limit| (limit, "soft")))
}

fn limit_finding(epoch: &Epoch) -> Option<Finding> {
    let (held, (limit, name)) = (epoch.held_bytes?, limit_of(epoch)?);
    let what = format!(
        "epoch {} {} holds {} of {}, {} % of its {name} limit",
        epoch.row,
        text::label(epoch.label.as_deref()),
        text::bytes(Some(held)),
        text::bytes(Some(limit)),
        percent(held, limit)
    );
    let evidence = [
        ("epoch", Value::from(epoch.row)),
        ("label", Value::from(epoch.label.as_deref())),
        ("held_bytes", Value::from(held)),
        ("limit_bytes", Value::from(limit)),
        ("limit", Value::from(name)),
    ];
    let advice = if name == "hard" {
        "raise hard_limit_bytes, if it holds what it should: at the limit allocations fail"
    } else {
        "let the callback of the soft limit make room"
    };
    Some(Finding::new("near-limit", Rank::Refused, what, &evidence, advice.to_owned()))
}

#[cfg(test)]
mod tests {
    use crate::commands::doctor::tests::{causes, findings, healthy};
    use crate::fixture::{TOLD_MS, sample};

    #[test]
    fn survivors_of_an_epoch_closed_long_ago_are_leaks() {
        let found = findings(&sample(42, 7));
        assert_eq!(found.len(), 1);
        let expected = "1 epoch \"GET /upload\" closed up to 61 s ago, with 357 objects of \
                        46.8 KiB in 48.0 KiB; stands: none came for 61 s";
        assert_eq!(found[0].what, expected);
        assert!(found[0].advice.starts_with("`tslab leaks 42`"));
        assert_eq!(found[0].evidence["objects"], 357);
        let mut recent = sample(42, 7);
        recent.set("epochs", 7, "closed_ms", TOLD_MS - 60_000);
        assert!(causes(&recent).is_empty());
    }

    #[test]
    fn epochs_of_one_label_are_one_finding() {
        let mut image = healthy();
        image.text("labels", 4, b"tenant");
        for row in [8, 9, 10] {
            let old = TOLD_MS - 600_000 - row as u64;
            image.set_all("epochs", row, &[("id", 1 << 24), ("label", 4), ("opened_ms", old)]);
            image.set("epochs", row, "held_bytes", 65_536);
        }
        let found = findings(&image);
        assert_eq!(found.len(), 1);
        let expected = "3 epochs \"tenant\" open for up to 10 min, with 0 B live in 192.0 KiB";
        assert_eq!((found[0].cause, found[0].what.as_str()), ("open-too-long", expected));
        image.set("epochs", 8, "opened_ms", TOLD_MS - 600_000);
        assert_eq!(findings(&image)[0].evidence["epochs"], 2);
    }

    #[test]
    fn shared_epochs_are_not_open_for_too_long() {
        let mut image = healthy();
        image.set_all("epochs", 7, &[("opened_ms", TOLD_MS - 600_001)]);
        assert_eq!(causes(&image), ["open-too-long"]);
        image.set("epochs", 7, "state", 3);
        assert!(causes(&image).is_empty());
    }

    #[test]
    fn scopes_in_closed_epochs_are_seen() {
        let mut image = sample(42, 7);
        image.set_all("heaps", 3, &[("epoch", 7), ("scopes", 2)]);
        image.set("epochs", 7, "closed_ms", TOLD_MS - 60_001);
        let found = findings(&image);
        let scope = found.iter().find(|finding| finding.cause == "scope-left-open").unwrap();
        assert!(scope.what.ends_with("and 2 scopes still open there"), "{}", scope.what);
        image.set("epochs", 7, "closed_ms", TOLD_MS - 60_000);
        assert!(!causes(&image).contains(&"scope-left-open"));
    }

    #[test]
    fn limits_are_near_from_nine_tenths_on() {
        let mut image = healthy();
        image.set("epochs", 3, "hard_limit_bytes", 291_271);
        let found = findings(&image);
        let expected = "epoch 3 \"batch\" holds 256.0 KiB of 284.4 KiB, 90 % of its hard limit";
        assert_eq!((found.len(), found[0].what.as_str()), (1, expected));
        image.set("epochs", 3, "hard_limit_bytes", 291_272);
        assert!(causes(&image).is_empty());
        image.set("epochs", 3, "soft_limit_bytes", 262_144);
        assert!(findings(&image)[0].what.ends_with("100 % of its soft limit"));
        image.set("epochs", 3, "soft_limit_bytes", 262_145);
        assert!(causes(&image).is_empty());
    }
}
