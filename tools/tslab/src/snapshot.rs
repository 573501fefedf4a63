//! The picture of one process at one moment: what its statistics file says, understood.
//!
//! What the file does not tell is None, never 0.

use std::collections::BTreeMap;
use std::iter::once;
use std::sync::Arc;

use serde::Serialize;

use crate::held::{self, Holder};
use crate::holdings::Holdings;
use crate::labels::{self as named, Label};
use crate::live::{self, InEpochs, Quantity, Role, Tables, Total};
use crate::refusals;
use crate::rows::{
    EpochState, Field, HeapState, Kind, Unit, bins, classes, epochs, heaps, labels, process,
};
use crate::sampling::Sampling;
use crate::segment::{Column, Error, Header, Rows, Segment, Source};
use crate::work::Work;

/// An epoch's row number is also the lower part of its id.
pub const DEFAULT_EPOCH: u64 = 0;
const DEFAULT_ROW: usize = 0;

/// What a process told.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Which process, and when.
    pub header: Header,
    /// The process's name as the file was made; None in files that do not tell it.
    pub name: Option<String>,
    /// The process's own fields, as the file describes them.
    pub process: Vec<Figure>,
    /// All epochs that have a row.
    pub epochs: Vec<Epoch>,
    /// All size classes.
    pub classes: Vec<Class>,
    /// All labels of epochs.
    pub labels: Vec<Label>,
    /// What it has done so far.
    pub work: Work,
    /// What heaps hold, and how full the tables are.
    pub holdings: Holdings,
    /// What was sampled.
    pub sampling: Option<Sampling>,
    /// Threads that have a heap.
    pub threads: Option<u64>,
    /// Tables whose further rows are missing, because the system had no memory for them.
    pub full_tables: Vec<String>,
    /// Fields of `SURVIVOR_FIELDS` that the file does not have.
    pub missing: Vec<String>,
}

/// What must be known to say how many objects outlived which epoch, and for how long.
const SURVIVOR_FIELDS: [Field; 15] = [
    epochs::ID,
    epochs::STATE,
    epochs::OPENED_MS,
    epochs::CLOSED_MS,
    epochs::SURVIVORS,
    epochs::LARGE_OBJECTS,
    heaps::STATE,
    heaps::HOME,
    heaps::EPOCH,
    heaps::CUT_OBJECTS,
    heaps::FREED_OBJECTS,
    heaps::AWAY_OBJECTS,
    bins::OUT,
    bins::HOT,
    bins::TAKEN,
];

/// A field of the process and its value.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its name in the file.
    pub name: String,
    /// What it is counted in.
    pub unit: Option<Unit>,
    /// None: the process has not written it yet.
    pub value: Option<u64>,
}

/// A quantity of live objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Live {
    /// How many.
    pub objects: Option<u64>,
    /// How large they are together.
    pub bytes: Option<u64>,
    /// The figures were changing while they were read; what came out negative counts as 0.
    pub unsettled: bool,
}

impl Live {
    fn of(objects: Option<Total>, bytes: Option<Total>) -> Self {
        let is_unsettled = |total: Option<Total>| total.is_some_and(|total| total.unsettled);
        Self {
            objects: objects.map(|total| total.value),
            bytes: bytes.map(|total| total.value),
            unsettled: is_unsettled(objects) || is_unsettled(bytes),
        }
    }

    fn plus(self, other: Self) -> Self {
        let sum = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other?));
        Self {
            objects: sum(self.objects, other.objects),
            bytes: sum(self.bytes, other.bytes),
            unsettled: self.unsettled || other.unsettled,
        }
    }
}

/// Objects of one size class in parts that were sealed.
#[derive(Clone, Debug, Serialize)]
pub struct Survivors {
    /// Size of each.
    pub class_bytes: Option<u64>,
    /// How many.
    pub objects: u64,
}

/// An epoch.
#[derive(Clone, Debug, Default)]
pub struct Epoch {
    /// Row in its table; unique among the epochs of a moment.
    pub row: u64,
    /// The id that the program knows; never used again.
    pub id: u64,
    /// The parent's row.
    pub parent: Option<u64>,
    /// As the program named it.
    pub label: Option<Arc<str>>,
    /// Open, closed, released or shared.
    pub state: Option<EpochState>,
    /// `CLOCK_MONOTONIC` when it was opened, in ms.
    pub opened_ms: Option<u64>,
    /// `CLOCK_MONOTONIC` when it ended, in ms.
    pub closed_ms: Option<u64>,
    /// Memory that it holds, its children's included (`held.rs`).
    pub held_bytes: Option<u64>,
    /// Of it, without its children's.
    pub own_bytes: Option<u64>,
    /// Memory beyond which its callback is called.
    pub soft_limit_bytes: Option<u64>,
    /// Memory that it never exceeds.
    pub hard_limit_bytes: Option<u64>,
    /// Blocks of whole units among the live objects.
    pub large: Live,
    /// Objects in it.
    pub live: Live,
    /// Of them, those whose threads left, and of a shared one those in slabs, by size class.
    pub survivors: Vec<Survivors>,
}

impl Epoch {
    /// Whether it has ended and objects in it have not.
    pub fn has_survivors(&self) -> bool {
        self.state == Some(EpochState::Closed)
            && self.live.objects.is_some_and(|objects| objects > 0)
    }

    /// Whether the program opened it, and has not released it.
    pub fn is_the_programs(&self) -> bool {
        self.row != DEFAULT_EPOCH
            && matches!(self.state, Some(EpochState::Open | EpochState::Closed))
    }

    /// Whether the objects of all epochs of its label that share lie in it.
    pub fn is_shared(&self) -> bool {
        self.state == Some(EpochState::Shared)
    }

    /// How long it has been open, or was open until it ended, in ms.
    pub fn since_opened_ms(&self, now_ms: u64) -> Option<u64> {
        Some(now_ms.saturating_sub(self.opened_ms?))
    }

    /// How long ago it ended, in ms.
    pub fn since_closed_ms(&self, now_ms: u64) -> Option<u64> {
        Some(now_ms.saturating_sub(self.closed_ms?))
    }
}

/// A size class, over all threads.
#[derive(Clone, Debug, Serialize)]
pub struct Class {
    /// Size of an object.
    pub bytes: Option<u64>,
    /// Size of a slab.
    pub slab_bytes: Option<u64>,
    /// Objects that a slab holds.
    pub capacity: Option<u64>,
    /// Live objects in slabs, and survivors of epochs: all but those in cells of open epochs.
    pub live: Option<u64>,
    /// Blocks that slabs miss: live, at hand, or freed and on their way back.
    pub out: Option<u64>,
    /// Free objects that threads keep at hand.
    pub hot: Option<u64>,
    /// Slabs open now.
    pub slabs: Option<u64>,
    /// Slabs opened so far.
    pub opened: Option<u64>,
    /// Of these slabs: those that were given back, and may be other classes' by now.
    pub recycled: Option<u64>,
    /// Pages of open slabs that went back to the system so far, in bytes.
    pub purged_bytes: Option<u64>,
    /// Objects allocated in slabs so far.
    pub allocations: Option<u64>,
    /// Times that an empty bin took blocks of a slab.
    pub refills: Option<u64>,
    /// Objects freed without room for them at hand.
    pub returned: Option<u64>,
    /// The figures were changing while they were read: what came out negative counts as 0.
    pub unsettled: bool,
}

/// Figures of the whole process.
#[derive(Clone, Debug, Serialize)]
pub struct Totals {
    /// Live objects.
    pub live_objects: Option<u64>,
    /// Their size.
    pub live_bytes: Option<u64>,
    /// Of live objects: blocks of whole units.
    pub large_bytes: Option<u64>,
    /// Slabs, cells and large blocks of all epochs, with what is free in them (`held.rs`).
    pub held_bytes: Option<u64>,
    /// Free objects in slabs that threads keep at hand.
    pub hot_bytes: Option<u64>,
    /// Held, and neither live nor at hand: free in slabs and cells.
    pub spare_bytes: Option<u64>,
    /// Empty units that threads keep: nobody holds them.
    pub thread_cached_bytes: Option<u64>,
    /// Epochs open now, without the default one.
    pub epochs_open: Option<u64>,
    /// Epochs that share their label's memory lie in so many more, which are in none of the other
    /// counts.
    pub epochs_shared: Option<u64>,
    /// Epochs that are closed and have survivors.
    pub epochs_closed_with_survivors: Option<u64>,
    /// Threads that have a heap.
    pub threads: Option<u64>,
    /// Some of the figures were changing while they were read.
    pub unsettled: bool,
}

impl Snapshot {
    /// Reads all that the file tells.
    pub fn read<S: Source>(segment: &Segment<S>) -> Result<Self, Error> {
        let epochs = segment.rows(epochs::TABLE)?;
        // In this order what a part leaves to a home meanwhile is missed, not counted twice.
        let bins = segment.rows(bins::TABLE)?;
        let heaps = segment.rows(heaps::TABLE)?;
        let classes = segment.rows(classes::TABLE)?;
        let labels = segment.rows(labels::TABLE)?;
        let process = segment.rows(process::TABLE)?;
        let whole =
            epochs.as_ref().map_or_else(|| Ok(Vec::new()), |epochs| whole(segment, epochs))?;
        let roles = heaps.as_ref().and_then(live::heaps);
        let tables = tables(epochs.as_ref(), heaps.as_ref(), bins.as_ref());
        let sizes = class_sizes(classes.as_ref());
        let large = process.as_ref().zip(epochs.as_ref()).map(|(process, epochs)| {
            let large = |quantity: &Quantity| live::large_of_default(process, epochs, quantity);
            Live::of(large(&Quantity::objects(&[])), large(&Quantity::bytes(&[])))
        });
        let reading = Reading {
            process: process.as_ref(),
            tables,
            in_default: tables
                .zip(roles.as_ref())
                .and_then(|(tables, roles)| live::in_default(tables, roles)),
            heaps: roles,
            classes: classes.as_ref(),
            labels: labels.as_ref(),
            label_texts: labels.as_ref().map(named::texts).unwrap_or_default(),
            sizes,
            large_in_default: large.unwrap_or_default(),
        };
        let mut told = process.as_ref().map(figures).unwrap_or_default();
        let by_name = told.iter_mut().map(|figure| (figure.name.as_str(), &mut figure.value));
        refusals::raise(by_name, labels.as_ref());
        let holdings = reading.holdings();
        let named = labels.as_ref().map(|rows| named::read(rows, &reading.label_texts));
        let by_default = reading.held_by_default(&holdings);
        let found = epochs.as_ref().map_or_else(Vec::new, |epochs| reading.epochs(epochs, &whole));
        Ok(Self {
            header: segment.header.clone(),
            name: process.as_ref().and_then(name),
            process: told,
            classes: reading.classes(bins.as_ref(), &whole),
            labels: named.unwrap_or_default(),
            epochs: with_own_bytes(found, by_default),
            work: reading.work(),
            holdings,
            sampling: Sampling::read(segment)?,
            threads: heaps.as_ref().and_then(|heaps| reading.threads(heaps)),
            full_tables: full_tables(segment),
            missing: missing(segment),
        })
    }

    /// Sums over epochs and classes.
    pub fn totals(&self) -> Totals {
        let live = self.epochs.iter().map(|epoch| epoch.live).reduce(Live::plus);
        let live = live.unwrap_or_default();
        // Of epochs in a state of which nothing is known, there may be any number.
        let counts = self.epochs.iter().try_fold([0, 0, 0], |[open, shared, closed], epoch| {
            let is_open = epoch.state? == EpochState::Open && epoch.row != DEFAULT_EPOCH;
            let is_closed = epoch.has_survivors() && epoch.row != DEFAULT_EPOCH;
            let is_shared = epoch.is_shared();
            Some([
                open + u64::from(is_open),
                shared + u64::from(is_shared),
                closed + u64::from(is_closed),
            ])
        });
        let held_bytes = sum(self.epochs.iter().map(|epoch| epoch.own_bytes));
        let hot_bytes = sum(self.classes.iter().map(Class::hot_bytes));
        let used_bytes = sum([live.bytes, hot_bytes].into_iter());
        Totals {
            live_objects: live.objects,
            live_bytes: live.bytes,
            large_bytes: sum(self.epochs.iter().map(|epoch| epoch.large.bytes)),
            held_bytes,
            hot_bytes,
            spare_bytes: held_bytes.zip(used_bytes).map(|(held, used)| held.saturating_sub(used)),
            thread_cached_bytes: self.holdings.thread_cached_bytes,
            epochs_open: counts.map(|[open, ..]| open),
            epochs_shared: counts.map(|[_, shared, _]| shared),
            epochs_closed_with_survivors: live.objects.and(counts).map(|[.., closed]| closed),
            threads: self.threads,
            unsettled: live.unsettled,
        }
    }

    /// What lives and is in no class: in cells, whose objects nobody counts by class. Those are of
    /// threads that are in open epochs, and of the default epoch the sampled ones.
    pub fn in_cells(&self) -> Live {
        let totals = self.totals();
        let large = sum(self.epochs.iter().map(|epoch| epoch.large.objects));
        let objects = sum(self.classes.iter().map(|class| class.live).chain([large]));
        let in_classes = self.classes.iter().map(Class::live_bytes);
        let bytes = sum(in_classes.chain([totals.large_bytes]));
        let rest = |all: Option<u64>, known| Some(all?.saturating_sub(known?));
        Live {
            objects: rest(totals.live_objects, objects),
            bytes: rest(totals.live_bytes, bytes),
            unsettled: totals.unsettled || self.classes.iter().any(|class| class.unsettled),
        }
    }

    /// A figure that the process says itself; None when the file does not tell.
    pub fn process_figure(&self, field: Field) -> Option<u64> {
        debug_assert_eq!(field.table, process::TABLE, "{field}");
        self.process.iter().find(|figure| figure.name == field.name)?.value
    }

    /// Whether allocations were sampled, and are told of.
    pub fn has_samples(&self) -> bool {
        self.sampling.as_ref().is_some_and(|sampling| sampling.weight_bytes != 0)
    }

    /// The latest moment that the file tells of: an epoch may have come or gone after the process
    /// last said that it was there. `CLOCK_MONOTONIC` in ms.
    pub fn last_ms(&self) -> u64 {
        let moments = self.epochs.iter().flat_map(|epoch| [epoch.opened_ms, epoch.closed_ms]);
        moments.flatten().fold(self.header.told_ms, u64::max)
    }

    /// Slabs opened so far.
    pub fn slabs_opened(&self) -> Option<u64> {
        sum(self.classes.iter().map(|class| class.opened))
    }

    /// The epochs by row.
    pub fn epochs_by_row(&self) -> BTreeMap<u64, &Epoch> {
        self.epochs.iter().map(|epoch| (epoch.row, epoch)).collect()
    }
}

impl Class {
    /// Allocations and frees in slabs that left the fast path.
    pub fn slow_paths(&self) -> Option<u64> {
        Some(self.refills?.saturating_add(self.returned?))
    }

    /// Of live objects.
    pub fn live_bytes(&self) -> Option<u64> {
        Some(self.live?.saturating_mul(self.bytes?))
    }

    /// Of free objects at hand.
    pub fn hot_bytes(&self) -> Option<u64> {
        Some(self.hot?.saturating_mul(self.bytes?))
    }

    /// Of its slabs that heaps have.
    pub fn held_bytes(&self) -> Option<u64> {
        Some(self.slabs?.saturating_mul(self.slab_bytes?))
    }

    /// Of these slabs: neither live, at hand nor on its way back.
    pub fn spare_bytes(&self) -> Option<u64> {
        let out_bytes = self.out?.saturating_mul(self.bytes?);
        Some(self.held_bytes()?.saturating_sub(out_bytes))
    }
}

/// None when there is nothing to add, or one part is not known.
pub fn sum(parts: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    parts.reduce(|sum, part| Some(sum?.saturating_add(part?))).flatten()
}

fn full_tables<S>(segment: &Segment<S>) -> Vec<String> {
    let full = segment.tables.iter().filter(|table| table.is_full);
    full.map(|table| table.name.clone()).collect()
}

fn missing<S>(segment: &Segment<S>) -> Vec<String> {
    let missing = SURVIVOR_FIELDS.iter().filter(|field| !segment.has(**field));
    missing.map(Field::to_string).collect()
}

fn name(process: &Rows) -> Option<String> {
    process.column(process::NAME)?.text(0).filter(|name| !name.is_empty())
}

fn figures(process: &Rows) -> Vec<Figure> {
    let fields = process.fields().iter().filter(|field| field.kind != Kind::Text);
    fields
        .map(|field| Figure {
            name: field.name.clone(),
            unit: field.unit,
            value: process.values(field).get(0),
        })
        .collect()
}

fn class_sizes(classes: Option<&Rows>) -> Vec<u64> {
    let Some(classes) = classes else { return Vec::new() };
    let sizes = classes.column(classes::BYTES);
    (0..classes.len()).map_while(|row| sizes?.get(row)).collect()
}

fn tables<'a>(
    epochs: Option<&'a Rows<'a>>,
    heaps: Option<&'a Rows<'a>>,
    bins: Option<&'a Rows<'a>>,
) -> Option<Tables<'a>> {
    Some(Tables { epochs: epochs?, heaps: heaps?, bins: bins? })
}

// A row of epochs that was the same epoch's at both looks.
struct Whole {
    row: usize,
    // When a thread leaves an epoch, its objects move from the heap's row to the epoch's, and may
    // be missed in both or found in both.
    has_changed: bool,
}

// A second look, once heaps and bins are read. A row that belongs to another epoch by now is not
// shown: its fields may be of both.
fn whole<S: Source>(segment: &Segment<S>, epochs: &Rows) -> Result<Vec<Whole>, Error> {
    let (ids, survivors) = (epochs.column(epochs::ID), epochs.column(epochs::SURVIVORS));
    let mut whole = Vec::with_capacity(epochs.len());
    segment.again(epochs, |now| {
        let (Some(ids), Some(ids_now)) = (ids, now.column(epochs::ID)) else { return };
        let is_whole = |row: &usize| {
            let id = ids.get(*row);
            id == ids_now.get(*row) && (id != Some(0) || *row == DEFAULT_ROW)
        };
        let survivors = survivors.zip(now.column(epochs::SURVIVORS));
        let has_changed = |row| survivors.is_some_and(|(then, now)| !then.is_same(now, row));
        let rows = now.numbers().filter(is_whole);
        whole.extend(rows.map(|row| Whole { row, has_changed: has_changed(row) }));
    })?;
    Ok(whole)
}

fn with_own_bytes(mut epochs: Vec<Epoch>, by_default: Option<u64>) -> Vec<Epoch> {
    for epoch in epochs.iter_mut().filter(|epoch| epoch.row == DEFAULT_EPOCH) {
        epoch.held_bytes = by_default;
    }
    let holder = |epoch: &Epoch| {
        let (row, parent, held_bytes) = (epoch.row, epoch.parent, epoch.held_bytes);
        Holder { row, parent, held_bytes }
    };
    let own = held::own(&epochs.iter().map(holder).collect::<Vec<_>>());
    for (epoch, own_bytes) in epochs.iter_mut().zip(own) {
        epoch.own_bytes = own_bytes;
    }
    epochs
}

// What lives in each epoch, by row.
struct Lives<'a> {
    in_epochs: InEpochs<'a>,
    // In the default epoch, beyond what its row and its heaps tell.
    in_default: Option<Total>,
}

impl Lives<'_> {
    fn get(&self, row: usize, survivors: Option<Column>) -> Option<Total> {
        let total = self.in_epochs.get(row, survivors)?;
        if row == DEFAULT_ROW { Some(total.plus(self.in_default?)) } else { Some(total) }
    }
}

// What a row of epochs consists of, found once for all rows.
struct EpochFields<'a> {
    id: Option<Column<'a>>,
    parent: Option<Column<'a>>,
    label: Option<Column<'a>>,
    state: Option<Column<'a>>,
    opened_ms: Option<Column<'a>>,
    closed_ms: Option<Column<'a>>,
    held_bytes: Option<Column<'a>>,
    soft_limit_bytes: Option<Column<'a>>,
    hard_limit_bytes: Option<Column<'a>>,
    large_objects: Option<Column<'a>>,
    large_bytes: Option<Column<'a>>,
    survivors: Option<Column<'a>>,
}

impl<'a> EpochFields<'a> {
    fn of(epochs: &'a Rows) -> Self {
        Self {
            id: epochs.column(epochs::ID),
            parent: epochs.column(epochs::PARENT),
            label: epochs.column(epochs::LABEL),
            state: epochs.column(epochs::STATE),
            opened_ms: epochs.column(epochs::OPENED_MS),
            closed_ms: epochs.column(epochs::CLOSED_MS),
            held_bytes: epochs.column(epochs::HELD_BYTES),
            soft_limit_bytes: epochs.column(epochs::SOFT_LIMIT_BYTES),
            hard_limit_bytes: epochs.column(epochs::HARD_LIMIT_BYTES),
            large_objects: epochs.column(epochs::LARGE_OBJECTS),
            large_bytes: epochs.column(epochs::LARGE_BYTES),
            survivors: epochs.column(epochs::SURVIVORS),
        }
    }
}

// What is looked up while epochs and classes are put together.
struct Reading<'a> {
    process: Option<&'a Rows<'a>>,
    tables: Option<Tables<'a>>,
    heaps: Option<Vec<(usize, Role)>>,
    // What lives in slabs of the default epoch, by size class.
    in_default: Option<Vec<Total>>,
    classes: Option<&'a Rows<'a>>,
    labels: Option<&'a Rows<'a>>,
    // By row: one text for all epochs of a label.
    label_texts: Vec<Arc<str>>,
    sizes: Vec<u64>,
    large_in_default: Live,
}

impl Reading<'_> {
    fn work(&self) -> Work {
        let tables = self.tables.filter(|_| self.heaps.is_some());
        Work::of(self.process, tables, self.heaps.as_deref().unwrap_or_default())
    }

    fn holdings(&self) -> Holdings {
        let roles = self.heaps.as_deref().unwrap_or_default();
        Holdings::of(self.tables, roles, self.classes, self.labels)
    }

    fn threads(&self, heaps: &Rows) -> Option<u64> {
        let state = heaps.column(heaps::STATE)?;
        let homes = self.heaps.as_ref()?.iter().filter(|(_, role)| *role == Role::Home);
        let state = |row| state.get(row).and_then(HeapState::of);
        Some(homes.filter(|(row, _)| state(*row) == Some(HeapState::AThreads)).count() as u64)
    }

    fn epochs(&self, epochs: &Rows, whole: &[Whole]) -> Vec<Epoch> {
        let ones = self.tables.map(live::ones).unwrap_or_default();
        let objects = self.lives(&Quantity::objects(&ones));
        let bytes = self.lives(&Quantity::bytes(&self.sizes));
        let fields = EpochFields::of(epochs);
        let large = |row, large| if row == DEFAULT_ROW { self.large_in_default } else { large };
        let epoch = |&Whole { row, has_changed }: &Whole| {
            // Most epochs have none.
            let survivors = fields.survivors.filter(|column| !column.is_zero(row));
            let total = |lives: &Option<Lives>| lives.as_ref()?.get(row, survivors);
            let live = Live::of(total(&objects), total(&bytes));
            let live = Live { unsettled: live.unsettled || has_changed, ..live };
            let epoch = self.epoch(&fields, row);
            let large = large(row, epoch.large);
            let by_class = match (epoch.state, self.tables, &self.heaps) {
                (Some(EpochState::Shared), Some(tables), Some(heaps)) => {
                    live::in_epochs(tables, heaps, row..=row, once(row))
                }
                _ => survivors.map(|column| live::survivors(column, once(row))),
            };
            Epoch { live, large, survivors: self.survivors(&by_class.unwrap_or_default()), ..epoch }
        };
        whole.iter().map(epoch).collect()
    }

    fn epoch(&self, fields: &EpochFields, row: usize) -> Epoch {
        let value = |field: Option<Column>| field?.get(row);
        let some = |field| value(field).filter(|&value| value != 0);
        Epoch {
            row: row as u64,
            id: value(fields.id).unwrap_or_default(),
            parent: some(fields.parent),
            label: value(fields.label).and_then(|label| self.label(label)),
            state: value(fields.state).and_then(EpochState::of),
            opened_ms: some(fields.opened_ms),
            closed_ms: some(fields.closed_ms),
            held_bytes: value(fields.held_bytes),
            soft_limit_bytes: some(fields.soft_limit_bytes),
            hard_limit_bytes: some(fields.hard_limit_bytes),
            large: Live {
                objects: value(fields.large_objects),
                bytes: value(fields.large_bytes),
                unsettled: false,
            },
            ..Epoch::default()
        }
    }

    fn label(&self, label: u64) -> Option<Arc<str>> {
        self.label_texts.get(usize::try_from(label).ok()?).cloned()
    }

    fn survivors(&self, by_class: &[Total]) -> Vec<Survivors> {
        let some = by_class.iter().map(|live| live.value).enumerate().filter(|one| one.1 > 0);
        let class_bytes = |class| self.sizes.get(class).copied();
        some.map(|(class, objects)| Survivors { class_bytes: class_bytes(class), objects })
            .collect()
    }

    // Nobody counts it: slabs and cells of homes, and large blocks.
    fn held_by_default(&self, holdings: &Holdings) -> Option<u64> {
        let parts =
            [holdings.default_slab_bytes, holdings.default_cell_bytes, self.large_in_default.bytes];
        sum(parts.into_iter())
    }

    fn lives<'b>(&'b self, quantity: &Quantity<'b>) -> Option<Lives<'b>> {
        let tables = self.tables?;
        Some(Lives {
            in_epochs: InEpochs::of(tables, self.heaps.as_ref()?, quantity)?,
            in_default: self.process.zip(self.in_default.as_ref()).and_then(|(process, slabs)| {
                let large = live::large_of_default(process, tables.epochs, quantity)?;
                live::with_slabs(large, slabs, quantity)
            }),
        })
    }

    // What lives of each class: in slabs, and what outlived its epochs.
    fn live_by_class(&self, whole: &[Whole]) -> Option<Vec<Total>> {
        let rows = whole.iter().map(|whole| whole.row);
        let in_epochs = live::in_epochs(self.tables?, self.heaps.as_ref()?, 1..=usize::MAX, rows)?;
        let in_default = self.in_default.as_ref()?.iter();
        Some(in_default.zip(in_epochs).map(|(one, other)| one.plus(other)).collect())
    }

    fn classes(&self, bins: Option<&Rows>, whole: &[Whole]) -> Vec<Class> {
        let sums = |field| live::of_bins(bins?, self.heaps.as_ref()?, field);
        let (out, hot, slabs) = (sums(bins::OUT), sums(bins::HOT), sums(bins::SLABS));
        let (opened, allocations) = (sums(bins::OPENED), sums(bins::ALLOCATIONS));
        let (refills, returned) = (sums(bins::REFILLS), sums(bins::RETURNED));
        let live = self.live_by_class(whole);
        let pick = |sums: &Option<Vec<u64>>, class| sums.as_ref()?.get(class).copied();
        let described = |field, class| self.classes?.column(field)?.get(class);
        let class = |class| {
            let live = live.as_ref().and_then(|live| live.get(class));
            let (open, so_far) = (pick(&slabs, class), pick(&opened, class));
            Class {
                bytes: described(classes::BYTES, class),
                slab_bytes: described(classes::SLAB_BYTES, class),
                capacity: described(classes::CAPACITY, class),
                live: live.map(|live| live.value),
                out: pick(&out, class),
                hot: pick(&hot, class),
                slabs: open,
                opened: so_far,
                recycled: so_far.zip(open).map(|(so_far, open)| so_far.saturating_sub(open)),
                purged_bytes: described(classes::PURGED_BYTES, class),
                allocations: pick(&allocations, class),
                refills: pick(&refills, class),
                returned: pick(&returned, class),
                unsettled: live.is_some_and(|live| live.unsettled),
            }
        };
        let count = self.classes.map_or(hot.as_ref().map_or(0, Vec::len), Rows::len);
        (0..count).map(class).collect()
    }
}

#[cfg(test)]
mod tests;
