//! The picture of one process at one moment: what its statistics file says, understood.
//!
//! What the file does not tell is None, never 0.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::holdings::Holdings;
use crate::live::{self, Counts, Quantity, Role, Tables, Total};
use crate::segment::{Error, Header, Rows, Segment, Source, Unit};

/// An epoch's row number is also the lower part of its id.
pub const DEFAULT_EPOCH: u64 = 0;

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
    /// What each heap has allocated; none when the file does not tell.
    pub heaps: Option<Vec<Counts>>,
    /// What heaps hold, and how full the tables are.
    pub holdings: Holdings,
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

/// Objects of one size class that outlived the threads that allocated them.
#[derive(Clone, Debug, Serialize)]
pub struct Survivors {
    /// Size of each.
    pub class_bytes: Option<u64>,
    /// How many.
    pub objects: u64,
}

/// An epoch.
#[derive(Clone, Debug)]
pub struct Epoch {
    /// Row in its table; unique among the epochs of a moment.
    pub row: u64,
    /// The id that the program knows; never used again.
    pub id: u64,
    /// The parent's row.
    pub parent: Option<u64>,
    /// As the program named it.
    pub label: Option<String>,
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
        let heaps = segment.rows("heaps")?;
        let bins = segment.rows("bins")?;
        let classes = segment.rows("classes")?;
        let labels = segment.rows("labels")?;
        let process = segment.rows("process")?;
        let epochs_again = segment.rows("epochs")?;
        let reading = Reading {
            process: process.as_ref(),
            sizes: class_sizes(classes.as_ref()),
            heaps: heaps.as_ref().and_then(live::heaps),
            tables: tables(epochs.as_ref(), heaps.as_ref(), bins.as_ref()),
            classes: classes.as_ref(),
            labels: labels.as_ref(),
        };
        Ok(Self {
            header: segment.header.clone(),
            process: process.as_ref().map(figures).unwrap_or_default(),
            epochs: reading.epochs(epochs.as_ref(), epochs_again.as_ref()),
            classes: reading.classes(bins.as_ref()),
            heaps: reading.heap_counts(),
            holdings: reading.holdings(),
            threads: heaps.as_ref().and_then(threads),
            full_tables: full_tables(segment),
            missing: missing(segment),
        })
    }

    /// Sums over epochs and classes.
    pub fn totals(&self) -> Totals {
        let epochs = || self.epochs.iter();
        let knows_states = epochs().all(|epoch| epoch.state.is_some());
        let count = |which: fn(&Epoch) -> bool| {
            let counted = epochs().filter(|epoch| epoch.row != DEFAULT_EPOCH && which(epoch));
            knows_states.then(|| counted.count() as u64)
        };
        let live_objects = sum(epochs().map(|epoch| epoch.live.objects));
        Totals {
            live_objects,
            live_bytes: sum(epochs().map(|epoch| epoch.live.bytes)),
            hot_bytes: sum(self.classes.iter().map(Class::hot_bytes)),
            epochs_open: count(|epoch| epoch.state == Some(State::Open)),
            epochs_closed_with_survivors: count(Epoch::has_survivors)
                .filter(|_| live_objects.is_some()),
            threads: self.threads,
            unsettled: epochs().any(|epoch| epoch.live.unsettled),
        }
    }

    /// A figure that the process says itself; None when the file does not tell.
    pub fn process_figure(&self, name: &str) -> Option<u64> {
        self.process.iter().find(|figure| figure.name == name)?.value
    }

    /// The latest moment that the file tells of: an epoch may have come or gone after the process
    /// last said that it was there. `CLOCK_MONOTONIC` in ms.
    pub fn last_ms(&self) -> u64 {
        let moments = self.epochs.iter().flat_map(|epoch| [epoch.opened_ms, epoch.closed_ms]);
        moments.flatten().fold(self.header.told_ms, u64::max)
    }

    /// The epochs by row.
    pub fn epochs_by_row(&self) -> BTreeMap<u64, &Epoch> {
        self.epochs.iter().map(|epoch| (epoch.row, epoch)).collect()
    }
}

impl Class {
    fn hot_bytes(&self) -> Option<u64> {
        Some(self.hot?.saturating_mul(self.bytes?))
    }
}

// None when there is nothing to add, or one part is not known.
fn sum(parts: impl Iterator<Item = Option<u64>>) -> Option<u64> {
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

fn threads(heaps: &Rows) -> Option<u64> {
    let state = heaps.column("state")?;
    let homes = live::heaps(heaps)?.into_iter().filter(|(_, role)| *role == Role::Home);
    Some(homes.filter(|(row, _)| state.get(*row) == Some(1)).count() as u64)
}

fn class_sizes(classes: Option<&Rows>) -> Vec<u64> {
    let Some(classes) = classes else { return Vec::new() };
    let sizes = classes.column("bytes");
    (0..classes.len()).map_while(|row| sizes?.get(row)).collect()
}

fn tables<'a>(
    epochs: Option<&'a Rows<'a>>,
    heaps: Option<&'a Rows<'a>>,
    bins: Option<&'a Rows<'a>>,
) -> Option<Tables<'a>> {
    Some(Tables { epochs: epochs?, heaps: heaps?, bins: bins? })
}

// When a thread leaves an epoch, its objects move from the heap's row to the epoch's, and may be
// missed in both or found in both.
fn has_changed(epochs: &Rows, again: &Rows, row: usize) -> bool {
    match (epochs.column("survivors"), again.column("survivors")) {
        (Some(before), Some(after)) => !before.each(row).eq(after.each(row)),
        _ => false,
    }
}

// A total of each epoch, as far as the file tells.
type ByRow = Option<Vec<Option<Total>>>;

// What is looked up while epochs and classes are put together.
struct Reading<'a> {
    process: Option<&'a Rows<'a>>,
    tables: Option<Tables<'a>>,
    heaps: Option<Vec<(usize, Role)>>,
    classes: Option<&'a Rows<'a>>,
    labels: Option<&'a Rows<'a>>,
    sizes: Vec<u64>,
}

impl Reading<'_> {
    fn heap_counts(&self) -> Option<Vec<Counts>> {
        live::counts(self.tables?, self.heaps.as_ref()?)
    }

    fn holdings(&self) -> Holdings {
        let roles = self.heaps.as_deref().unwrap_or_default();
        Holdings::of(self.tables, roles, self.classes, self.labels)
    }

    fn in_default(&self) -> Option<Vec<Total>> {
        live::in_default(self.tables?, self.heaps.as_ref()?)
    }

    // A row that belongs to another epoch by now is not shown: its fields may be of both.
    fn epochs(&self, epochs: Option<&Rows>, again: Option<&Rows>) -> Vec<Epoch> {
        let (Some(epochs), Some(again)) = (epochs, again) else { return Vec::new() };
        let (Some(ids), Some(ids_again)) = (epochs.column("id"), again.column("id")) else {
            return Vec::new();
        };
        let is_whole = |row: &usize| {
            let id = ids.get(*row);
            id == ids_again.get(*row) && (id != Some(0) || *row as u64 == DEFAULT_EPOCH)
        };
        let live = self.live(epochs.len());
        let whole = (0..epochs.len()).filter(is_whole);
        whole
            .map(|row| {
                let unsettled = live[row].unsettled || has_changed(epochs, again, row);
                self.epoch(epochs, row, Live { unsettled, ..live[row] })
            })
            .collect()
    }

    fn epoch(&self, epochs: &Rows, row: usize, live: Live) -> Epoch {
        let value = |field| epochs.column(field)?.get(row);
        let some = |field| value(field).filter(|&value| value != 0);
        Epoch {
            row: row as u64,
            id: value("id").unwrap_or_default(),
            parent: some("parent"),
            label: value("label").and_then(|label| self.label(label)),
            state: value("state").and_then(State::of),
            opened_ms: some("opened_ms"),
            closed_ms: some("closed_ms"),
            held_bytes: value("held_bytes"),
            soft_limit_bytes: some("soft_limit_bytes"),
            hard_limit_bytes: some("hard_limit_bytes"),
            large_objects: value("large_objects"),
            live,
            survivors: self.survivors(epochs, row),
        }
    }

    fn label(&self, label: u64) -> Option<String> {
        self.labels?.column("text")?.text(usize::try_from(label).ok()?)
    }

    fn survivors(&self, epochs: &Rows, row: usize) -> Vec<Survivors> {
        let Some(column) = epochs.column("survivors") else { return Vec::new() };
        let by_class = live::survivors_of(column, row).enumerate();
        let some = by_class.filter(|(_, objects)| *objects > 0);
        let survivors = |(class, objects): (usize, i64)| Survivors {
            class_bytes: self.sizes.get(class).copied(),
            objects: objects.cast_unsigned(),
        };
        some.map(survivors).collect()
    }

    fn live(&self, epochs: usize) -> Vec<Live> {
        let ones = vec![1; usize::from(u16::MAX)];
        let objects = self.quantity(&Quantity::objects(&ones));
        let bytes = self.quantity(&Quantity::bytes(&self.sizes));
        let pick = |totals: &ByRow, row: usize| -> Option<Total> { *totals.as_ref()?.get(row)? };
        let live = |row| {
            let (objects, bytes) = (pick(&objects, row), pick(&bytes, row));
            let is_unsettled = |total: Option<Total>| total.is_some_and(|total| total.unsettled);
            Live {
                objects: objects.map(|total| total.value),
                bytes: bytes.map(|total| total.value),
                unsettled: is_unsettled(objects) || is_unsettled(bytes),
            }
        };
        (0..epochs).map(live).collect()
    }

    // What lives in each epoch, by row.
    fn quantity(&self, quantity: &Quantity) -> ByRow {
        let totals = live::of_epochs(self.tables?, self.heaps.as_ref()?, quantity)?;
        let mut totals: Vec<_> = totals.into_iter().map(Some).collect();
        if let Some(default) = totals.first_mut() {
            let in_default = self.in_default();
            let others = default.take().zip(self.large_of_default(quantity));
            let others = others.map(|(others, large)| others.plus(large));
            *default = others
                .zip(in_default)
                .and_then(|(others, in_default)| live::with_slabs(others, &in_default, quantity));
        }
        Some(totals)
    }

    fn large_of_default(&self, quantity: &Quantity) -> Option<Total> {
        live::large_of_default(self.process?, self.tables?.epochs, quantity)
    }

    fn classes(&self, bins: Option<&Rows>) -> Vec<Class> {
        let sums = |field: &str| live::of_bins(bins?, self.heaps.as_ref()?, field);
        let (hot, slabs) = (sums("hot"), sums("slabs"));
        let (opened, allocations) = (sums("opened"), sums("allocations"));
        let live = self.in_default();
        let pick = |sums: &Option<Vec<u64>>, class| sums.as_ref()?.get(class).copied();
        let described = |field, class| self.classes?.column(field)?.get(class);
        let class = |class| {
            let live = live.as_ref().and_then(|live| live.get(class));
            Class {
                bytes: described("bytes", class),
                slab_bytes: described("slab_bytes", class),
                capacity: described("capacity", class),
                live: live.map(|live| live.value),
                hot: pick(&hot, class),
                slabs: pick(&slabs, class),
                opened: pick(&opened, class),
                allocations: pick(&allocations, class),
                unsettled: live.is_some_and(|live| live.unsettled),
            }
        };
        let count = self.classes.map_or(hot.as_ref().map_or(0, Vec::len), Rows::len);
        (0..count).map(class).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io;

    use super::*;
    use crate::fixture::{Image, sample};

    fn snapshot(image: &Image) -> Snapshot {
        Snapshot::read(&Segment::open(image.bytes()).unwrap()).unwrap()
    }

    fn epoch(snapshot: &Snapshot, row: u64) -> Epoch {
        (*snapshot.epochs_by_row().get(&row).expect("an epoch in this row")).clone()
    }

    fn figures(live: Live) -> (Option<u64>, Option<u64>, bool) {
        (live.objects, live.bytes, live.unsettled)
    }

    #[test]
    fn what_lives_is_what_went_out_less_what_came_back() {
        let snapshot = snapshot(&sample(42, 7));
        let live = |row| figures(epoch(&snapshot, row).live);
        assert_eq!(live(0), (Some(133), Some(216_768), false));
        assert_eq!(live(3), (Some(319), Some(154_880), false));
        assert_eq!(live(7), (Some(357), Some(47_872), false));
        assert_eq!(live(5), (Some(0), Some(0), false));
        let totals = snapshot.totals();
        assert_eq!((totals.live_objects, totals.live_bytes), (Some(809), Some(419_520)));
        assert_eq!(totals.epochs_open, Some(1));
        assert_eq!(totals.epochs_closed_with_survivors, Some(1));
        assert_eq!((totals.threads, totals.hot_bytes), (Some(1), Some(15 * 128 + 2 * 256)));
    }

    #[test]
    fn the_last_moment_may_be_an_epochs() {
        let mut image = sample(42, 7);
        assert_eq!(snapshot(&image).last_ms(), 1_000_000);
        image.told_ms = 500_000;
        assert_eq!(snapshot(&image).last_ms(), 990_000);
    }

    #[test]
    fn epochs_have_labels_states_and_parents() {
        let snapshot = snapshot(&sample(42, 7));
        assert_eq!(snapshot.epochs.len(), 5);
        let step = epoch(&snapshot, 5);
        assert_eq!((step.parent, step.state), (Some(3), Some(State::Closed)));
        assert_eq!((step.label.as_deref(), step.id), (Some("step"), 1 << 24 | 5));
        assert_eq!(epoch(&snapshot, 6).state, Some(State::Released));
        assert_eq!(epoch(&snapshot, 3).closed_ms, None);
        assert_eq!(epoch(&snapshot, 0).label.as_deref(), Some("default"));
    }

    #[test]
    fn classes_are_summed_over_threads() {
        let snapshot = snapshot(&sample(42, 7));
        let class = &snapshot.classes[1];
        assert_eq!((class.bytes, class.capacity), (Some(128), Some(512)));
        assert_eq!((class.live, class.hot), (Some(131), Some(15)));
        assert_eq!((class.slabs, class.opened, class.allocations), (Some(2), Some(4), Some(1000)));
        assert_eq!(snapshot.classes.len(), 4);
    }

    #[test]
    fn what_the_file_does_not_have_is_not_known() {
        let without = |table, field| {
            let mut image = sample(42, 7);
            image.forget(table, field);
            snapshot(&image)
        };
        for (table, field) in SURVIVOR_FIELDS.into_iter().filter(|(table, _)| *table != "epochs") {
            let snapshot = without(table, field);
            assert_eq!(epoch(&snapshot, 7).live.objects, None, "{table}.{field}");
            assert_eq!(snapshot.totals().live_objects, None, "{table}.{field}");
            assert_eq!(snapshot.missing, [format!("{table}.{field}")]);
        }
        let sent = without("bins", "sent");
        assert_eq!(epoch(&sent, 0).live.objects, None);
        assert_eq!(epoch(&sent, 7).live.objects, Some(357));
        let bytes = without("classes", "bytes");
        assert_eq!(figures(epoch(&bytes, 7).live), (Some(357), None, false));
        let state = without("epochs", "state");
        assert_eq!((epoch(&state, 7).state, state.totals().epochs_open), (None, None));
        assert!(without("epochs", "id").epochs.is_empty());
    }

    #[test]
    fn missing_tables_are_not_known() {
        for table in ["process", "classes", "labels", "epochs", "heaps", "bins"] {
            let mut image = sample(42, 7);
            image.tables.retain(|known| known.name != table);
            let snapshot = snapshot(&image);
            let totals = snapshot.totals();
            assert_eq!(totals.live_objects.is_some(), ["classes", "labels"].contains(&table));
            assert_eq!(snapshot.epochs.is_empty(), table == "epochs");
        }
    }

    #[test]
    fn newer_fields_of_the_process_are_told_under_their_names() {
        let mut image = sample(42, 7);
        image.table("process").fields[0].name = "sealed_bytes";
        let snapshot = snapshot(&image);
        assert_eq!(snapshot.process[0].name, "sealed_bytes");
        assert_eq!(snapshot.process[0].value, Some(1 << 20));
    }

    #[test]
    fn counters_that_wrapped_still_make_differences() {
        let mut image = sample(42, 7);
        // 1000 cut and 600 freed as before, both close to the end of their range.
        image.set_all("heaps", 3, &[("cut_objects", 399), ("freed_objects", u64::MAX)]);
        image.set_all("heaps", 3, &[("cut_bytes", 25_599), ("freed_bytes", u64::MAX)]);
        // Sent 8 in all and taken 4, of which 7 and 4 before they wrapped.
        image.set_class("bins", 0, "sent", 1, u64::from(u32::MAX) - 5);
        image.set_class("bins", 1, "taken", 1, u64::from(u32::MAX) - 3);
        let snapshot = snapshot(&image);
        assert_eq!(figures(epoch(&snapshot, 3).live), (Some(319), Some(154_880), false));
        assert_eq!(snapshot.classes[1].live, Some(135 - 4));
        assert!(!snapshot.classes[1].unsettled);
    }

    #[test]
    fn negative_totals_are_0_and_unsettled() {
        let mut image = sample(42, 7);
        image.set("heaps", 3, "freed_objects", 5_000);
        image.set_class("bins", 1, "taken", 1, 50);
        let snapshot = snapshot(&image);
        let live = epoch(&snapshot, 3).live;
        assert_eq!((live.objects, live.unsettled), (Some(0), true));
        assert_eq!((snapshot.classes[1].live, snapshot.classes[1].unsettled), (Some(135), true));
        assert!(snapshot.totals().unsettled);
    }

    #[test]
    fn survivors_may_be_freed_before_they_are_counted() {
        let mut image = sample(42, 7);
        image.set_class("epochs", 7, "survivors", 2, u64::from(u32::MAX) - 2);
        let epoch = epoch(&snapshot(&image), 7);
        assert_eq!(figures(epoch.live), (Some(337), Some(340 * 128 - 3 * 256), false));
        assert_eq!(epoch.survivors.len(), 1);
    }

    #[test]
    fn counters_at_their_ends_do_no_harm() {
        let mut image = sample(42, 7);
        let fields = ["cut_objects", "cut_bytes", "freed_objects", "away_bytes"];
        for field in fields {
            image.set("heaps", 3, field, u64::MAX);
        }
        for field in ["opened_ms", "closed_ms", "held_bytes", "large_objects", "large_bytes"] {
            image.set("epochs", 7, field, u64::MAX);
        }
        for field in ["out", "hot", "sent", "taken"] {
            (0..4).for_each(|row| image.set_class("bins", row, field, 3, u32::MAX.into()));
        }
        let snapshot = snapshot(&image);
        assert_eq!(epoch(&snapshot, 7).since_closed_ms(5), Some(0));
        assert!(snapshot.totals().live_objects.is_some());
    }

    #[test]
    fn heaps_of_epochs_and_bins_without_a_row_are_passed_over() {
        let mut image = sample(42, 7);
        image.set("heaps", 3, "epoch", 4_000_000_000);
        let table = image.table("bins");
        (table.rows, table.most_rows, table.is_full) = (2, 2, 1);
        let snapshot = snapshot(&image);
        assert_eq!(epoch(&snapshot, 3).live.objects, Some(1));
        assert_eq!(snapshot.full_tables, ["bins"]);
    }

    // A file whose epoch in row 7 is replaced between two reads of its table.
    struct Changing {
        before: Vec<u8>,
        after: Vec<u8>,
        reads: Cell<u32>,
    }

    impl Source for Changing {
        fn bytes(&self) -> io::Result<u64> {
            self.before.bytes()
        }

        fn read_exact_at(&self, into: &mut [u8], at: u64) -> io::Result<()> {
            self.reads.set(self.reads.get() + 1);
            // The header and two kinds of descriptions come before the first table.
            let source = if self.reads.get() <= 4 { &self.before } else { &self.after };
            source.read_exact_at(into, at)
        }
    }

    #[test]
    fn an_epoch_that_is_replaced_meanwhile_is_passed_over() {
        for id in [0, 2 << 24 | 7] {
            let mut image = sample(42, 7);
            let before = image.bytes();
            image.set("epochs", 7, "id", id);
            let source = Changing { before, after: image.bytes(), reads: Cell::new(0) };
            let snapshot = Snapshot::read(&Segment::open(source).unwrap()).unwrap();
            assert!(!snapshot.epochs_by_row().contains_key(&7));
            assert!(snapshot.epochs_by_row().contains_key(&3));
        }
    }

    #[test]
    fn survivors_that_change_meanwhile_are_unsettled() {
        let mut image = sample(42, 7);
        let before = image.bytes();
        image.set_class("epochs", 7, "survivors", 1, 341);
        let source = Changing { before, after: image.bytes(), reads: Cell::new(0) };
        let snapshot = Snapshot::read(&Segment::open(source).unwrap()).unwrap();
        assert!(epoch(&snapshot, 7).live.unsettled && !epoch(&snapshot, 3).live.unsettled);
    }
}
