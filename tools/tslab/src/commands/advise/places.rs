//! Which functions a scope belongs around, and what it would save there.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

use serde::Serialize;

use super::patch;
use super::predicted::{self, Course, Resident};
use super::rounds::{ENOUGH, Rounds, Run};
use super::stacks::{Function, Step};
use crate::sampling::whole;
use crate::text;

// Of all bytes; below, a function is no place for a scope, nor worth looking at.
const LEAST_SHARE: f64 = 0.05;

// Of the bytes below a function, those that no function within has that is a place itself.
const LEAST_OWN: f64 = 0.1;

// Less than that is no reason to give memory back sooner.
const MUCH_BYTES: u64 = 1 << 20;

// What lives at once of a place's objects, at most: less is no reason for a scope.
const LEAST_BYTES: f64 = 65536.0;

const MOST_PLACES: usize = 5;
const MOST_SURVIVORS: usize = 3;
const SHOWN_CALLS: usize = 4;

/// How far the figures can be relied upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Less than any of the others.
    Low,
    /// At least 100 samples in 3 rounds.
    Medium,
    /// At least 1,000 samples in 10 rounds.
    High,
}

/// A function, and what a scope around it would do.
#[derive(Debug, Serialize)]
pub struct Place {
    function: String,
    file: Option<String>,
    /// The first in the function that allocates.
    line: Option<u64>,
    caller: Option<String>,
    caller_file: Option<String>,
    /// Of the call, around which the scope belongs.
    caller_line: Option<u64>,
    allocated_bytes: u64,
    /// Of all that is allocated.
    allocated_percent: u64,
    /// Of it, dead before the next round.
    dead_percent: u64,
    rounds: usize,
    samples: usize,
    confidence: Confidence,
    /// What is resident but for the samples.
    measured: Resident,
    predicted: Resident,
    survivors: Vec<Survivor>,
    /// Such as `patch` takes, if the source is there; otherwise the lines to put in.
    patch: Vec<String>,
}

/// Who allocates what outlives the rounds of a place.
#[derive(Debug, Serialize)]
pub struct Survivor {
    /// Innermost first, within the place.
    stack: Vec<String>,
    /// Of the place's bytes, in thousandths.
    permille: u64,
}

/// Those that were found, or else what comes closest.
#[derive(Debug, Default)]
pub struct Places {
    /// Those that save most come first.
    pub found: Vec<Place>,
    /// In whose rounds objects die, but where a scope saves next to nothing.
    pub vain: Vec<Place>,
    /// In whose rounds they do not; empty when there are any of the former.
    pub others: Vec<Place>,
    /// No function of the program has a name.
    pub is_nameless: bool,
}

/// Looks for places.
pub fn find(run: &Run, course: Course) -> Places {
    let all = candidates(run);
    let rounds: Vec<_> = all.iter().map(|&function| run.rounds(function)).collect();
    let good: Vec<_> = rounds.iter().filter(|rounds| is_place(run, rounds)).collect();
    let innermost = good.iter().filter(|rounds| has_own(run, rounds, &good));
    let mut places: Vec<_> = innermost.map(|rounds| place(run, rounds, course)).collect();
    places.sort_by_key(|place| (place.predicted.trough_bytes, Reverse(place.allocated_bytes)));
    let (mut found, mut vain): (Vec<_>, Vec<_>) =
        places.into_iter().partition(|place| place.predicted.saves(&place.measured));
    found.truncate(MOST_PLACES);
    vain.truncate(MOST_SURVIVORS);
    let mut others = Vec::new();
    if found.is_empty() && vain.is_empty() {
        others = rounds.iter().map(|rounds| place(run, rounds, course)).collect();
        others.sort_by_key(|place| Reverse((place.dead_percent, place.allocated_bytes)));
        others.truncate(MOST_SURVIVORS);
    }
    Places { found, vain, others, is_nameless: all.is_empty() }
}

// Functions of the program below which enough is allocated.
fn candidates(run: &Run) -> Vec<Function> {
    let mut bytes = BTreeMap::<Function, f64>::new();
    let mut all = 0.0;
    for object in run.objects {
        let path = run.stacks.path(run.events[object.begun].site);
        let functions: BTreeSet<_> = path.iter().map(|step| step.function).collect();
        for function in functions {
            *bytes.entry(function).or_default() += object.bytes;
        }
        all += object.bytes;
    }
    let is_candidate = |function: &Function| run.stacks.functions[*function].is_place();
    let much = bytes.into_iter().filter(|(_, bytes)| *bytes >= LEAST_SHARE * all);
    much.map(|(function, _)| function).filter(is_candidate).collect()
}

fn is_place(run: &Run, rounds: &Rounds) -> bool {
    rounds.dead_share() >= ENOUGH && most_at_once(run, rounds) >= LEAST_BYTES
}

// Of what dies in the rounds, the most that lives at once.
fn most_at_once(run: &Run, rounds: &Rounds) -> f64 {
    let mut changes = Vec::new();
    for &(place, round) in &rounds.objects {
        let object = run.objects[place];
        if let (Some(_), Some(ended)) = (round, object.ended) {
            changes.extend([(object.begun, object.bytes), (ended, -object.bytes)]);
        }
    }
    changes.sort_by_key(|&(at, _)| at);
    let mut live = 0.0;
    changes.iter().fold(0.0, |most: f64, (_, bytes)| {
        live += bytes;
        most.max(live)
    })
}

// Whether enough of its bytes is not below another place within it.
fn has_own(run: &Run, rounds: &Rounds, good: &[&Rounds]) -> bool {
    let others: BTreeSet<_> = good.iter().map(|rounds| rounds.function).collect();
    let is_own = |place: usize| {
        let path = run.stacks.path(run.events[run.objects[place].begun].site);
        let within = path.iter().skip_while(|step| step.function != rounds.function).skip(1);
        let mut within = within.filter(|step| step.function != rounds.function);
        !within.any(|step| others.contains(&step.function))
    };
    let own = rounds.objects.iter().filter(|&&(place, _)| is_own(place));
    let own: f64 = own.map(|&(place, _)| run.objects[place].bytes).sum();
    own >= LEAST_OWN * rounds.bytes
}

fn place(run: &Run, rounds: &Rounds, course: Course) -> Place {
    let function = &run.stacks.functions[rounds.function];
    let ends = rounds.ends(run.objects.len());
    let (measured, predicted) = predicted::resident(run.events, run.objects, &ends, course);
    let all: f64 = run.objects.iter().map(|object| object.bytes).sum();
    let caller = caller(run, rounds);
    let caller_known = caller.map(|step| &run.stacks.functions[step.function]);
    let samples = rounds.objects.len();
    let caller_file = caller_known.and_then(|known| known.file.clone());
    let caller_line = caller.map(|step| step.at).filter(|_| caller_file.is_some());
    let call = caller_file.as_deref().zip(caller_line);
    Place {
        function: function.name.clone(),
        file: function.file.clone(),
        line: line(run, rounds),
        caller: caller_known.map(|known| known.name.clone()),
        patch: patch::around(&function.name, function.file.as_deref(), call),
        caller_file,
        caller_line,
        allocated_bytes: whole(rounds.bytes),
        allocated_percent: whole(100.0 * rounds.bytes / all),
        dead_percent: whole(100.0 * rounds.dead_share()),
        rounds: rounds.count,
        samples,
        confidence: match (samples, rounds.count) {
            (1000.., 10..) => Confidence::High,
            (100.., 3..) => Confidence::Medium,
            _ => Confidence::Low,
        },
        measured,
        predicted,
        survivors: survivors(run, rounds),
    }
}

// The first line in the function from which something is allocated.
fn line(run: &Run, rounds: &Rounds) -> Option<u64> {
    run.stacks.functions[rounds.function].file.as_ref()?;
    let step =
        |place: usize| run.stacks.step(run.events[run.objects[place].begun].site, rounds.function);
    rounds.objects.iter().filter_map(|&(place, _)| Some(step(place)?.at)).min()
}

// Whoever calls it most.
fn caller(run: &Run, rounds: &Rounds) -> Option<Step> {
    let mut callers = HashMap::<(Function, u64), (f64, Step)>::new();
    for &(place, _) in &rounds.objects {
        let object = run.objects[place];
        let path = run.stacks.path(run.events[object.begun].site);
        let at = path.iter().position(|step| step.function == rounds.function);
        let Some(step) = at.and_then(|at| path.get(at.checked_sub(1)?)) else { continue };
        callers.entry((step.function, step.at)).or_insert((0.0, *step)).0 += object.bytes;
    }
    callers.into_values().max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, step)| step)
}

fn survivors(run: &Run, rounds: &Rounds) -> Vec<Survivor> {
    let mut stacks = BTreeMap::<Vec<String>, f64>::new();
    for &(place, _) in rounds.objects.iter().filter(|(_, round)| round.is_none()) {
        let object = run.objects[place];
        let path = run.stacks.path(run.events[object.begun].site);
        let within = path.iter().rev().take_while(|step| step.function != rounds.function);
        let stack = within.take(SHOWN_CALLS).map(|step| shown(run, step)).collect();
        *stacks.entry(stack).or_default() += object.bytes;
    }
    let mut stacks: Vec<_> = stacks.into_iter().collect();
    stacks.sort_by(|a, b| b.1.total_cmp(&a.1));
    let survivor = |(stack, bytes): (Vec<String>, f64)| Survivor {
        stack,
        permille: whole(1000.0 * bytes / rounds.bytes),
    };
    let much = stacks.into_iter().map(survivor).filter(|survivor| survivor.permille > 0);
    much.take(MOST_SURVIVORS).collect()
}

fn shown(run: &Run, step: &Step) -> String {
    let known = &run.stacks.functions[step.function];
    source(&known.name, known.file.as_deref(), Some(step.at))
}

// Such as `serve  server.c:17`.
fn source(function: &str, file: Option<&str>, line: Option<u64>) -> String {
    let function = text::printable(function);
    let Some(file) = file.and_then(|file| file.rsplit('/').next()) else { return function };
    let line = line.map_or_else(String::new, |line| format!(":{line}"));
    format!("{function}  {}{line}", text::printable(file))
}

impl Place {
    /// The function, what a scope around it would leave resident, and what is now.
    pub fn outcome(&self) -> (&str, Resident, Resident) {
        (&self.function, self.predicted, self.measured)
    }

    /// Whether a good part of what is left behind waits for somebody who gives it back.
    pub fn leaves_idle(&self) -> bool {
        self.predicted.idle > MUCH_BYTES.max(self.predicted.trough_bytes / 4)
    }

    /// Lines to put in.
    pub fn patch(&self) -> &[String] {
        &self.patch
    }

    /// For people; with what a scope there would do, if one belongs there.
    pub fn text(&self, is_place: bool) -> String {
        let mut out = source(&self.function, self.file.as_deref(), self.line);
        // Writing to a String does not fail.
        if let Some(caller) = &self.caller {
            let by = source(caller, self.caller_file.as_deref(), self.caller_line);
            let _ = write!(out, ", called by {by}");
        }
        let _ = writeln!(
            out,
            "\n   allocates {} % of all bytes, of which {} % are dead before its next round",
            self.allocated_percent, self.dead_percent
        );
        let _ = writeln!(
            out,
            "   {} in about {}: {} confidence",
            text::count(Some(self.samples as u64), "sample"),
            text::count(Some(self.rounds as u64), "round"),
            match self.confidence {
                Confidence::Low => "low",
                Confidence::Medium => "medium",
                Confidence::High => "high",
            }
        );
        if is_place {
            self.add_advice(&mut out);
        }
        out
    }

    fn add_advice(&self, out: &mut String) {
        let bytes = |bytes| text::bytes(Some(bytes));
        let (now, then) = (self.measured, self.predicted);
        let _ = writeln!(
            out,
            "   a scope around it: resident {} instead of {} at the peak, {} instead of {} behind",
            bytes(then.peak_bytes),
            bytes(now.peak_bytes),
            bytes(then.trough_bytes),
            bytes(now.trough_bytes),
        );
        if !self.survivors.is_empty() {
            out.push_str("   if this is made outside (tslab_scope_default), which outlives it:\n");
        }
        for survivor in &self.survivors {
            let _ = writeln!(
                out,
                "     {}.{} %  {}",
                survivor.permille / 10,
                survivor.permille % 10,
                survivor.stack.join("  <-  ")
            );
        }
        for line in &self.patch {
            let _ = writeln!(out, "   {line}");
        }
    }
}
