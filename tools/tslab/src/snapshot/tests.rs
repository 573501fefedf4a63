//! What files tell, put together.

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
fn the_process_knows_at_least_of_the_refusals_that_its_labels_know() {
    let mut image = sample(42, 7);
    image.set_all("labels", 3, &[("limits_refused", 2), ("memory_refused", 1)]);
    image.set("labels", 7, "limits_refused", 3);
    let mut told = |of_process| {
        image.set("process", 0, "limits_refused", of_process);
        let snapshot = snapshot(&image);
        [process::LIMITS_REFUSED, process::MEMORY_REFUSED]
            .map(|field| snapshot.process_figure(field).unwrap())
    };
    assert_eq!([0, 5, 6].map(&mut told), [[5, 1], [5, 1], [6, 1]]);
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
    assert_eq!((step.parent, step.state), (Some(3), Some(EpochState::Closed)));
    assert_eq!((step.label.as_deref(), step.id), (Some("step"), 1 << 24 | 5));
    assert_eq!(epoch(&snapshot, 6).state, Some(EpochState::Released));
    assert_eq!(epoch(&snapshot, 3).closed_ms, None);
    assert_eq!(epoch(&snapshot, 0).label.as_deref(), Some("default"));
}

#[test]
fn the_shared_epoch_of_a_label_is_no_open_one() {
    let mut image = sample(42, 7);
    image.set_all("epochs", 7, &[("state", 3), ("closed_ms", 0)]);
    let snapshot = snapshot(&image);
    assert!(epoch(&snapshot, 7).is_shared() && !epoch(&snapshot, 7).has_survivors());
    let totals = snapshot.totals();
    assert_eq!((totals.epochs_open, totals.epochs_closed_with_survivors), (Some(1), Some(0)));
    assert_eq!(totals.epochs_shared, Some(1));
}

#[test]
fn objects_in_cells_are_in_no_class() {
    let mut image = sample(42, 7);
    image.set_all("heaps", 1, &[("cut_objects", 9), ("cut_bytes", 1000)]);
    image.set_all("heaps", 2, &[("freed_objects", 2), ("freed_bytes", 64)]);
    image.set_all("heaps", 1, &[("away_objects", 3), ("away_bytes", 100)]);
    let snapshot = snapshot(&image);
    // Beside those of epoch 3, of which a thread has not left.
    assert_eq!(figures(snapshot.in_cells()), (Some(304), Some(836 + 19_200), false));
    assert_eq!(figures(epoch(&snapshot, 0).live), (Some(137), Some(217_604), false));
    assert_eq!(figures(epoch(&snapshot, 3).live), (Some(319), Some(154_880), false));
    assert_eq!(snapshot.classes[1].live, Some(131 + 340));
}

#[test]
fn classes_are_summed_over_threads() {
    let snapshot = snapshot(&sample(42, 7));
    let class = &snapshot.classes[1];
    assert_eq!((class.bytes, class.capacity), (Some(128), Some(512)));
    // 340 outlived epoch 7.
    assert_eq!((class.live, class.hot), (Some(131 + 340), Some(15)));
    assert_eq!((class.slabs, class.opened, class.allocations), (Some(2), Some(4), Some(1000)));
    assert_eq!(snapshot.classes.len(), 4);
}

// Of every kind that lives somewhere: slabs, cells, large blocks, and what outlived its epoch.
#[test]
fn classes_cells_and_large_blocks_are_all_that_lives() {
    let mut image = sample(42, 7);
    image.set_all("heaps", 1, &[("cut_objects", 9), ("cut_bytes", 1000)]);
    image.set_class("bins", 3, "away", 2, 9);
    image.set_all("heaps", 3, &[("away_objects", 109), ("away_bytes", 7_680 + 4 * 256)]);
    let snapshot = snapshot(&image);
    // Of 20 out and 2 at hand, 9 were freed by others, of which 5 came back.
    assert_eq!(snapshot.classes[2].live, Some(20 - 2 - 9 + 5 + 17));
    assert_eq!(figures(snapshot.in_cells()), (Some(309), Some(1000 + 19_200), false));
    assert_eq!(snapshot.totals().live_objects, Some(131 + 340 + 31 + 309 + 3));
}

// Nobody has sealed what lives in its slabs.
#[test]
fn a_shared_epoch_has_classes_in_slabs() {
    let mut image = sample(42, 7);
    image.set_class("bins", 3, "away", 2, 9);
    image.set_class("epochs", 3, "survivors", 2, 4);
    let classes = |image: &Image| -> Vec<_> {
        let epochs = snapshot(image).epochs;
        let survivors = &epochs.iter().find(|epoch| epoch.row == 3).unwrap().survivors;
        survivors.iter().map(|one| (one.class_bytes, one.objects)).collect()
    };
    assert_eq!(classes(&image), [(Some(256), 4)]);
    image.set("epochs", 3, "state", 3);
    assert_eq!(classes(&image), [(Some(256), 20 - 2 - 9 + 5 + 4)]);
}

#[test]
fn what_all_epochs_hold_is_live_at_hand_or_free() {
    let mut image = sample(42, 7);
    image.set("epochs", 5, "held_bytes", 100_000);
    image.set("heaps", 1, "cell_bytes", 65_536);
    let snapshot = snapshot(&image);
    let held = |row| (epoch(&snapshot, row).held_bytes, epoch(&snapshot, row).own_bytes);
    let by_default = 2 * 65_536 + 65_536 + 200_000;
    assert_eq!(held(0), (Some(by_default), Some(by_default)));
    assert_eq!(held(3), (Some(262_144), Some(162_144)));
    assert_eq!(held(5), (Some(100_000), Some(100_000)));
    let totals = snapshot.totals();
    assert_eq!(totals.held_bytes, Some(by_default + 262_144 + 49_152));
    let parts = [totals.live_bytes, totals.hot_bytes, totals.spare_bytes];
    assert_eq!(sum(parts.into_iter()), totals.held_bytes);
    assert_eq!(totals.large_bytes, Some(331_072));
}

#[test]
fn what_the_file_does_not_have_is_not_known() {
    let without = |field: Field| {
        let mut image = sample(42, 7);
        image.forget(field.table, field.name);
        snapshot(&image)
    };
    for field in SURVIVOR_FIELDS.into_iter().filter(|field| field.table != epochs::TABLE) {
        let snapshot = without(field);
        assert_eq!(epoch(&snapshot, 7).live.objects, None, "{field}");
        assert_eq!(snapshot.totals().live_objects, None, "{field}");
        assert_eq!(snapshot.missing, [field.to_string()]);
    }
    let sent = without(bins::SENT);
    assert_eq!(epoch(&sent, 0).live.objects, None);
    assert_eq!(epoch(&sent, 7).live.objects, Some(357));
    let bytes = without(classes::BYTES);
    assert_eq!(figures(epoch(&bytes, 7).live), (Some(357), None, false));
    let state = without(epochs::STATE);
    assert_eq!((epoch(&state, 7).state, state.totals().epochs_open), (None, None));
    assert!(without(epochs::ID).epochs.is_empty());
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
    image.set_class("bins", 0, "sent", 1, u64::MAX - 5);
    image.set_class("bins", 1, "taken", 1, u64::MAX - 3);
    let snapshot = snapshot(&image);
    assert_eq!(figures(epoch(&snapshot, 3).live), (Some(319), Some(154_880), false));
    assert_eq!(snapshot.classes[1].live, Some(135 - 4 + 340));
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
    assert_eq!((snapshot.classes[1].live, snapshot.classes[1].unsettled), (Some(135 + 340), true));
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
