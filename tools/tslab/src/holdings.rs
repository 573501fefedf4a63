//! What a process's heaps hold beyond live objects, and how full the file's tables are.

use crate::live::{self, Role, Tables};
use crate::rows::{
    Field, HeapState, OTHER_LABEL, UNIT_BYTES, bins, classes, epochs, heaps, labels,
};
use crate::segment::{Column, Rows};

/// What heaps hold. None: the file does not tell.
#[derive(Clone, Debug, Default)]
pub struct Holdings {
    /// Empty units that threads keep, in bytes.
    pub thread_cached_bytes: Option<u64>,
    /// Slabs of the default epoch, in bytes.
    pub default_slab_bytes: Option<u64>,
    /// Cells of the default epoch, in bytes.
    pub default_cell_bytes: Option<u64>,
    /// Objects freed so far by threads that had not allocated them, in slabs of the default epoch.
    pub sent: Option<u64>,
    /// Scopes that threads have open, by the epoch's row.
    pub open_scopes: Option<Vec<u64>>,
    /// Free objects that threads keep at hand, in bytes, by the epoch's row.
    pub hot_bytes: Option<Vec<u64>>,
    /// Threads that have ended and left their heap to the next ones.
    pub pooled_homes: Option<u64>,
    /// How full the tables are.
    pub tables: Vec<TableUse>,
    /// Some label found no place any more, and is told as "other".
    pub labels_overflow: bool,
}

/// The rows of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableUse {
    /// Of the table.
    pub name: String,
    /// Up to the last one that is somebody's.
    pub rows: u64,
    /// How many the format has room for.
    pub most_rows: u64,
}

impl Holdings {
    /// Adds up what the tables tell.
    pub fn of(
        tables: Option<Tables>,
        roles: &[(usize, Role)],
        classes: Option<&Rows>,
        labels: Option<&Rows>,
    ) -> Self {
        let mut holdings = Self {
            tables: uses([
                (tables.map(|tables| tables.epochs), epochs::ID),
                (tables.map(|tables| tables.heaps), heaps::STATE),
                (labels, labels::TEXT),
            ]),
            labels_overflow: labels.is_some_and(has_overflown),
            ..Self::default()
        };
        let Some(Tables { epochs, heaps, bins }) = tables else { return holdings };
        let sent = live::of_bins(bins, roles, bins::SENT);
        holdings.sent = sent.map(|sent| sent.into_iter().fold(0, u64::wrapping_add));
        holdings.default_slab_bytes =
            classes.and_then(|classes| default_slab_bytes(bins, classes, roles));
        holdings.default_cell_bytes = default_cell_bytes(heaps, roles);
        holdings.open_scopes = open_scopes(epochs, heaps, roles);
        holdings.hot_bytes = classes.and_then(|classes| hot_bytes(epochs, bins, classes, roles));
        holdings.add_heaps(heaps, roles);
        holdings
    }

    fn add_heaps(&mut self, heaps: &Rows, roles: &[(usize, Role)]) {
        let (cached_units, state) = (heaps.column(heaps::CACHED_UNITS), heaps.column(heaps::STATE));
        let value = |field: Option<Column>, row| field?.get(row);
        let mut units = cached_units.map(|_| 0_u64);
        let mut pooled = state.map(|_| 0);
        for &(row, role) in roles {
            let cached = value(cached_units, row).unwrap_or_default();
            units = units.map(|units| units.saturating_add(cached));
            let state = value(state, row).and_then(HeapState::of);
            if role == Role::Home && state == Some(HeapState::Pooled) {
                pooled = pooled.map(|pooled| pooled + 1);
            }
        }
        self.thread_cached_bytes = units.map(|units| units.saturating_mul(UNIT_BYTES.into()));
        self.pooled_homes = pooled;
    }
}

fn open_scopes(epochs: &Rows, heaps: &Rows, roles: &[(usize, Role)]) -> Option<Vec<u64>> {
    let scopes = heaps.column(heaps::SCOPES)?;
    let mut sums = vec![0_u64; epochs.len()];
    for &(row, role) in roles {
        let Role::Part(epoch @ 1..) = role else { continue };
        let Some(sum) = sums.get_mut(epoch) else { continue };
        *sum = sum.saturating_add(scopes.get(row)?);
    }
    Some(sums)
}

// Those of the default epoch are in no row: nobody asks for them.
fn hot_bytes(
    epochs: &Rows,
    bins: &Rows,
    sizes: &Rows,
    roles: &[(usize, Role)],
) -> Option<Vec<u64>> {
    let (hot, bytes) = (bins.column(bins::HOT)?, sizes.column(classes::BYTES)?);
    let mut sums = vec![0_u64; epochs.len()];
    for &(row, role) in roles.iter().take_while(|(row, _)| *row < bins.len()) {
        let Role::Part(epoch @ 1..) = role else { continue };
        let Some(sum) = sums.get_mut(epoch) else { continue };
        for (class, objects) in hot.each(row).enumerate() {
            *sum = sum.saturating_add(objects.saturating_mul(bytes.get(class)?));
        }
    }
    Some(sums)
}

fn homes(roles: &[(usize, Role)]) -> Vec<(usize, Role)> {
    roles.iter().filter(|(_, role)| *role == Role::Home).copied().collect()
}

// Sampled blocks of the default epoch lie in cells.
fn default_cell_bytes(heaps: &Rows, roles: &[(usize, Role)]) -> Option<u64> {
    let bytes = heaps.column(heaps::CELL_BYTES)?;
    let cells = homes(roles).into_iter().map(|(row, _)| bytes.get(row));
    cells.into_iter().try_fold(0_u64, |sum, bytes| Some(sum.saturating_add(bytes?)))
}

fn default_slab_bytes(bins: &Rows, sizes: &Rows, roles: &[(usize, Role)]) -> Option<u64> {
    let (slabs, bytes) =
        (live::of_bins(bins, &homes(roles), bins::SLABS)?, sizes.column(classes::SLAB_BYTES)?);
    let mut all = slabs
        .iter()
        .enumerate()
        .map(|(class, slabs)| Some(slabs.saturating_mul(bytes.get(class)?)));
    all.try_fold(0_u64, |sum, bytes| Some(sum.saturating_add(bytes?)))
}

fn has_overflown(labels: &Rows) -> bool {
    let other = labels.column(labels::TEXT).and_then(|text| text.text(OTHER_LABEL as usize));
    other.is_some_and(|other| !other.is_empty())
}

// How full tables are, by the field that marks a row as somebody's.
fn uses(tables: [(Option<&Rows>, Field); 3]) -> Vec<TableUse> {
    let used = |(rows, mark): (Option<&Rows>, Field)| {
        let rows = rows?;
        let mark = rows.column(mark)?;
        let is_used = |row: &usize| mark.get(*row).is_some_and(|value| value != 0);
        let last = (0..rows.len()).rfind(is_used);
        Some(TableUse {
            name: rows.name().to_owned(),
            rows: last.map_or(0, |row| row as u64 + 1),
            most_rows: rows.most(),
        })
    };
    tables.into_iter().filter_map(used).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Image, sample};
    use crate::segment::Segment;
    use crate::snapshot::Snapshot;

    fn holdings(image: &Image) -> Holdings {
        Snapshot::read(&Segment::open(image.bytes()).unwrap()).unwrap().holdings
    }

    #[test]
    fn heaps_are_summed_by_what_they_are() {
        let mut image = sample(42, 7);
        image.set("heaps", 1, "cached_units", 3);
        image.set("heaps", 2, "cached_units", 2);
        // Nobody's: it counts for nothing.
        image.set("heaps", 4, "cached_units", 99);
        image.set_all("heaps", 3, &[("scopes", 2), ("cell_bytes", 65536)]);
        image.set("heaps", 2, "cell_bytes", 4096);
        let holdings = holdings(&image);
        assert_eq!(holdings.thread_cached_bytes, Some(5 * u64::from(UNIT_BYTES)));
        assert_eq!(holdings.default_slab_bytes, Some(2 * 65536));
        assert_eq!(holdings.default_cell_bytes, Some(4096));
        assert_eq!((holdings.sent, holdings.pooled_homes), (Some(8), Some(1)));
        let open_scopes = holdings.open_scopes.unwrap();
        assert_eq!((open_scopes.iter().sum::<u64>(), open_scopes[3]), (2, 2));
        let hot_bytes = holdings.hot_bytes.unwrap();
        assert_eq!((hot_bytes.iter().sum::<u64>(), hot_bytes[3]), (2 * 256, 2 * 256));
    }

    #[test]
    fn tables_are_as_full_as_their_last_row() {
        let holdings = holdings(&sample(42, 7));
        let rows: Vec<_> = holdings.tables.iter().map(|table| (&*table.name, table.rows)).collect();
        assert_eq!(rows, [("epochs", 8), ("heaps", 4), ("labels", 8)]);
        assert_eq!(holdings.tables[0].most_rows, 16);
    }

    #[test]
    fn a_label_without_a_place_is_seen() {
        let mut image = sample(42, 7);
        assert!(!holdings(&image).labels_overflow);
        image.text("labels", 1, b"other");
        assert!(holdings(&image).labels_overflow);
    }

    #[test]
    fn what_the_file_does_not_have_is_not_known() {
        let mut image = sample(42, 7);
        image.forget("heaps", "cached_units");
        image.forget("classes", "slab_bytes");
        let without = holdings(&image);
        assert_eq!((without.thread_cached_bytes, without.default_slab_bytes), (None, None));
        image.tables.retain(|table| table.name != "bins");
        let without = holdings(&image);
        assert_eq!((without.default_cell_bytes, without.sent), (None, None));
    }
}
