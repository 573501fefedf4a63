//! Objects that outlive their epochs and keep much more memory than they are, whether or not they
//! turn over: made outside, they would lie side by side.

use std::collections::{BTreeMap, BTreeSet};

use super::epochs::{self, Group};
use super::finding::{Finding, Found, MIB, Patient, Rank, reaches, shown};
use crate::commands::survivors::Stacks;
use crate::labels::Label;
use crate::snapshot::Epoch;
use crate::text;

// Fewer, or less, cost nobody anything.
const FEW_EPOCHS: usize = 4;
const PINNED_BYTES: u64 = MIB;
const PINNED_PERCENT: u64 = 1;

// Where survivors are more of what their epochs hold, they need that memory outside as well.
const PINNED_TIMES: u64 = 4;

// What is freed so soon after the close was handed on to be finished.
const HANDED_ON_MS: u64 = 10;

fn pins(pinned: u64, survivors: u64) -> bool {
    pinned >= survivors.saturating_mul(PINNED_TIMES)
}

fn is_kept(patient: &Patient, epoch: &Epoch) -> bool {
    let closed_ms = epoch.since_closed_ms(patient.subject.as_of_ms);
    epoch.has_survivors()
        && epoch.live.bytes.is_some_and(|bytes| bytes > 0)
        && epochs::is_older(closed_ms, HANDED_ON_MS)
        && epochs::scopes(patient, epoch).is_none()
        && !patient.ignored.has_label(epoch.label.as_deref())
}

fn label_of<'a>(patient: &'a Patient, label: Option<&str>) -> Option<&'a Label> {
    patient.snapshot().labels.iter().find(|known| Some(&*known.text) == label)
}

// Later epochs of the label share memory, so the library has seen to it. A label that would share
// has no shared epoch where option `places` forbids it, and one that did may have ceased to.
fn shares(patient: &Patient, epoch: &Epoch) -> bool {
    let label = || label_of(patient, epoch.label.as_deref());
    epoch.is_shared() && label().and_then(|label| label.shares) != Some(false)
}

// Labels of which nothing is to be said, or `leak` says it.
fn settled<'a>(patient: &'a Patient) -> BTreeSet<Option<&'a str>> {
    let is_settled = |epoch: &&Epoch| shares(patient, epoch) || epochs::is_leak(patient, epoch);
    let settled = patient.snapshot().epochs.iter().filter(is_settled);
    settled.map(|epoch| epoch.label.as_deref()).collect()
}

// How its epochs ended of late: epochs, bytes of survivors, and what these pinned.
fn history(patient: &Patient, group: &Group) -> Option<[u64; 3]> {
    let label = label_of(patient, group.label)?;
    let ended = label.ended.filter(|&ended| ended > 0)?;
    Some([ended, label.ended_survivor_bytes?, label.ended_pinned_bytes?])
}

// Epochs that were full of survivors at their close are passed over, however few are left by now:
// outside they would have taken as much.
fn were_full(patient: &Patient, group: &Group) -> bool {
    history(patient, group).is_some_and(|[_, survivors, pinned]| !pins(pinned, survivors))
}

fn is_pinned(patient: &Patient, group: &Group) -> bool {
    let is_much = group.epochs.len() >= FEW_EPOCHS && group.own_bytes >= PINNED_BYTES;
    if !is_much || group.label.is_none() || were_full(patient, group) {
        return false;
    }
    let held = patient.snapshot().totals().held_bytes.unwrap_or_default();
    reaches(group.own_bytes, PINNED_PERCENT, held)
        && pins(group.own_bytes, group.sum(|epoch| epoch.live.bytes))
}

/// The epochs that survivors pin, by label.
pub(super) fn groups<'a>(patient: &'a Patient) -> Vec<Group<'a>> {
    let settled = settled(patient);
    let is_wanted =
        |epoch: &Epoch| is_kept(patient, epoch) && !settled.contains(&epoch.label.as_deref());
    let mut groups = epochs::all_groups(patient, is_wanted);
    groups.retain(|group| is_pinned(patient, group));
    epochs::most(groups)
}

/// Survivors pin the memory of closed epochs.
pub(super) fn pinned(patient: &Patient) -> Found {
    let snapshot = patient.snapshot();
    snapshot.missing.is_empty().then_some(())?;
    snapshot.epochs.iter().all(|epoch| epoch.own_bytes.is_some()).then_some(())?;
    let groups = groups(patient);
    let is_named = patient.names_calls && !groups.is_empty();
    let stacks = is_named.then(|| Stacks::read(patient.before, patient.subject, 0)).flatten();
    let finding = |group: &Group| finding(patient, group, stacks.as_ref());
    Some(groups.iter().map(finding).collect())
}

fn finding(patient: &Patient, group: &Group, stacks: Option<&Stacks>) -> Finding {
    let objects = group.sum(|epoch| epoch.live.objects);
    let bytes = group.sum(|epoch| epoch.live.bytes);
    let history = history(patient, group);
    let what = format!(
        "{} closed epochs {} hold {} for {} of {} that outlived them{}",
        group.epochs.len(),
        text::label(group.label),
        shown(group.own_bytes),
        text::count(Some(objects), "object"),
        shown(bytes),
        history.map(history_text).unwrap_or_default()
    );
    let names = ["ended", "ended_survivor_bytes", "ended_pinned_bytes"];
    let of_late = history.into_iter().flat_map(|figures| names.into_iter().zip(figures));
    let figures: Vec<_> =
        [("objects", objects), ("bytes", bytes)].into_iter().chain(of_late).collect();
    let advice = advice(patient, group, stacks);
    let rank = Rank::of_bytes(group.own_bytes);
    Finding::new("pinned-epochs", rank, what, &group.evidence(&figures), advice)
}

fn history_text([ended, survivors, pinned]: [u64; 3]) -> String {
    let (survivors, pinned) = (shown(survivors), shown(pinned));
    format!("; in the last {ended} that ended, survivors of {survivors} pinned {pinned}")
}

fn advice(patient: &Patient, group: &Group, stacks: Option<&Stacks>) -> String {
    let make = "make these objects outside of the epoch (tslab_scope_default around the \
                allocation)";
    callers(group, stacks).map_or_else(
        || {
            let pid = patient.subject.pid;
            format!(
                "{make}: `tslab leaks {pid} --after 0` names who allocates, once some are sampled"
            )
        },
        |callers| format!("{make}; the largest sampled part of them comes from {callers}"),
    )
}

// One path may allocate several classes, each of which is a stack.
fn callers(group: &Group, stacks: Option<&Stacks>) -> Option<String> {
    let stacks = stacks?.of(group.epochs.iter().map(|epoch| epoch.id), u64::MAX);
    let mut bytes = BTreeMap::<String, u64>::new();
    for stack in &stacks {
        if let Some(callers) = stack.callers() {
            *bytes.entry(callers).or_default() += stack.bytes();
        }
    }
    bytes.into_iter().max_by_key(|(_, bytes)| *bytes).map(|(callers, _)| callers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Subject;
    use crate::commands::doctor::tests::{Case, causes, findings, healthy, of_patient, only};
    use crate::commands::ignored::Ignored;
    use crate::commands::leaks::Limits;
    use crate::fixture::{Image, TOLD_MS, add_sample, add_sampled, add_site};

    const LABEL: usize = 4;
    const ROWS: std::ops::Range<usize> = 7..11;

    // Four closed epochs that hold a MiB together, each with as many objects of 128 B.
    fn closed(objects: u64) -> Image {
        let mut image = healthy();
        image.text("labels", LABEL, b"POST /login");
        for row in ROWS {
            let closed = [("state", 1), ("opened_ms", 999_000), ("closed_ms", TOLD_MS - 5_000)];
            image.set_all("epochs", row, &[("id", 1 << 24 | row as u64), ("label", LABEL as u64)]);
            image.set_all("epochs", row, &closed);
            image.set("epochs", row, "held_bytes", MIB / 4);
            image.set_class("epochs", row, "survivors", 1, objects);
            image.set_class("epochs", row, "survivors", 2, 0);
        }
        image
    }

    fn ended(survivors: u64, pinned: u64) -> Image {
        let mut image = closed(1);
        let told = [("ended", 57), ("ended_survivor_bytes", survivors)];
        image.set_all("labels", LABEL, &told);
        image.set("labels", LABEL, "ended_pinned_bytes", pinned);
        image
    }

    #[test]
    fn survivors_that_pin_much_more_than_they_are_are_found() {
        let expected = "pinned-epochs: 4 closed epochs \"POST /login\" hold 1.0 MiB for 4 objects \
                        of 512 B that outlived them -> make these objects outside of the epoch \
                        (tslab_scope_default around the allocation): `tslab leaks 42 --after 0` \
                        names who allocates, once some are sampled";
        assert_eq!(only(&closed(1)), expected);
        let quarter = MIB / 16 / 128;
        assert_eq!(causes(&closed(quarter)), ["pinned-epochs"]);
        assert!(causes(&closed(quarter + 1)).is_empty());
    }

    #[test]
    fn little_and_few_are_passed_over() {
        let mut image = closed(1);
        image.set("epochs", 8, "held_bytes", MIB / 4 - 1);
        assert!(causes(&image).is_empty());
        let mut image = closed(1);
        image.set_all("epochs", 8, &[("held_bytes", MIB)]);
        assert_eq!(causes(&image), ["pinned-epochs"]);
        image.set_class("epochs", 8, "survivors", 1, 0);
        image.set_all("epochs", 9, &[("held_bytes", MIB)]);
        assert!(causes(&image).is_empty(), "three epochs");
    }

    #[test]
    fn a_hundredth_of_what_is_held_counts() {
        let mut image = closed(1);
        // 256 KiB of this epoch is held already, by what lives in it and else.
        let large = |image: &mut Image, bytes: u64| {
            image.set_all("epochs", 3, &[("large_bytes", bytes), ("held_bytes", bytes)]);
            image.set("process", 0, "large_bytes", 200_000 + bytes);
        };
        large(&mut image, 97 * MIB);
        assert_eq!(causes(&image), ["pinned-epochs"]);
        large(&mut image, 100 * MIB);
        assert!(causes(&image).is_empty());
    }

    #[test]
    fn how_epochs_ended_of_late_is_told_and_counts() {
        let found = only(&ended(MIB, 4 * MIB));
        let expected = "; in the last 57 that ended, survivors of 1.0 MiB pinned 4.0 MiB -> make";
        assert!(found.contains(expected), "{found}");
        assert_eq!(findings(&ended(MIB, 4 * MIB))[0].evidence["ended_pinned_bytes"], 4 * MIB);
        assert!(causes(&ended(MIB, 4 * MIB - 1)).is_empty());
    }

    #[test]
    fn what_was_closed_this_moment_and_where_threads_are_is_work_in_flight() {
        let mut image = closed(1);
        image.set("epochs", 8, "closed_ms", TOLD_MS - 11);
        assert_eq!(causes(&image), ["pinned-epochs"]);
        image.set("epochs", 8, "closed_ms", TOLD_MS - 10);
        assert!(causes(&image).is_empty());
        let mut image = closed(1);
        image.set_all("heaps", 5, &[("state", 1), ("home", 1), ("epoch", 8), ("scopes", 1)]);
        assert!(causes(&image).is_empty());
    }

    #[test]
    fn a_label_whose_epochs_share_is_passed_over() {
        let mut image = closed(1);
        image.set("labels", LABEL, "shares", 1);
        assert_eq!(causes(&image), ["pinned-epochs"], "option `places` forbids it");
        image.set_all(
            "epochs",
            12,
            &[("id", 1 << 24 | 0xc), ("label", LABEL as u64), ("state", 3)],
        );
        assert!(causes(&image).is_empty());
        image.set("labels", LABEL, "shares", 0);
        assert_eq!(causes(&image), ["pinned-epochs"], "they share no more");
    }

    #[test]
    fn a_leak_is_not_told_twice() {
        let mut image = closed(1);
        image.set("epochs", 8, "closed_ms", TOLD_MS - 60_001);
        assert_eq!(causes(&image), ["leak"]);
    }

    // At one look.
    fn found(image: &Image, ignored: &Ignored, names_calls: bool) -> Vec<Finding> {
        let subject = Subject::of_bytes(image.bytes());
        let limits = Limits { after_ms: 60_000, open_after_ms: None };
        let patient = Patient::of(None, &subject, limits, ignored, None);
        pinned(&Patient { names_calls, ..patient }).unwrap()
    }

    #[test]
    fn labels_are_ignored() {
        let found = |pattern| found(&closed(1), &Ignored::of(&[pattern]), true).len();
        assert_eq!((found("label:POST *"), found("label:GET *")), (0, 1));
    }

    #[test]
    fn its_memory_is_in_no_other_finding() {
        let mut image = closed(1);
        ROWS.for_each(|row| image.set("epochs", row, "held_bytes", 32 * MIB));
        assert_eq!(causes(&image), ["pinned-epochs"]);
    }

    #[test]
    fn who_allocated_is_named_where_a_sample_knows() {
        let mut image = closed(1);
        add_sampled(&mut image, &[0x1001, 0x2001]);
        assert!(
            only(&image)
                .ends_with("; the largest sampled part of them comes from 0x1000 <- 0x2000")
        );
        let unnamed = found(&image, &Ignored::default(), false);
        assert!(unnamed[0].advice.contains("`tslab leaks 42 --after 0`"), "{unnamed:?}");
    }

    // Each of these stacks stands for some 4 KiB; the one of the other path for a little more.
    #[test]
    fn a_path_that_allocates_several_classes_counts_as_one() {
        let mut image = closed(1);
        image.set_class("epochs", 7, "survivors", 2, 1);
        add_sampled(&mut image, &[0x1001]);
        add_site(&mut image, 2, (7, 2), 1, 144, &[0x1001]);
        add_sample(&mut image, 2, 2, 144, 1 << 24 | 7, 61_500);
        add_site(&mut image, 3, (7, 3), 1, 1024, &[0x3001]);
        add_sample(&mut image, 3, 3, 1024, 1 << 24 | 7, 61_500);
        assert!(only(&image).ends_with("comes from 0x1000"), "{}", only(&image));
    }

    #[test]
    fn a_file_that_does_not_tell_what_is_held_is_not_called_healthy() {
        let mut image = closed(1);
        image.forget("epochs", "held_bytes");
        let case = Case { now: image, ..Case::default() };
        assert!(of_patient(&case, pinned).is_none());
    }
}
