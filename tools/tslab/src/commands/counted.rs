//! How many objects live in a shared epoch at two looks. They are counted; only their ages are
//! known from samples.

use serde::Serialize;

use crate::sampling::float;
use crate::snapshot::{Epoch, Snapshot};

/// A number of things that come and go at random deviates from its mean by its root; chance makes a
/// difference of so many deviations less than once in a million times.
pub const DEVIATIONS: f64 = 5.0;

/// The counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Counted {
    before: u64,
    now: u64,
}

impl Counted {
    /// None: one of the looks does not tell, or was taken while the count changed.
    pub fn of(before: &Snapshot, now: &Epoch) -> Option<Self> {
        let earlier = before.epochs.iter().find(|epoch| epoch.id == now.id);
        let settled = |epoch: &Epoch| epoch.live.objects.filter(|_| !epoch.live.unsettled);
        let before = earlier.map_or(Some(0), settled)?;
        Some(Self { before, now: settled(now)? })
    }

    /// How many more there are.
    pub fn more(self) -> f64 {
        float(self.now) - float(self.before)
    }

    /// More than the objects of requests in flight and of caches come to differ by chance.
    pub fn grew(self) -> bool {
        let both = float(self.before) + float(self.now);
        self.more() > DEVIATIONS * both.sqrt()
    }

    /// "30 to 90 objects live".
    pub fn text(self) -> String {
        format!("{} to {} objects live", self.before, self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Subject;
    use crate::fixture::{add_epoch, sample};

    #[test]
    fn chance_makes_no_growth() {
        let grew = |before, now| Counted { before, now }.grew();
        assert!(grew(30, 84) && !grew(30, 83));
        assert!(!grew(10_000, 10_700) && grew(10_000, 10_800));
        assert!(!grew(90, 30) && !grew(0, 25) && grew(0, 26));
    }

    #[test]
    fn an_epoch_that_was_not_there_had_none() {
        let image = sample(42, 7);
        let mut later = sample(42, 7);
        add_epoch(&mut later, 5, "new", &[("state", 3), ("opened_ms", 1)]);
        later.set_class("epochs", 5, "survivors", 1, 40);
        later.set_class("epochs", 7, "survivors", 1, 341);
        let (before, now) = (Subject::of_bytes(image.bytes()), Subject::of_bytes(later.bytes()));
        let of_row = |row| now.snapshot.epochs.iter().find(|epoch| epoch.row == row).unwrap();
        let counted = |row| Counted::of(&before.snapshot, of_row(row)).map(Counted::text);
        assert_eq!(counted(5).as_deref(), Some("0 to 40 objects live"));
        assert_eq!(counted(7).as_deref(), Some("357 to 358 objects live"));
    }
}
