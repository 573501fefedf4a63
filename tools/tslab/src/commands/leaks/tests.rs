//! Epochs that leak, by label: what is told of them, and what is passed over.

use super::*;
use crate::fixture::{Closing, Image, TOLD_MS, add_epoch, add_samples, sample, server};

const MINUTE: Limits = Limits { after_ms: 60_000, open_after_ms: None };

fn report(image: &Image, limits: Limits) -> Report {
    Report::of(&Subject::of_bytes(image.bytes()), limits).unwrap()
}

fn rows(image: &Image, limits: Limits) -> Vec<u64> {
    report(image, limits).leaks.iter().map(|leak| leak.epoch).collect()
}

#[test]
fn an_epoch_and_its_survivors_are_named() {
    let text = report(&sample(42, 7), MINUTE).text();
    let expected = "epoch 7  \"GET /upload\"  closed 61 s ago  357 objects  46.8 KiB  \
                    pins 12 pages\n   128 B   340\n   256 B    17\n   \
                    stands: none came for 61 s\n";
    assert_eq!(text, expected);
}

#[test]
fn sampled_survivors_tell_who_allocated_them() {
    let mut image = sample(42, 7);
    add_samples(&mut image);
    let subject = Subject::of_bytes(image.bytes());
    let none = Ignored::default();
    let wish = Wish { limits: MINUTE, addresses: true, ignored: &none };
    let with_addresses = Report::between(None, &subject, &wish).unwrap();
    assert!(with_addresses.text().contains("at 0x7000\n"));
    let report = report(&image, MINUTE);
    let text = report.text();
    let expected = "   128 B   340    75 %  0x1000  <-  0x2000\n\
                    \x20                 25 %  0x1000  <-  0x3000\n";
    assert!(text.contains(expected), "{text}");
    assert!(text.ends_with("stacks are of 5 sampled objects, a byte in 4.0 KiB on average\n"));
    assert_eq!(report.hint(&subject), None);
}

#[test]
fn without_samples_there_is_a_hint() {
    let image = sample(42, 7);
    let mut subject = Subject::of_bytes(image.bytes());
    let report = report(&image, MINUTE);
    let hint = report.hint(&subject).unwrap();
    assert!(hint.contains("TSLAB_SAMPLE_BYTES=512K") && !hint.contains("--keep"), "{hint}");
    subject.life = Life::Alive;
    assert!(report.hint(&subject).unwrap().contains("`tslab profile 42 --keep`"));
}

#[test]
fn only_epochs_that_were_closed_for_longer_count() {
    let limits = |after_ms| Limits { after_ms, open_after_ms: None };
    assert_eq!(rows(&sample(42, 7), limits(60_999)), [7]);
    assert!(rows(&sample(42, 7), limits(61_000)).is_empty());
    let text = report(&sample(42, 7), limits(61_000)).text();
    let none = "no epoch that was closed more than 61 s ago has survivors\n\
                closed later: 1 epoch with 357 objects of 46.8 KiB, perhaps of work in flight; \
                --after 0 shows them\n\
                outside of epochs 211.7 KiB live, and only samples tell whether they became more: \
                start it with TSLAB_SAMPLE_BYTES=512K\n";
    assert_eq!(text, none);
}

#[test]
fn epochs_of_a_label_are_one_leak() {
    let mut image = sample(42, 7);
    let earlier = [("state", 1), ("opened_ms", 1), ("closed_ms", TOLD_MS - 181_000)];
    add_epoch(&mut image, 2, "GET /upload", &earlier);
    image.set_all("epochs", 2, &[("held_bytes", 8192), ("large_objects", 2)]);
    let report = report(&image, MINUTE);
    let text = report.text();
    let expected = "2 epochs  \"GET /upload\"  closed 61 s to 3 min ago  359 objects  ";
    assert!(text.starts_with(expected), "{text}");
    let leak = &report.leaks[0];
    assert_eq!((report.leaks.len(), leak.epochs, leak.epoch), (1, 2, 2));
    assert_eq!((leak.for_ms, leak.last_for_ms), (Some(181_000), Some(61_000)));
    assert_eq!((leak.pinned_pages, leak.large_objects), (Some(14), Some(2)));
    assert_eq!(leak.classes.iter().map(|class| class.objects).collect::<Vec<_>>(), [340, 17]);
}

#[test]
fn open_epochs_count_when_they_are_asked_for_the_larger_first() {
    let limits = Limits { after_ms: 60_000, open_after_ms: Some(9_999) };
    assert_eq!(rows(&sample(42, 7), limits), [3, 7]);
    let text = report(&sample(42, 7), limits).text();
    let open = "epoch 3  \"batch\"  open for 10 s  319 objects  151.3 KiB  pins 64 pages\n";
    assert!(text.starts_with(&format!("{open}   large     1\n")), "{text}");
    let later = Limits { open_after_ms: Some(10_000), ..limits };
    assert_eq!(rows(&sample(42, 7), later), [7]);
}

fn shared() -> Image {
    let mut image = sample(42, 7);
    image.set_all("epochs", 7, &[("state", 3), ("closed_ms", 0), ("opened_ms", 1)]);
    image
}

#[test]
fn objects_of_a_shared_epoch_may_be_of_requests_in_flight() {
    let report = report(&shared(), MINUTE);
    let expected = "epoch 7  \"GET /upload\"  shared  357 objects  46.8 KiB  pins 12 pages\n   \
                    of all epochs of the label: which of them outlived theirs, and which are \
                    of requests in flight, only samples tell\n   128 B   340\n";
    assert!(report.text().starts_with(expected), "{}", report.text());
    let leak = &report.leaks[0];
    assert_eq!((leak.outlived_objects, leak.for_ms, leak.is_known()), (None, None, false));
    let mut empty = shared();
    empty.set_class("epochs", 7, "survivors", 1, 0);
    empty.set_class("epochs", 7, "survivors", 2, 0);
    assert!(rows(&empty, MINUTE).is_empty());
}

#[test]
fn samples_tell_which_objects_of_a_shared_epoch_outlived_theirs() {
    let mut image = shared();
    add_samples(&mut image);
    let found = report(&image, MINUTE);
    let text = found.text();
    let line = "   of its objects ~147 are older than 61 s: they outlived theirs\n";
    assert!(text.contains(line) && text.contains("0x1000  <-  0x2000"), "{text}");
    let leak = &found.leaks[0];
    assert_eq!((leak.outlived_objects, leak.last_for_ms), (Some(147), Some(61_500)));
    assert!(leak.is_known());
    let later = Limits { after_ms: 60_500, ..MINUTE };
    let stacks = &report(&image, later).leaks[0].stacks;
    assert_eq!(stacks.iter().map(Stack::samples).sum::<u64>(), 1);
    let never = Limits { after_ms: u64::MAX, ..MINUTE };
    assert_eq!(report(&image, never).leaks[0].outlived_objects, None);
}

// All five of its sampled objects were allocated so many ms ago.
fn sampled_for(age_ms: u64) -> Report {
    let mut image = shared();
    add_samples(&mut image);
    for row in 1..=5 {
        image.set("samples", row, "sampled_ms", TOLD_MS - age_ms);
    }
    report(&image, MINUTE)
}

#[test]
fn younger_samples_name_who_allocated_what_may_be_lost() {
    let found = sampled_for(29_000);
    let text = found.text();
    let line = "   sampled so far: 5 objects, up to 29 s old, which may yet be freed; a lower \
                --after counts them\n   128 B   340    75 %  0x1000  <-  0x2000\n";
    assert!(text.contains(line), "{text}");
    assert!(text.ends_with("call stacks are of 5 sampled objects, a byte in 4.0 KiB on average\n"));
    let leak = &found.leaks[0];
    assert!(!leak.is_known() && leak.stacks.is_empty() && leak.younger_stacks.len() == 3);
    assert!(leak.younger_stacks.iter().all(|stack| stack.samples() > 0));
}

#[test]
fn requests_in_flight_are_no_one_who_lost_something() {
    let found = sampled_for(900);
    assert!(found.leaks[0].younger_stacks.is_empty(), "{}", found.text());
    let hint = found.hint(&Subject::of_bytes(shared().bytes())).unwrap();
    assert!(hint.starts_with("of them none but requests' in flight were sampled,"), "{hint}");
}

#[test]
fn samples_of_a_part_are_told_as_such() {
    let hint = |image: &Image| {
        let mut subject = Subject::of_bytes(image.bytes());
        subject.life = Life::Alive;
        Report::of(&subject, MINUTE).unwrap().hint(&subject)
    };
    let mut image = sample(42, 7);
    add_samples(&mut image);
    assert_eq!(hint(&image), None);
    image.set("process", 0, "watch_bytes", 4096);
    assert_eq!(hint(&image), None, "those that leak are watched");
    image.set("process", 0, "sampling_since_ms", TOLD_MS - 5_000);
    image.set("process", 0, "watch_bytes", 0);
    let ended = "process 42 has sampled nothing for 5.0 s, and perhaps a part before";
    assert_eq!(hint(&image).as_deref(), Some(ended));
    for row in 1..=6 {
        image.set("samples", row, "site", 0);
    }
    let none = hint(&image).unwrap();
    assert!(none.starts_with("none of them was sampled") && none.ends_with(ended), "{none}");
}

#[test]
fn a_shared_epoch_is_a_row_beside_the_closed_ones_of_its_label() {
    let mut image = shared();
    let closed = [("state", 1), ("opened_ms", 1), ("closed_ms", TOLD_MS - 181_000)];
    add_epoch(&mut image, 2, "GET /upload", &closed);
    image.set_all("epochs", 2, &[("held_bytes", 8192), ("large_objects", 2)]);
    let limits = Limits { open_after_ms: Some(0), ..MINUTE };
    assert_eq!(rows(&image, limits), [3, 7, 2]);
}

#[test]
fn pages_of_children_are_not_counted_twice() {
    let mut image = sample(42, 7);
    let child = [("parent", 7), ("held_bytes", 40_960), ("opened_ms", TOLD_MS)];
    add_epoch(&mut image, 2, "child", &child);
    assert_eq!(report(&image, MINUTE).leaks[0].pinned_pages, Some(2));
    image.set("epochs", 2, "held_bytes", u64::MAX);
    assert_eq!(report(&image, MINUTE).leaks[0].pinned_pages, Some(0));
    image.page_bytes = 0;
    assert_eq!(report(&image, MINUTE).leaks[0].pinned_pages, None);
}

#[test]
fn a_file_that_would_not_tell_of_leaks_is_no_proof_of_their_absence() {
    let mut image = sample(42, 7);
    image.forget("bins", "taken");
    let error = Report::of(&Subject::of_bytes(image.bytes()), MINUTE).unwrap_err();
    assert!(error.to_string().contains("lacks bins.taken"), "{error}");
}

#[test]
fn a_process_that_died_young_is_not_silent() {
    let leak = Closing::leak((2, "GET /page"), 1_488);
    let young = Subject::of_bytes(server(5_000, &[leak]).bytes());
    assert_eq!((after_ms(None, &young), after_ms(Some(60), &young)), (500, 60_000));
    let limits = Limits { after_ms: after_ms(None, &young), open_after_ms: None };
    let text = Report::of(&young, limits).unwrap().text();
    assert!(text.starts_with("6696 epochs  \"GET /page\"  closed 0.5 s to 5.0 s ago"), "{text}");
    let grows = "   grows: survivors of all ages up to 5.0 s, in a process of 5.0 s\n";
    assert!(text.contains(grows), "{text}");
    let later = "closed later: 744 epochs with 744 objects of 93.0 KiB, perhaps of work in flight";
    assert!(text.contains(later), "{text}");
    let mut alive = young;
    alive.life = Life::Alive;
    assert_eq!(after_ms(None, &alive), 60_000);
    let old = Subject::of_bytes(sample(42, 7).bytes());
    assert_eq!(after_ms(None, &old), 60_000);
}

// A leak and sessions of 100 s, in a process of 5 minutes.
fn both(ignored: &Ignored) -> Report {
    let leak = Closing::leak((2, "leak"), 40);
    let sessions = Closing { kept_ms: 100_000, ..Closing::leak((3, "session"), 120) };
    let at = |lived_ms| Subject::of_bytes(server(lived_ms, &[leak, sessions]).bytes());
    let wish = Wish { limits: MINUTE, addresses: false, ignored };
    Report::between(Some(&at(299_000)), &at(300_000), &wish).unwrap()
}

#[test]
fn what_turns_over_comes_last_and_is_not_found() {
    let report = both(&Ignored::default());
    let told: Vec<_> =
        report.leaks.iter().map(|leak| (leak.label.as_deref(), leak.turns_over())).collect();
    assert_eq!(told, [(Some("leak"), false), (Some("session"), true)]);
    assert!(report.is_found());
    let sessions = both(&Ignored::of(&["label:leak"]));
    assert!(!sessions.is_found() && sessions.leaks.len() == 1);
}

#[test]
fn what_is_ignored_is_counted_alone() {
    let report = both(&Ignored::of(&["label:sess*", "label:le*k"]));
    assert!(report.text().ends_with("ignored: 2 labels\n"), "{}", report.text());
    assert!(report.leaks.is_empty());
    let mut image = sample(42, 7);
    add_samples(&mut image);
    let subject = Subject::of_bytes(image.bytes());
    let count = |patterns: &[&str]| {
        let ignored = Ignored::of(patterns);
        let wish = Wish { limits: MINUTE, addresses: false, ignored: &ignored };
        Report::between(None, &subject, &wish).unwrap().leaks.len()
    };
    // Of the three stacks the first two are of one function.
    assert_eq!(count(&["function:0x1000"]), 1);
    assert_eq!(count(&["function:0x1000", "function:0x4*"]), 0);
}
