//! The watch: looks at all processes every ten seconds: for the history, for metrics that cost more
//! than a scrape may, and so that a later look tells what has changed.
//!
//!  W1  it reads without the locks of those who answer: what hangs there holds up no answer
//!  W2  when it ends, whyever, what it found is not told any more

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::earlier::{Earlier, Key, key};
use super::events::Events;
use super::find::Finder;
use super::historian::{Historian, Kept, now_s};
use super::holders;
use super::namer::Namer;
use super::pace::Pace;
use super::sites::Sites;
use super::store::{Owner, Row, STEP_S};
use super::verdicts::Verdict;
use crate::commands::{Subject, leaks};
use crate::host::{self, Life};
use crate::say::say;

/// How long a scrape waits for the first look.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the watch found, for those who answer.
#[derive(Debug, Default)]
pub struct Found {
    last: Mutex<Last>,
    looked: Condvar,
    sites: Arc<Sites>,
}

#[derive(Debug, Default)]
struct Last {
    /// The first look has begun, and not ended.
    is_first: bool,
    earlier: Earlier,
    verdicts: HashMap<Key, Arc<Verdict>>,
}

impl Found {
    /// `most_sites`: told apart in each process.
    pub fn new(most_sites: usize) -> Self {
        Self { sites: Arc::new(Sites::new(most_sites)), ..Self::default() }
    }

    /// Who allocated what lives.
    pub fn sites(&self) -> &Sites {
        &self.sites
    }

    /// An earlier look at the same process, up to a minute ago. What does not run does not change.
    pub fn before(&self, now: &Subject) -> Option<Arc<Subject>> {
        if now.life == Life::Alive { self.last().earlier.before(now) } else { None }
    }

    /// What the last look found of a process.
    pub fn verdict(&self, subject: &Subject) -> Option<Arc<Verdict>> {
        self.last().verdicts.get(&key(subject)).cloned()
    }

    /// Waits for the end of the first look, if it goes on.
    pub fn wait(&self) {
        let last = self.last();
        // Late or not, what there is is told.
        let _ = self.looked.wait_timeout_while(last, PATIENCE, |last| last.is_first);
    }

    // Nobody panics who has it.
    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The watch.
pub struct Watch {
    directory: PathBuf,
    limits: leaks::Limits,
    pace: Pace,
    /// When it last judged all processes.
    judged: Option<Instant>,
    found: Arc<Found>,
    finder: Finder,
    events: Events,
    namer: Namer,
    historian: Option<Arc<Historian>>,
    is_behind: bool,
}

impl Watch {
    /// Begins to look at the processes that have files in this directory. `history`: None for none.
    pub fn begin(
        directory: PathBuf,
        limits: leaks::Limits,
        pace: Pace,
        found: &Arc<Found>,
        history: Option<&Path>,
    ) -> Weak<Historian> {
        let historian = history.map(Historian::begin);
        let weak = historian.as_ref().map(Arc::downgrade).unwrap_or_default();
        found.last().is_first = true;
        let mut watch = Self {
            namer: Namer::begin(directory.clone(), &found.sites),
            directory,
            limits,
            pace,
            judged: None,
            found: Arc::clone(found),
            finder: Finder::silent(),
            events: Events::default(),
            historian,
            is_behind: false,
        };
        thread::spawn(move || {
            loop {
                watch.look();
                thread::sleep(Duration::from_secs(STEP_S));
            }
        });
        weak
    }

    fn look(&mut self) {
        let (at, at_s) = (Instant::now(), now_s());
        let (mut rows, mut seen) = (Vec::new(), HashSet::new());
        let is_due = self.pace.is_due(self.judged, at);
        self.judged = if is_due { Some(at) } else { self.judged };
        let Self { directory, limits, pace, found, finder, events, namer, .. } = self;
        finder.find(directory, &mut |subject| {
            rows.push(row(&subject, events, at_s));
            seen.insert(key(&subject));
            if is_due || found.verdict(&subject).is_none() {
                let before = found.before(&subject);
                let verdict = Verdict::of(before.as_deref(), &subject, *limits, *pace);
                found.last().verdicts.insert(key(&subject), Arc::new(verdict));
            }
            namer.name(&subject);
            let mut last = found.last();
            last.earlier.keep(subject, at);
        });
        events.keep_seen(at_s);
        found.sites.retain(|key| seen.contains(key) || host::runs(key.0, key.1));
        let mut last = found.last();
        last.verdicts.retain(|key, _| seen.contains(key));
        last.earlier.retain(|key| seen.contains(key));
        last.is_first = false;
        drop(last);
        found.looked.notify_all();
        self.keep(at_s, rows);
    }

    fn keep(&mut self, at_s: u64, rows: Vec<Row>) {
        let Some(historian) = &self.historian else { return };
        match historian.keep(at_s, rows) {
            Kept::Soon => self.is_behind = false,
            Kept::No => {
                if !std::mem::replace(&mut self.is_behind, true) {
                    say("the disk of the history is too slow: the history has a gap");
                }
            }
            Kept::Never => self.historian = None,
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        *self.found.last() = Last::default();
        self.found.sites.retain(|_| false);
        self.found.looked.notify_all();
    }
}

fn row(subject: &Subject, events: &mut Events, at_s: u64) -> Row {
    let owner = Owner {
        pid: subject.pid,
        start_ticks: subject.snapshot.header.start_ticks,
        name: subject.name.clone(),
    };
    Row {
        owner,
        rss_bytes: subject.rss_bytes,
        live_bytes: subject.snapshot.totals().live_bytes,
        holders: holders::of(subject),
        events: events.since_last(subject, at_s),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::serve::historian;
    use crate::fixture::sample;

    const LIMITS: leaks::Limits = leaks::Limits { after_ms: 60_000, open_after_ms: None };

    #[test]
    fn a_watch_that_broke_off_is_believed_no_more() {
        let found = Arc::<Found>::default();
        let (historian, _thread) = historian::stuck();
        let weak = Arc::downgrade(&historian);
        let subject = Subject::of_bytes(sample(42, 7).bytes());
        let watch = Watch {
            namer: Namer::begin(PathBuf::new(), &found.sites),
            directory: PathBuf::new(),
            limits: LIMITS,
            pace: Pace::Never,
            judged: None,
            found: Arc::clone(&found),
            finder: Finder::silent(),
            events: Events::default(),
            historian: Some(historian),
            is_behind: false,
        };
        let verdict = Arc::new(Verdict::of(None, &subject, LIMITS, Pace::Never));
        found.last().verdicts.insert(key(&subject), verdict);
        found.last().is_first = true;
        assert!(found.verdict(&subject).is_some());
        let broken = thread::spawn(move || {
            let _watch = watch;
            panic!("as a look could");
        });
        assert!(broken.join().is_err());
        assert!(found.verdict(&subject).is_none() && weak.upgrade().is_none());
        let start = Instant::now();
        found.wait();
        assert!(start.elapsed() < PATIENCE, "nobody waits for it");
    }

    #[test]
    fn a_scrape_waits_for_the_first_look_alone() {
        let found = Arc::<Found>::default();
        let start = Instant::now();
        found.wait();
        Watch::begin("/nowhere".into(), LIMITS, Pace::Never, &found, None);
        found.wait();
        assert!(!found.last().is_first && start.elapsed() < PATIENCE);
    }
}
