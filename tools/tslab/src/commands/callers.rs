//! callers: names of the call stacks that hold most of what a process sampled, for `serve`.
//!
//! Programs may be anything, and have gigabytes of symbols: they are read in a process of their
//! own, which gives way to all others and has a bound.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use rustix::process::{
    Resource, Rlimit, Signal, getrlimit, nice, set_parent_process_death_signal, setrlimit,
};
use serde::{Deserialize, Serialize};

use super::survivors::Call;
use super::{Answer, Setting, Subject, profile};
use crate::names::Names;
use crate::sampling::{Sampling, Site, float, whole};
use crate::text;

/// So many stacks of a process are named, those that hold most.
pub const MOST_STACKS: usize = 256;

// Innermost, as `leaks` shows them.
const SHOWN_CALLS: usize = 3;
const MOST_CHARS: usize = 300;

// The allocator's calls are among the innermost.
const MOST_FRAMES: usize = 24;

// Of address space.
const MOST_BYTES: u64 = 1 << 30;
// Of one core.
const MOST_SECONDS: u64 = 30;
const NICE: i32 = 10;

/// The names of a process's call stacks.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Callers {
    /// When its file was made: another program, run by exec, makes another.
    pub made_ms: u64,
    /// Each name once.
    pub callers: Vec<Caller>,
}

/// Calls, and the stacks that begin with them.
#[derive(Debug, Deserialize, Serialize)]
pub struct Caller {
    /// Innermost first, without the allocator's own. None: no file tells.
    pub name: Option<String>,
    /// In `sites`.
    pub rows: Vec<usize>,
}

/// What lives of each call stack, as is estimated in bytes; those that hold most first, each by its
/// place in `sites`.
pub fn held(sampling: &Sampling) -> Vec<(usize, f64)> {
    let mut held = BTreeMap::<usize, f64>::new();
    for live in &sampling.live {
        *held.entry(live.site).or_default() += sampling.objects(live) * float(live.bytes);
    }
    let mut held: Vec<_> = held.into_iter().collect();
    held.sort_by_key(|(_, bytes)| Reverse(whole(*bytes)));
    held
}

/// Names them, in JSON.
pub fn run(setting: &Setting, pid: u32) -> Result<Answer> {
    keep_small()?;
    let subject = Subject::find(setting, &pid.to_string())?;
    let output = text::json_line(&Callers::of(&subject))?;
    Ok(Answer { output, ..Answer::default() })
}

// Whoever asked may have ended.
fn keep_small() -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    limit(Resource::Core, 0)?;
    limit(Resource::As, MOST_BYTES)?;
    limit(Resource::Cpu, MOST_SECONDS)?;
    nice(NICE)?;
    Ok(())
}

// Nobody but root may go beyond a limit that there is.
fn limit(resource: Resource, most: u64) -> Result<()> {
    let most = getrlimit(resource).maximum.map_or(most, |allowed| allowed.min(most));
    setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    Ok(())
}

impl Callers {
    fn of(subject: &Subject) -> Self {
        let made_ms = subject.snapshot.header.made_ms;
        let Some(sampling) = &subject.snapshot.sampling else {
            return Self { made_ms, ..Self::default() };
        };
        let largest = held(sampling).into_iter().take(MOST_STACKS);
        let stacks: Vec<_> = largest.map(|(place, _)| inner(&sampling.sites[place])).collect();
        let calls: BTreeSet<_> = stacks.iter().flat_map(Site::calls).collect();
        let names = profile::names(subject, &calls);
        let mut rows = BTreeMap::<_, Vec<_>>::new();
        for stack in &stacks {
            rows.entry(name(&names, stack)).or_default().push(stack.row);
        }
        let callers = rows.into_iter().map(|(name, rows)| Caller { name, rows }).collect();
        Self { made_ms, callers }
    }
}

fn inner(site: &Site) -> Site {
    let frames = site.frames.iter().take(MOST_FRAMES).copied().collect();
    Site { frames, ..site.clone() }
}

fn name(names: &Names, stack: &Site) -> Option<String> {
    let calls = names.user_calls(stack);
    let lines = calls.iter().flat_map(|call| names.lines(*call)).take(SHOWN_CALLS);
    let calls: Vec<_> = lines.map(|line| Call::of(&line)).collect();
    // An address means nothing to anybody.
    let is_known = calls.iter().any(|call| !call.name().starts_with("0x"));
    let shown = || calls.iter().map(shown).collect::<Vec<_>>().join(" <- ");
    is_known.then(|| text::shortened(&shown(), MOST_CHARS))
}

fn shown(call: &Call) -> String {
    let (name, place) = (call.name(), call.place());
    if place.is_empty() { name } else { format!("{name} ({place})") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{add_sampled, sampled};
    use crate::profile::sampling_of_test;

    #[test]
    fn stacks_that_hold_most_come_first() {
        let sampling = sampling_of_test();
        let held: Vec<_> =
            held(&sampling).iter().map(|(place, bytes)| (*place, whole(*bytes))).collect();
        assert_eq!(held, [(3, 100_000), (0, 12_481), (2, 4_225), (1, 4_160)]);
    }

    #[test]
    fn a_name_has_functions_and_where_they_stand() {
        let names = crate::names::of_test(&[
            (0x1000, "malloc", "malloc.c", 1),
            (0x2000, "keep", "/src/user.c", 40),
            (0x3000, "serve", "", 0),
        ]);
        let name =
            |frames: &[u64]| name(&names, &Site { frames: frames.to_vec(), ..Site::default() });
        let known = name(&[0x1001, 0x2001, 0x2001, 0x2001, 0x2001]).unwrap();
        assert_eq!(known, "keep (user.c:40) <- keep (user.c:40) <- keep (user.c:40)");
        assert_eq!(name(&[0x1001, 0x2001, 0x4001]).unwrap(), "keep (user.c:40) <- 0x4000");
        assert_eq!(name(&[0x4001, 0x5001]), None);
    }

    #[test]
    fn each_name_has_its_stacks() {
        // It has ended, so that nothing is known of its calls.
        let callers = Callers::of(&Subject::of_bytes(sampled().bytes()));
        assert_eq!(callers.callers.len(), 1);
        assert_eq!((&callers.callers[0].name, callers.callers[0].rows.len()), (&None, 4));
        let mut own = crate::fixture::sample(std::process::id(), 7);
        let here = (held as fn(&Sampling) -> Vec<(usize, f64)>) as usize as u64;
        add_sampled(&mut own, &[here + 1]);
        let subject = Subject::of_bytes(own.bytes());
        let callers = Callers::of(&Subject { life: crate::host::Life::Alive, ..subject });
        let name = callers.callers[0].name.as_deref().unwrap();
        assert!(name.contains("held (callers.rs:"), "{name}");
        assert_eq!((callers.made_ms, &callers.callers[0].rows[..]), (own.made_ms, &[1][..]));
    }
}
