//! epochs: the epochs of one process, each below its parent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Result;
use serde::Serialize;

use super::{Answer, Identity, Setting, Subject};
use crate::labels::Label;
use crate::rows::EpochState;
use crate::snapshot::{DEFAULT_EPOCH, Epoch, Live};
use crate::text::{self, Align, Grid};

// Deeper ones are shown at this depth: the library allows 64.
const MOST_INDENT: usize = 64;

#[derive(Debug, Serialize)]
pub(super) struct Report {
    #[serde(flatten)]
    identity: Identity,
    pub(super) epochs: Vec<Row>,
    /// Labels to whose epochs memory was refused.
    refused: Vec<Label>,
}

// An epoch in the order of the tree: parents stand before their children.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) epoch: u64,
    id: u64,
    parent: Option<u64>,
    pub(super) depth: usize,
    pub(super) label: Option<Arc<str>>,
    pub(super) state: Option<EpochState>,
    pub(super) age_ms: Option<u64>,
    closed_for_ms: Option<u64>,
    pub(super) live: Live,
    pub(super) held_bytes: Option<u64>,
    own_bytes: Option<u64>,
    soft_limit_bytes: Option<u64>,
    hard_limit_bytes: Option<u64>,
}

/// Shows the epochs of a process: those that are open or have survivors, or all.
pub fn run(setting: &Setting, target: &str, all: bool) -> Result<Answer> {
    let subject = Subject::find(setting, target)?;
    let report = Report::of(&subject, all);
    Ok(Answer {
        output: setting.output(&report, Report::text)?,
        notes: subject.notes(),
        ..Answer::default()
    })
}

impl Report {
    pub(super) fn of(subject: &Subject, all: bool) -> Self {
        let mut epochs = subject.snapshot.epochs_by_row();
        if !all {
            let shown = shown(&epochs);
            epochs.retain(|row, _| shown.contains(row));
        }
        let row = |(depth, epoch)| Row::of(epoch, depth, subject.as_of_ms);
        let refused = subject.snapshot.labels.iter().filter(|label| label.is_refused());
        Self {
            identity: subject.identity(),
            epochs: tree_order(&epochs).into_iter().map(row).collect(),
            refused: refused.cloned().collect(),
        }
    }

    pub(super) fn text(&self) -> String {
        let mut grid = Grid::new(&[
            ("EPOCH", Align::Right),
            ("STATE", Align::Left),
            ("AGE", Align::Right),
            ("CLOSED FOR", Align::Right),
            ("OBJECTS", Align::Right),
            ("LIVE", Align::Right),
            ("HELD", Align::Right),
            ("LABEL", Align::Left),
        ]);
        self.epochs.iter().for_each(|row| grid.row(row.texts()));
        grid.render() + &self.refused.iter().map(refused_text).collect::<String>()
    }
}

fn refused_text(label: &Label) -> String {
    format!(
        "refused to {}: {} by limits, {} by the system\n",
        text::label(Some(&label.text)),
        text::number(label.limits_refused),
        text::number(label.memory_refused)
    )
}

impl Row {
    fn of(epoch: &Epoch, depth: usize, now_ms: u64) -> Self {
        Self {
            epoch: epoch.row,
            id: epoch.id,
            parent: epoch.parent,
            depth,
            label: epoch.label.clone(),
            state: epoch.state,
            age_ms: epoch.since_opened_ms(now_ms),
            closed_for_ms: epoch.since_closed_ms(now_ms),
            live: epoch.live,
            held_bytes: epoch.held_bytes,
            own_bytes: epoch.own_bytes,
            soft_limit_bytes: epoch.soft_limit_bytes,
            hard_limit_bytes: epoch.hard_limit_bytes,
        }
    }

    fn texts(&self) -> Vec<String> {
        let indent = "  ".repeat(self.depth.min(MOST_INDENT));
        let closed_for = self.closed_for_ms.map(|ms| text::age(Some(ms)));
        vec![
            self.epoch.to_string(),
            text::state(self.state).to_owned(),
            text::age(self.age_ms),
            closed_for.unwrap_or_default(),
            text::number(self.live.objects),
            text::bytes(self.live.bytes),
            text::bytes(self.held_bytes),
            format!("{indent}{}", text::label(self.label.as_deref())),
        ]
    }
}

type Epochs<'a> = BTreeMap<u64, &'a Epoch>;

fn is_of_interest(epoch: &Epoch) -> bool {
    epoch.row == DEFAULT_EPOCH
        || match epoch.state {
            Some(EpochState::Open | EpochState::Shared) | None => true,
            Some(EpochState::Closed) => epoch.live.objects != Some(0),
            Some(EpochState::Released) => false,
        }
}

// Epochs of interest, and their ancestors, without which the tree would fall apart.
fn shown(epochs: &Epochs) -> BTreeSet<u64> {
    let mut shown = BTreeSet::new();
    for epoch in epochs.values().filter(|epoch| is_of_interest(epoch)) {
        let mut next = Some(*epoch);
        while let Some(epoch) = next.filter(|epoch| shown.insert(epoch.row)) {
            next = parent(epochs, epoch);
        }
    }
    shown
}

// None too when the parent's row is missing or the epoch's own, as in a damaged file.
fn parent<'a>(epochs: &Epochs<'a>, epoch: &Epoch) -> Option<&'a Epoch> {
    epochs.get(&epoch.parent?).copied().filter(|parent| parent.row != epoch.row)
}

// The larger first; of equal ones the older, which mostly has the lower row.
fn by_size(epochs: &mut [&Epoch]) {
    epochs
        .sort_by_key(|epoch| (std::cmp::Reverse((epoch.held_bytes, epoch.live.bytes)), epoch.row));
}

// Every epoch once, with its depth. Those whose parents form a ring, as in a damaged file, begin
// trees of their own.
fn tree_order<'a>(epochs: &Epochs<'a>) -> Vec<(usize, &'a Epoch)> {
    let mut children = BTreeMap::<u64, Vec<&Epoch>>::new();
    let mut roots = Vec::new();
    for &epoch in epochs.values() {
        match parent(epochs, epoch) {
            Some(parent) => children.entry(parent.row).or_default().push(epoch),
            None => roots.push(epoch),
        }
    }
    by_size(&mut roots);
    let mut order = Vec::with_capacity(epochs.len());
    for root in roots.into_iter().chain(epochs.values().copied()) {
        walk(root, &mut children, &mut order);
    }
    let mut seen = BTreeSet::new();
    order.retain(|(_, epoch)| seen.insert(epoch.row));
    order
}

// Each list of children is taken once, so that the walk ends whatever the file says.
fn walk<'a>(
    root: &'a Epoch,
    children: &mut BTreeMap<u64, Vec<&'a Epoch>>,
    order: &mut Vec<(usize, &'a Epoch)>,
) {
    let mut waiting = vec![(0, root)];
    while let Some((depth, epoch)) = waiting.pop() {
        order.push((depth, epoch));
        let mut below = children.remove(&epoch.row).unwrap_or_default();
        by_size(&mut below);
        waiting.extend(below.into_iter().rev().map(|child| (depth + 1, child)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(row: u64, parent: u64, held: u64) -> Epoch {
        Epoch {
            row,
            id: row,
            parent: (parent != 0).then_some(parent),
            label: None,
            state: Some(EpochState::Open),
            opened_ms: None,
            closed_ms: None,
            held_bytes: Some(held),
            soft_limit_bytes: None,
            hard_limit_bytes: None,
            own_bytes: None,
            large: Live::default(),
            live: Live::default(),
            survivors: Vec::new(),
        }
    }

    fn order(epochs: &[Epoch]) -> Vec<(usize, u64)> {
        let by_row = epochs.iter().map(|epoch| (epoch.row, epoch)).collect();
        tree_order(&by_row).iter().map(|(depth, epoch)| (*depth, epoch.row)).collect()
    }

    #[test]
    fn children_stand_below_their_parents_the_larger_first() {
        let epochs = [epoch(1, 0, 5), epoch(2, 1, 1), epoch(3, 1, 4), epoch(4, 0, 9)];
        assert_eq!(order(&epochs), [(0, 4), (0, 1), (1, 3), (1, 2)]);
    }

    #[test]
    fn rings_and_missing_parents_lose_nobody() {
        let epochs = [epoch(1, 2, 0), epoch(2, 1, 0), epoch(3, 3, 0), epoch(4, 99, 0)];
        let mut rows: Vec<_> = order(&epochs).iter().map(|(_, row)| *row).collect();
        rows.sort_unstable();
        assert_eq!(rows, [1, 2, 3, 4]);
    }

    #[test]
    fn a_chain_of_a_hundred_thousand_needs_no_stack() {
        let epochs: Vec<_> = (1..=100_000).map(|row| epoch(row, row - 1, 0)).collect();
        assert_eq!(order(&epochs).last(), Some(&(99_999, 100_000)));
    }

    #[test]
    fn shared_epochs_are_shown_as_such() {
        let mut shared = epoch(1, 0, 5);
        shared.state = Some(EpochState::Shared);
        assert!(is_of_interest(&shared));
        assert_eq!(Row::of(&shared, 0, 0).texts()[1], "shared");
    }

    #[test]
    fn what_was_refused_is_said_below() {
        let mut image = crate::fixture::sample(42, 7);
        let text = |image: &crate::fixture::Image| {
            Report::of(&Subject::of_bytes(image.bytes()), false).text()
        };
        assert!(!text(&image).contains("refused"));
        image.set("labels", 7, "limits_refused", 3);
        let said = "\nrefused to \"GET /upload\": 3 by limits, 0 by the system\n";
        assert!(text(&image).ends_with(said), "{}", text(&image));
    }

    #[test]
    fn ancestors_of_what_is_shown_are_shown() {
        let mut epochs = [epoch(1, 0, 0), epoch(2, 1, 0), epoch(3, 0, 0)];
        epochs[0].state = Some(EpochState::Released);
        epochs[2].state = Some(EpochState::Released);
        let by_row = epochs.iter().map(|epoch| (epoch.row, epoch)).collect();
        assert_eq!(shown(&by_row).into_iter().collect::<Vec<_>>(), [1, 2]);
    }
}
