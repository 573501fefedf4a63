//! What happened between two looks at a process.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use super::labels::known_label;
use crate::commands::Subject;
use crate::rows::{Field, process};
use crate::snapshot::{DEFAULT_EPOCH, Epoch, Snapshot};

/// Labels told apart in one look; the others are not told.
const MOST_LABELS: usize = 16;

/// What a process counts that is an event each time it grows.
const COUNTED: [(&str, Field); 3] = [
    ("purge", process::PURGES),
    ("limit", process::LIMITS_REFUSED),
    ("memory", process::MEMORY_REFUSED),
];

/// Something that happened, `count` times since the look before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// When it was noticed, in seconds since 1970.
    pub at_s: u64,
    /// `survivors`, `purge`, `limit` or `memory`.
    pub kind: String,
    /// Of the epochs that were closed.
    pub label: Option<String>,
    /// How often.
    pub count: u64,
    /// Of the survivors, or given back. None: not told.
    pub bytes: Option<u64>,
}

/// What the last look at each process found.
#[derive(Debug, Default)]
pub struct Events(HashMap<(u32, u64), Look>);

#[derive(Debug)]
struct Look {
    at_s: u64,
    made_ms: u64,
    counts: [Option<u64>; COUNTED.len()],
    purged_bytes: Option<u64>,
    /// Closed epochs whose survivors are known.
    closed: HashSet<u64>,
}

impl Events {
    /// What is new in a process since the last look. At the first one nothing is known to be new.
    pub fn since_last(&mut self, subject: &Subject, at_s: u64) -> Vec<Event> {
        let snapshot = &subject.snapshot;
        let now = Look::of(snapshot, at_s);
        let key = (subject.pid, snapshot.header.start_ticks);
        let before = self.0.get(&key).filter(|before| before.made_ms == now.made_ms);
        let events = before.map(|before| now.events_since(before, snapshot)).unwrap_or_default();
        self.0.insert(key, now);
        events
    }

    /// Forgets the processes that were not looked at then.
    pub fn keep_seen(&mut self, at_s: u64) {
        self.0.retain(|_, look| look.at_s == at_s);
    }
}

impl Look {
    fn of(snapshot: &Snapshot, at_s: u64) -> Self {
        Self {
            at_s,
            made_ms: snapshot.header.made_ms,
            counts: COUNTED.map(|(_, field)| snapshot.process_figure(field)),
            purged_bytes: snapshot.process_figure(process::PURGED_BYTES),
            closed: closed(snapshot).map(|epoch| epoch.id).collect(),
        }
    }

    fn events_since(&self, before: &Self, snapshot: &Snapshot) -> Vec<Event> {
        let grown = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
        let mut events = Vec::new();
        for (index, (kind, _)) in COUNTED.iter().enumerate() {
            let count = grown(self.counts[index], before.counts[index]).unwrap_or_default();
            let is_purge = *kind == "purge";
            let bytes = grown(self.purged_bytes, before.purged_bytes).filter(|_| is_purge);
            if count > 0 {
                events.push(Event { kind: (*kind).into(), count, bytes, ..self.event() });
            }
        }
        events.extend(self.survivors(before, snapshot));
        events
    }

    // The labels with most bytes.
    fn survivors(&self, before: &Self, snapshot: &Snapshot) -> Vec<Event> {
        let mut labels = BTreeMap::<&str, (u64, Option<u64>)>::new();
        for epoch in closed(snapshot).filter(|epoch| !before.closed.contains(&epoch.id)) {
            let label = known_label(epoch.label.as_deref());
            let (count, bytes) = labels.entry(label).or_insert((0, Some(0)));
            *count += 1;
            *bytes = bytes.zip(epoch.live.bytes).map(|(sum, more)| sum.saturating_add(more));
        }
        let event = |(label, (count, bytes)): (&str, _)| Event {
            label: Some(label.to_owned()),
            count,
            bytes,
            ..self.event()
        };
        let mut events: Vec<_> = labels.into_iter().map(event).collect();
        events.sort_by_key(|event| std::cmp::Reverse(event.bytes));
        events.truncate(MOST_LABELS);
        events
    }

    fn event(&self) -> Event {
        Event { at_s: self.at_s, kind: "survivors".into(), label: None, count: 0, bytes: None }
    }
}

// Those whose survivors are counted.
fn closed(snapshot: &Snapshot) -> impl Iterator<Item = &Epoch> {
    let epochs = snapshot.epochs.iter().filter(|epoch| epoch.row != DEFAULT_EPOCH);
    epochs.filter(|epoch| epoch.has_survivors() && !epoch.live.unsettled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Image, sample};

    fn look(events: &mut Events, image: &Image, at_s: u64) -> Vec<Event> {
        events.since_last(&Subject::of_bytes(image.bytes()), at_s)
    }

    #[test]
    fn what_grew_between_two_looks_is_an_event() {
        let (mut events, mut image) = (Events::default(), sample(42, 7));
        assert_eq!(look(&mut events, &image, 10), []);
        assert_eq!(look(&mut events, &image, 20), []);
        let purged = Subject::of_bytes(image.bytes()).snapshot;
        let purged = purged.process_figure(process::PURGED_BYTES).unwrap();
        image.set_all("process", 0, &[("purges", 7), ("purged_bytes", purged + 4096)]);
        image.set_all("process", 0, &[("limits_refused", 9), ("memory_refused", 9)]);
        let told = look(&mut events, &image, 30);
        let kinds: Vec<_> = told.iter().map(|event| event.kind.as_str()).collect();
        assert_eq!(kinds, ["purge", "limit", "memory"]);
        assert_eq!((told[0].at_s, told[0].count, told[0].bytes), (30, 2, Some(4096)));
        assert_eq!(look(&mut events, &image, 40), []);
    }

    #[test]
    fn survivors_of_an_epoch_are_told_once() {
        let (mut events, mut image) = (Events::default(), sample(42, 7));
        look(&mut events, &image, 10);
        // Another epoch in the same row.
        image.set("epochs", 7, "id", 2 << 24 | 7);
        let told = look(&mut events, &image, 20);
        let expected = Event {
            at_s: 20,
            kind: "survivors".into(),
            label: Some("GET /upload".into()),
            count: 1,
            bytes: Some(47872),
        };
        assert_eq!(told, [expected]);
        assert_eq!(look(&mut events, &image, 30), []);
    }

    #[test]
    fn a_process_that_is_gone_is_forgotten() {
        let (mut events, mut image) = (Events::default(), sample(42, 7));
        look(&mut events, &image, 10);
        events.keep_seen(20);
        image.set("process", 0, "purges", 7);
        assert_eq!(look(&mut events, &image, 30), []);
    }
}
