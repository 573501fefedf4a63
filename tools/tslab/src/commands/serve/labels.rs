//! Figures of the epochs by label, the smaller labels summed up.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::commands::Subject;
use crate::labels::Label;
use crate::rows::EpochState;
use crate::snapshot::{DEFAULT_EPOCH, Epoch};

/// What stands for the labels that are not told apart, and for epochs without one. The library
/// uses it too.
pub const OTHER: &str = "other";

/// A label as Prometheus can tell it apart: it takes an empty one for none.
pub fn known_label(label: Option<&str>) -> &str {
    label.filter(|label| !label.is_empty()).unwrap_or(OTHER)
}

/// Sums over the epochs of a label. None: a part is not known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sums {
    /// Epochs that are open or closed; the default one and the shared one are none of them.
    pub epochs: u64,
    /// Of live objects.
    pub live_bytes: Option<u64>,
    /// Live objects.
    pub live_objects: Option<u64>,
    /// Memory that they hold, without their children's: each byte counts once.
    pub held_bytes: Option<u64>,
    /// Memory that those hold which have a hard limit, their children's included: what the limit
    /// counts.
    pub limited_bytes: Option<u64>,
    /// Memory that they are estimated to have made resident.
    pub resident_bytes: Option<u64>,
    /// Of live objects in closed epochs.
    pub survivor_bytes: Option<u64>,
    /// Live objects in closed epochs.
    pub survivor_objects: Option<u64>,
    /// Memory that they never exceed, where they have a limit.
    pub hard_limit_bytes: u64,
    /// Age of the oldest that is open, in ms; None: none is.
    pub oldest_ms: Option<u64>,
}

impl Default for Sums {
    fn default() -> Self {
        let none = Some(0);
        Self {
            epochs: 0,
            live_bytes: none,
            live_objects: none,
            held_bytes: none,
            limited_bytes: none,
            resident_bytes: none,
            survivor_bytes: none,
            survivor_objects: none,
            hard_limit_bytes: 0,
            oldest_ms: None,
        }
    }
}

fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a?.saturating_add(b?))
}

impl Sums {
    fn of(epoch: &Epoch, memory: &Memory, now_ms: u64) -> Self {
        let is_closed = epoch.state == Some(EpochState::Closed);
        let survivors = |live: Option<u64>| if is_closed { live } else { Some(0) };
        let is_aging = epoch.state == Some(EpochState::Open) && epoch.row != DEFAULT_EPOCH;
        Self {
            epochs: u64::from(epoch.is_the_programs()),
            live_bytes: epoch.live.bytes,
            live_objects: epoch.live.objects,
            held_bytes: epoch.own_bytes,
            limited_bytes: epoch.hard_limit_bytes.map_or(Some(0), |_| epoch.held_bytes),
            resident_bytes: memory.resident(epoch),
            survivor_bytes: survivors(epoch.live.bytes),
            survivor_objects: survivors(epoch.live.objects),
            hard_limit_bytes: epoch.hard_limit_bytes.unwrap_or_default(),
            oldest_ms: epoch.since_opened_ms(now_ms).filter(|_| is_aging),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            epochs: self.epochs + other.epochs,
            live_bytes: sum(self.live_bytes, other.live_bytes),
            live_objects: sum(self.live_objects, other.live_objects),
            held_bytes: sum(self.held_bytes, other.held_bytes),
            limited_bytes: sum(self.limited_bytes, other.limited_bytes),
            resident_bytes: sum(self.resident_bytes, other.resident_bytes),
            survivor_bytes: sum(self.survivor_bytes, other.survivor_bytes),
            survivor_objects: sum(self.survivor_objects, other.survivor_objects),
            hard_limit_bytes: self.hard_limit_bytes.saturating_add(other.hard_limit_bytes),
            oldest_ms: self.oldest_ms.max(other.oldest_ms),
        }
    }
}

/// The sums of each label.
pub fn sums(subject: &Subject) -> BTreeMap<&str, Sums> {
    let snapshot = &subject.snapshot;
    let held_bytes = snapshot.totals().held_bytes;
    let memory = Memory { held_bytes, rss_bytes: subject.rss_bytes };
    let mut labels = BTreeMap::<&str, Sums>::new();
    for epoch in snapshot.epochs.iter().filter(|epoch| is_told(epoch)) {
        let sums = labels.entry(known_label(epoch.label.as_deref())).or_default();
        *sums = sums.plus(Sums::of(epoch, &memory, subject.as_of_ms));
    }
    labels
}

/// The sums of the `most` labels with most live bytes, and of the others together.
pub fn by_label(subject: &Subject, most: usize) -> BTreeMap<String, Sums> {
    let mut ranked: Vec<_> = sums(subject).into_iter().collect();
    ranked.sort_by_key(|(label, sums)| (*label == OTHER, Reverse(sums.live_bytes)));
    let mut told = BTreeMap::<String, Sums>::new();
    for (rank, (label, sums)) in ranked.into_iter().enumerate() {
        let label = if rank < most { label } else { OTHER };
        let known = told.entry(label.to_owned()).or_default();
        *known = known.plus(sums);
    }
    told
}

/// How the epochs of a label ended of late. None: a part is not known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct History {
    /// Those with memory of their own.
    pub ended: Option<u64>,
    /// What they held at their ends.
    pub bytes: Option<u64>,
    /// Of it: objects that lived on.
    pub survivor_bytes: Option<u64>,
    /// Of it: cells and slabs in which objects lived on.
    pub pinned_bytes: Option<u64>,
    /// How long they were open, added up.
    pub lived_ms: Option<u64>,
    /// Labels of which the next epochs share memory.
    pub sharing: Option<u64>,
}

impl History {
    fn of(label: &Label) -> Self {
        Self {
            ended: label.ended,
            bytes: label.ended_bytes,
            survivor_bytes: label.ended_survivor_bytes,
            pinned_bytes: label.ended_pinned_bytes,
            lived_ms: label.ended_lived_ms,
            sharing: label.shares.map(u64::from),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            ended: sum(self.ended, other.ended),
            bytes: sum(self.bytes, other.bytes),
            survivor_bytes: sum(self.survivor_bytes, other.survivor_bytes),
            pinned_bytes: sum(self.pinned_bytes, other.pinned_bytes),
            lived_ms: sum(self.lived_ms, other.lived_ms),
            sharing: sum(self.sharing, other.sharing),
        }
    }
}

/// The histories of the `most` labels whose epochs held most at their ends, and of the others
/// together.
pub fn histories(labels: &[Label], most: usize) -> BTreeMap<String, History> {
    let mut ranked: Vec<_> = labels.iter().filter(|label| label.has_history()).collect();
    ranked.sort_by_key(|label| (&*label.text == OTHER, Reverse(label.ended_bytes)));
    let mut told = BTreeMap::<String, History>::new();
    for (rank, label) in ranked.into_iter().enumerate() {
        let name = if rank < most { &*label.text } else { OTHER };
        let history = History::of(label);
        told.entry(name.to_owned())
            .and_modify(|known| *known = known.plus(history))
            .or_insert(history);
    }
    told
}

// A label of which only a released epoch is left that holds nothing has no series.
fn is_told(epoch: &Epoch) -> bool {
    let is_empty = (epoch.own_bytes, epoch.live.objects) == (Some(0), Some(0));
    epoch.state != Some(EpochState::Released) || !is_empty
}

// How much of what epochs hold is resident, as is estimated.
struct Memory {
    held_bytes: Option<u64>,
    rss_bytes: Option<u64>,
}

impl Memory {
    // What an epoch owns is taken to be resident, unless the process has less than all hold: then
    // each has its share.
    fn resident(&self, epoch: &Epoch) -> Option<u64> {
        let (own, held, rss) = (epoch.own_bytes?, self.held_bytes?, self.rss_bytes?);
        if held <= rss {
            return Some(own);
        }
        // Below 2^64, since `own` is a part of `held`.
        let share = u128::from(own) * u128::from(rss) / u128::from(held);
        u64::try_from(share).ok()
    }
}
