//! What each process was up to a minute ago: a look at it now tells what has changed.

use std::collections::HashMap;
use std::mem::size_of;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::commands::Subject;
use crate::sampling::{LiveSample, Sampling, Site};
use crate::snapshot::Epoch;

/// A look is passed over for a newer one when that has become so old: what is given is between
/// half a minute and a minute old, once the server has run for so long.
const STEP: Duration = Duration::from_secs(30);

/// For all looks together. Those of processes that need more are not kept.
const MOST_BYTES: usize = 8 << 20;

/// A process, whatever other process gets its number later: number and start.
pub type Key = (u32, u64);

/// The key of the process that was looked at.
pub fn key(subject: &Subject) -> Key {
    (subject.pid, subject.snapshot.header.start_ticks)
}

#[derive(Debug)]
struct Look {
    subject: Arc<Subject>,
    at: Instant,
    bytes: usize,
}

/// The looks.
#[derive(Debug, Default)]
pub struct Earlier {
    /// At most two of a process, the older one first.
    looks: HashMap<Key, Vec<Look>>,
    bytes: usize,
}

impl Earlier {
    /// Keeps a look, if the last one of the process is old enough.
    pub fn keep(&mut self, subject: Subject, at: Instant) {
        let bytes = bytes(&subject);
        let looks = self.looks.entry(key(&subject)).or_default();
        let is_due = looks.last().is_none_or(|last| at.duration_since(last.at) >= STEP);
        if !is_due {
            return;
        }
        if looks.len() == 2 {
            self.bytes -= looks.remove(0).bytes;
        }
        if self.bytes + bytes <= MOST_BYTES {
            self.bytes += bytes;
            looks.push(Look { subject: Arc::new(subject), at, bytes });
        }
    }

    /// The oldest look that is kept of a process.
    pub fn before(&self, now: &Subject) -> Option<Arc<Subject>> {
        let looks = self.looks.get(&key(now))?;
        looks.first().map(|look| Arc::clone(&look.subject))
    }

    /// Forgets all other processes.
    pub fn retain(&mut self, is_there: impl Fn(&Key) -> bool) {
        self.looks.retain(|key, _| is_there(key));
        self.bytes = self.looks.values().flatten().map(|look| look.bytes).sum();
    }
}

// What grows with the process; the rest is a few KiB.
fn bytes(subject: &Subject) -> usize {
    let snapshot = &subject.snapshot;
    let of_sampling = |sampling: &Sampling| {
        let frames: usize = sampling.sites.iter().map(|site| site.frames.len()).sum();
        sampling.live.len() * size_of::<LiveSample>()
            + sampling.sites.len() * size_of::<Site>()
            + frames * size_of::<u64>()
    };
    let epochs = snapshot.epochs.len() * size_of::<Epoch>();
    epochs + snapshot.sampling.as_ref().map_or(0, of_sampling)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Closing, Image, sample, server};

    fn subject(image: &Image) -> Subject {
        Subject::of_bytes(image.bytes())
    }

    #[test]
    fn what_is_given_is_half_a_minute_to_a_minute_old() {
        let (mut earlier, start) = (Earlier::default(), Instant::now());
        let mut image = sample(42, 7);
        let told_ms = image.told_ms;
        for second in (0..=120).step_by(10) {
            image.told_ms = told_ms + second * 1000;
            let now = subject(&image);
            let before = earlier.before(&now);
            let age_s =
                before.map(|before| second - (before.snapshot.header.told_ms - told_ms) / 1000);
            match second {
                0 => assert_eq!(age_s, None),
                1..=60 => assert_eq!(age_s, Some(second)),
                _ => assert!(age_s.is_some_and(|age_s| (30..=60).contains(&age_s)), "{age_s:?}"),
            }
            earlier.keep(now, start + Duration::from_secs(second));
        }
    }

    #[test]
    fn another_process_has_no_past() {
        let (mut earlier, now) = (Earlier::default(), Instant::now());
        earlier.keep(subject(&sample(42, 7)), now);
        assert!(earlier.before(&subject(&sample(42, 8))).is_none());
        assert!(earlier.before(&subject(&sample(42, 7))).is_some());
        earlier.retain(|key| *key != (42, 7));
        assert!(earlier.before(&subject(&sample(42, 7))).is_none());
        assert_eq!(earlier.bytes, 0);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let large = || subject(&server(100_000, &[Closing::leak((2, "leak"), 40)]));
        let each = bytes(&large());
        let (mut earlier, now) = (Earlier::default(), Instant::now());
        let most = u32::try_from(MOST_BYTES / each).unwrap();
        for pid in 0..most + 3 {
            earlier.keep(Subject { pid, ..large() }, now);
        }
        assert!(each > 100_000 && earlier.bytes <= MOST_BYTES, "{each}");
        let is_kept = |pid| earlier.before(&Subject { pid, ..large() }).is_some();
        assert!(is_kept(0) && is_kept(most - 1) && !is_kept(most));
        // Room comes as others go.
        earlier.retain(|(pid, _)| *pid > 1);
        earlier.keep(Subject { pid: most, ..large() }, now);
        assert!(earlier.before(&Subject { pid: most, ..large() }).is_some());
    }
}
