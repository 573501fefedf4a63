//! Sampled objects that live, of a process: whether those of the same call stacks become more.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Subject;
use super::growth::{Basis, Growth, Look, Unit, Units};
use crate::decades;
use crate::sampling::{LiveSample, Sampling, Site, float};

/// The samples.
pub(super) struct Kept<'a> {
    sampling: &'a Sampling,
    by_epoch: BTreeMap<u64, Vec<&'a LiveSample>>,
    units: BySite,
    subject: &'a Subject,
    before: Option<(&'a Subject, BySite)>,
    // What is younger may be in use.
    least_ms: u64,
}

impl<'a> Kept<'a> {
    /// None when the process tells nothing of samples.
    pub fn read(before: Option<&'a Subject>, subject: &'a Subject, least_ms: u64) -> Option<Self> {
        let sampling = subject.snapshot.sampling.as_ref()?;
        let mut by_epoch = BTreeMap::<_, Vec<_>>::new();
        for live in &sampling.live {
            by_epoch.entry(live.epoch).or_default().push(live);
        }
        let units = by_site(subject);
        let before = before.map(|before| (before, by_site(before)));
        Some(Self { sampling, by_epoch, units, subject, before, least_ms })
    }

    /// Those of an epoch, by its id.
    pub fn of_epoch(&self, id: u64) -> impl Iterator<Item = &'a LiveSample> {
        self.by_epoch.get(&id).into_iter().flatten().copied()
    }

    /// Who allocated it.
    pub fn site(&self, live: &LiveSample) -> &'a Site {
        &self.sampling.sites[live.site]
    }

    /// For how many objects some samples stand.
    pub fn objects(&self, group: &[&LiveSample]) -> f64 {
        group.iter().map(|live| self.sampling.objects(live)).sum()
    }

    /// For how many bytes they stand.
    pub fn bytes(&self, group: &[&LiveSample]) -> f64 {
        group.iter().map(|live| self.sampling.objects(live) * float(live.bytes)).sum()
    }

    /// Of the oldest of them.
    pub fn age_ms(&self, group: &[&LiveSample]) -> u64 {
        let now_ms = self.subject.as_of_ms;
        let oldest_ms = group.iter().map(|live| live.sampled_ms).min().unwrap_or(now_ms);
        now_ms.saturating_sub(oldest_ms)
    }

    /// Whether all samples of the same sites become more. Sites are told apart by label, calls and
    /// class, and keep their rows.
    pub fn growth(&self, group: &[&LiveSample]) -> Option<Growth> {
        let sites = self.sites(group);
        let all_of = |units: &BySite| -> Units {
            sites.iter().filter_map(|site| units.get(&site.row)).flatten().copied().collect()
        };
        let before = self.before.as_ref().map(|(subject, units)| (*subject, all_of(units)));
        let before = before.as_ref().map(|(subject, units)| Look { subject, units });
        let units = all_of(&self.units);
        let now = Look { subject: self.subject, units: &units };
        Growth::of(before, now, self.least_ms, Basis::Samples(None))
    }

    /// Whether as many as live were as old before they were freed: a leak reaches back to half of
    /// the process's life, and a cache has freed some of that age.
    pub fn has_ended(&self, group: &[&LiveSample]) -> bool {
        let decade = decades::of_ms(self.subject.lived_ms() / 2);
        let start_ms = decade.checked_sub(1).and_then(decades::end_ms).unwrap_or_default();
        let sum = |all: u64, times: u64| all.saturating_add(times);
        let ended = self.sites(group).into_iter().filter_map(|site| site.ended?.by_decade);
        let ended = ended.flat_map(|frees| frees.into_iter().skip(decade)).fold(0, sum);
        let is_old =
            |live: &&&LiveSample| self.subject.as_of_ms.saturating_sub(live.sampled_ms) >= start_ms;
        let live = group.iter().filter(is_old).map(|live| live.times).fold(0, sum);
        ended > 0 && ended >= live
    }

    fn sites(&self, group: &[&LiveSample]) -> Vec<&'a Site> {
        let places: BTreeSet<_> = group.iter().map(|live| live.site).collect();
        places.into_iter().map(|place| &self.sampling.sites[place]).collect()
    }
}

// By row of the site.
type BySite = HashMap<usize, Vec<((u64, u64), Unit)>>;

fn by_site(subject: &Subject) -> BySite {
    let mut by_site = BySite::new();
    let Some(sampling) = &subject.snapshot.sampling else { return by_site };
    for live in &sampling.live {
        let age_ms = subject.as_of_ms.saturating_sub(live.sampled_ms);
        let unit = Unit { age_ms, objects: sampling.objects(live) };
        let units = by_site.entry(sampling.sites[live.site].row).or_default();
        units.push(((live.address, live.sampled_ms), unit));
    }
    by_site
}
