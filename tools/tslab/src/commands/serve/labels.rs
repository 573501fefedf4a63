//! Figures of the epochs by label, the smaller labels summed up.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use crate::commands::Subject;
use crate::commands::leaks::own_bytes;
use crate::snapshot::{DEFAULT_EPOCH, Epoch, Snapshot, State};

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
    /// Epochs that are open or closed.
    pub epochs: u64,
    /// Of live objects.
    pub live_bytes: Option<u64>,
    /// Live objects.
    pub live_objects: Option<u64>,
    /// Memory that they hold, their children's included.
    pub held_bytes: Option<u64>,
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
        let is_closed = epoch.state == Some(State::Closed);
        let survivors = |live: Option<u64>| if is_closed { live } else { Some(0) };
        let is_aging = epoch.state == Some(State::Open) && epoch.row != DEFAULT_EPOCH;
        Self {
            epochs: 1,
            live_bytes: epoch.live.bytes,
            live_objects: epoch.live.objects,
            held_bytes: memory.held(epoch),
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
            resident_bytes: sum(self.resident_bytes, other.resident_bytes),
            survivor_bytes: sum(self.survivor_bytes, other.survivor_bytes),
            survivor_objects: sum(self.survivor_objects, other.survivor_objects),
            hard_limit_bytes: self.hard_limit_bytes.saturating_add(other.hard_limit_bytes),
            oldest_ms: self.oldest_ms.max(other.oldest_ms),
        }
    }
}

/// The sums of the `most` labels with most live bytes, and of the others together.
pub fn by_label(subject: &Subject, most: usize) -> BTreeMap<String, Sums> {
    let snapshot = &subject.snapshot;
    let memory = Memory::of(snapshot, subject.rss_bytes);
    let mut labels = BTreeMap::<&str, Sums>::new();
    for epoch in snapshot.epochs.iter().filter(|epoch| is_counted(epoch)) {
        let sums = labels.entry(known_label(epoch.label.as_deref())).or_default();
        *sums = sums.plus(Sums::of(epoch, &memory, subject.as_of_ms));
    }
    let mut ranked: Vec<_> = labels.into_iter().collect();
    ranked.sort_by_key(|(label, sums)| (*label == OTHER, Reverse(sums.live_bytes)));
    let mut told = BTreeMap::<String, Sums>::new();
    for (rank, (label, sums)) in ranked.into_iter().enumerate() {
        let label = if rank < most { label } else { OTHER };
        let known = told.entry(label.to_owned()).or_default();
        *known = known.plus(sums);
    }
    told
}

fn is_counted(epoch: &Epoch) -> bool {
    matches!(epoch.state, Some(State::Open | State::Closed))
}

// Who holds the allocator's memory.
struct Memory {
    /// Of each epoch without its children, by row.
    own: HashMap<u64, u64>,
    /// Of the default epoch, whose row does not tell it.
    default: Option<u64>,
    /// Of all epochs.
    total: u64,
    rss_bytes: Option<u64>,
}

impl Memory {
    fn of(snapshot: &Snapshot, rss_bytes: Option<u64>) -> Self {
        let mut own = own_bytes(snapshot);
        own.remove(&DEFAULT_EPOCH);
        let others = own.values().fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
        let default = in_use(snapshot).map(|bytes| bytes.saturating_sub(others));
        let total = others.saturating_add(default.unwrap_or_default());
        Self { own, default, total, rss_bytes }
    }

    fn held(&self, epoch: &Epoch) -> Option<u64> {
        if epoch.row == DEFAULT_EPOCH { self.default } else { epoch.held_bytes }
    }

    // What an epoch holds itself is taken to be resident, unless the process has less than all
    // hold: then each has its share.
    fn resident(&self, epoch: &Epoch) -> Option<u64> {
        let is_default = epoch.row == DEFAULT_EPOCH;
        let own = if is_default { self.default } else { self.own.get(&epoch.row).copied() };
        let (own, rss) = (own?, self.rss_bytes?);
        if self.total <= rss {
            return Some(own);
        }
        // Below 2^64, since `own` is a part of `total`.
        let share = u128::from(own) * u128::from(rss) / u128::from(self.total);
        u64::try_from(share).ok()
    }
}

// Memory that is somebody's.
fn in_use(snapshot: &Snapshot) -> Option<u64> {
    let figure = |name| snapshot.process_figure(name);
    let unused = sum(figure("free_bytes"), figure("cached_bytes"))?;
    Some(figure("open_bytes")?.saturating_sub(unused))
}
