//! What is drawn, and what keys do.

use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};
use ratatui::layout::Rect;

use super::model::{Mode, Model, Next, Pane, Sort};
use super::sample::{Key, Sample};
use super::{size_of, view};
use crate::commands::Subject;
use crate::fixture::{Image, Random, add_epoch, sample};

fn process(pid: u32, name: &str, quarters: u64) -> Sample {
    let sample = Sample::of_subject(&Subject::of_bytes(sample(pid, 7).bytes()));
    Sample { name: name.to_owned(), rss_bytes: Some(quarters << 18), ..sample }
}

fn model(samples: Vec<Sample>) -> Model {
    let mut model = Model::new(Duration::from_secs(1));
    model.update(samples, 0.0);
    model
}

fn three() -> Vec<Sample> {
    vec![process(11, "cache", 3), process(22, "server", 9), process(33, "worker", 6)]
}

fn press(model: &mut Model, codes: &[KeyCode]) -> Next {
    let press = |code: &KeyCode| model.key(*code, KeyModifiers::NONE);
    codes.iter().map(press).last().unwrap_or(Next::Stay)
}

fn char(model: &mut Model, char: char) -> Next {
    press(model, &[KeyCode::Char(char)])
}

fn pids(model: &Model) -> Vec<u32> {
    model.shown().iter().map(|process| process.sample.key.pid).collect()
}

fn selected(model: &Model) -> Option<u32> {
    model.selected().map(|process| process.sample.key.pid)
}

fn screen(model: &Model, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view::draw(model, frame.area(), frame.buffer_mut())).unwrap();
    view::plain(terminal.backend().buffer())
}

// Three processes over ten looks, the second of which grows and then ends.
fn story() -> Model {
    let mut model = model(three());
    for look in 1..=10 {
        let mut samples = three();
        samples[1].rss_bytes = Some((9 + look) << 18);
        let mut image = sample(33, 7);
        image.set_class("bins", 1, "allocations", 1, 1_000 + 5_000 * look);
        samples[2] = Sample { name: "worker".to_owned(), ..sample_of(&image) };
        if look == 10 {
            samples.remove(0);
        }
        model.update(samples, 1.0);
    }
    model
}

fn sample_of(image: &Image) -> Sample {
    Sample::of_subject(&Subject::of_bytes(image.bytes()))
}

#[test]
fn a_small_terminal_shows_what_matters() {
    assert_eq!(screen(&story(), 80, 24), include_str!("screens/80x24.txt"));
}

#[test]
fn a_large_terminal_shows_more() {
    assert_eq!(screen(&story(), 120, 40), include_str!("screens/120x40.txt"));
}

#[test]
fn help_fits_the_small_terminal() {
    let mut model = story();
    char(&mut model, '?');
    assert_eq!(screen(&model, 80, 24), include_str!("screens/help.txt"));
    char(&mut model, 'q');
    assert!(screen(&model, 80, 24).starts_with("tslab top  3 processes"));
}

#[test]
fn lines_end_within_the_terminal() {
    let mut model = story();
    char(&mut model, '/');
    for (width, height) in [(80, 24), (120, 40), (60, 12)] {
        let screen = screen(&model, width, height);
        assert_eq!(screen.lines().count(), usize::from(height));
        assert!(screen.lines().all(|line| line.chars().count() <= usize::from(width)));
    }
}

#[test]
fn of_many_processes_half_a_screen_is_shown_and_how_many_more_there_are() {
    let many = (1..=100).map(|pid| process(pid, "worker", 200 - u64::from(pid))).collect();
    let mut model = model(many);
    let shown = |model: &Model| -> (Vec<String>, String) {
        let screen = screen(model, 100, 30);
        let lines: Vec<_> = screen.lines().map(str::to_owned).collect();
        let is_process = |line: &&String| line.ends_with("worker");
        let of = |line: &String| line.split_whitespace().next().unwrap().to_owned();
        (lines[2..16].iter().filter(is_process).map(of).collect(), lines[15].trim().to_owned())
    };
    let (pids, last) = shown(&model);
    assert_eq!((pids.len(), pids[0].as_str(), last.as_str()), (13, "1", "and 87 more"));
    press(&mut model, &[KeyCode::PageDown, KeyCode::PageDown]);
    let (pids, last) = shown(&model);
    assert_eq!((pids[12].as_str(), last.as_str()), ("21", "and 79 more"));
    press(&mut model, &[KeyCode::End]);
    assert_eq!((shown(&model).0.len(), shown(&model).0[13].as_str()), (14, "100"));
}

#[test]
fn every_size_of_a_terminal_will_do() {
    let mut model = story();
    for width in (0..200).step_by(7) {
        for height in 0..50 {
            let area = Rect::new(0, 0, width, height);
            view::draw(&model, area, &mut Buffer::empty(area));
            // The area that the terminal had before it shrank.
            view::draw(&model, area, &mut Buffer::empty(Rect::new(0, 0, width / 2, height / 2)));
        }
    }
    assert_eq!(screen(&model, 59, 12).lines().next(), Some("too small: 60 x 12 at least"));
    char(&mut model, '?');
    assert!(screen(&model, 60, 12).starts_with("tslab top: processes on"));
}

#[test]
fn arrows_choose_a_process_and_scroll_panes() {
    let mut model = model(three());
    assert_eq!((pids(&model), selected(&model)), (vec![22, 33, 11], Some(22)));
    press(&mut model, &[KeyCode::Down, KeyCode::Char('j')]);
    assert_eq!(selected(&model), Some(11));
    press(&mut model, &[KeyCode::Down, KeyCode::PageDown]);
    assert_eq!(selected(&model), Some(11));
    press(&mut model, &[KeyCode::Home]);
    assert_eq!(selected(&model), Some(22));
    press(&mut model, &[KeyCode::Tab, KeyCode::Down]);
    assert_eq!((model.pane, model.epochs_from, selected(&model)), (Pane::Epochs, 1, Some(22)));
    press(&mut model, &[KeyCode::End, KeyCode::Down]);
    assert_eq!(model.epochs_from, 2);
    press(&mut model, &[KeyCode::Tab, KeyCode::End, KeyCode::Up]);
    assert_eq!((model.pane, model.classes_from), (Pane::Classes, 0));
    press(&mut model, &[KeyCode::Tab, KeyCode::Char('k'), KeyCode::End]);
    assert_eq!((model.pane, selected(&model)), (Pane::Processes, Some(11)));
    assert_eq!((model.epochs_from, model.classes_from), (0, 0));
    press(&mut model, &[KeyCode::BackTab]);
    assert_eq!(model.pane, Pane::Classes);
}

#[test]
fn processes_are_sorted_as_the_user_wants() {
    let mut model = model(three());
    let mut orders = Vec::new();
    for _ in 0..6 {
        orders.push((model.sort, pids(&model)));
        char(&mut model, 's');
    }
    assert_eq!(model.sort, Sort::Rss);
    let rss = vec![22, 33, 11];
    let pid = vec![11, 22, 33];
    let expected = [
        (Sort::Rss, rss.clone()),
        (Sort::Live, pid.clone()),
        (Sort::Ratio, rss.clone()),
        (Sort::Rate, pid.clone()),
        (Sort::Pid, pid.clone()),
        (Sort::Name, pid),
    ];
    assert_eq!(orders, expected);
    char(&mut model, 'r');
    assert_eq!((pids(&model), selected(&model)), (vec![11, 33, 22], Some(22)));
}

#[test]
fn the_filter_looks_at_names_and_numbers() {
    let mut model = model(three());
    press(&mut model, &[KeyCode::Char('/'), KeyCode::Char('R'), KeyCode::Char('q')]);
    assert!(pids(&model).is_empty() && model.mode == Mode::Typing);
    assert!(screen(&model, 80, 24).contains("no process has this in its name or number"));
    press(&mut model, &[KeyCode::Backspace, KeyCode::Enter]);
    assert_eq!((pids(&model), selected(&model)), (vec![22, 33], Some(22)));
    assert!(screen(&model, 80, 24).contains("2 of 3 processes"));
    press(&mut model, &[KeyCode::Esc]);
    assert_eq!(pids(&model).len(), 3);
    press(&mut model, &[KeyCode::Char('/'), KeyCode::Char('3'), KeyCode::Char('3')]);
    assert_eq!((pids(&model), selected(&model)), (vec![33], Some(33)));
    press(&mut model, &[KeyCode::Esc]);
    assert!(model.mode == Mode::Looking && model.filter.is_empty());
    char(&mut model, '/');
    for _ in 0..1000 {
        char(&mut model, 'x');
    }
    assert_eq!(model.filter.len(), 64);
}

#[test]
fn what_is_frozen_does_not_change() {
    let mut model = model(three());
    char(&mut model, ' ');
    model.update(vec![process(44, "new", 50)], 1.0);
    assert_eq!(pids(&model), [22, 33, 11]);
    assert!(screen(&model, 80, 24).contains("FROZEN"));
    char(&mut model, ' ');
    model.update(vec![process(44, "new", 50)], 1.0);
    assert_eq!(pids(&model), [44, 22, 33, 11]);
}

#[test]
fn processes_that_ended_stay_until_they_are_dismissed() {
    let mut model = model(three());
    press(&mut model, &[KeyCode::Down]);
    model.update(vec![process(11, "cache", 3)], 1.0);
    assert_eq!((pids(&model), selected(&model)), (vec![22, 33, 11], Some(33)));
    assert!(screen(&model, 80, 24).contains("worker  (ended)"));
    // One of its number is another process.
    let mut other = process(33, "again", 1);
    other.key = Key { start_ticks: 8, ..other.key };
    model.update(vec![process(11, "cache", 3), other], 1.0);
    assert_eq!(pids(&model), [22, 33, 11, 33]);
    char(&mut model, 'd');
    assert_eq!((pids(&model), selected(&model)), (vec![11, 33], Some(33)));
    model.update(Vec::new(), 1.0);
    char(&mut model, 'd');
    assert_eq!((pids(&model), selected(&model)), (vec![], None));
    assert!(screen(&model, 80, 24).contains("no process runs on tslab"));
}

#[test]
fn allocations_are_counted_between_looks() {
    let mut model = model(vec![process(11, "cache", 3)]);
    assert_eq!(model.shown()[0].allocations_a_s, None);
    let mut image = sample(11, 7);
    image.set_class("bins", 1, "allocations", 1, 4_000);
    model.update(vec![sample_of(&image)], 2.0);
    assert_eq!(model.shown()[0].allocations_a_s, Some(1_500.0));
    model.update(vec![sample_of(&image)], 0.0);
    assert_eq!(model.shown()[0].allocations_a_s, None);
}

#[test]
fn a_process_that_cannot_be_read_says_why() {
    let mut unreadable = process(11, "a\x1b[2Jb", 3);
    unreadable.told = Err("its format is number 2".to_owned());
    let screen = screen(&model(vec![unreadable]), 80, 24);
    assert!(screen.contains("its format is number 2") && screen.contains("a\\u{1b}[2Jb"));
}

#[test]
fn a_look_that_fails_is_told_of_until_the_next() {
    let mut model = model(three());
    model.fail("cannot list /dev/shm");
    assert!(screen(&model, 80, 24).contains("cannot list /dev/shm"));
    model.update(three(), 1.0);
    assert!(!screen(&model, 80, 24).contains("cannot list"));
}

#[test]
fn long_lists_say_how_much_is_left() {
    let mut image = sample(11, 7);
    for row in 8..16 {
        image.set_all("epochs", row, &[("id", 1 << 24 | row as u64), ("label", 3)]);
    }
    add_epoch(&mut image, 2, "w\u{ff57}\u{ff49}\u{ff44}\u{ff45}", &[("held_bytes", 1 << 30)]);
    let mut model = model(vec![sample_of(&image)]);
    let screen = |model: &Model| screen(model, 60, 12);
    assert!(screen(&model).contains("  and 10 more"), "{}", screen(&model));
    press(&mut model, &[KeyCode::Tab, KeyCode::End]);
    assert!(!screen(&model).contains(" more"), "{}", screen(&model));
}

#[test]
fn only_q_and_control_c_quit() {
    let mut model = model(three());
    for code in [KeyCode::Esc, KeyCode::Enter, KeyCode::Char('c'), KeyCode::F(1)] {
        assert_eq!(press(&mut model, &[code]), Next::Stay);
    }
    assert_eq!(model.key(KeyCode::Char('x'), KeyModifiers::CONTROL), Next::Stay);
    assert_eq!(model.key(KeyCode::Char('c'), KeyModifiers::CONTROL), Next::Quit);
    assert_eq!(char(&mut model, 'q'), Next::Quit);
    char(&mut model, '/');
    assert_eq!(char(&mut model, 'q'), Next::Stay);
    assert_eq!(model.key(KeyCode::Char('c'), KeyModifiers::CONTROL), Next::Quit);
}

#[test]
fn any_keys_in_any_order_do_no_harm() {
    use KeyCode::{BackTab, Backspace, Char, Down, End, Enter, Esc, Home, Left, PageDown};
    use KeyCode::{Delete, PageUp, Right, Tab, Up};
    let specials = [
        BackTab,
        Backspace,
        Delete,
        Down,
        End,
        Enter,
        Esc,
        Home,
        Left,
        PageDown,
        PageUp,
        Right,
        Tab,
        Up,
        Char('s'),
        Char('r'),
        Char('d'),
        Char(' '),
        Char('?'),
        Char('/'),
        Char('1'),
        Char('\u{202e}'),
        Char('\u{1f600}'),
        Char('\0'),
    ];
    let mut random = Random(7);
    let mut model = model(three());
    for _ in 0..2_000 {
        press(&mut model, &[specials[random.below(specials.len())]]);
        if random.below(8) == 0 {
            let mut samples = three();
            samples.truncate(random.below(4));
            model.update(samples, 1.0);
        }
        let area = Rect::new(0, 0, 80, 24);
        view::draw(&model, area, &mut Buffer::empty(area));
    }
}

#[test]
fn sizes_of_printed_frames_come_from_the_environment() {
    assert_eq!((size_of(None, 80), size_of(Some("132"), 80)), (80, 132));
    assert_eq!((size_of(Some("0"), 80), size_of(Some("x"), 80)), (80, 80));
    assert_eq!(size_of(Some("65535"), 80), 1000);
}
