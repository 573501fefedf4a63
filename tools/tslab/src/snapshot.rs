//! The picture of one process at one moment: what its statistics file says, understood.
//!
//! What the file does not tell is None, never 0.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::holdings::Holdings;
use crate::live::{self, InEpochs, Quantity, Role, Tables, Total};
use crate::sampling::Sampling;
use crate::segment::{Column, Error, Header, Rows, Segment, Source, Unit};
use crate::work::Work;

/// An epoch's row number is also the lower part of its id.
pub const DEFAULT_EPOCH: u64 = 0;
const DEFAULT_ROW: usize = 0;

/// What a process told.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Which process, and when.
    pub header: Header,
    /// The process's own fields, as the file describes them.
    pub process: Vec<Figure>,
    /// All epochs that have a row.
    pub epochs: Vec<Epoch>,
    /// All size classes.
    pub classes: Vec<Class>,
    /// What it has done so far.
    pub work: Work,
    /// What heaps hold, and how full the tables are.
    pub holdings: Holdings,
    /// Of the default epoch, what is in no class: sampled blocks, each of which lies alone.
    pub alone: Live,
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
const SURVIVOR_FIELDS: [(&str, &str); 15] = [
    ("epochs", "id"),
    ("epochs", "state"),
    ("epochs", "opened_ms"),
    ("epochs", "closed_ms"),
    ("epochs", "survivors"),
    ("epochs", "large_objects"),
    ("heaps", "state"),
    ("heaps", "home"),
    ("heaps", "epoch"),
    ("heaps", "cut_objects"),
    ("heaps", "freed_objects"),
    ("heaps", "away_objects"),
    ("bins", "out"),
    ("bins", "hot"),
    ("bins", "taken"),
];

/// A field of the process and its value.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its name in the file.
    pub name: String,
    /// What it is counted in.
    pub unit: Unit,
    /// None: the process has not written it yet.
    pub value: Option<u64>,
}

/// Where an epoch is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Objects may be allocated in it.
    Open,
    /// No more, and the objects in it live on.
    Closed,
    /// Its objects ended with it.
    Released,
}

impl State {
    fn of(number: u64) -> Option<Self> {
        match number {
            0 => Some(Self::Open),
            1 => Some(Self::Closed),
            2 => Some(Self::Released),
            _ => None,
        }
    }
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

/// Objects of one size class that outlived the threads that allocated them.
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
    /// Open, closed or released.
    pub state: Option<State>,
    /// `CLOCK_MONOTONIC` when it was opened, in ms.
    pub opened_ms: Option<u64>,
    /// `CLOCK_MONOTONIC` when it ended, in ms.
    pub closed_ms: Option<u64>,
    /// Memory that it holds, its children's included.
    pub held_bytes: Option<u64>,
    /// Memory beyond which its callback is called.
    pub soft_limit_bytes: Option<u64>,
    /// Memory that it never exceeds.
    pub hard_limit_bytes: Option<u64>,
    /// Blocks of whole units among the live objects.
    pub large_objects: Option<u64>,
    /// Objects in it.
    pub live: Live,
    /// Of them, those whose threads left, by size class.
    pub survivors: Vec<Survivors>,
}

impl Epoch {
    /// Whether it has ended and objects in it have not.
    pub fn has_survivors(&self) -> bool {
        self.state == Some(State::Closed) && self.live.objects.is_some_and(|objects| objects > 0)
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
    /// Live objects in the default epoch.
    pub live: Option<u64>,
    /// Free objects that threads keep at hand.
    pub hot: Option<u64>,
    /// Slabs open now.
    pub slabs: Option<u64>,
    /// Slabs opened so far.
    pub opened: Option<u64>,
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
    /// Free objects in slabs that threads keep at hand.
    pub hot_bytes: Option<u64>,
    /// Epochs open now, without the default one.
    pub epochs_open: Option<u64>,
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
        let epochs = segment.rows("epochs")?;
        // In this order what a part leaves to a home meanwhile is missed, not counted twice.
        let bins = segment.rows("bins")?;
        let heaps = segment.rows("heaps")?;
        let classes = segment.rows("classes")?;
        let labels = segment.rows("labels")?;
        let process = segment.rows("process")?;
        let whole =
            epochs.as_ref().map_or_else(|| Ok(Vec::new()), |epochs| whole(segment, epochs))?;
        let roles = heaps.as_ref().and_then(live::heaps);
        let tables = tables(epochs.as_ref(), heaps.as_ref(), bins.as_ref());
        let reading = Reading {
            process: process.as_ref(),
            tables,
            in_default: tables
                .zip(roles.as_ref())
                .and_then(|(tables, roles)| live::in_default(tables, roles)),
            heaps: roles,
            classes: classes.as_ref(),
            labels: labels.as_ref(),
            label_texts: labels.as_ref().map(label_texts).unwrap_or_default(),
            sizes: class_sizes(classes.as_ref()),
        };
        Ok(Self {
            header: segment.header.clone(),
            process: process.as_ref().map(figures).unwrap_or_default(),
            epochs: epochs.as_ref().map_or_else(Vec::new, |epochs| reading.epochs(epochs, &whole)),
            classes: reading.classes(bins.as_ref()),
            work: reading.work(),
            holdings: reading.holdings(),
            alone: reading.alone(),
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
        let counts = self.epochs.iter().try_fold([0, 0], |[open, closed], epoch| {
            let is_open = epoch.state? == State::Open && epoch.row != DEFAULT_EPOCH;
            let is_closed = epoch.has_survivors() && epoch.row != DEFAULT_EPOCH;
            Some([open + u64::from(is_open), closed + u64::from(is_closed)])
        });
        Totals {
            live_objects: live.objects,
            live_bytes: live.bytes,
            hot_bytes: sum(self.classes.iter().map(Class::hot_bytes)),
            epochs_open: counts.map(|[open, _]| open),
            epochs_closed_with_survivors: live.objects.and(counts).map(|[_, closed]| closed),
            threads: self.threads,
            unsettled: live.unsettled,
        }
    }

    /// A figure that the process says itself; None when the file does not tell.
    pub fn process_figure(&self, name: &str) -> Option<u64> {
        self.process.iter().find(|figure| figure.name == name)?.value
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

    fn hot_bytes(&self) -> Option<u64> {
        Some(self.hot?.saturating_mul(self.bytes?))
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
    let missing = SURVIVOR_FIELDS.iter().filter(|(table, field)| !segment.has(table, field));
    missing.map(|(table, field)| format!("{table}.{field}")).collect()
}

fn figures(process: &Rows) -> Vec<Figure> {
    let fields = process.fields().iter().filter(|field| !field.is_text);
    let value = |name: &str| process.column(name).and_then(|column| column.get(0));
    fields
        .map(|field| Figure {
            name: field.name.clone(),
            unit: field.unit,
            value: value(&field.name),
        })
        .collect()
}

fn class_sizes(classes: Option<&Rows>) -> Vec<u64> {
    let Some(classes) = classes else { return Vec::new() };
    let sizes = classes.column("bytes");
    (0..classes.len()).map_while(|row| sizes?.get(row)).collect()
}

/// More than a process has; what a damaged file claims beyond is not read.
const MOST_LABELS: usize = 1 << 16;

fn label_texts(labels: &Rows) -> Vec<Arc<str>> {
    let texts = labels.column("text");
    (0..labels.len().min(MOST_LABELS)).map_while(|row| Some(texts?.text(row)?.into())).collect()
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
    let (ids, survivors) = (epochs.column("id"), epochs.column("survivors"));
    let mut whole = Vec::with_capacity(epochs.len());
    segment.again(epochs, |now| {
        let (Some(ids), Some(ids_now)) = (ids, now.column("id")) else { return };
        let is_whole = |row: &usize| {
            let id = ids.get(*row);
            id == ids_now.get(*row) && (id != Some(0) || *row == DEFAULT_ROW)
        };
        let survivors = survivors.zip(now.column("survivors"));
        let has_changed = |row| survivors.is_some_and(|(then, now)| !then.is_same(now, row));
        let rows = now.numbers().filter(is_whole);
        whole.extend(rows.map(|row| Whole { row, has_changed: has_changed(row) }));
    })?;
    Ok(whole)
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
    survivors: Option<Column<'a>>,
}

impl<'a> EpochFields<'a> {
    fn of(epochs: &'a Rows) -> Self {
        Self {
            id: epochs.column("id"),
            parent: epochs.column("parent"),
            label: epochs.column("label"),
            state: epochs.column("state"),
            opened_ms: epochs.column("opened_ms"),
            closed_ms: epochs.column("closed_ms"),
            held_bytes: epochs.column("held_bytes"),
            soft_limit_bytes: epochs.column("soft_limit_bytes"),
            hard_limit_bytes: epochs.column("hard_limit_bytes"),
            large_objects: epochs.column("large_objects"),
            survivors: epochs.column("survivors"),
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
        let state = heaps.column("state")?;
        let homes = self.heaps.as_ref()?.iter().filter(|(_, role)| *role == Role::Home);
        Some(homes.filter(|(row, _)| state.get(*row) == Some(1)).count() as u64)
    }

    fn epochs(&self, epochs: &Rows, whole: &[Whole]) -> Vec<Epoch> {
        let ones = self.tables.map(live::ones).unwrap_or_default();
        let objects = self.lives(&Quantity::objects(&ones));
        let bytes = self.lives(&Quantity::bytes(&self.sizes));
        let fields = EpochFields::of(epochs);
        let epoch = |&Whole { row, has_changed }: &Whole| {
            // Most epochs have none.
            let survivors = fields.survivors.filter(|column| !column.is_zero(row));
            let total = |lives: &Option<Lives>| lives.as_ref()?.get(row, survivors);
            let live = Live::of(total(&objects), total(&bytes));
            let live = Live { unsettled: live.unsettled || has_changed, ..live };
            let survivors = survivors.map(|column| self.survivors(column, row));
            Epoch { live, survivors: survivors.unwrap_or_default(), ..self.epoch(&fields, row) }
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
            state: value(fields.state).and_then(State::of),
            opened_ms: some(fields.opened_ms),
            closed_ms: some(fields.closed_ms),
            held_bytes: value(fields.held_bytes),
            soft_limit_bytes: some(fields.soft_limit_bytes),
            hard_limit_bytes: some(fields.hard_limit_bytes),
            large_objects: value(fields.large_objects),
            ..Epoch::default()
        }
    }

    fn label(&self, label: u64) -> Option<Arc<str>> {
        self.label_texts.get(usize::try_from(label).ok()?).cloned()
    }

    fn survivors(&self, column: Column, row: usize) -> Vec<Survivors> {
        let by_class = live::survivors_of(column, row).enumerate();
        let some = by_class.filter(|(_, objects)| *objects > 0);
        let survivors = |(class, objects): (usize, i64)| Survivors {
            class_bytes: self.sizes.get(class).copied(),
            objects: objects.cast_unsigned(),
        };
        some.map(survivors).collect()
    }

    fn alone(&self) -> Live {
        let in_cells = |quantity: &Quantity| {
            live::in_default_cells(self.tables?, self.heaps.as_ref()?, quantity)
        };
        Live::of(in_cells(&Quantity::objects(&[])), in_cells(&Quantity::bytes(&[])))
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

    fn classes(&self, bins: Option<&Rows>) -> Vec<Class> {
        let sums = |field: &str| live::of_bins(bins?, self.heaps.as_ref()?, field);
        let (hot, slabs) = (sums("hot"), sums("slabs"));
        let (opened, allocations) = (sums("opened"), sums("allocations"));
        let (refills, returned) = (sums("refills"), sums("returned"));
        let live = self.in_default.as_ref();
        let pick = |sums: &Option<Vec<u64>>, class| sums.as_ref()?.get(class).copied();
        let described = |field, class| self.classes?.column(field)?.get(class);
        let class = |class| {
            let live = live.and_then(|live| live.get(class));
            Class {
                bytes: described("bytes", class),
                slab_bytes: described("slab_bytes", class),
                capacity: described("capacity", class),
                live: live.map(|live| live.value),
                hot: pick(&hot, class),
                slabs: pick(&slabs, class),
                opened: pick(&opened, class),
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
