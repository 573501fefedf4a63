//! stats: what one process holds, by size class, and what it says of itself.

use std::fmt::Write;

use anyhow::Result;
use serde::Serialize;
use serde_json::{Map, Value as Json};

use super::{Answer, Identity, Setting, Subject};
use crate::labels::Label;
use crate::rows::{Unit, process};
use crate::snapshot::{Class, Figure, Live, Totals};
use crate::text::{self, Align, Grid};
use crate::work::{OfHomes, SlowPaths};

#[derive(Debug, Serialize)]
pub(super) struct Report {
    #[serde(flatten)]
    identity: Identity,
    rss_bytes: Option<u64>,
    totals: Totals,
    /// How long ago the process held most; None: not told, or nothing yet.
    peak_ago_ms: Option<u64>,
    classes: Vec<Class>,
    /// Live objects in cells, which are in no class.
    in_cells: Live,
    #[serde(serialize_with = "as_object")]
    process: Vec<Figure>,
    labels: Vec<Label>,
    /// Objects allocated so far.
    allocations: Option<u64>,
    slow_paths: SlowPaths,
    /// What threads count once: whence slabs got their units, and what the ends of epochs did.
    of_homes: OfHomes,
}

/// Shows a process.
pub fn run(setting: &Setting, target: &str) -> Result<Answer> {
    let subject = Subject::find(setting, target)?;
    let report = Report::of(&subject);
    let mut notes = subject.notes();
    notes.extend(subject.hidden_note());
    Ok(Answer { output: setting.output(&report, Report::text)?, notes, ..Answer::default() })
}

// The file's fields under their own names, with what this command does not know among them.
fn as_object<S: serde::Serializer>(figures: &[Figure], serializer: S) -> Result<S::Ok, S::Error> {
    let entry = |figure: &Figure| (figure.name.clone(), Json::from(figure.value));
    figures.iter().map(entry).collect::<Map<_, _>>().serialize(serializer)
}

impl Report {
    pub(super) fn of(subject: &Subject) -> Self {
        Self {
            identity: subject.identity(),
            rss_bytes: subject.rss_bytes,
            totals: subject.snapshot.totals(),
            peak_ago_ms: peak_ago_ms(subject),
            classes: subject.snapshot.classes.clone(),
            in_cells: subject.snapshot.in_cells(),
            process: subject.snapshot.process.clone(),
            labels: subject.snapshot.labels.clone(),
            allocations: subject.snapshot.work.allocations,
            slow_paths: subject.snapshot.work.slow_paths.clone(),
            of_homes: subject.snapshot.work.of_homes.clone(),
        }
    }

    pub(super) fn text(&self) -> String {
        let (classes, slow_paths) = (self.class_grid(), self.slow_path_grid());
        let (of_homes, process) = (self.of_homes_grid(), self.process_grid());
        let labels = self.label_grid();
        format!("{}\n{classes}\n{labels}{slow_paths}\n{of_homes}\n{process}", self.summary())
    }

    fn summary(&self) -> String {
        let (identity, totals) = (&self.identity, &self.totals);
        let name = identity.name.as_deref().map(text::printable).unwrap_or_default();
        let mut out = format!("process {}  {name}", identity.pid).trim_end().to_owned();
        // Writing to a String does not fail.
        let _ = write!(
            out,
            "  tslab {}  {}\n\
             live      {} in {}{}\n\
             held      {}, of which {} free in slabs and cells\n\
             at hand   {} in free objects that threads keep\n\
             peak      {}\n\
             RSS       {}\n\
             allocated {} so far\n\
             epochs    {} open, {} shared, {} closed with survivors\n\
             threads   {}\n",
            text::printable(&identity.version),
            identity.life.name(),
            text::bytes(totals.live_bytes),
            text::count(totals.live_objects, "object"),
            if totals.unsettled { " (changing while they were read)" } else { "" },
            text::bytes(totals.held_bytes),
            text::bytes(totals.spare_bytes),
            text::bytes(totals.hot_bytes),
            self.peak_text(),
            text::bytes(self.rss_bytes),
            text::count(self.allocations, "object"),
            text::number(totals.epochs_open),
            text::number(totals.epochs_shared),
            text::number(totals.epochs_closed_with_survivors),
            text::number(totals.threads),
        );
        out
    }

    fn peak_text(&self) -> String {
        let name = process::PEAK_HELD_BYTES.name;
        let figure = self.process.iter().find(|figure| figure.name == name);
        let bytes = text::bytes(figure.and_then(|figure| figure.value));
        match self.peak_ago_ms {
            Some(ago_ms) => format!("{bytes} held {} ago", text::age(Some(ago_ms))),
            None => bytes,
        }
    }

    fn class_grid(&self) -> String {
        let mut grid = Grid::new(&[
            ("CLASS", Align::Right),
            ("LIVE", Align::Right),
            ("HOT", Align::Right),
            ("SLABS", Align::Right),
            ("OPENED", Align::Right),
            ("RECYCLED", Align::Right),
            ("PURGED", Align::Right),
            ("ALLOCATIONS", Align::Right),
            ("SLAB", Align::Right),
            ("CAPACITY", Align::Right),
        ]);
        for class in self.classes.iter().filter(|class| is_used(class)) {
            grid.row(class_texts(class));
        }
        grid.render() + &self.in_cells_text()
    }

    // Those of which something is to be said; nothing where there are none.
    fn label_grid(&self) -> String {
        let told = |label: &&Label| label.is_refused() || label.has_history();
        let mut labels = self.labels.iter().filter(told).peekable();
        if labels.peek().is_none() {
            return String::new();
        }
        let mut grid = Grid::new(&[
            ("ENDED", Align::Right),
            ("HELD", Align::Right),
            ("SURVIVED", Align::Right),
            ("PINNED", Align::Right),
            ("OPEN FOR", Align::Right),
            ("SHARES", Align::Left),
            ("LIMIT REFUSED", Align::Right),
            ("SYSTEM REFUSED", Align::Right),
            ("LABEL", Align::Left),
        ]);
        labels.for_each(|label| grid.row(label_texts(label)));
        grid.render() + "\n"
    }

    fn in_cells_text(&self) -> String {
        match self.in_cells.objects {
            None | Some(0) => String::new(),
            objects => format!(
                "in cells, of any class: {} in {} that are sampled, or in open epochs\n",
                text::bytes(self.in_cells.bytes),
                text::count(objects, "live object")
            ),
        }
    }

    fn slow_path_grid(&self) -> String {
        let heads = [("SLOW PATH", Align::Left), ("", Align::Right), ("", Align::Left)];
        let mut grid = Grid::new(&heads);
        for (path, count) in self.slow_paths.each() {
            grid.row(vec![path.cause.to_owned(), text::number(count), path.meaning.to_owned()]);
        }
        grid.render()
    }

    fn of_homes_grid(&self) -> String {
        let mut grid = Grid::new(&[("THREADS", Align::Left), ("", Align::Right)]);
        for (field, sum) in self.of_homes.each() {
            let sum = if field.unit == Unit::Bytes { text::bytes(sum) } else { text::number(sum) };
            grid.row(vec![field.name.to_owned(), sum]);
        }
        grid.render()
    }

    fn process_grid(&self) -> String {
        let mut grid = Grid::new(&[("PROCESS", Align::Left), ("", Align::Right)]);
        for figure in &self.process {
            grid.row(vec![text::printable(&figure.name), figure_text(figure)]);
        }
        grid.render()
    }
}

fn peak_ago_ms(subject: &Subject) -> Option<u64> {
    let at_ms = subject.snapshot.process_figure(process::PEAK_MS).filter(|&at_ms| at_ms != 0)?;
    Some(subject.as_of_ms.saturating_sub(at_ms))
}

fn is_used(class: &Class) -> bool {
    let figures = [class.live, class.hot, class.slabs, class.opened, class.allocations];
    figures.iter().any(|figure| figure.is_some_and(|figure| figure > 0))
}

fn class_texts(class: &Class) -> Vec<String> {
    vec![
        class.bytes.map_or_else(|| text::NOT_KNOWN.to_owned(), |bytes| format!("{bytes} B")),
        text::number(class.live),
        text::number(class.hot),
        text::number(class.slabs),
        text::number(class.opened),
        text::number(class.recycled),
        text::bytes(class.purged_bytes),
        text::number(class.allocations),
        text::bytes(class.slab_bytes),
        text::number(class.capacity),
    ]
}

// Of the epochs that ended of late: on average.
fn label_texts(label: &Label) -> Vec<String> {
    let mean = |sum: Option<u64>| sum?.checked_div(label.ended?);
    let shares = label.shares.map(|shares| if shares { "yes" } else { "no" });
    vec![
        text::number(label.ended),
        text::bytes(mean(label.ended_bytes)),
        text::bytes(mean(label.ended_survivor_bytes)),
        text::bytes(mean(label.ended_pinned_bytes)),
        text::age(mean(label.ended_lived_ms)),
        shares.unwrap_or(text::NOT_KNOWN).to_owned(),
        text::number(label.limits_refused),
        text::number(label.memory_refused),
        text::label(Some(&label.text)),
    ]
}

fn figure_text(figure: &Figure) -> String {
    match figure.unit {
        Some(Unit::Bytes) => text::bytes(figure.value),
        Some(Unit::Ms) => format!("{} ms", text::number(figure.value)),
        Some(Unit::Ns) => format!("{} ns", text::number(figure.value)),
        Some(Unit::None | Unit::Objects | Unit::Pieces) | None => text::number(figure.value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::sample;

    #[test]
    fn the_peak_is_shown_with_its_age() {
        let mut image = sample(42, 7);
        let report = |image: &crate::fixture::Image| Report::of(&Subject::of_bytes(image.bytes()));
        assert!(report(&image).text().contains("\npeak      0 B\n"));
        let peak = [("peak_held_bytes", 300 << 20), ("peak_ms", crate::fixture::TOLD_MS - 61_000)];
        image.set_all("process", 0, &peak);
        assert_eq!(report(&image).peak_ago_ms, Some(61_000));
        assert!(report(&image).text().contains("\npeak      300.0 MiB held 61 s ago\n"));
        image.forget("process", "peak_held_bytes");
        image.forget("process", "peak_ms");
        assert!(report(&image).text().contains("\npeak      ?\n"));
    }

    #[test]
    fn labels_are_shown_once_there_is_something_to_say() {
        let mut image = sample(42, 7);
        let text =
            |image: &crate::fixture::Image| Report::of(&Subject::of_bytes(image.bytes())).text();
        assert!(!text(&image).contains("LIMIT REFUSED"));
        image.set_all("labels", 7, &[("ended", 2), ("ended_bytes", 8192), ("limits_refused", 3)]);
        image.set("labels", 7, "ended_pinned_bytes", 4096);
        let shown = text(&image);
        let line = shown.lines().find(|line| line.ends_with("\"GET /upload\"")).unwrap();
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(words[..7], ["2", "4.0", "KiB", "0", "B", "2.0", "KiB"], "{shown}");
        assert!(words.ends_with(&["no", "3", "0", "\"GET", "/upload\""]), "{shown}");
    }

    #[test]
    fn slabs_that_went_and_pages_that_went_are_shown() {
        let mut image = sample(42, 7);
        image.set("classes", 1, "purged_bytes", 8192);
        let report = Report::of(&Subject::of_bytes(image.bytes()));
        assert_eq!(report.classes[1].recycled, Some(2));
        let shown = report.text();
        let line = shown.lines().find(|line| line.trim_start().starts_with("128 B")).unwrap();
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(words[4..9], ["2", "4", "2", "8.0", "KiB"], "{shown}");
    }

    #[test]
    fn what_is_in_cells_is_said() {
        let mut image = sample(42, 7);
        let before = Report::of(&Subject::of_bytes(image.bytes()));
        image.set_all("heaps", 1, &[("cut_objects", 9), ("cut_bytes", 1000)]);
        image.set_all("heaps", 1, &[("away_objects", 3), ("away_bytes", 100)]);
        image.set_all("heaps", 2, &[("freed_objects", 2), ("freed_bytes", 64)]);
        let report = Report::of(&Subject::of_bytes(image.bytes()));
        // 300 of epoch 3, of which a thread has not left.
        let in_cells = Live { objects: Some(304), bytes: Some(20_036), unsettled: false };
        assert_eq!(report.in_cells, in_cells);
        let more = |objects: Option<u64>, bytes: Option<u64>| {
            (objects.map(|n| n + 4), bytes.map(|n| n + 836))
        };
        let (old, new) = (&before.totals, &report.totals);
        assert_eq!((new.live_objects, new.live_bytes), more(old.live_objects, old.live_bytes));
        assert_eq!(report.classes[1].live, before.classes[1].live);
        let text = "in cells, of any class: 19.6 KiB in 304 live objects";
        assert!(report.text().contains(text), "{}", report.text());
    }
}
