//! Which call stacks grew. Where samples are of a part of what lives they cannot tell alone:
//!
//!  S1  a label and class that was not sampled at the first look did not grow by being sampled
//!  S2  samples replace older blocks that were not sampled, so a stack grew only if its labels'
//!      live bytes did, which are counted without samples

use serde::Serialize;

use super::pairs::{grew, pairs};
use super::side::{ByLabel, Estimate, Kind, Side, Sites, Sum};
use crate::sampling::{Reach, float};

// How far chance may take the difference of two estimates off, in standard deviations.
const CHANCE: f64 = 3.0;

/// Whether call stacks of both sides are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stacks {
    Compared,
    /// They are, but samples are of a part of what lives.
    Partial,
    /// The same, and one side does not know the live bytes of labels: no stack counts as grown.
    Unconfirmed,
    /// They are not: one side has none.
    NotSampled,
    /// One side is of a form that has none.
    NotTold,
    /// Functions of one side have no names.
    NotNamed,
    /// Samples of one side are of all, those of the other of a part, or of another part.
    SampledOtherwise,
}

/// What lives of all that a call stack allocated, on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Functions, innermost first.
    pub stack: Vec<String>,
    /// None: it began to be sampled between the looks (S1).
    pub before_bytes: Option<u64>,
    pub after_bytes: u64,
    /// It grew beyond chance and the tolerance.
    pub regression: bool,
}

impl Stacks {
    /// Of these two sides.
    pub fn of(before: &Side, after: &Side) -> Self {
        if !before.may_be_sampled || !after.may_be_sampled {
            return Self::NotTold;
        }
        let Some((old, new)) = before.sites.as_ref().zip(after.sites.as_ref()) else {
            return Self::NotSampled;
        };
        let is_process = before.key.is_some() && before.key == after.key;
        let is_named =
            old.are_named && new.are_named || !old.are_named && !new.are_named && is_process;
        match (old.are_partial, new.are_partial) {
            _ if !is_named => Self::NotNamed,
            _ if !is_sampled_alike(old, new, is_process) => Self::SampledOtherwise,
            (false, false) => Self::Compared,
            _ if before.labels.is_none() || after.labels.is_none() => Self::Unconfirmed,
            _ => Self::Partial,
        }
    }

    /// Compares them, in the order of their functions.
    pub fn differences(self, before: &Side, after: &Side, tolerance: f64) -> Vec<Difference> {
        let are_compared = matches!(self, Self::Compared | Self::Partial | Self::Unconfirmed);
        let sites = before.sites.as_ref().zip(after.sites.as_ref()).filter(|_| are_compared);
        let Some((old, new)) = sites else { return Vec::new() };
        let live = before.labels.as_ref().zip(after.labels.as_ref());
        let stacks = old
            .by_stack
            .keys()
            .chain(new.by_stack.keys().filter(|stack| !old.by_stack.contains_key(*stack)));
        let mut all = Vec::new();
        for stack in stacks {
            let looks = Looks::at(stack, old, new);
            let regression = looks.grew(tolerance)
                && (self == Self::Compared || live.is_some_and(|live| looks.is_confirmed(live)));
            let of = |before_bytes, after_bytes, regression| Difference {
                stack: stack.clone(),
                before_bytes,
                after_bytes,
                regression,
            };
            let (before, after) = looks.sum();
            if !looks.by_label.is_empty() {
                all.push(of(Some(before.live_bytes), after.live_bytes, regression));
            }
            if looks.began.live_bytes > 0 {
                all.push(of(None, looks.began.live_bytes, false));
            }
        }
        all
    }

    /// What limits the worth of the comparison.
    pub fn note(self) -> Option<&'static str> {
        match self {
            Self::Compared | Self::NotSampled => None,
            Self::Partial => Some(
                "only a part of what lives was sampled: a stack may be missing, and counts as \
                 grown only if the live bytes of its label grew by as much",
            ),
            Self::Unconfirmed => Some(
                "only a part of what lives was sampled, and JSON of `profile` has no live bytes \
                 by label that would confirm that a stack grew: compare processes, statistics \
                 files or folders of `record`",
            ),
            Self::NotTold => Some(
                "call stacks are not compared, since JSON of `epochs` and of `stats` has no \
                 samples: processes, statistics files, folders of `record` and JSON of `profile` \
                 have them",
            ),
            Self::NotNamed => Some(
                "call stacks are not compared, since functions of one side have no names: compare \
                 processes that run, folders of `record`, or JSON of `profile`",
            ),
            Self::SampledOtherwise => Some(
                "call stacks are not compared, since not the same was sampled on both sides: \
                 compare looks between which nobody began or ended sampling, as \
                 `tslab profile --seconds 0` takes them",
            ),
        }
    }
}

// In one process nothing may have changed between the looks.
fn is_sampled_alike(old: &Sites, new: &Sites, is_process: bool) -> bool {
    let kind = |sites: &Sites| (sites.reach.map(|(reach, _)| reach), sites.are_partial);
    kind(old) == kind(new) && (!is_process || old.reach == new.reach)
}

// A call stack at both looks.
#[derive(Default)]
struct Looks {
    // Of what was sampled at the first look already.
    by_label: ByLabel<(Estimate, Estimate)>,
    // Of the rest.
    began: Estimate,
}

impl Looks {
    fn at(stack: &[String], old: &Sites, new: &Sites) -> Self {
        let is_watched = new.reach.is_some_and(|(reach, _)| reach == Reach::Watched);
        let kinds = |sites: &Sites| sites.by_stack.get(stack).cloned().unwrap_or_default();
        let (old_kinds, new_kinds) = (kinds(old), kinds(new));
        let mut looks = Self::default();
        let none = Estimate::default();
        for (kind, before, after) in pairs(Some(&old_kinds), Some(&new_kinds), none) {
            if is_watched && !old.sampled.contains(&kind) {
                looks.began.add(after);
            } else {
                looks.add(kind, before, after);
            }
        }
        looks
    }

    fn add(&mut self, (label, _): Kind, before: Estimate, after: Estimate) {
        let sums = self.by_label.entry(label).or_default();
        sums.0.add(before);
        sums.1.add(after);
    }

    fn sum(&self) -> (Estimate, Estimate) {
        sum(self.by_label.values())
    }

    fn grew(&self, tolerance: f64) -> bool {
        let (before, after) = self.sum();
        is_beyond_chance(before, after) && grew(before.live_bytes, after.live_bytes, tolerance)
    }

    // S2. What grew in labels that did not is left out.
    fn is_confirmed(&self, (old, new): (&ByLabel<Sum>, &ByLabel<Sum>)) -> bool {
        let live = |labels: &ByLabel<Sum>, label| {
            labels.get(label).copied().unwrap_or(Sum::NOTHING).live_bytes
        };
        let confirmed = self.by_label.iter().filter(|(label, (before, after))| {
            let live = live(old, *label).zip(live(new, *label));
            let added = live.map_or(0, |(before, after)| after.saturating_sub(before));
            let chance = CHANCE * deviation(*before, *after);
            let grown = after.live_bytes.saturating_sub(before.live_bytes);
            added > 0 && float(grown) <= float(added) + chance
        });
        let (before, after) = sum(confirmed.map(|(_, looks)| looks));
        after.live_bytes > before.live_bytes && is_beyond_chance(before, after)
    }
}

fn sum<'a>(looks: impl Iterator<Item = &'a (Estimate, Estimate)>) -> (Estimate, Estimate) {
    looks.fold(<(Estimate, Estimate)>::default(), |mut sum, (before, after)| {
        sum.0.add(*before);
        sum.1.add(*after);
        sum
    })
}

fn deviation(before: Estimate, after: Estimate) -> f64 {
    (before.variance + after.variance).sqrt()
}

// Whether it is more than what chance makes of such samples.
fn is_beyond_chance(before: Estimate, after: Estimate) -> bool {
    let difference = float(before.live_bytes.abs_diff(after.live_bytes));
    difference > CHANCE * deviation(before, after)
}

#[cfg(test)]
mod tests;
