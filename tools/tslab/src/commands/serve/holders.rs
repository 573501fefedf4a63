//! Holders: the labels of a process that hold most, as the history keeps them.

use std::cmp::Reverse;

use super::labels::sums;
use crate::commands::Subject;

/// Kept of one look at a process.
const MOST: usize = 8;

/// Who holds less is none, and so is who holds less than a hundredth of what lives.
const LEAST_BYTES: u64 = 64 << 10;

/// A label, and what its epochs hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// As the metrics have it.
    pub label: String,
    /// Of live objects.
    pub live_bytes: u64,
}

/// Those of a process, the largest first.
pub fn of(subject: &Subject) -> Vec<Holder> {
    let all_bytes = subject.snapshot.totals().live_bytes.unwrap_or_default();
    let least = LEAST_BYTES.max(all_bytes.div_ceil(100));
    let known = |(label, live_bytes): (&str, Option<u64>)| {
        Some(Holder { label: label.to_owned(), live_bytes: live_bytes? })
    };
    let held = sums(subject).into_iter().map(|(label, sums)| (label, sums.live_bytes));
    let mut holders: Vec<_> =
        held.filter_map(known).filter(|holder| holder.live_bytes >= least).collect();
    holders.sort_by_key(|holder| Reverse(holder.live_bytes));
    holders.truncate(MOST);
    holders
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::serve::labels::by_label;
    use crate::fixture::{Image, add_epoch, sample};

    // The sample with epochs more, of one large object each.
    fn with(epochs: &[(&str, u64)]) -> Image {
        let mut image = sample(42, 7);
        for (row, (label, bytes)) in (9..).zip(epochs) {
            image.reach("labels", row);
            image.reach("epochs", row);
            add_epoch(&mut image, row, label, &[("large_objects", 1), ("large_bytes", *bytes)]);
        }
        let bytes = epochs.iter().map(|(_, bytes)| bytes).sum::<u64>() + 331_072;
        let objects = epochs.len() as u64 + 3;
        image.set_all("process", 0, &[("large_objects", objects), ("large_bytes", bytes)]);
        image
    }

    fn holders(epochs: &[(&str, u64)]) -> Vec<(String, u64)> {
        let holders = of(&Subject::of_bytes(with(epochs).bytes()));
        holders.into_iter().map(|Holder { label, live_bytes }| (label, live_bytes)).collect()
    }

    #[test]
    fn they_hold_what_the_metrics_say() {
        let image = with(&[("batch", 1 << 20)]);
        let subject = Subject::of_bytes(image.bytes());
        let told = by_label(&subject, 100);
        let holders = of(&subject);
        assert_eq!((&*holders[0].label, holders[0].live_bytes), ("batch", (1 << 20) + 154_880));
        assert_eq!((&*holders[1].label, holders.len()), ("default", 2));
        for Holder { label, live_bytes } in holders {
            assert_eq!(told[&label].live_bytes, Some(live_bytes), "{label}");
        }
    }

    #[test]
    fn small_labels_are_none() {
        let large = ("large".to_owned(), 40 << 20);
        assert_eq!(holders(&[("large", 40 << 20), ("a hundredth less", 400 << 10)]), [large]);
        let least = holders(&[("least", LEAST_BYTES), ("less", LEAST_BYTES - 1)]);
        let labels: Vec<_> = least.iter().map(|(label, _)| &**label).collect();
        assert_eq!(labels, ["default", "batch", "least"]);
    }

    #[test]
    fn of_many_the_largest_are_told() {
        let labels: Vec<_> = (1..20).map(|number| format!("tenant {number}")).collect();
        let epochs: Vec<_> =
            (1..20).zip(&labels).map(|(mib, label)| (&**label, mib << 20)).collect();
        let told = holders(&epochs);
        assert_eq!(told.len(), MOST);
        assert_eq!((&told[0], told[7].1), (&("tenant 19".to_owned(), 19 << 20), 12 << 20));
    }
}
