//! watch: what changes in one process, a line for each interval.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;

use super::{Answer, Setting, Subject, show};
use crate::host::Life;
use crate::rows::process;
use crate::text;

// After so many lines the headings come again.
const LINES_A_HEADING: u64 = 20;

/// What `watch` is asked.
#[derive(Debug, Args)]
pub struct Arguments {
    /// A process, or the path of its statistics file
    #[arg(value_name = "PID")]
    target: String,

    /// How long to wait before each line
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    interval: Duration,

    /// End after so many lines
    #[arg(short, value_name = "LINES")]
    number: Option<u64>,
}

/// A time of at least 10 ms, in seconds.
pub fn interval(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|_| "a number of seconds is wanted".to_owned())?;
    let interval = Duration::try_from_secs_f64(seconds);
    match interval.map_err(|error| error.to_string())? {
        interval if interval < Duration::from_millis(10) => Err("0.01 s at least".to_owned()),
        interval => Ok(interval),
    }
}

// What a line is made of, at one moment.
#[derive(Clone, Debug, Default)]
struct Moment {
    rss_bytes: Option<u64>,
    live_bytes: Option<u64>,
    live_objects: Option<u64>,
    dirty_bytes: Option<u64>,
    purged_bytes: Option<u64>,
    epochs_open: Option<u64>,
    epochs_with_survivors: Option<u64>,
    allocations: Option<u64>,
    slabs_opened: Option<u64>,
}

/// A line: where the process stands, and what changed since the line before, a second.
#[derive(Debug, PartialEq, Serialize)]
struct Line {
    /// Since the first look, in s.
    at_s: f64,
    rss_bytes: Option<u64>,
    rss_change_a_s: Option<f64>,
    live_bytes: Option<u64>,
    live_change_a_s: Option<f64>,
    live_objects: Option<u64>,
    objects_change_a_s: Option<f64>,
    allocations_a_s: Option<f64>,
    slabs_opened_a_s: Option<f64>,
    purged_bytes_a_s: Option<f64>,
    dirty_bytes: Option<u64>,
    epochs_open: Option<u64>,
    epochs_closed_with_survivors: Option<u64>,
}

/// Shows lines until the process ends, nobody reads, or there are enough.
pub fn run(setting: &Setting, arguments: &Arguments) -> Result<Answer> {
    let first = Subject::find(setting, &arguments.target)?;
    if first.life != Life::Alive {
        bail!(
            "process {} is not there any more: `tslab stats` shows what its file says",
            first.pid
        );
    }
    let (mut state, mut before) = (first.life, Moment::of(&first));
    let (start, mut then) = (Instant::now(), Instant::now());
    let mut lines = 0_u64;
    while state == Life::Alive && arguments.number.is_none_or(|number| lines < number) {
        std::thread::sleep(arguments.interval);
        let Ok(subject) = Subject::find(setting, &arguments.target) else { break };
        if subject.snapshot.header.start_ticks != first.snapshot.header.start_ticks {
            break;
        }
        let (now, moment) = (Instant::now(), Moment::of(&subject));
        let line = Line::of(&before, &moment, now - then, now - start);
        let heading = if lines.is_multiple_of(LINES_A_HEADING) { heading() } else { String::new() };
        let shown = if setting.json { text::json_line(&line)? } else { heading + &line.text() };
        if !show(&shown)? {
            return Ok(Answer::default());
        }
        (state, before, then, lines) = (subject.life, moment, now, lines + 1);
    }
    let is_enough = arguments.number.is_some_and(|number| lines >= number);
    let end = format!("process {} has ended, or does not use its file any more", first.pid);
    Ok(Answer { notes: if is_enough { Vec::new() } else { vec![end] }, ..Answer::default() })
}

impl Moment {
    fn of(subject: &Subject) -> Self {
        let totals = subject.snapshot.totals();
        Self {
            rss_bytes: subject.rss_bytes,
            live_bytes: totals.live_bytes,
            live_objects: totals.live_objects,
            dirty_bytes: subject.snapshot.process_figure(process::DIRTY_BYTES),
            purged_bytes: subject.snapshot.process_figure(process::PURGED_BYTES),
            epochs_open: totals.epochs_open,
            epochs_with_survivors: totals.epochs_closed_with_survivors,
            allocations: subject.snapshot.work.allocations,
            slabs_opened: subject.snapshot.slabs_opened(),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "rates are shown in three digits")]
fn change(before: Option<u64>, after: Option<u64>, seconds: f64) -> Option<f64> {
    Some((after? as f64 - before? as f64) / seconds)
}

/// How much a count grew, a second. One that began anew, or is just being moved, did not.
pub fn growth(before: Option<u64>, after: Option<u64>, seconds: f64) -> Option<f64> {
    change(before, after, seconds).map(|growth| growth.max(0.0))
}

impl Line {
    fn of(before: &Moment, after: &Moment, passed: Duration, since_start: Duration) -> Self {
        let seconds = passed.as_secs_f64().max(f64::MIN_POSITIVE);
        Self {
            at_s: since_start.as_secs_f64(),
            rss_bytes: after.rss_bytes,
            rss_change_a_s: change(before.rss_bytes, after.rss_bytes, seconds),
            live_bytes: after.live_bytes,
            live_change_a_s: change(before.live_bytes, after.live_bytes, seconds),
            live_objects: after.live_objects,
            objects_change_a_s: change(before.live_objects, after.live_objects, seconds),
            allocations_a_s: growth(before.allocations, after.allocations, seconds),
            slabs_opened_a_s: growth(before.slabs_opened, after.slabs_opened, seconds),
            purged_bytes_a_s: change(before.purged_bytes, after.purged_bytes, seconds),
            dirty_bytes: after.dirty_bytes,
            epochs_open: after.epochs_open,
            epochs_closed_with_survivors: after.epochs_with_survivors,
        }
    }

    fn text(&self) -> String {
        format!(
            "{:>8.1} {:>10} {:>10} {:>10} {:>10} {:>9} {:>9} {:>8} {:>10} {:>10} {:>6} {:>6}\n",
            self.at_s,
            text::bytes(self.rss_bytes),
            signed_bytes(self.rss_change_a_s),
            text::bytes(self.live_bytes),
            signed_bytes(self.live_change_a_s),
            signed_count(self.objects_change_a_s),
            count_text(self.allocations_a_s),
            count_text(self.slabs_opened_a_s),
            signed_bytes(self.purged_bytes_a_s),
            text::bytes(self.dirty_bytes),
            text::number(self.epochs_open),
            text::number(self.epochs_closed_with_survivors),
        )
    }
}

fn heading() -> String {
    format!(
        "{:>8} {:>10} {:>10} {:>10} {:>10} {:>9} {:>9} {:>8} {:>10} {:>10} {:>6} {:>6}\n",
        "SECOND",
        "RSS",
        "+-/s",
        "LIVE",
        "+-/s",
        "OBJS +-/s",
        "ALLOCS/s",
        "SLABS/s",
        "PURGED/s",
        "DIRTY",
        "OPEN",
        "CLOSED"
    )
}

#[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "of a magnitude")]
fn signed_bytes(rate: Option<f64>) -> String {
    let Some(rate) = rate else { return text::NOT_KNOWN.to_owned() };
    let shown = text::bytes(Some(rate.abs().round() as u64));
    sign(rate).to_owned() + &shown
}

fn count_text(rate: Option<f64>) -> String {
    rate.map_or_else(|| text::NOT_KNOWN.to_owned(), text::rate)
}

fn signed_count(rate: Option<f64>) -> String {
    let Some(rate) = rate else { return text::NOT_KNOWN.to_owned() };
    sign(rate).to_owned() + &text::rate(rate.abs())
}

// None for what is shown as 0.
fn sign(rate: f64) -> &'static str {
    match rate {
        rate if rate >= 0.5 => "+",
        rate if rate <= -0.5 => "-",
        _ => "",
    }
}

/// A line of a process that became another.
#[cfg(test)]
pub(super) fn between(before: &Subject, after: &Subject) -> String {
    let second = Duration::from_secs(1);
    let line = Line::of(&Moment::of(before), &Moment::of(after), second, second);
    line.text() + &text::json_line(&line).expect("JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Image, sample};

    fn moment(image: &Image) -> Moment {
        Moment::of(&Subject::of_bytes(image.bytes()))
    }

    fn line(before: &Image, after: &Image) -> Line {
        let seconds = Duration::from_secs;
        Line::of(&moment(before), &moment(after), seconds(2), seconds(7))
    }

    #[test]
    fn changes_are_a_second() {
        let before = sample(42, 7);
        let mut after = sample(42, 7);
        after.set_class("bins", 1, "allocations", 1, 1_500);
        after.set_class("bins", 1, "opened", 1, 8);
        after.set_class("bins", 1, "out", 1, 90);
        after.set_all("process", 0, &[("purged_bytes", 4096), ("dirty_bytes", 65_536)]);
        let line = line(&before, &after);
        assert_eq!((line.at_s, line.allocations_a_s), (7.0, Some(250.0)));
        assert_eq!(line.slabs_opened_a_s, Some(2.0));
        assert_eq!((line.live_bytes, line.live_change_a_s), (Some(418_240), Some(-640.0)));
        assert_eq!((line.objects_change_a_s, line.purged_bytes_a_s), (Some(-5.0), Some(2048.0)));
        assert_eq!((line.rss_change_a_s, line.epochs_open), (None, Some(1)));
        let expected = concat!(
            "     7.0          ?          ?  408.4 KiB     -640 B        -5       250",
            "        2   +2.0 KiB   64.0 KiB      1      1\n"
        );
        assert_eq!(line.text(), expected);
        assert_eq!(heading().len(), expected.len());
    }

    #[test]
    fn a_count_that_falls_did_not_grow() {
        let before = sample(42, 7);
        let mut after = sample(42, 7);
        after.set_all("heaps", 3, &[("cut_objects", 10)]);
        assert_eq!(line(&before, &after).allocations_a_s, Some(0.0));
    }

    #[test]
    fn what_is_not_told_is_not_0() {
        let mut image = sample(42, 7);
        image.forget("process", "purged_bytes");
        image.forget("bins", "out");
        let line = line(&image, &image);
        assert_eq!((line.purged_bytes_a_s, line.live_bytes), (None, None));
    }

    #[test]
    fn intervals_are_positive_numbers() {
        assert_eq!(interval("0.5"), Ok(Duration::from_millis(500)));
        for text in ["0", "-1", "x", "nan", "inf", "1e300", ""] {
            assert!(interval(text).is_err(), "{text}");
        }
    }
}
