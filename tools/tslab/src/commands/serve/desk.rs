//! The desk: answers questions, and gives an answer that is fresh to all who ask the same.
//!
//!  D1  one question is worked on at a time, and one beside it for which the system walks through
//!      page tables: however many ask, two cores are busy, beside the watch and the disk; a walk
//!      that takes long holds up other walks alone
//!  D2  an answer is kept for `FRESH` at least, and nine times as long as it took, up to `STALE`:
//!      reading takes a tenth of that core's time at most, unless it takes very long
//!  D3  what is kept is bounded in number and in bytes; the newest answer stays

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use anyhow::Result;
use axum::body::Bytes;
use tokio::sync::Mutex as Turn;

use super::agent::Agent;
use super::historian::{self, Historian, Wanted};
use super::limits::Limits;
use super::pace::Pace;
use super::question::Question;
use super::refusal::Refusal;
use super::spare;
use super::walker::Walker;
use super::watch::{Found, Watch};

const FRESH: Duration = Duration::from_millis(200);
const STALE: Duration = Duration::from_secs(5);

const MOST_KEPT: usize = 256;
const MOST_KEPT_BYTES: usize = 8 << 20;

type Reply = Result<Bytes, Refusal>;

struct Kept {
    reply: Reply,
    until: Instant,
}

/// Where everyone asks.
pub struct Desk {
    directory: PathBuf,
    limits: Limits,
    found: Arc<Found>,
    historian: OnceLock<Weak<Historian>>,
    agent: Arc<Turn<Agent>>,
    walker: Arc<Turn<Walker>>,
    kept: Mutex<HashMap<Question, Kept>>,
}

impl Desk {
    /// For the processes that have files in this directory.
    pub fn new(directory: &Path, limits: Limits) -> Result<Self> {
        let found = Arc::new(Found::new(limits.most_sites));
        let agent = Agent::new(directory, limits, Arc::clone(&found))?;
        let walker = Walker::new(directory, limits, Arc::clone(&found));
        Ok(Self {
            directory: directory.to_owned(),
            limits,
            found,
            historian: OnceLock::new(),
            agent: Arc::new(Turn::new(agent)),
            walker: Arc::new(Turn::new(walker)),
            kept: Mutex::default(),
        })
    }

    /// Begins to look at all processes, now and then. `history`: where to keep what is found.
    pub fn watch(&self, history: Option<&Path>, pace: Pace) {
        let begin = || {
            let limits = self.limits.of_findings();
            Watch::begin(self.directory.clone(), limits, pace, &self.found, history)
        };
        self.historian.get_or_init(begin);
    }

    /// Ends the history, if one is kept.
    pub async fn end(&self) {
        if let Some(historian) = self.historian.get().and_then(Weak::upgrade) {
            historian.end().await;
        }
    }

    /// Ms since an epoch was closed after which its objects are leak candidates.
    pub fn leak_after_ms(&self) -> u64 {
        self.limits.leak_after_ms
    }

    /// The answer to a question, from a moment ago or from now.
    pub async fn answer(self: &Arc<Self>, question: Question) -> Reply {
        if let Some(reply) = self.fresh(&question) {
            return reply;
        }
        if let Question::Past(wanted) = question {
            return self.remember(wanted).await;
        }
        if question.walks() {
            let answer = |walker: &mut Walker, question: &Question| walker.answer(question);
            return self.in_turn(&self.walker, question, answer).await;
        }
        self.in_turn(&self.agent, question, Agent::answer).await
    }

    async fn in_turn<R: Send + 'static>(
        self: &Arc<Self>,
        reader: &Arc<Turn<R>>,
        question: Question,
        answer: fn(&mut R, &Question) -> Result<Vec<u8>>,
    ) -> Reply {
        let mut reader = Arc::clone(reader).lock_owned().await;
        // Who was before may have asked the same.
        if let Some(reply) = self.fresh(&question) {
            return reply;
        }
        let desk = Arc::clone(self);
        let work = move || desk.work(question, |question| answer(&mut reader, question));
        let work = tokio::task::spawn_blocking(work);
        work.await.unwrap_or_else(|_| {
            let advice = "what `tslab serve` wrote to standard error says why";
            Err(Refusal::Failed(format!("reading broke off: {advice}")))
        })
    }

    // The disk is not waited for with the agent in hand.
    async fn remember(&self, wanted: Wanted) -> Reply {
        let historian = self.historian.get().cloned().unwrap_or_default();
        let told = historian::told(&historian, wanted).await;
        let reply = told.map(Bytes::from).map_err(Refusal::from);
        let kept = Kept { reply: reply.clone(), until: Instant::now() + FRESH };
        self.keep(Question::Past(wanted), kept);
        reply
    }

    fn work(&self, question: Question, answer: impl FnOnce(&Question) -> Result<Vec<u8>>) -> Reply {
        let start = Instant::now();
        let reply = answer(&question).map(Bytes::from).map_err(Refusal::from);
        if question.reads_programs() {
            spare::give_back();
        }
        let keep = (start.elapsed() * 9).clamp(FRESH, STALE);
        self.keep(question, Kept { reply: reply.clone(), until: Instant::now() + keep });
        reply
    }

    fn fresh(&self, question: &Question) -> Option<Reply> {
        let kept = self.kept();
        let kept = kept.get(question).filter(|kept| kept.is_fresh())?;
        Some(kept.reply.clone())
    }

    fn keep(&self, question: Question, new: Kept) {
        let mut kept = self.kept();
        kept.retain(|_, old| old.is_fresh());
        kept.remove(&question);
        while is_full(&kept, new.bytes()) {
            let first = kept.iter().min_by_key(|(_, old)| old.until).map(|(of, _)| of.clone());
            first.and_then(|first| kept.remove(&first));
        }
        kept.insert(question, new);
    }

    // Nobody panics who has it.
    fn kept(&self) -> MutexGuard<'_, HashMap<Question, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// Whether an answer of so many bytes needs the place of others.
fn is_full(kept: &HashMap<Question, Kept>, more_bytes: usize) -> bool {
    let bytes: usize = kept.values().map(Kept::bytes).sum();
    !kept.is_empty() && (kept.len() >= MOST_KEPT || bytes + more_bytes > MOST_KEPT_BYTES)
}

impl Kept {
    fn bytes(&self) -> usize {
        self.reply.as_ref().map_or(0, Bytes::len)
    }

    fn is_fresh(&self) -> bool {
        Instant::now() < self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::serve::form::Form;
    use crate::commands::serve::target::Target;

    const LIMITS: Limits = Limits { most_labels: 16, most_sites: 10, leak_after_ms: 60_000 };
    const PATIENCE: Duration = Duration::from_secs(30);
    // Above the largest number that Linux gives to a process.
    const NOBODY: u32 = 4_200_000_000;

    fn desk() -> Arc<Desk> {
        Arc::new(Desk::new(Path::new("/nowhere"), LIMITS).unwrap())
    }

    fn kept(ms: u64) -> Kept {
        let until = Instant::now() + Duration::from_millis(ms);
        Kept { reply: Ok(Bytes::from_static(b"kept")), until }
    }

    fn ask(desk: &Arc<Desk>, question: Question) -> Reply {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(desk.answer(question))
    }

    #[test]
    fn fresh_answers_are_given_again_and_old_ones_are_not() {
        let desk = desk();
        desk.keep(Question::Processes, kept(600_000));
        assert_eq!(ask(&desk, Question::Processes).unwrap(), "kept");
        desk.keep(Question::Processes, kept(0));
        let refused = ask(&desk, Question::Processes).unwrap_err();
        assert!(matches!(&refused, Refusal::Failed(why) if why.contains("--directory")));
        assert!(desk.fresh(&Question::Processes).is_some(), "refusals are kept, too");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let desk = desk();
        (0..1000).for_each(|pid| desk.keep(Question::Stats(Target::from(pid)), kept(600_000)));
        assert_eq!(desk.kept().len(), MOST_KEPT);
        assert!(desk.fresh(&Question::Stats(999.into())).is_some());
        let large = |bytes| Kept { reply: Ok(vec![0; bytes].into()), ..kept(600_000) };
        (0..20).for_each(|pid| {
            desk.keep(Question::Profile(Target::from(pid)), large(MOST_KEPT_BYTES / 4));
        });
        assert_eq!(desk.kept().values().map(Kept::bytes).sum::<usize>(), MOST_KEPT_BYTES);
        desk.keep(Question::Profile(7.into()), large(2 * MOST_KEPT_BYTES));
        assert!(desk.kept().len() == 1 && desk.fresh(&Question::Profile(7.into())).is_some());
    }

    // A slow read of what is resident is one that has not ended.
    #[test]
    fn a_slow_walk_holds_up_other_walks_alone() {
        let desk = Arc::new(Desk::new(Path::new("src"), LIMITS).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let walk = desk.walker.lock().await;
            for question in [Question::Metrics(Form::Plain), Question::Stats(NOBODY.into())] {
                let answer = tokio::time::timeout(PATIENCE, desk.answer(question)).await;
                assert!(answer.is_ok(), "it waits");
            }
            for question in [Question::Why(NOBODY.into()), Question::Doctor(NOBODY.into())] {
                let answer = tokio::time::timeout(FRESH, desk.answer(question)).await;
                assert!(answer.is_err(), "two walks at a time");
            }
            drop(walk);
            let _scrape = desk.agent.lock().await;
            let walk =
                tokio::time::timeout(PATIENCE, desk.answer(Question::Why(NOBODY.into()))).await;
            assert!(matches!(walk, Ok(Err(Refusal::NotFound(_)))), "{walk:?}");
        });
    }

    #[test]
    fn a_process_that_is_not_there_is_told_from_what_went_wrong() {
        let desk = Arc::new(Desk::new(Path::new("src"), LIMITS).unwrap());
        let refused = ask(&desk, Question::Stats(NOBODY.into())).unwrap_err();
        assert!(matches!(refused, Refusal::NotFound(_)), "{refused:?}");
    }
}
