//! What a check looks at, and what it finds.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::commands::Subject;

/// Bytes.
pub const MIB: u64 = 1 << 20;

/// Something that is wrong.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// Which check found it.
    pub cause: &'static str,
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
        what: String,
        evidence: &[(&str, Value)],
        advice: String,
    ) -> Self {
        let named = evidence.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        Self { cause, what, evidence: named.collect(), advice }
    }
}

/// The process, and from when on something counts.
pub struct Patient<'a> {
    pub subject: &'a Subject,
    pub after_ms: u64,
    pub open_after_ms: u64,
}

/// None: the file does not have what the check needs.
pub type Found = Option<Vec<Finding>>;

/// Whether a share of a whole is reached; of nothing, none is.
pub fn reaches(part: u64, percent: u64, whole: u64) -> bool {
    part > 0 && u128::from(part) * 100 >= u128::from(whole) * u128::from(percent)
}

/// A share of a whole.
pub fn percent(part: u64, whole: u64) -> u64 {
    let share = u128::from(part) * 100 / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}
