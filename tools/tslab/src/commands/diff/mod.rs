//! diff: what grew between two looks at a process, by epoch label, size class and call stack.

use std::cmp::Reverse;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::{Answer, Setting};
use crate::sampling::CELL_BYTES;
use crate::text::{self, Align, Grid};

mod pairs;
mod side;
mod stacks;

use pairs::{grew, pairs};
use side::{Side, Sum};
use stacks::Stacks;

const SHOWN_CALLS: usize = 3;

/// What `diff` is asked.
#[derive(Debug, Args)]
pub struct Arguments {
    /// A process, a statistics file, a folder of `record`, or what `stats --json`, `epochs --json`
    /// or `profile --format json` wrote
    before: String,

    /// The same, later
    after: String,

    /// End with status 1 when something grew
    #[arg(long, value_name = "WHAT")]
    fail_on: Option<FailOn>,

    /// By how much it may grow, in percent of what it was before
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = tolerance)]
    tolerance: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// Something grew beyond the tolerance
    Regression,
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if percent >= 0.0 && percent.is_finite() => Ok(percent),
        _ => Err("a percentage from 0 on is wanted".to_owned()),
    }
}

/// What a difference is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Topic {
    /// The whole process.
    Process,
    /// All epochs with a label; None: those whose label is not known.
    Label(Option<Arc<str>>),
    /// The default epoch's objects of a size class, in bytes, and all slabs of it.
    Class(u64),
    /// What lives of all that a call stack allocated, estimated; functions, innermost first.
    Site(Vec<String>),
}

/// Which of its quantities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Quantity {
    /// Live objects, in bytes.
    LiveBytes,
    /// Live objects.
    Objects,
    /// What is resident of a process; what epochs and slabs hold.
    ResidentBytes,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Difference {
    topic: Topic,
    quantity: Quantity,
    /// None: not known, since it began to be sampled between the looks.
    before: Option<u64>,
    after: u64,
    /// It grew beyond the tolerance.
    regression: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    tolerance_percent: f64,
    call_stacks: Stacks,
    /// What is known of both sides and not the same, the largest first.
    differences: Vec<Difference>,
    /// How many quantities are known of both sides.
    compared: usize,
    regressions: usize,
}

/// Compares two files.
pub fn run(setting: &Setting, arguments: &Arguments) -> Result<Answer> {
    let read = |target: &str| Side::read(setting, target);
    let (before, after) = (read(&arguments.before)?, read(&arguments.after)?);
    let report = Report::of(&before, &after, arguments.tolerance);
    if report.compared == 0 {
        bail!(
            "{} is {}, and {} is {}: they tell of nothing that could be compared; take both in \
             the same way",
            text::printable(&arguments.before),
            before.form,
            text::printable(&arguments.after),
            after.form
        );
    }
    Ok(Answer {
        output: setting.output(&report, Report::text)?,
        notes: report.notes(before.unsettled || after.unsettled),
        found: arguments.fail_on == Some(FailOn::Regression) && report.regressions > 0,
        failed: false,
    })
}

impl Report {
    fn of(before: &Side, after: &Side, tolerance: f64) -> Self {
        let mut all = Vec::new();
        // `margin`: what samples add to what is held.
        let mut add = |topic: Topic, before: Sum, after: Sum, margin: u64| {
            let pairs = [
                (Quantity::LiveBytes, before.live_bytes, after.live_bytes, 0),
                (Quantity::Objects, before.objects, after.objects, 0),
                (Quantity::ResidentBytes, before.resident_bytes, after.resident_bytes, margin),
            ];
            for (quantity, before, after, margin) in pairs {
                let Some((before, after)) = before.zip(after) else { continue };
                let regression = grew(before, after.saturating_sub(margin), tolerance);
                let (topic, before) = (topic.clone(), Some(before));
                all.push(Difference { topic, quantity, before, after, regression });
            }
        };
        add(Topic::Process, before.process, after.process, 0);
        for (label, old, new) in pairs(before.labels.as_ref(), after.labels.as_ref(), Sum::NOTHING)
        {
            let pages = |side: &Side| {
                let of_label = side.sample_pages.as_ref().and_then(|of| of.get(&label));
                of_label.copied().unwrap_or_default()
            };
            let more = pages(after).saturating_sub(pages(before));
            add(Topic::Label(label), old, new, more.saturating_mul(CELL_BYTES));
        }
        for (class, before, after) in
            pairs(before.classes.as_ref(), after.classes.as_ref(), Sum::NOTHING)
        {
            add(Topic::Class(class), before, after, 0);
        }
        let call_stacks = Stacks::of(before, after);
        for difference in call_stacks.differences(before, after, tolerance) {
            let stacks::Difference { stack, before_bytes, after_bytes, regression } = difference;
            all.push(Difference {
                topic: Topic::Site(stack),
                quantity: Quantity::LiveBytes,
                before: before_bytes,
                after: after_bytes,
                regression,
            });
        }
        let compared = all.len();
        all.retain(|difference| difference.before != Some(difference.after));
        all.sort_by_key(Difference::order);
        let regressions = all.iter().filter(|difference| difference.regression).count();
        Self { tolerance_percent: tolerance, call_stacks, differences: all, compared, regressions }
    }

    fn notes(&self, unsettled: bool) -> Vec<String> {
        let changing =
            "figures were changing while they were read: what came out negative counts as 0";
        let began = "'?' before: of the label and class nothing was sampled at the first look, so \
                     that nobody knows whether it grew";
        let has_begun = self.differences.iter().any(|difference| difference.before.is_none());
        let notes = unsettled.then_some(changing).into_iter().chain(self.call_stacks.note());
        let notes = notes.chain(has_begun.then_some(began));
        notes.map(str::to_owned).collect()
    }

    fn text(&self) -> String {
        if self.differences.is_empty() {
            return format!(
                "no difference in {}\n",
                text::count(Some(self.compared as u64), "figure")
            );
        }
        let mut grid = Grid::new(&[
            ("", Align::Left),
            ("WHAT", Align::Left),
            ("", Align::Left),
            ("BEFORE", Align::Right),
            ("AFTER", Align::Right),
            ("CHANGE", Align::Right),
            ("%", Align::Right),
        ]);
        self.differences.iter().for_each(|difference| grid.row(difference.texts()));
        let grown = text::count(Some(self.regressions as u64), "figure");
        format!("{}{grown} grew by more than {} %\n", grid.render(), self.tolerance_percent)
    }
}

impl Difference {
    // Those that grew too much first, in each of them bytes before objects, the larger first; then
    // those of which it is not known.
    fn order(&self) -> (bool, bool, bool, Reverse<u64>, Topic) {
        let size = self.after.abs_diff(self.before.unwrap_or_default());
        let is_count = self.quantity == Quantity::Objects;
        (!self.regression, self.before.is_none(), is_count, Reverse(size), self.topic.clone())
    }

    fn texts(&self) -> Vec<String> {
        let topic = match &self.topic {
            Topic::Process => "process".to_owned(),
            Topic::Label(label) => text::label(label.as_deref()),
            Topic::Class(bytes) => format!("class {bytes} B"),
            Topic::Site(stack) => stack_text(stack),
        };
        let quantity = match (self.quantity, &self.topic) {
            (Quantity::LiveBytes, _) => "live",
            (Quantity::Objects, _) => "objects",
            (Quantity::ResidentBytes, Topic::Process) => "RSS",
            (Quantity::ResidentBytes, _) => "held",
        };
        let mark = if self.regression { "!" } else { " " }.to_owned();
        let [before, change, percent] = self.change();
        let after = self.shown(self.after);
        vec![mark, topic, quantity.to_owned(), before, after, change, percent]
    }

    fn shown(&self, value: u64) -> String {
        let is_count = self.quantity == Quantity::Objects;
        if is_count { value.to_string() } else { text::bytes(Some(value)) }
    }

    // What it was, and what was added, also in percent.
    fn change(&self) -> [String; 3] {
        let Some(before) = self.before else {
            return [text::NOT_KNOWN.to_owned(), String::new(), String::new()];
        };
        let sign = if self.after > before { "+" } else { "-" };
        let size = self.after.abs_diff(before);
        let percent = match before {
            0 => "new".to_owned(),
            before => format!("{sign}{}", u128::from(size) * 100 / u128::from(before)),
        };
        [self.shown(before), format!("{sign}{}", self.shown(size)), percent]
    }
}

// The innermost calls.
fn stack_text(stack: &[String]) -> String {
    let shown: Vec<_> = stack.iter().take(SHOWN_CALLS).map(|call| text::printable(call)).collect();
    let rest = if stack.len() > SHOWN_CALLS { " <- ..." } else { "" };
    shown.join(" <- ") + rest
}

/// The difference between two processes.
#[cfg(test)]
pub(super) fn between(before: &super::Subject, after: &super::Subject) -> String {
    let side = |subject: &super::Subject| Side::of_subject(subject);
    let report = Report::of(&side(before), &side(after), 5.0);
    report.text() + &text::json(&report).expect("JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Image, add_epoch, add_samples, sample};

    fn side(image: &Image) -> Side {
        Side::of_bytes(image.bytes())
    }

    fn report(before: &Image, after: &Image, tolerance: f64) -> Report {
        Report::of(&side(before), &side(after), tolerance)
    }

    #[test]
    fn files_that_tell_the_same_do_not_differ() {
        let report = report(&sample(42, 7), &sample(43, 8), 0.0);
        assert!(report.differences.is_empty() && report.compared > 10);
        assert!(report.text().starts_with("no difference in "));
    }

    #[test]
    fn growth_is_shown_by_label_and_class() {
        let mut after = sample(42, 7);
        after.set_class("epochs", 7, "survivors", 1, 440);
        after.set("epochs", 7, "held_bytes", 65_536);
        after.set_class("bins", 1, "out", 1, 99);
        let report = report(&sample(42, 7), &after, 5.0);
        let expected = "
   WHAT                       BEFORE      AFTER     CHANGE    %
!  \"GET /upload\"  held      48.0 KiB   64.0 KiB  +16.0 KiB  +33
!  \"GET /upload\"  live      46.8 KiB   59.3 KiB  +12.5 KiB  +26
!  class 128 B    live      58.9 KiB   71.3 KiB  +12.4 KiB  +21
!  \"GET /upload\"  objects        357        457       +100  +28
!  process        objects        809        908        +99  +12
!  class 128 B    objects        471        570        +99  +21
   process        live     409.7 KiB  422.1 KiB  +12.4 KiB   +3
   \"default\"      live     211.7 KiB  211.6 KiB     -128 B   -0
   \"default\"      objects        133        132         -1   -0
6 figures grew by more than 5 %
";
        assert_eq!(format!("\n{}", report.text()), expected);
    }

    // So many more samples of 128 B live in "GET /upload", which holds `held` bytes, a page each.
    fn holds(held: u64, samples: usize) -> Image {
        let mut image = sample(42, 7);
        add_samples(&mut image);
        image.set("epochs", 7, "held_bytes", held);
        for row in 10..10 + samples {
            image.reach("samples", row);
            let address = ("address", (row as u64) << 20);
            image.set_all("samples", row, &[("site", 1), ("bytes", 128), address]);
        }
        image
    }

    #[test]
    fn the_pages_that_samples_take_are_no_growth_of_what_a_label_holds() {
        let before = holds(49_152, 0);
        let held = |after: &Image| {
            let mut report = report(&before, after, 0.0);
            let upload = Topic::Label(Some("GET /upload".into()));
            report.differences.retain(|difference| difference.topic == upload);
            let [held] = report.differences.as_slice() else { panic!("{report:?}") };
            assert_eq!(held.quantity, Quantity::ResidentBytes);
            (held.after, held.regression)
        };
        assert_eq!(held(&holds(49_152 + 40_960, 10)), (90_112, false));
        assert_eq!(held(&holds(49_152 + 40_961, 10)), (90_113, true));
        assert_eq!(held(&holds(49_152 + 4096, 0)), (53_248, true));
        let mut together = holds(49_152 + 4097, 2);
        together.set("samples", 11, "address", (10 << 20) + 192);
        assert_eq!(held(&together), (53_249, true), "two in a page");
        let mut large = holds(49_152 + 4096, 1);
        large.set("samples", 10, "site", 4);
        assert_eq!(held(&large), (53_248, true), "large blocks have no cells");
    }

    #[test]
    fn of_a_stack_the_innermost_calls_are_shown() {
        let shown = stack_text(&["a\n".into(), "b".into(), "c".into(), "d".into()]);
        assert_eq!(shown, "a\\n <- b <- c <- ...");
    }

    #[test]
    fn what_appeared_was_nothing_before_and_what_is_gone_shrank() {
        let mut after = sample(42, 7);
        add_epoch(&mut after, 2, "new", &[("held_bytes", 4096)]);
        let appeared = report(&sample(42, 7), &after, 50.0);
        let topic = Topic::Label(Some("new".into()));
        let difference = &appeared.differences[0];
        assert_eq!(
            (&difference.topic, difference.before, difference.after),
            (&topic, Some(0), 4096)
        );
        assert!(difference.regression && appeared.text().contains("new\n"));
        let gone = report(&after, &sample(42, 7), 0.0);
        assert_eq!((gone.regressions, gone.differences.len()), (0, 1));
    }

    #[test]
    fn percentages_are_checked() {
        assert_eq!(tolerance("0"), Ok(0.0));
        assert_eq!(tolerance("12.5"), Ok(12.5));
        for text in ["-1", "nan", "inf", "x", ""] {
            assert!(tolerance(text).is_err(), "{text}");
        }
    }
}
