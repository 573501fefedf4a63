//! How much lives: the arithmetic over the rows of heaps and bins.
//!
//! No counter says it, since nobody counts at every free: it is what went out less what came back,
//! and the two are written by different threads. Sums wrap as the counters do; a total that comes
//! out negative, because its parts are of different moments, is 0 and called unsettled.

use std::ops::RangeInclusive;

use crate::rows::{Field, HeapState, bins, epochs, heaps, process};
use crate::segment::{Column, Rows};

/// The tables that the arithmetic needs.
#[derive(Clone, Copy)]
pub struct Tables<'a> {
    /// Table "epochs".
    pub epochs: &'a Rows<'a>,
    /// Table "heaps".
    pub heaps: &'a Rows<'a>,
    /// Table "bins".
    pub bins: &'a Rows<'a>,
}

/// A total, and whether it had to be mended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// What it comes to.
    pub value: u64,
    /// The parts did not fit together: some of them counts as 0.
    pub unsettled: bool,
}

impl Total {
    // A sum modulo 2^64 of which negative values mean that it was read in the middle of a change.
    fn of(sum: u64) -> Self {
        let unsettled = sum.cast_signed() < 0;
        Self { value: if unsettled { 0 } else { sum }, unsettled }
    }

    fn scaled(self, weight: u64) -> Self {
        Self { value: self.value.saturating_mul(weight), ..self }
    }

    /// Of both.
    pub fn plus(self, other: Self) -> Self {
        Self {
            value: self.value.saturating_add(other.value),
            unsettled: self.unsettled || other.unsettled,
        }
    }
}

/// What a heap is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A thread's part of the default epoch.
    Home,
    /// A thread's part of the epoch in this row.
    Part(usize),
}

/// The heaps that are somebody's, with their rows. None when the file does not tell.
pub fn heaps(heaps: &Rows) -> Option<Vec<(usize, Role)>> {
    let (state, home) = (heaps.column(heaps::STATE)?, heaps.column(heaps::HOME)?);
    let epoch = heaps.column(heaps::EPOCH)?;
    let role = |row: usize| {
        if HeapState::of(state.get(row)?) == Some(HeapState::Nobodys) {
            None
        } else if home.get(row)? == row as u64 {
            Some((row, Role::Home))
        } else {
            Some((row, Role::Part(usize::try_from(epoch.get(row)?).ok()?)))
        }
    };
    let mut roles = Vec::with_capacity(heaps.len());
    // Row 0 stands for the threads without a heap.
    roles.extend((1..heaps.len()).filter_map(role));
    Some(roles)
}

/// What is counted: objects, or their bytes.
pub struct Quantity<'a> {
    /// What one object of each size class counts.
    pub weights: &'a [u64],
    /// Fields of heaps: what was allocated in cells.
    pub cut: Field,
    /// Of it, freed by the thread.
    pub freed: Field,
    /// Freed by other threads.
    pub away: Field,
    /// Field of epochs: blocks of whole units.
    pub large: Field,
    /// Field of the process: the same of all epochs.
    pub all_large: Field,
}

impl<'a> Quantity<'a> {
    /// The number of objects; `ones` are those of the tables.
    pub fn objects(ones: &'a [u64]) -> Self {
        Self {
            weights: ones,
            cut: heaps::CUT_OBJECTS,
            freed: heaps::FREED_OBJECTS,
            away: heaps::AWAY_OBJECTS,
            large: epochs::LARGE_OBJECTS,
            all_large: process::LARGE_OBJECTS,
        }
    }

    /// Their bytes; `sizes` has the size of each size class.
    pub fn bytes(sizes: &'a [u64]) -> Self {
        Self {
            weights: sizes,
            cut: heaps::CUT_BYTES,
            freed: heaps::FREED_BYTES,
            away: heaps::AWAY_BYTES,
            large: epochs::LARGE_BYTES,
            all_large: process::LARGE_BYTES,
        }
    }
}

/// What lives in epochs, by row; in row 0, the default epoch, without slabs.
pub struct InEpochs<'a> {
    /// In parts of threads that have not left.
    parts: Vec<u64>,
    large: Column<'a>,
    weights: &'a [u64],
}

impl<'a> InEpochs<'a> {
    /// None when the file does not tell.
    pub fn of(
        tables: Tables<'a>,
        heaps: &[(usize, Role)],
        quantity: &Quantity<'a>,
    ) -> Option<Self> {
        let survivors = tables.epochs.column(epochs::SURVIVORS)?;
        Some(Self {
            parts: parts(tables, heaps, quantity)?,
            large: tables.epochs.column(quantity.large)?,
            weights: known(quantity.weights, survivors.count())?,
        })
    }

    /// `survivors`: those of the row, unless there are none. None when there is no such row.
    pub fn get(&self, row: usize, survivors: Option<Column>) -> Option<Total> {
        let sum = self.parts.get(row)?.wrapping_add(self.large.get(row)?);
        let survivors = survivors.map_or(0, |column| {
            weighted(survivors_of(column, row).map(i64::cast_unsigned), self.weights)
        });
        Some(Total::of(sum.wrapping_add(survivors)))
    }
}

/// Blocks of whole units in the default epoch, which keeps no list of them: all that the process
/// counts, less those of other epochs. None when the file does not tell.
pub fn large_of_default(process: &Rows, epochs: &Rows, quantity: &Quantity) -> Option<Total> {
    let (all, large) = (process.column(quantity.all_large)?, epochs.column(quantity.large)?);
    let listed = (0..epochs.len()).filter_map(|row| large.get(row));
    Some(Total::of(listed.fold(all.get(0)?, u64::wrapping_sub)))
}

/// What lives in the default epoch: `others`, and in slabs the objects of `in_default`.
pub fn with_slabs(others: Total, in_default: &[Total], quantity: &Quantity) -> Option<Total> {
    let weights = known(quantity.weights, in_default.len())?;
    let slabs = in_default.iter().zip(weights).map(|(live, weight)| live.scaled(*weight));
    Some(slabs.fold(others, Total::plus))
}

/// A 1 for each size class.
pub fn ones(tables: Tables) -> Vec<u64> {
    let classes = |column: Option<Column>| column.map_or(0, Column::count);
    let survivors = classes(tables.epochs.column(epochs::SURVIVORS));
    vec![1; survivors.max(classes(tables.bins.column(bins::OUT)))]
}

// The weights of `classes` size classes, when they are known.
fn known(weights: &[u64], classes: usize) -> Option<&[u64]> {
    weights.get(..classes)
}

fn weighted(values: impl Iterator<Item = u64>, weights: &[u64]) -> u64 {
    values
        .zip(weights)
        .fold(0, |sum, (value, weight)| sum.wrapping_add(value.wrapping_mul(*weight)))
}

// What lives in parts of each epoch, by its row.
fn parts(tables: Tables, heaps: &[(usize, Role)], quantity: &Quantity) -> Option<Vec<u64>> {
    let cells = Cells::of(tables.heaps, quantity)?;
    let slabs = Slabs::of(tables.bins)?;
    let weights = known(quantity.weights, slabs.out.count())?;
    let mut sums = vec![0_u64; tables.epochs.len()];
    for &(row, role) in heaps {
        let (epoch, in_slabs) = match role {
            // Objects go from home to home: slabs of the default epoch are added up by class.
            Role::Home => (0, 0),
            // A part of the default epoch that is no home is about to become one.
            Role::Part(0) => continue,
            Role::Part(epoch) => (epoch, slabs.of_part(row, weights)),
        };
        let Some(sum) = sums.get_mut(epoch) else { continue };
        *sum = sum.wrapping_add(cells.of_heap(row)?).wrapping_add(in_slabs);
    }
    Some(sums)
}

// Fields of heaps: what is allocated in cells, and what of it was freed.
struct Cells<'a> {
    cut: Column<'a>,
    freed: Column<'a>,
    away: Column<'a>,
}

impl<'a> Cells<'a> {
    fn of(heaps: &'a Rows, quantity: &Quantity) -> Option<Self> {
        Some(Self {
            cut: heaps.column(quantity.cut)?,
            freed: heaps.column(quantity.freed)?,
            away: heaps.column(quantity.away)?,
        })
    }

    // Of a part of an epoch this is not all: what others freed in its slabs is subtracted here.
    fn of_heap(&self, row: usize) -> Option<u64> {
        let gone = self.freed.get(row)?.wrapping_add(self.away.get(row)?);
        Some(self.cut.get(row)?.wrapping_sub(gone))
    }
}

/// The survivors of an epoch, by size class. A free may be counted before what it frees.
pub fn survivors_of(column: Column, row: usize) -> impl Iterator<Item = i64> {
    column.each(row).map(move |objects| sign_extend(objects, column.bits()))
}

// Fields of bins. A heap without a row there has never had a slab.
struct Slabs<'a> {
    out: Column<'a>,
    hot: Column<'a>,
    taken: Column<'a>,
}

impl<'a> Slabs<'a> {
    fn of(bins: &'a Rows) -> Option<Self> {
        Some(Self {
            out: bins.column(bins::OUT)?,
            hot: bins.column(bins::HOT)?,
            taken: bins.column(bins::TAKEN)?,
        })
    }

    fn of_part(&self, row: usize, weights: &[u64]) -> u64 {
        weighted(self.out.each(row), weights)
            .wrapping_sub(weighted(self.hot.each(row), weights))
            .wrapping_add(weighted(self.taken.each(row), weights))
    }
}

/// Objects that live in slabs of the default epoch, by size class. None when the file does not
/// tell.
pub fn in_default(tables: Tables, heaps: &[(usize, Role)]) -> Option<Vec<Total>> {
    let slabs = Slabs::of(tables.bins)?;
    let sent = tables.bins.column(bins::SENT)?;
    let homes: Vec<_> = heaps.iter().filter(|(_, role)| *role == Role::Home).collect();
    let mut classes = vec![InDefault::default(); slabs.out.count()];
    InDefault::add(&mut classes, sent.each(0), |class| &mut class.sent);
    for &&(row, _) in &homes {
        InDefault::add(&mut classes, slabs.out.each(row), |class| &mut class.out);
        InDefault::add(&mut classes, slabs.hot.each(row), |class| &mut class.hot);
        InDefault::add(&mut classes, sent.each(row), |class| &mut class.sent);
        InDefault::add(&mut classes, slabs.taken.each(row), |class| &mut class.taken);
    }
    let bits = sent.bits().min(slabs.taken.bits());
    Some(classes.iter().map(|class| class.live(bits)).collect())
}

/// Objects that live in slabs of some epochs, and in sealed parts of some, each by row; by size
/// class. None when the file does not tell.
pub fn in_epochs(
    tables: Tables,
    heaps: &[(usize, Role)],
    slabs: RangeInclusive<usize>,
    sealed: impl Iterator<Item = usize>,
) -> Option<Vec<Total>> {
    let in_slabs = in_slabs(tables, heaps, slabs)?;
    let sealed = survivors(tables.epochs.column(epochs::SURVIVORS)?, sealed);
    Some(in_slabs.into_iter().zip(sealed).map(|(some, others)| some.plus(others)).collect())
}

// In slabs of the parts of these epochs.
fn in_slabs(
    tables: Tables,
    heaps: &[(usize, Role)],
    epochs: RangeInclusive<usize>,
) -> Option<Vec<Total>> {
    let Slabs { out, hot, taken } = Slabs::of(tables.bins)?;
    let away = tables.bins.column(bins::AWAY);
    let mut sums = vec![0_u64; out.count()];
    let mut add = |values: &mut dyn Iterator<Item = u64>, join: fn(u64, u64) -> u64| {
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum = join(*sum, value);
        }
    };
    let is_wanted = |role| matches!(role, Role::Part(epoch) if epochs.contains(&epoch));
    for &(row, _) in heaps.iter().filter(|(_, role)| is_wanted(*role)) {
        add(&mut out.each(row), u64::wrapping_add);
        add(&mut hot.each(row), u64::wrapping_sub);
        add(&mut taken.each(row), u64::wrapping_add);
        add(&mut away.iter().flat_map(|away| away.each(row)), u64::wrapping_sub);
    }
    Some(sums.into_iter().map(Total::of).collect())
}

/// Objects in parts that were sealed, of these rows of epochs, by size class.
pub fn survivors(column: Column, rows: impl Iterator<Item = usize>) -> Vec<Total> {
    let mut sums = vec![0_u64; column.count()];
    for row in rows.filter(|row| !column.is_zero(*row)) {
        for (sum, objects) in sums.iter_mut().zip(survivors_of(column, row)) {
            *sum = sum.wrapping_add(objects.cast_unsigned());
        }
    }
    sums.into_iter().map(Total::of).collect()
}

// Sums over all homes, of one size class.
#[derive(Clone, Copy, Default)]
struct InDefault {
    out: u64,
    hot: u64,
    sent: u64,
    taken: u64,
}

impl InDefault {
    fn add(
        classes: &mut [Self],
        values: impl Iterator<Item = u64>,
        field: fn(&mut Self) -> &mut u64,
    ) {
        for (class, value) in classes.iter_mut().zip(values) {
            let sum = field(class);
            *sum = sum.wrapping_add(value);
        }
    }

    // Blocks that are out, less those that other threads freed and that are on their way back.
    // `bits`: of the narrower of the two counters, whose difference is right modulo 2^bits.
    fn live(self, bits: u32) -> Total {
        let away = sign_extend(self.sent.wrapping_sub(self.taken), bits);
        let away = Total::of(away.cast_unsigned());
        let there = Total::of(self.out.wrapping_sub(self.hot).wrapping_sub(away.value));
        Total { unsettled: there.unsettled || away.unsettled, ..there }
    }
}

fn sign_extend(value: u64, bits: u32) -> i64 {
    let unused = u64::BITS - bits.clamp(1, u64::BITS);
    (value << unused).cast_signed() >> unused
}

/// The sum of a field of bins over all heaps, by size class. None when the file does not tell.
pub fn of_bins(bins: &Rows, heaps: &[(usize, Role)], field: Field) -> Option<Vec<u64>> {
    let column = bins.column(field)?;
    let mut sums = vec![0_u64; column.count()];
    // Rows ascend, and most heaps of many have no slabs.
    let rows = heaps.iter().map(|&(row, _)| row).take_while(|&row| row < bins.len());
    for row in std::iter::once(0).chain(rows) {
        for (sum, value) in sums.iter_mut().zip(column.each(row)) {
            *sum = sum.wrapping_add(value);
        }
    }
    Some(sums)
}
