//! The labels of a process's epochs: what was refused to them, and how they ended of late.

use std::sync::Arc;

use serde::Serialize;

use crate::rows::{Field, labels};
use crate::segment::Rows;

/// A label. None: the file does not tell.
#[derive(Clone, Debug, Serialize)]
pub struct Label {
    /// As the program named it.
    #[serde(rename = "label")]
    pub text: Arc<str>,
    /// Times that a limit of its epochs refused memory.
    pub limits_refused: Option<u64>,
    /// Times that the system refused its epochs memory.
    pub memory_refused: Option<u64>,
    /// Its epochs that were closed of late, with memory of their own.
    pub ended: Option<u64>,
    /// What these held at their ends.
    pub ended_bytes: Option<u64>,
    /// Of it: objects that lived on.
    pub ended_survivor_bytes: Option<u64>,
    /// Of it: cells and slabs in which objects lived on.
    pub ended_pinned_bytes: Option<u64>,
    /// How long these were open, added up.
    pub ended_lived_ms: Option<u64>,
    /// Whether its next epochs share memory.
    pub shares: Option<bool>,
}

impl Label {
    /// Whether memory was ever refused to its epochs.
    pub fn is_refused(&self) -> bool {
        let refused = [self.limits_refused, self.memory_refused];
        refused.iter().any(|count| count.is_some_and(|count| count > 0))
    }

    /// Whether something is known of how its epochs end.
    pub fn has_history(&self) -> bool {
        self.ended.is_some_and(|ended| ended > 0) || self.shares == Some(true)
    }
}

// More than a process has; what a damaged file claims beyond is not read.
const MOST: usize = 1 << 16;

/// What stands in the rows, one for all epochs of a label.
pub fn texts(labels: &Rows) -> Vec<Arc<str>> {
    let texts = labels.column(labels::TEXT);
    (0..labels.len().min(MOST)).map_while(|row| Some(texts?.text(row)?.into())).collect()
}

/// The labels that have a text; `texts` are those of the first rows.
pub fn read(labels: &Rows, texts: &[Arc<str>]) -> Vec<Label> {
    let value = |field: Field, row| labels.column(field)?.get(row);
    let named = texts.iter().enumerate().filter(|(_, text)| !text.is_empty());
    let label = |(row, text): (usize, &Arc<str>)| Label {
        text: Arc::clone(text),
        limits_refused: value(labels::LIMITS_REFUSED, row),
        memory_refused: value(labels::MEMORY_REFUSED, row),
        ended: value(labels::ENDED, row),
        ended_bytes: value(labels::ENDED_BYTES, row),
        ended_survivor_bytes: value(labels::ENDED_SURVIVOR_BYTES, row),
        ended_pinned_bytes: value(labels::ENDED_PINNED_BYTES, row),
        ended_lived_ms: value(labels::ENDED_LIVED_MS, row),
        shares: value(labels::SHARES, row).map(|shares| shares != 0),
    };
    named.map(label).collect()
}

#[cfg(test)]
mod tests {
    use crate::fixture::{Image, sample};
    use crate::segment::Segment;
    use crate::snapshot::Snapshot;

    use super::Label;

    fn labels(image: &Image) -> Vec<Label> {
        Snapshot::read(&Segment::open(image.bytes()).unwrap()).unwrap().labels
    }

    fn upload(labels: &[Label]) -> &Label {
        labels.iter().find(|label| &*label.text == "GET /upload").unwrap()
    }

    #[test]
    fn a_label_has_its_refusals_and_its_history() {
        let mut image = sample(42, 7);
        let before = labels(&image);
        assert!(!upload(&before).is_refused() && !upload(&before).has_history());
        assert!(before.iter().all(|label| !label.text.is_empty()));
        image.set_all("labels", 7, &[("limits_refused", 3), ("ended", 2), ("shares", 1)]);
        image.set("labels", 7, "ended_pinned_bytes", 8_192);
        let after = labels(&image);
        let label = upload(&after);
        assert!(label.is_refused() && label.has_history());
        assert_eq!((label.limits_refused, label.memory_refused), (Some(3), Some(0)));
        assert_eq!((label.ended, label.shares), (Some(2), Some(true)));
        assert_eq!(label.ended_pinned_bytes, Some(8_192));
    }

    #[test]
    fn what_the_file_does_not_have_is_not_known() {
        let mut image = sample(42, 7);
        image.forget("labels", "limits_refused");
        image.forget("labels", "shares");
        let labels = labels(&image);
        assert_eq!((upload(&labels).limits_refused, upload(&labels).shares), (None, None));
    }
}
