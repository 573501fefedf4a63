//! What grows in a default epoch, and what does not.

use super::*;
use crate::commands::outlived::Outlived;
use crate::decades;
use crate::fixture::{Image, Random, add_sampled};

const AFTER_MS: u64 = 60_000;

/// Allocates two sampled objects a second, all by one call stack, until it is so old; before
/// another age nothing was sampled.
pub struct Program {
    pub until_ms: u64,
    pub sampled_ms: u64,
    /// Of an object, in ms.
    pub lifetime: fn(&mut Random) -> u64,
}

impl Default for Program {
    fn default() -> Self {
        Self { until_ms: u64::MAX, sampled_ms: 0, lifetime: |_| u64::MAX }
    }
}

fn image(told_ms: u64, live: u64) -> Image {
    let mut image = Image::new(42, 7);
    image.told_ms = image.made_ms + told_ms;
    image.set_all("heaps", 1, &[("state", 1), ("home", 1), ("thread", 42)]);
    image.set_class("bins", 1, "out", 1, live);
    image
}

impl Program {
    fn at(&self, lived_ms: u64) -> Subject {
        Subject::of_bytes(self.image_at(lived_ms).bytes())
    }

    /// What it tells at that age.
    pub fn image_at(&self, lived_ms: u64) -> Image {
        let mut image = image(lived_ms, lived_ms);
        add_sampled(&mut image, &[0x1001]);
        image.set_all("sites", 1, &[("label", 0)]);
        image.set("samples", 1, "site", 0);
        if self.sampled_ms > 0 {
            image.set("process", 0, "sampling_since_ms", image.made_ms + self.sampled_ms);
            image.set("process", 0, "sample_bytes", 4096);
        }
        let (mut random, mut decades) = (Random(7), [0; decades::COUNT]);
        let made_ms = image.made_ms;
        let times = (self.sampled_ms..lived_ms.min(self.until_ms)).step_by(500);
        for (row, at_ms) in (1..).zip(times) {
            let kept_ms = (self.lifetime)(&mut random);
            if lived_ms - at_ms >= kept_ms {
                decades[decades::of_ms(kept_ms)] += 1;
                continue;
            }
            image.reach("samples", row);
            let values = [("site", 1), ("address", row as u64 * 4096), ("bytes", 128)];
            image.set_all("samples", row, &values);
            image.set_all("samples", row, &[("epoch", 0), ("sampled_ms", made_ms + at_ms)]);
        }
        for (decade, frees) in decades.into_iter().enumerate() {
            image.set_class("sites", 1, "frees_by_decade", decade, frees);
        }
        image
    }
}

fn told(before: Option<&Subject>, now: &Subject) -> DefaultEpoch {
    let stacks = Stacks::read(before, now, Outlived::least_ms(AFTER_MS));
    let until_ms = Outlived::read(now, AFTER_MS).until_ms;
    let mut told = DefaultEpoch::of(before, now, stacks.as_ref(), until_ms, &Ignored::default());
    told.stacks.iter_mut().for_each(Stack::hide_addresses);
    let growing = Growing::read(before, now, until_ms);
    assert_eq!(growing.len(), told.stacks.len(), "as without names: {growing:?}");
    told
}

fn after(program: &Program, lived_ms: u64) -> DefaultEpoch {
    told(Some(&program.at(lived_ms - 1_000)), &program.at(lived_ms))
}

#[test]
fn a_call_stack_whose_objects_are_of_all_ages_grows() {
    let found = after(&Program::default(), 120_000);
    let expected = "outside of epochs  14.6 MiB live  1 call stack keeps more and more\n   \
                    128 B  ~3835   0x1000  (grows)\n   \
                    grows: survivors of all ages up to 2 min, in a process of 2 min\n";
    assert_eq!(found.text(), expected);
    let young = after(&Program::default(), 60_000);
    assert!(young.stacks.is_empty());
    let none = "of 120 sampled objects none is older than 61 s; a lower --after judges younger \
                ones\n";
    let limit = young.limit_text(&Program::default().at(60_000));
    assert!(limit.ends_with(none), "{limit}");
}

#[test]
fn what_lives_from_the_start_does_not_grow() {
    for until_ms in [10_000, 60_000] {
        let program = Program { until_ms, ..Program::default() };
        let just_old = until_ms + 40_000;
        let over_a_minute = told(Some(&program.at(just_old - 40_000)), &program.at(just_old));
        assert!(over_a_minute.stacks.is_empty(), "{until_ms}");
        assert!(after(&program, 120_000).stacks.is_empty(), "{until_ms}");
        assert!(after(&program, 600_000).stacks.is_empty(), "{until_ms}");
    }
}

#[test]
fn a_cache_that_is_full_does_not_grow() {
    let in_turn = Program { lifetime: |_| 70_000, ..Program::default() };
    // Whichever object is in the way goes.
    let by_chance = Program {
        lifetime: |random| {
            let mut seconds = 1;
            while random.below(40) != 0 {
                seconds += 1;
            }
            seconds * 1000
        },
        ..Program::default()
    };
    for lived_ms in [150_000, 240_000, 600_000] {
        assert!(after(&in_turn, lived_ms).stacks.is_empty(), "{lived_ms}");
        assert!(after(&by_chance, lived_ms).stacks.is_empty(), "{lived_ms}");
    }
    for lived_ms in (90_000..200_000).step_by(5_000) {
        let one_look = told(None, &by_chance.at(lived_ms));
        assert!(one_look.stacks.is_empty(), "{lived_ms}: {}", one_look.text());
    }
}

#[test]
fn of_what_was_not_sampled_nobody_sees_it_go() {
    let program = Program { sampled_ms: 3_600_000, ..Program::default() };
    let (before, mut now) = (program.at(3_700_000), program.at(3_760_000));
    assert_eq!(told(Some(&before), &now).stacks.len(), 1, "as many more are counted");
    let epoch = now.snapshot.epochs.iter_mut().find(|epoch| epoch.row == DEFAULT_EPOCH).unwrap();
    epoch.live.objects = find(&before.snapshot).unwrap().live.objects;
    assert!(told(Some(&before), &now).stacks.is_empty());
}

#[test]
fn functions_that_are_ignored_are_passed_over() {
    let now = Program::default().at(120_000);
    let stacks = Stacks::read(None, &now, 0);
    let ignored = Ignored::of(&["function:0x1000"]);
    let found = DefaultEpoch::of(None, &now, stacks.as_ref(), u64::MAX, &ignored);
    assert!(found.stacks.is_empty());
}

#[test]
fn where_nothing_is_found_it_says_what_is_not_seen() {
    let mut now = Subject::of_bytes(image(120_000, 1 << 20).bytes());
    let limit = |now: &Subject| told(None, now).limit_text(now);
    let ended = "outside of epochs 128.0 MiB live, and only samples tell whether they became more: \
                 start it with TSLAB_SAMPLE_BYTES=512K\n";
    assert_eq!(limit(&now), ended);
    now.life = Life::Alive;
    assert!(limit(&now).contains("`tslab profile 42 --keep` takes them from now on, TSLAB_SAMPLE"));
    let sampled = Program { until_ms: 10_000, ..Program::default() }.at(120_000);
    let expected = "outside of epochs 14.6 MiB live: of 20 sampled objects no call stack is seen \
                    to keep more and more\n";
    assert_eq!(limit(&sampled), expected);
    assert_eq!(limit(&Subject::of_bytes(image(120_000, 0).bytes())), "");
}
