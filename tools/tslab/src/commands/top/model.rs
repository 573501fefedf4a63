//! What the user looks at: the processes so far, which of them, and in which order.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use ratatui::crossterm::event::{KeyCode, KeyModifiers};

use super::sample::{Key, Sample};
use crate::commands::watch::growth;

// Looks that sparklines remember: one a column of a wide terminal.
const MOST_HISTORY: usize = 256;
const MOST_FILTER: usize = 64;
const PAGE: usize = 10;

/// What a key has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Go on.
    Stay,
    /// The user has seen enough.
    Quit,
}

/// In which order processes stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Resident memory, the most first.
    Rss,
    /// Live objects, the most first.
    Live,
    /// Resident bytes for each live one, the most first.
    Ratio,
    /// Allocations a second, the most first.
    Rate,
    /// Numbers, the lowest first.
    Pid,
    /// Names.
    Name,
}

impl Sort {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rss => "RSS",
            Self::Live => "LIVE",
            Self::Ratio => "RSS/LIVE",
            Self::Rate => "ALLOCS/s",
            Self::Pid => "PID",
            Self::Name => "NAME",
        }
    }

    fn next(self) -> Self {
        match self {
            Self::Rss => Self::Live,
            Self::Live => Self::Ratio,
            Self::Ratio => Self::Rate,
            Self::Rate => Self::Pid,
            Self::Pid => Self::Name,
            Self::Name => Self::Rss,
        }
    }
}

/// The part of the screen that arrows move in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pane {
    /// The processes.
    Processes,
    /// The selected one's epochs.
    Epochs,
    /// Its size classes.
    Classes,
}

/// What keys are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Looking at processes.
    Looking,
    /// Typing the filter.
    Typing,
    /// Reading the help.
    Helping,
}

/// A process, as it was and is.
#[derive(Clone, Debug)]
pub struct Process {
    /// The last that was seen of it.
    pub sample: Sample,
    /// It is not there any more.
    pub has_ended: bool,
    /// Resident bytes of the last looks.
    pub rss: VecDeque<Option<u64>>,
    /// Bytes of live objects at the same moments.
    pub live: VecDeque<Option<u64>>,
    /// Objects, between the last two looks.
    pub allocations_a_s: Option<f64>,
}

impl Process {
    fn new(sample: Sample) -> Self {
        let (rss, live) = (VecDeque::new(), VecDeque::new());
        let mut process = Self { sample, has_ended: false, rss, live, allocations_a_s: None };
        process.remember();
        process
    }

    fn update(&mut self, sample: Sample, seconds: f64) {
        let before = allocations_of(&self.sample);
        let growth = growth(before, allocations_of(&sample), seconds);
        self.allocations_a_s = growth.filter(|_| seconds > 0.0);
        self.sample = sample;
        self.has_ended = false;
        self.remember();
    }

    fn remember(&mut self) {
        for (history, value) in
            [(&mut self.rss, self.sample.rss_bytes), (&mut self.live, live_of(&self.sample))]
        {
            history.truncate(MOST_HISTORY - 1);
            history.push_front(value);
        }
    }

    /// Bytes of live objects.
    pub fn live_bytes(&self) -> Option<u64> {
        live_of(&self.sample)
    }

    /// Resident bytes for each live one.
    #[expect(clippy::cast_precision_loss, reason = "it is shown in two digits")]
    pub fn ratio(&self) -> Option<f64> {
        let live = self.live_bytes().filter(|live| *live > 0)?;
        Some(self.sample.rss_bytes? as f64 / live as f64)
    }
}

fn live_of(sample: &Sample) -> Option<u64> {
    sample.told.as_ref().ok()?.totals.live_bytes
}

fn allocations_of(sample: &Sample) -> Option<u64> {
    sample.told.as_ref().ok()?.allocations
}

/// All that is shown, and how.
#[derive(Debug)]
pub struct Model {
    processes: BTreeMap<Key, Process>,
    selected: Option<Key>,
    /// Where arrows move.
    pub pane: Pane,
    /// The first epoch that is shown.
    pub epochs_from: usize,
    /// The first size class that is shown.
    pub classes_from: usize,
    /// The order of processes.
    pub sort: Sort,
    /// The other way round.
    pub is_reversed: bool,
    /// What the name or number of processes has to contain.
    pub filter: String,
    /// What keys are for.
    pub mode: Mode,
    /// Nothing changes until the user wants it to.
    pub is_frozen: bool,
    /// Why the last look failed.
    pub error: Option<String>,
    /// Between two looks.
    pub interval: Duration,
}

impl Model {
    /// Without any process yet.
    pub fn new(interval: Duration) -> Self {
        Self {
            processes: BTreeMap::new(),
            selected: None,
            pane: Pane::Processes,
            epochs_from: 0,
            classes_from: 0,
            sort: Sort::Rss,
            is_reversed: false,
            filter: String::new(),
            mode: Mode::Looking,
            is_frozen: false,
            error: None,
            interval,
        }
    }

    /// Takes over what a look has seen, so many seconds after the last one.
    pub fn update(&mut self, samples: Vec<Sample>, seconds: f64) {
        self.error = None;
        if self.is_frozen {
            return;
        }
        self.processes.values_mut().for_each(|process| process.has_ended = true);
        for sample in samples {
            match self.processes.get_mut(&sample.key) {
                Some(process) => process.update(sample, seconds),
                None => {
                    self.processes.insert(sample.key, Process::new(sample));
                }
            }
        }
        self.keep_selection();
    }

    /// A look failed.
    pub fn fail(&mut self, error: &str) {
        self.error = Some(error.to_owned());
    }

    /// How many processes there are, the filtered ones included.
    pub fn count(&self) -> usize {
        self.processes.len()
    }

    /// The processes that are shown, in their order.
    pub fn shown(&self) -> Vec<&Process> {
        let filter = self.filter.to_lowercase();
        let passes = |process: &&Process| {
            let name = process.sample.name.to_lowercase();
            name.contains(&filter) || process.sample.key.pid.to_string().contains(&filter)
        };
        let mut shown: Vec<_> = self.processes.values().filter(passes).collect();
        shown.sort_by(|a, b| self.order(a, b));
        shown
    }

    fn order(&self, a: &Process, b: &Process) -> Ordering {
        let order = match self.sort {
            Sort::Rss => b.sample.rss_bytes.cmp(&a.sample.rss_bytes),
            Sort::Live => b.live_bytes().cmp(&a.live_bytes()),
            Sort::Ratio => by_number(b.ratio(), a.ratio()),
            Sort::Rate => by_number(b.allocations_a_s, a.allocations_a_s),
            Sort::Pid => Ordering::Equal,
            Sort::Name => a.sample.name.cmp(&b.sample.name),
        };
        let order = order.then(a.sample.key.cmp(&b.sample.key));
        if self.is_reversed { order.reverse() } else { order }
    }

    /// The process that is looked at from close by.
    pub fn selected(&self) -> Option<&Process> {
        self.processes.get(&self.selected?)
    }

    /// Where it stands among those that are shown.
    pub fn place(&self) -> Option<usize> {
        self.shown().iter().position(|process| Some(process.sample.key) == self.selected)
    }

    // What is selected is shown, if anything is.
    fn keep_selection(&mut self) {
        if self.place().is_none() {
            self.select(0);
        }
    }

    fn select(&mut self, place: usize) {
        let shown = self.shown();
        let last = shown.len().saturating_sub(1);
        let key = shown.get(place.min(last)).map(|process| process.sample.key);
        if key != self.selected {
            (self.epochs_from, self.classes_from) = (0, 0);
        }
        self.selected = key;
    }

    /// Does what a key asks for.
    pub fn key(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Next {
        if modifiers.contains(KeyModifiers::CONTROL) {
            return if code == KeyCode::Char('c') { Next::Quit } else { Next::Stay };
        }
        match self.mode {
            Mode::Helping => self.mode = Mode::Looking,
            Mode::Typing => self.type_filter(code),
            Mode::Looking if code == KeyCode::Char('q') => return Next::Quit,
            Mode::Looking => self.command(code),
        }
        self.keep_selection();
        Next::Stay
    }

    fn command(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char('?' | 'h') => self.mode = Mode::Helping,
            KeyCode::Char('/') => self.mode = Mode::Typing,
            KeyCode::Char(' ') => self.is_frozen = !self.is_frozen,
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('r') => self.is_reversed = !self.is_reversed,
            KeyCode::Char('d') => self.dismiss(),
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Tab | KeyCode::Right => self.pane = next_pane(self.pane),
            KeyCode::BackTab | KeyCode::Left => self.pane = next_pane(next_pane(self.pane)),
            _ => self.step(code),
        }
    }

    fn type_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.mode = Mode::Looking,
            KeyCode::Esc => {
                self.filter.clear();
                self.mode = Mode::Looking;
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(char) if self.filter.chars().count() < MOST_FILTER => {
                self.filter.push(char);
            }
            _ => {}
        }
    }

    // Processes that have ended go.
    fn dismiss(&mut self) {
        let place = self.place().unwrap_or_default();
        self.processes.retain(|_, process| !process.has_ended);
        if self.place().is_none() {
            self.select(place);
        }
    }

    fn step(&mut self, code: KeyCode) {
        let (last, place) = match self.pane {
            Pane::Processes => (self.shown().len(), self.place().unwrap_or_default()),
            Pane::Epochs => (self.told_rows(|told| told.epochs.len()), self.epochs_from),
            Pane::Classes => (self.told_rows(|told| told.classes.len()), self.classes_from),
        };
        let last = last.saturating_sub(1);
        let place = match code {
            KeyCode::Up | KeyCode::Char('k') => place.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => place + 1,
            KeyCode::PageUp => place.saturating_sub(PAGE),
            KeyCode::PageDown => place + PAGE,
            KeyCode::Home => 0,
            KeyCode::End => last,
            _ => return,
        };
        match self.pane {
            Pane::Processes => self.select(place),
            Pane::Epochs => self.epochs_from = place.min(last),
            Pane::Classes => self.classes_from = place.min(last),
        }
    }

    fn told_rows(&self, count: fn(&super::sample::Told) -> usize) -> usize {
        let told = self.selected().and_then(|process| process.sample.told.as_ref().ok());
        told.map_or(0, count)
    }
}

fn next_pane(pane: Pane) -> Pane {
    match pane {
        Pane::Processes => Pane::Epochs,
        Pane::Epochs => Pane::Classes,
        Pane::Classes => Pane::Processes,
    }
}

// What is not known comes first in rising order.
fn by_number(a: Option<f64>, b: Option<f64>) -> Ordering {
    let key = |value: Option<f64>| value.unwrap_or(f64::NEG_INFINITY);
    key(a).total_cmp(&key(b))
}
