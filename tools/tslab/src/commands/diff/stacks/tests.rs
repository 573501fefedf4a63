use super::super::{Difference as Shown, Report, Topic};
use super::*;
use crate::fixture::{Image, add_samples, sample};
use crate::text;

fn side(image: &Image) -> Side {
    Side::of_bytes(image.bytes())
}

fn sampled_image() -> Image {
    let mut image = sample(42, 7);
    add_samples(&mut image);
    image
}

// Of one stack so many samples of blocks live that each stand for as many others.
fn sampled(samples: usize, times: u64) -> Side {
    let mut image = sampled_image();
    for row in 6..6 + samples {
        image.reach("samples", row);
        let fields = [("site", 4), ("bytes", 100_000), ("times", times)];
        image.set_all("samples", row, &fields);
    }
    side(&image)
}

fn grown_sites(before: &Side, after: &Side) -> Vec<Shown> {
    let mut report = Report::of(before, after, 5.0);
    report.differences.retain(|difference| matches!(difference.topic, Topic::Site(_)));
    report.differences
}

#[test]
fn call_stacks_that_grew_beyond_chance_are_named() {
    let sites = grown_sites(&sampled(1, 1), &sampled(10, 2));
    assert_eq!(sites.len(), 1, "{sites:?}");
    assert!(sites[0].regression && sites[0].before == Some(100_000));
    assert_eq!(sites[0].after, 2_000_000);
    let notes = |after| Report::of(&sampled(1, 1), &after, 5.0).notes(false);
    assert!(notes(sampled(2, 1)).is_empty());
    let other = || Side { key: Some((43, 7)), ..sampled(2, 1) };
    assert!(grown_sites(&sampled(1, 1), &other()).is_empty());
    assert!(notes(other())[0].contains("have no names"));
}

// What the process says of its sampling, and whether functions have names.
fn told(told: &[(&str, u64)], are_named: bool) -> Side {
    let mut image = sampled_image();
    image.set_all("process", 0, told);
    let mut side = side(&image);
    side.sites.as_mut().unwrap().are_named |= are_named;
    side
}

#[test]
fn samples_of_a_part_are_compared_with_those_of_the_same_part() {
    let watched = |since_ms| told(&[("watch_bytes", 4096), ("sampling_since_ms", since_ms)], true);
    let all = |since_ms| told(&[("sample_bytes", 4096), ("sampling_since_ms", since_ms)], true);
    let other = |side| Side { key: Some((43, 7)), ..side };
    let stacks = |before: &Side, after: &Side| Stacks::of(before, after);
    assert_eq!(stacks(&all(0), &all(0)), Stacks::Compared);
    assert_eq!(stacks(&watched(5), &watched(5)), Stacks::Partial);
    assert_eq!(stacks(&all(5), &all(5)), Stacks::Partial);
    assert_eq!(stacks(&watched(5), &other(watched(7))), Stacks::Partial);
    for key in [Some((42, 8)), None] {
        let started_later = Side { key, ..watched(7) };
        assert_eq!(stacks(&watched(5), &started_later), Stacks::Partial);
    }
    let of_nobody = || Side { key: None, ..watched(5) };
    assert_eq!(stacks(&of_nobody(), &of_nobody()), Stacks::Partial);
    let different = [(watched(5), all(7)), (watched(5), watched(7)), (all(0), other(all(5)))];
    for (before, after) in &different {
        assert_eq!(stacks(before, after), Stacks::SampledOtherwise);
        assert!(grown_sites(before, after).is_empty());
    }
    let report = Report::of(&watched(5), &watched(5), 5.0);
    assert!(report.notes(false)[0].starts_with("only a part of what lives was sampled"));
    assert!(text::json(&report).unwrap().contains(r#""call_stacks": "partial""#));
    let report = Report::of(&watched(5), &all(7), 5.0);
    let note = &report.notes(true)[1];
    assert!(note.contains("not the same was sampled") && note.contains("--seconds 0"));
    assert!(text::json(&report).unwrap().contains(r#""call_stacks": "sampled_otherwise""#));
}

#[test]
fn few_samples_that_stand_for_many_may_be_chance() {
    let sites = grown_sites(&sampled(1, 1), &sampled(1, 40));
    assert!(!sites[0].regression && sites[0].after == 4_000_000, "{sites:?}");
    assert!(grown_sites(&sampled(1, 1), &sampled(2, 1))[0].regression, "each is sampled");
}

const WATCHED: [(&str, u64); 2] = [("watch_bytes", 4096), ("sampling_since_ms", 5)];
const ALL: [(&str, u64); 2] = [("sample_bytes", 4096), ("sampling_since_ms", 5)];

// Of a part. In "GET /upload" so many more samples of 128 B live, each for 33 objects, and so many
// more objects.
fn more(reach: [(&str, u64); 2], samples: usize, objects: u64) -> Image {
    let mut image = sampled_image();
    image.set_all("process", 0, &reach);
    image.set_class("epochs", 7, "survivors", 1, 340 + objects);
    for row in 10..10 + samples {
        image.reach("samples", row);
        image.set_all("samples", row, &[("site", 1), ("bytes", 128)]);
    }
    image
}

#[test]
fn where_a_part_was_sampled_the_live_bytes_of_the_label_confirm_growth() {
    for reach in [WATCHED, ALL] {
        let before = side(&more(reach, 0, 0));
        let grown = |objects| {
            let sites = grown_sites(&before, &side(&more(reach, 100, objects)));
            assert_eq!(sites.len(), 1, "{sites:?}");
            sites[0].regression
        };
        // 100 samples stand for some 3,250 objects, less 3 deviations of 330 at least for 2,260.
        assert!(!grown(0), "they replaced others");
        assert!(!grown(1_000), "most of them did");
        assert!(grown(3_250));
    }
    // Where all was sampled ever since nothing else is asked.
    let all = [("sample_bytes", 4096), ("sampling_since_ms", 0)];
    let sites = grown_sites(&side(&more(all, 0, 0)), &side(&more(all, 100, 0)));
    assert!(sites[0].regression);
}

#[test]
fn growth_in_a_label_that_did_not_grow_is_not_confirmed_by_another() {
    // The same stack in "batch", which grows by as much as samples in "GET /upload" tell.
    let image = |samples, objects: u64| {
        let mut image = more(WATCHED, samples, 0);
        image.reach("sites", 5);
        image.set_all("sites", 5, &[("label", 3), ("class", 1), ("depth", 2)]);
        image.set_all("sites", 5, &[("allocations", 1), ("bytes", 128)]);
        image.set_class("sites", 5, "frames", 0, 0x1001);
        image.set_class("sites", 5, "frames", 1, 0x2001);
        image.set_class("epochs", 3, "survivors", 1, objects);
        image
    };
    let (before, after) = (side(&image(0, 0)), side(&image(100, 3_250)));
    let live = |side: &Side| {
        let labels = side.labels.clone().unwrap();
        labels.into_values().map(|sum| sum.live_bytes.unwrap()).sum::<u64>()
    };
    assert_eq!(live(&after) - live(&before), 3_250 * 128);
    let sites = grown_sites(&before, &after);
    assert_eq!(sites.len(), 1, "{sites:?}");
    assert!(!sites[0].regression);
}

#[test]
fn without_live_bytes_by_label_no_stack_of_a_part_counts_as_grown() {
    let (mut before, after) = (side(&more(WATCHED, 0, 0)), side(&more(WATCHED, 100, 3_250)));
    before.labels = None;
    let report = Report::of(&before, &after, 5.0);
    assert_eq!((report.call_stacks, report.regressions > 0), (Stacks::Unconfirmed, true));
    assert!(report.notes(false)[0].contains("JSON of `profile` has no live bytes"));
    let sites = grown_sites(&before, &after);
    assert!(sites.len() == 1 && !sites[0].regression, "{sites:?}");
}

// One more site of that stack, so many blocks of which live, of that row of labels and of classes.
fn began(reach: [(&str, u64); 2], of: (u64, u64)) -> Image {
    let mut image = more(reach, 0, 20_000);
    image.reach("sites", 5);
    image.set_all("sites", 5, &[("label", of.0), ("class", of.1), ("depth", 1)]);
    image.set_all("sites", 5, &[("allocations", 50), ("bytes", 50 * 128)]);
    image.set_class("sites", 5, "frames", 0, 0x9001);
    for row in 10..60 {
        image.reach("samples", row);
        image.set_all("samples", row, &[("site", 5), ("bytes", 128)]);
    }
    image
}

#[test]
fn what_began_to_be_watched_between_the_looks_did_not_grow() {
    let before = side(&more(WATCHED, 0, 0));
    for of in [(7, 3), (5, 1)] {
        let after = side(&began(WATCHED, of));
        let sites = grown_sites(&before, &after);
        let [site] = sites.as_slice() else { panic!("{sites:?}") };
        assert_eq!((site.before, site.regression), (None, false), "{of:?}");
        let report = Report::of(&before, &after, 5.0);
        assert!(report.notes(false)[1].contains("nothing was sampled at the first look"));
        let text = report.text();
        let line = text.lines().find(|line| line.contains("0x9000")).unwrap();
        let words: Vec<_> =
            line.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
        assert_eq!(words, ["0x9000", "live", "?", "203.1 KiB"], "{text}");
        assert!(text::json(&report).unwrap().contains(r#""before": null"#));
    }
    // A label and class of which blocks were sampled already, and all of them.
    for (reach, of) in [(WATCHED, (7, 1)), (ALL, (7, 3))] {
        let before = side(&more(reach, 0, 0));
        let sites = grown_sites(&before, &side(&began(reach, of)));
        let [site] = sites.as_slice() else { panic!("{sites:?}") };
        assert_eq!((site.before, site.regression), (Some(0), true), "{of:?}");
        let notes = Report::of(&before, &side(&began(reach, of)), 5.0).notes(false);
        assert_eq!(notes.len(), 1, "{notes:?}");
    }
}

#[test]
fn a_stack_is_told_in_two_parts_if_a_part_of_it_began_to_be_watched() {
    let mut after = began(WATCHED, (7, 3));
    after.set_class("sites", 5, "frames", 0, 0x1001);
    after.set_class("sites", 5, "frames", 1, 0x2001);
    after.set("sites", 5, "depth", 2);
    for row in 60..160 {
        after.reach("samples", row);
        after.set_all("samples", row, &[("site", 1), ("bytes", 128)]);
    }
    let sites = grown_sites(&side(&more(WATCHED, 0, 0)), &side(&after));
    let [grown, began] = sites.as_slice() else { panic!("{sites:?}") };
    assert_eq!(grown.topic, began.topic);
    assert!(grown.regression && grown.before == Some(12_481));
    assert!(!began.regression && began.before.is_none());
}
