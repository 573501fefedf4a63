//! The default epoch: no close tells what is lost there, only the ages of samples which call stacks
//! keep more and more.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::Subject;
use super::counted::Counted;
use super::growth::{Growth, Verdict};
use super::ignored::Ignored;
use super::kept::Kept;
use super::survivors::{self, Stack, Stacks};
use crate::host::Life;
use crate::sampling::{LiveSample, Reach, Sampling, whole};
use crate::snapshot::{DEFAULT_EPOCH, Epoch, Snapshot};
use crate::text;

/// What lives there.
#[derive(Debug, Serialize)]
pub(super) struct DefaultEpoch {
    objects: Option<u64>,
    bytes: Option<u64>,
    /// Of them, those that were sampled. None: none is.
    samples: Option<u64>,
    /// Of these, those that are old enough to be judged.
    old_samples: u64,
    /// How old that is.
    old_ms: u64,
    /// Whose objects become more.
    pub stacks: Vec<Stack>,
}

impl DefaultEpoch {
    /// `until_ms`: what was allocated later may be in use.
    pub fn of(
        before: Option<&Subject>,
        subject: &Subject,
        stacks: Option<&Stacks>,
        until_ms: u64,
        ignored: &Ignored,
    ) -> Self {
        let epoch = find(&subject.snapshot);
        let mut found = stacks.map(|stacks| stacks.growing(until_ms)).unwrap_or_default();
        found.retain(|stack| {
            !survivors::are_ignored(std::slice::from_ref(stack), ignored)
                && stack.growth().is_some_and(|growth| is_confirmed(before, subject, &growth))
        });
        Self {
            objects: epoch.and_then(|epoch| epoch.live.objects),
            bytes: epoch.and_then(|epoch| epoch.live.bytes),
            samples: is_sampled(subject).then(|| samples(subject, u64::MAX)),
            old_samples: samples(subject, until_ms),
            old_ms: subject.as_of_ms.saturating_sub(until_ms),
            stacks: found,
        }
    }

    /// Those whose objects become more.
    pub fn text(&self) -> String {
        if self.stacks.is_empty() {
            return String::new();
        }
        let count = text::count(Some(self.stacks.len() as u64), "call stack");
        let keeps = if self.stacks.len() == 1 { "keeps" } else { "keep" };
        let live = text::bytes(self.bytes);
        let head = format!("outside of epochs  {live} live  {count} {keeps} more and more\n");
        let why = match &self.stacks[..] {
            [one] => one.growth().map(|growth| format!("   {}\n", growth.text())),
            _ => None,
        };
        head + &survivors::text(&[], None, &self.stacks) + &why.unwrap_or_default()
    }

    /// What there is to know where nothing is found.
    pub fn limit_text(&self, subject: &Subject) -> String {
        if self.objects.unwrap_or_default() == 0 || !self.stacks.is_empty() {
            return String::new();
        }
        let live = format!("outside of epochs {} live", text::bytes(self.bytes));
        match (self.samples, subject.life) {
            (Some(samples), _) if self.old_samples == 0 => format!(
                "{live}: of {} none is older than {}; a lower --after judges younger ones\n",
                text::count(Some(samples), "sampled object"),
                text::age(Some(self.old_ms))
            ),
            (Some(samples), _) => format!(
                "{live}: of {} no call stack is seen to keep more and more\n",
                text::count(Some(samples), "sampled object")
            ),
            (None, Life::Alive) => format!(
                "{live}, and only samples tell whether they become more: `tslab profile {} --keep` \
                 takes them from now on, TSLAB_SAMPLE_BYTES=512K from the start\n",
                subject.pid
            ),
            (None, _) => format!(
                "{live}, and only samples tell whether they became more: start it with \
                 TSLAB_SAMPLE_BYTES=512K\n"
            ),
        }
    }
}

/// Of what a call stack keeps more and more.
#[derive(Debug)]
pub(super) struct Growing {
    /// For which its samples stand that are old enough.
    pub bytes: u64,
    /// How that is known.
    pub growth: Growth,
}

impl Growing {
    /// Those of a process, by the stacks' addresses, that which keeps most first. `until_ms`: what
    /// was allocated later may be in use.
    pub fn read(before: Option<&Subject>, subject: &Subject, until_ms: u64) -> Vec<Self> {
        let least_ms = subject.as_of_ms.saturating_sub(until_ms);
        let Some(kept) = Kept::read(before, subject, least_ms) else { return Vec::new() };
        let mut by_site = BTreeMap::<_, Vec<_>>::new();
        for live in kept.of_epoch(DEFAULT_EPOCH).filter(|live| live.sampled_ms < until_ms) {
            by_site.entry(live.site).or_default().push(live);
        }
        let growing = |group: &Vec<_>| {
            let growth = kept.growth(group)?;
            let grows = growth.verdict == Verdict::Grows
                && !kept.has_ended(group)
                && is_confirmed(before, subject, &growth);
            grows.then(|| Self { bytes: whole(kept.bytes(group)), growth })
        };
        let mut all: Vec<_> = by_site.values().filter_map(growing).collect();
        all.sort_by_key(|one| Reverse(one.bytes));
        all
    }
}

fn find(snapshot: &Snapshot) -> Option<&Epoch> {
    snapshot.epochs.iter().find(|epoch| epoch.row == DEFAULT_EPOCH)
}

/// Whether what is allocated there is sampled, or was.
pub(super) fn is_sampled(subject: &Subject) -> bool {
    let reach = subject.snapshot.sampling.as_ref().map(Sampling::reach);
    reach == Some(Reach::All) || samples(subject, u64::MAX) > 0
}

fn samples(subject: &Subject, until_ms: u64) -> u64 {
    let all = subject.snapshot.sampling.iter().flat_map(|sampling| &sampling.live);
    let is_of_it = |live: &&LiveSample| live.epoch == DEFAULT_EPOCH && live.sampled_ms < until_ms;
    all.filter(is_of_it).count() as u64
}

// What was allocated before sampling began is not seen to go: then what comes must be seen in the
// count.
fn is_confirmed(before: Option<&Subject>, now: &Subject, growth: &Growth) -> bool {
    let is_partial = now.snapshot.sampling.as_ref().is_some_and(Sampling::is_partial);
    let Some(net) = growth.by_flow() else { return true };
    let counted = before.zip(find(&now.snapshot));
    let counted = counted.and_then(|(before, epoch)| Counted::of(&before.snapshot, epoch));
    !is_partial || counted.is_some_and(|counted| counted.more() * 2.0 >= net)
}

#[cfg(test)]
pub(super) mod tests;
