//! Which objects of a shared epoch outlived the epoch that they were allocated in, as far as
//! samples tell: the file knows of its objects only that they are the label's.

use std::collections::HashMap;

use super::Subject;
use crate::sampling::{LiveSample, whole};
use crate::snapshot::Epoch;

/// Epochs that share live a second at most, on average.
const SHARED_LIFE_MS: u64 = 1000;

/// Where none of fewer samples is old, old objects may have been missed.
const ENOUGH_SAMPLES: u64 = 20;

/// What the sampled objects of an epoch tell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampled {
    /// Since the oldest was allocated.
    pub oldest_ms: u64,
    /// Since the newest was.
    pub newest_ms: u64,
    /// For how many objects those stand that are old enough.
    objects: f64,
    /// How many there are, of any age.
    pub samples: u64,
}

/// The sampled objects of a process, by the id of their epoch.
pub(super) struct Outlived {
    by_epoch: HashMap<u64, Sampled>,
    /// Objects allocated later may be those of requests in flight.
    pub until_ms: u64,
    /// Those allocated later are, on average.
    pub in_flight_ms: u64,
    // Not all that was allocated before was sampled; 0: all was.
    since_ms: u64,
}

impl Outlived {
    /// Objects that are older than `after_ms` and the life of an epoch that shares.
    pub fn read(subject: &Subject, after_ms: u64) -> Self {
        let until_ms = subject.as_of_ms.saturating_sub(Self::least_ms(after_ms));
        let in_flight_ms = subject.as_of_ms.saturating_sub(SHARED_LIFE_MS);
        let by_epoch = HashMap::new();
        let mut outlived = Self { by_epoch, until_ms, in_flight_ms, since_ms: 0 };
        let Some(sampling) = &subject.snapshot.sampling else { return outlived };
        outlived.since_ms = sampling.since_ms;
        for live in &sampling.live {
            outlived.add(live, sampling.objects(live), subject.as_of_ms);
        }
        outlived
    }

    fn add(&mut self, live: &LiveSample, objects: f64, now_ms: u64) {
        let age_ms = now_ms.saturating_sub(live.sampled_ms);
        let none = Sampled { oldest_ms: age_ms, newest_ms: age_ms, objects: 0.0, samples: 0 };
        let sampled = self.by_epoch.entry(live.epoch).or_insert(none);
        sampled.samples += 1;
        sampled.oldest_ms = sampled.oldest_ms.max(age_ms);
        sampled.newest_ms = sampled.newest_ms.min(age_ms);
        if live.sampled_ms < self.until_ms {
            sampled.objects += objects;
        }
    }

    /// How old an object must be.
    pub fn least_ms(after_ms: u64) -> u64 {
        after_ms.saturating_add(SHARED_LIFE_MS)
    }

    /// None: nothing was sampled there.
    pub fn sampled(&self, epoch: &Epoch) -> Option<Sampled> {
        self.by_epoch.get(&epoch.id).copied()
    }

    fn misses_old(&self, epoch: &Epoch) -> bool {
        self.since_ms != 0 && epoch.opened_ms.is_none_or(|opened_ms| opened_ms < self.since_ms)
    }

    // Nothing in it can be old enough.
    fn is_young(&self, epoch: &Epoch) -> bool {
        epoch.opened_ms.is_none_or(|opened_ms| opened_ms >= self.until_ms)
    }

    /// How many objects of a shared epoch outlived theirs; None: nobody knows.
    pub fn objects(&self, epoch: &Epoch) -> Option<u64> {
        let sampled = self.sampled(epoch)?;
        let may_miss = sampled.samples < ENOUGH_SAMPLES
            || self.misses_old(epoch)
            || (self.is_young(epoch) && sampled.oldest_ms > SHARED_LIFE_MS);
        if sampled.objects == 0.0 && may_miss {
            return None;
        }
        let estimate = whole(sampled.objects);
        Some(epoch.live.objects.map_or(estimate, |live| estimate.min(live)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{sample, sampled};
    use crate::snapshot::Snapshot;

    fn upload(snapshot: &Snapshot) -> &Epoch {
        snapshot.epochs.iter().find(|epoch| epoch.row == 7).unwrap()
    }

    #[test]
    fn objects_older_than_the_limit_and_a_shared_life_outlived_theirs() {
        let image = sampled();
        let subject = Subject::of_bytes(image.bytes());
        let epoch = upload(&subject.snapshot);
        let objects = |after_ms| Outlived::read(&subject, after_ms).objects(epoch);
        assert_eq!(objects(60_499), Some(147));
        assert_eq!(objects(60_500), Some(33));
        assert_eq!(objects(u64::MAX), None);
        let sampled = Outlived::read(&subject, 0).sampled(epoch).unwrap();
        assert_eq!((sampled.oldest_ms, sampled.newest_ms), (subject.as_of_ms, 61_500));
    }

    #[test]
    fn estimates_are_no_more_than_what_lives() {
        let image = sampled();
        let subject = Subject::of_bytes(image.bytes());
        let mut epoch = upload(&subject.snapshot).clone();
        epoch.live.objects = Some(5);
        assert_eq!(Outlived::read(&subject, 0).objects(&epoch), Some(5));
    }

    #[test]
    fn only_many_samples_say_that_none_outlived_its_epoch() {
        let image = sampled();
        let mut subject = Subject::of_bytes(image.bytes());
        let mut epoch = upload(&subject.snapshot).clone();
        let (now_ms, live) =
            (subject.as_of_ms, &mut subject.snapshot.sampling.as_mut().unwrap().live);
        live.retain(|live| live.epoch == epoch.id && live.sampled_ms != 0);
        live.extend(std::iter::repeat_n(live[0], 20));
        let mut objects = |opened_ms, after_ms| {
            epoch.opened_ms = Some(opened_ms);
            Outlived::read(&subject, after_ms).objects(&epoch)
        };
        assert_eq!(objects(1, 120_000), Some(0));
        assert_eq!(objects(now_ms - 100_000, 120_000), None, "none can be that old");
    }

    #[test]
    fn old_objects_may_be_older_than_sampling() {
        let image = sampled();
        let mut subject = Subject::of_bytes(image.bytes());
        let mut epoch = upload(&subject.snapshot).clone();
        let (after_ms, now_ms) = (120_000, subject.as_of_ms);
        let until_ms = Outlived::read(&subject, after_ms).until_ms;
        let sampling = subject.snapshot.sampling.as_mut().unwrap();
        let is_young = |live: &LiveSample| live.epoch == epoch.id && live.sampled_ms > until_ms;
        let young = *sampling.live.iter().find(|live| is_young(live)).unwrap();
        sampling.live = vec![young; 20];
        let mut outlived = |since_ms, opened_ms| {
            subject.snapshot.sampling.as_mut().unwrap().since_ms = since_ms;
            epoch.opened_ms = opened_ms;
            Outlived::read(&subject, after_ms).objects(&epoch)
        };
        let opened_ms = Some(until_ms - 2000);
        for since_ms in [until_ms - 1000, until_ms, now_ms] {
            assert_eq!(outlived(since_ms, opened_ms), None);
        }
        assert_eq!(outlived(until_ms - 1000, None), None);
        assert_eq!(outlived(0, opened_ms), Some(0), "all was sampled ever since");
        assert_eq!(outlived(until_ms - 2000, opened_ms), Some(0), "all of the epoch was sampled");
    }

    #[test]
    fn without_samples_nobody_knows() {
        let subject = Subject::of_bytes(sample(42, 7).bytes());
        assert_eq!(Outlived::read(&subject, 0).objects(upload(&subject.snapshot)), None);
    }
}
