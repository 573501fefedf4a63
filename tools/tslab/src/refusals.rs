//! How often memory was refused. The process tells of itself now and then, and not while it waits;
//! the rows of its labels are of this moment.

use crate::rows::{Field, labels, process};
use crate::segment::Rows;

const COUNTS: [(Field, Field); 2] = [
    (process::LIMITS_REFUSED, labels::LIMITS_REFUSED),
    (process::MEMORY_REFUSED, labels::MEMORY_REFUSED),
];

/// Raises figures of the process, by name, to what its labels know.
pub fn raise<'a>(
    figures: impl Iterator<Item = (&'a str, &'a mut Option<u64>)>,
    labels: Option<&Rows>,
) {
    for (name, figure) in figures {
        let count = COUNTS.iter().find(|(of_process, _)| of_process.name == name);
        let known = count.and_then(|(_, of_label)| sum(labels?, *of_label)).unwrap_or_default();
        *figure = figure.map(|value| value.max(known));
    }
}

fn sum(labels: &Rows, field: Field) -> Option<u64> {
    let column = labels.column(field)?;
    let counts = (0..labels.len()).filter_map(|row| column.get(row));
    Some(counts.fold(0, u64::saturating_add))
}
