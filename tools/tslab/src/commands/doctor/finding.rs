//! What a check looks at, and what it finds.

use std::cmp::Reverse;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::commands::Subject;
use crate::commands::account::{Account, Kind};
use crate::commands::growth::Growths;
use crate::commands::ignored::Ignored;
use crate::commands::outlived::Outlived;
use crate::helper::Helper;
use crate::rows::{bins, process};
use crate::snapshot::{DEFAULT_EPOCH, Epoch, Snapshot};
use crate::text;

/// Bytes.
pub const MIB: u64 = 1 << 20;

// Memory of which a sixteenth went back between two looks is on its way.
const RETURNING_PARTS: u64 = 16;

// A helper rests for so long at most. Between looks that are further apart what it does is seen by
// its amount.
const MOST_REST_MS: u64 = 10_000;

/// What hurts more comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Somebody does not get memory, or soon will not.
    Refused,
    /// So much memory could be less.
    Bytes(Reverse<u64>),
    /// Time is lost.
    Slow,
    /// Figures are too low.
    Figures,
}

impl Rank {
    pub fn of_bytes(bytes: u64) -> Self {
        Self::Bytes(Reverse(bytes))
    }
}

/// Something that is wrong.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// Which check found it.
    pub cause: &'static str,
    #[serde(skip)]
    pub rank: Rank,
    /// Memory that it is about, which no other finding is about. None: it is not about memory.
    pub bytes: Option<u64>,
    /// What is wrong, with its figures.
    pub what: String,
    /// The figures by name, in bytes and ms.
    pub evidence: Map<String, Value>,
    /// What to do.
    pub advice: String,
}

impl Finding {
    pub fn new(
        cause: &'static str,
        rank: Rank,
        what: String,
        evidence: &[(&str, Value)],
        advice: String,
    ) -> Self {
        let named = evidence.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let bytes = if let Rank::Bytes(Reverse(bytes)) = rank { Some(bytes) } else { None };
        Self { cause, rank, bytes, what, evidence: named.collect(), advice }
    }
}

/// The process, and from when on something counts.
pub struct Patient<'a> {
    pub subject: &'a Subject,
    /// An earlier look.
    pub before: Option<&'a Subject>,
    /// None: it has ended, or the system does not tell.
    pub account: Option<Account>,
    /// None: it has ended, or the system does not tell.
    pub helper: Option<Helper>,
    /// A Python whose small objects lie in arenas of its own.
    pub hides_objects: bool,
    pub growths: Growths,
    /// Of shared epochs.
    pub outlived: Outlived,
    pub ignored: &'a Ignored,
    /// Whether functions may be looked up, which takes time and memory.
    pub names_calls: bool,
    pub after_ms: u64,
    pub open_after_ms: u64,
}

/// None: the file does not have what the check needs.
pub type Found = Option<Vec<Finding>>;

impl Patient<'_> {
    /// The last look.
    pub fn snapshot(&self) -> &Snapshot {
        &self.subject.snapshot
    }

    /// Between the looks.
    pub fn over_ms(&self) -> Option<u64> {
        Some(self.subject.as_of_ms.saturating_sub(self.before?.as_of_ms).max(1))
    }

    /// How much a count grew between the looks.
    pub fn grew(&self, count: impl Fn(&Snapshot) -> Option<u64>) -> Option<u64> {
        let before = count(&self.before?.snapshot)?;
        Some(count(self.snapshot())?.saturating_sub(before))
    }

    /// The same, a second.
    pub fn a_second(&self, grown: u64) -> Option<u64> {
        let rate = u128::from(grown) * 1000 / u128::from(self.over_ms()?);
        Some(u64::try_from(rate).unwrap_or(u64::MAX))
    }

    /// "in 1.0 s".
    pub fn span(&self) -> String {
        format!("in {}", text::age(self.over_ms()))
    }

    /// By how much resident memory became less between the looks.
    pub fn shrank_bytes(&self) -> Option<u64> {
        Some(self.before?.rss_bytes?.saturating_sub(self.subject.rss_bytes?))
    }

    /// Whether so much is going back to the system by itself.
    pub fn is_returning(&self, bytes: u64) -> bool {
        self.shrank_bytes().is_some_and(|shrank| shrank > bytes / RETURNING_PARTS)
    }

    /// Whether the looks are further apart than a helper rests.
    fn is_long(&self) -> bool {
        self.over_ms().is_some_and(|over_ms| over_ms > MOST_REST_MS)
    }

    /// What went back between the looks.
    pub fn purged_bytes(&self) -> Option<u64> {
        self.grew(|snapshot| snapshot.process_figure(process::PURGED_BYTES))
    }

    /// Whether of so many bytes none, or next to none, went back between the looks.
    pub fn is_stuck(&self, bytes: u64) -> Option<bool> {
        let times = self.grew(|snapshot| snapshot.process_figure(process::PURGES))?;
        let is_little = self.purged_bytes()? <= bytes / RETURNING_PARTS;
        Some(times == 0 || (self.is_long() && is_little))
    }

    /// Whether the system refused pages between the looks, and not now and then.
    pub fn is_refusing(&self) -> bool {
        let grew = |field| self.grew(|snapshot| snapshot.process_figure(field));
        let refused = grew(process::PURGES_REFUSED).unwrap_or_default();
        let purges = grew(process::PURGES).unwrap_or_default();
        refused > 0 && (!self.is_long() || refused >= purges)
    }

    /// Free objects that threads keep at hand in an epoch.
    pub fn hot_bytes(&self, epoch: &Epoch) -> Option<u64> {
        let by_row = self.snapshot().holdings.hot_bytes.as_ref()?;
        by_row.get(usize::try_from(epoch.row).ok()?).copied()
    }

    /// What is resident of a part of the allocator's memory.
    pub fn resident(&self, part: Kind) -> Option<u64> {
        self.account.as_ref().map(|account| account.bytes(part))
    }

    /// Whether the program has code for epochs; one that was never changed has none.
    pub fn knows_epochs(&self) -> bool {
        let snapshot = self.snapshot();
        let is_programs = |epoch: &Epoch| epoch.row != DEFAULT_EPOCH;
        let labels = snapshot.holdings.tables.iter().filter(|table| table.name == "labels");
        let has_closed = snapshot.work.of_homes.sum(bins::CLOSES).is_some_and(|closes| closes > 0);
        has_closed
            || snapshot.epochs.iter().any(is_programs)
            || labels.into_iter().any(|table| table.rows > 1)
    }
}

/// Whether a share of a whole is reached; of nothing, none is.
pub fn reaches(part: u64, percent: u64, whole: u64) -> bool {
    part > 0 && u128::from(part) * 100 >= u128::from(whole) * u128::from(percent)
}

/// A share of a whole.
pub fn percent(part: u64, whole: u64) -> u64 {
    let share = u128::from(part) * 100 / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// Bytes, for people.
pub fn shown(bytes: u64) -> String {
    text::bytes(Some(bytes))
}
