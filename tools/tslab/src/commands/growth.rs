//! Whether survivors are those of a leak or of a cache: a leak's have all ages, and become more; of
//! a cache as many go as come.
//!
//! What comes and goes as one is a closed epoch with survivors, or a sampled object of a shared
//! one: where they come and go at random, the numbers that come and go in some time deviate from
//! their mean by its root.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Serialize;

use super::Subject;
use super::counted::{Counted, DEVIATIONS};
use super::outlived::Outlived;
use crate::sampling::float;
use crate::snapshot::{DEFAULT_EPOCH, Epoch};
use crate::text;

// Of so many comings and goings even all being of one kind is no chance.
const MANY: u64 = 25;
// To see by ages alone whether something goes on all the time, or by those of samples whether it
// has ended.
const MANY_AGES: usize = 16;

// What goes on does so at least at this part of its speed.
const GOES_ON_PARTS: f64 = 4.0;

/// What becomes of survivors in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// More and more.
    Grows,
    /// Those that there are stay, and none come.
    Stands,
    /// As many go as come.
    TurnsOver,
    /// Too little happened.
    NotKnown,
}

/// What came and went between two looks, of what is older than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Flow {
    /// Between the looks.
    over_ms: u64,
    /// Have become older than the limit.
    came: u64,
    /// Have ended, or lost objects.
    went: u64,
    /// Objects in them, estimated where they are sampled.
    came_objects: f64,
    went_objects: f64,
    /// Of those that come now, until they are older than the limit.
    #[serde(skip)]
    coming: Coming,
}

/// Those that were allocated, or whose epochs were closed, in the last time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Coming {
    in_ms: u64,
    objects: f64,
}

/// The verdict, and why.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Growth {
    /// Of the survivors of a label, or of a call stack.
    pub verdict: Verdict,
    /// None: there was one look.
    pub flow: Option<Flow>,
    /// None: there was one look, or they are of no shared epoch.
    counted: Option<Counted>,
    /// Epochs of the label share memory by now: further objects are not among these.
    is_continued: bool,
    /// Age of the oldest.
    oldest_ms: u64,
    /// Age of the newest.
    newest_ms: u64,
    /// Of the process, since it has a file.
    lived_ms: u64,
}

/// What comes and goes as one.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    /// Since its epoch was closed, or it was allocated.
    pub age_ms: u64,
    /// In it.
    pub objects: f64,
}

/// Units of one moment, by what makes each unique.
pub type Units = BTreeMap<(u64, u64), Unit>;

/// What units tell of.
#[derive(Clone, Copy)]
pub enum Basis {
    /// Of all that there is: they are closed epochs.
    All,
    /// They are samples; of what, is counted where it is a shared epoch.
    Samples(Option<Counted>),
}

/// Of a look: when, and what there was.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// The process.
    pub subject: &'a Subject,
    /// Survivors of all ages.
    pub units: &'a Units,
}

impl Coming {
    fn of(before: Look, now: Look, after_ms: u64) -> Self {
        let over_ms = now.subject.as_of_ms.saturating_sub(before.subject.as_of_ms);
        let in_ms = over_ms.max(after_ms / 4);
        let young = now.units.values().filter(|unit| unit.age_ms < in_ms);
        Self { in_ms, objects: young.map(|unit| unit.objects).sum() }
    }
}

impl Flow {
    fn of(before: Look, now: Look, after_ms: u64) -> Self {
        let is_old = |unit: &Unit| unit.age_ms > after_ms;
        let was_old = |key| before.units.get(key).is_some_and(is_old);
        let came = now.units.iter().filter(|(key, unit)| is_old(unit) && !was_old(key));
        let came: Vec<_> = came.map(|(_, unit)| unit.objects).collect();
        let left = |key| now.units.get(key).map_or(0.0, |unit| unit.objects);
        let old = before.units.iter().filter(|(_, unit)| is_old(unit));
        let lost = old.map(|(key, unit)| unit.objects - left(key));
        let went: Vec<_> = lost.filter(|&lost| lost > 0.0).collect();
        Self {
            over_ms: now.subject.as_of_ms.saturating_sub(before.subject.as_of_ms),
            came: came.len() as u64,
            went: went.len() as u64,
            came_objects: came.iter().sum(),
            went_objects: went.iter().sum(),
            coming: Coming::of(before, now, after_ms),
        }
    }

    // More come than go, and chance does not make that difference.
    fn grows(&self) -> bool {
        let square = |objects: f64, count: u64| objects * objects / float(count.max(1));
        let deviation =
            (square(self.came_objects, self.came) + square(self.went_objects, self.went)).sqrt();
        self.came_objects - self.went_objects > DEVIATIONS * deviation && self.goes_on()
    }

    // What was built up for some time comes to be older than the limit, too, but then no others do.
    fn goes_on(&self) -> bool {
        let coming_ms = float(self.coming.in_ms.max(1));
        let a_ms = self.came_objects / float(self.over_ms.max(1));
        self.coming.objects / coming_ms >= a_ms / GOES_ON_PARTS
    }

    // At least half of what comes goes.
    fn turns_over(&self) -> bool {
        self.went > 0 && self.went_objects * 2.0 >= self.came_objects
    }

    fn text(&self) -> String {
        let (came, went) = (self.came, self.went);
        format!("{came} came and {went} went in {}", text::age(Some(self.over_ms)))
    }
}

// Ages of survivors at one moment, in order; there is at least one.
struct Ages(Vec<u64>);

impl Ages {
    fn of(units: &Units) -> Option<Self> {
        let mut ages: Vec<_> = units.values().map(|unit| unit.age_ms).collect();
        ages.sort_unstable();
        (!ages.is_empty()).then_some(Self(ages))
    }

    fn newest(&self) -> u64 {
        self.0[0]
    }

    fn oldest(&self) -> u64 {
        self.0[self.0.len() - 1]
    }

    // More than a tenth are older than half of the process. A few that have been there from the
    // start do not count.
    fn reach_back(&self, lived_ms: u64) -> bool {
        self.0[(self.0.len() * 9 / 10).min(self.0.len() - 1)] >= lived_ms / 2
    }

    // Each quarter of the time has at least a quarter of its share.
    fn are_steady(&self) -> bool {
        let quarter = |age: &u64| (u128::from(*age) * 4 / (u128::from(self.oldest()) + 1)) as usize;
        let mut counts = [0_usize; 4];
        self.0.iter().for_each(|age| counts[quarter(age)] += 1);
        self.are_many() && counts.iter().all(|&count| count >= self.0.len() / 16)
    }

    fn are_many(&self) -> bool {
        self.0.len() >= MANY_AGES
    }

    // None came in the younger half of the time.
    fn have_ended(&self, after_ms: u64) -> bool {
        self.newest() > after_ms && self.newest() >= self.oldest() / 2
    }
}

impl Basis {
    fn counted(self) -> Option<Counted> {
        if let Self::Samples(counted) = self { counted } else { None }
    }

    fn grew(self) -> bool {
        self.counted().is_some_and(Counted::grew)
    }

    // Few samples are apart by chance, and none are of what begins to come.
    fn shows_end(self, ages: &Ages) -> bool {
        matches!(self, Self::All) || (ages.are_many() && !self.grew())
    }
}

fn verdict(
    flow: Option<&Flow>,
    ages: &Ages,
    basis: Basis,
    (after_ms, lived_ms): (u64, u64),
) -> Verdict {
    let reach_back = ages.reach_back(lived_ms);
    if let Some(flow) = flow {
        let is_plenty = flow.came.saturating_add(flow.went) >= MANY;
        let grows = flow.grows() || (basis.grew() && flow.came > 0 && !flow.turns_over());
        match (grows, flow.turns_over()) {
            (true, _) => return Verdict::Grows,
            (false, true) if is_plenty || !reach_back => return Verdict::TurnsOver,
            (false, true) => return Verdict::NotKnown,
            (false, false) => {}
        }
    }
    match () {
        () if reach_back && ages.are_steady() => Verdict::Grows,
        () if ages.have_ended(after_ms) && basis.shows_end(ages) => Verdict::Stands,
        () => Verdict::NotKnown,
    }
}

impl Growth {
    /// Of survivors at one or two looks. None: there are no more.
    pub fn of(before: Option<Look>, now: Look, after_ms: u64, basis: Basis) -> Option<Self> {
        let ages = Ages::of(now.units)?;
        let flow = before.map(|before| Flow::of(before, now, after_ms));
        let lived_ms = now.subject.lived_ms();
        Some(Self {
            verdict: verdict(flow.as_ref(), &ages, basis, (after_ms, lived_ms)),
            flow,
            counted: basis.counted(),
            is_continued: false,
            oldest_ms: ages.oldest(),
            newest_ms: ages.newest(),
            lived_ms,
        })
    }

    // What stays of the epochs of before tells nothing of those that share.
    fn continued(self) -> Self {
        match self.verdict {
            Verdict::Stands => Self { verdict: Verdict::NotKnown, is_continued: true, ..self },
            _ => self,
        }
    }

    /// By how many objects they grow, where that is known from what came and went.
    pub fn by_flow(&self) -> Option<f64> {
        self.flow.filter(Flow::grows).map(|flow| flow.came_objects - flow.went_objects)
    }

    /// For people: what they do, and how that is known.
    pub fn text(&self) -> String {
        let (oldest, newest) = (text::age(Some(self.oldest_ms)), text::age(Some(self.newest_ms)));
        match (self.verdict, self.flow) {
            (Verdict::Grows, Some(flow)) if flow.grows() => format!("grows: {}", flow.text()),
            (Verdict::Grows, _) if self.counted.is_some_and(Counted::grew) => {
                format!("grows: {}", self.happened())
            }
            (Verdict::Grows, _) => {
                let lived = text::age(Some(self.lived_ms));
                format!("grows: survivors of all ages up to {oldest}, in a process of {lived}")
            }
            (Verdict::Stands, _) => format!("stands: none came for {newest}"),
            (Verdict::TurnsOver, _) => {
                format!("turns over: {}, the oldest is of {oldest}", self.happened())
            }
            (Verdict::NotKnown, _) if self.is_continued => format!(
                "none came for {newest}, as later epochs of the label share memory: what \
                 outlives those is in the shared epoch"
            ),
            (Verdict::NotKnown, Some(_)) => format!(
                "too little happened to tell a leak from a cache: {}; look for longer with \
                 --over 60",
                self.happened()
            ),
            (Verdict::NotKnown, None) => {
                format!("ages {newest} to {oldest}: one look does not tell a leak from a cache")
            }
        }
    }

    // Between the looks.
    fn happened(&self) -> String {
        let flow = self.flow.map(|flow| flow.text()).unwrap_or_default();
        match self.counted {
            Some(counted) => format!("{}; of the sampled ones {flow}", counted.text()),
            None => flow,
        }
    }
}

/// Whose survivors are judged together: those of a label, shared or not; of epochs without a known
/// label each by itself.
type Group = (bool, Option<Arc<str>>, Option<u64>);

fn group(epoch: &Epoch) -> Group {
    let alone = epoch.label.is_none().then_some(epoch.row);
    (epoch.is_shared(), epoch.label.clone(), alone)
}

/// How the survivors of each label change.
pub struct Growths(HashMap<Group, Growth>);

impl Growths {
    /// `after_ms`: what is younger may be in use.
    pub fn read(before: Option<&Subject>, now: &Subject, after_ms: u64) -> Self {
        let earlier = before.map(|before| (before, units(before)));
        let (none, shared) = (Units::new(), shared_epochs(now));
        let growth = |group: &Group, units: &Units| {
            let before = earlier.as_ref().map(|(subject, groups)| Look {
                subject,
                units: groups.get(group).unwrap_or(&none),
            });
            let now = Look { subject: now, units };
            let (is_shared, label, alone) = group;
            let shared = shared.get(&(label.clone(), *alone));
            if !is_shared {
                let growth = Growth::of(before, now, after_ms, Basis::All)?;
                return Some(if shared.is_some() { growth.continued() } else { growth });
            }
            let before_it = before.map(|before| &before.subject.snapshot);
            let counted = before_it.zip(shared).and_then(|(all, one)| Counted::of(all, one));
            Growth::of(before, now, Outlived::least_ms(after_ms), Basis::Samples(counted))
        };
        let groups = units(now).into_iter();
        Self(
            groups
                .filter_map(|(group, units)| Some((group.clone(), growth(&group, &units)?)))
                .collect(),
        )
    }

    /// Of the survivors with which those of an epoch are judged. None: there are none.
    pub fn of(&self, epoch: &Epoch) -> Option<Growth> {
        self.0.get(&group(epoch)).copied()
    }
}

// Those in which something lives, by what tells groups apart beside.
fn shared_epochs(subject: &Subject) -> HashMap<(Option<Arc<str>>, Option<u64>), &Epoch> {
    let lives = |epoch: &&Epoch| epoch.live.objects.is_some_and(|objects| objects > 0);
    let shared = subject.snapshot.epochs.iter().filter(|epoch| epoch.is_shared());
    let by_label = |epoch| {
        let (_, label, alone) = group(epoch);
        ((label, alone), epoch)
    };
    shared.filter(lives).map(by_label).collect()
}

fn units(subject: &Subject) -> HashMap<Group, Units> {
    let mut groups = HashMap::<_, Units>::new();
    let epochs = subject.snapshot.epochs.iter().filter(|epoch| epoch.row != DEFAULT_EPOCH);
    let mut shared = HashMap::new();
    for epoch in epochs {
        if epoch.is_shared() {
            shared.insert(epoch.id, group(epoch));
        } else if let Some(unit) = unit(epoch, subject.as_of_ms) {
            groups.entry(group(epoch)).or_default().insert((epoch.row, epoch.id), unit);
        }
    }
    let Some(sampling) = &subject.snapshot.sampling else { return groups };
    for live in &sampling.live {
        let Some(group) = shared.get(&live.epoch) else { continue };
        let age_ms = subject.as_of_ms.saturating_sub(live.sampled_ms);
        let unit = Unit { age_ms, objects: sampling.objects(live) };
        let units = groups.entry(group.clone()).or_default();
        units.insert((live.address, live.sampled_ms), unit);
    }
    groups
}

fn unit(epoch: &Epoch, now_ms: u64) -> Option<Unit> {
    epoch.has_survivors().then_some(())?;
    Some(Unit { age_ms: epoch.since_closed_ms(now_ms)?, objects: float(epoch.live.objects?) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{
        Closing, Image, Random, add_epoch, add_sampled, add_samples, sample, server,
    };

    const MINUTE_MS: u64 = 60_000;

    fn look(lived_ms: u64, closing: Closing) -> Subject {
        Subject::of_bytes(server(lived_ms, &[closing]).bytes())
    }

    fn growth(before: Option<&Subject>, now: &Subject, after_ms: u64) -> Growth {
        let growths = Growths::read(before, now, after_ms);
        let mut all = now.snapshot.epochs.iter().filter_map(|epoch| growths.of(epoch));
        all.next().expect("survivors")
    }

    // At the age of `lived_ms`, and a second before.
    fn in_a_second(lived_ms: u64, closing: Closing) -> Growth {
        let (before, now) = (look(lived_ms - 1000, closing), look(lived_ms, closing));
        growth(Some(&before), &now, MINUTE_MS)
    }

    fn sessions(a_second: u64) -> Closing {
        Closing { kept_ms: 100_000, ..Closing::leak((3, "session"), a_second) }
    }

    #[test]
    fn a_leak_grows_and_sessions_turn_over() {
        let leak = in_a_second(300_000, Closing::leak((2, "leak"), 40));
        assert_eq!(leak.text(), "grows: 40 came and 0 went in 1.0 s");
        let cache = in_a_second(300_000, sessions(40));
        let expected = "turns over: 40 came and 40 went in 1.0 s, the oldest is of 99 s";
        assert_eq!((cache.verdict, cache.text().as_str()), (Verdict::TurnsOver, expected));
        // Also as soon as the first have ended.
        assert_eq!(in_a_second(120_000, sessions(40)).verdict, Verdict::TurnsOver);
    }

    #[test]
    fn where_little_happens_ages_decide() {
        let leak = in_a_second(300_000, Closing::leak((2, "leak"), 2));
        let expected = "grows: survivors of all ages up to 5 min, in a process of 5 min";
        assert_eq!(leak.text(), expected);
        assert_eq!(in_a_second(300_000, sessions(2)).verdict, Verdict::TurnsOver);
        // Sessions nearly as old as the process could be a leak of which one was freed.
        let young = in_a_second(120_000, sessions(2));
        assert_eq!(young.verdict, Verdict::NotKnown);
        assert!(
            young.text().ends_with("2 came and 2 went in 1.0 s; look for longer with --over 60")
        );
    }

    #[test]
    fn what_came_at_first_alone_stands() {
        let first = Closing { until_ms: 10_000, ..Closing::leak((2, "load"), 40) };
        let stands = in_a_second(300_000, first);
        assert_eq!(
            (stands.verdict, stands.text().as_str()),
            (Verdict::Stands, "stands: none came for 4 min")
        );
    }

    #[test]
    fn one_look_knows_a_leak_by_its_ages_and_no_cache() {
        let leak = look(5_000, Closing::leak((2, "leak"), 1_488));
        let died = growth(None, &leak, 500);
        assert_eq!((died.verdict, died.flow), (Verdict::Grows, None));
        let cache = growth(None, &look(300_000, sessions(2)), MINUTE_MS);
        assert_eq!(cache.verdict, Verdict::NotKnown);
        assert!(cache.text().ends_with("one look does not tell a leak from a cache"));
    }

    // Each epoch of a second keeps so many objects; all that there were before lose one.
    fn entries(each: u64, lost: bool) -> Growth {
        let closing = Closing::leak((2, "cache"), 30);
        let with = |lived_ms, objects: &dyn Fn(usize) -> u64| {
            let mut image = server(lived_ms, &[closing]);
            for row in 16..image.table("epochs").rows as usize {
                image.set_class("epochs", row, "survivors", 1, objects(row));
            }
            Subject::of_bytes(image.bytes())
        };
        let known = 16 + 40 * 30;
        let before = with(100_000, &|_| each);
        let now = with(101_000, &|row| each - u64::from(lost && row < known));
        growth(Some(&before), &now, MINUTE_MS)
    }

    #[test]
    fn entries_that_go_one_by_one_turn_over() {
        assert_eq!(entries(40, true).verdict, Verdict::TurnsOver);
        assert_eq!(entries(40, false).verdict, Verdict::Grows);
        // One that goes of each is little beside those that come.
        let some = entries(8_000, true);
        assert_eq!(some.flow.map(|flow| (flow.came, flow.went)), Some((30, 1_200)));
        assert_eq!(some.verdict, Verdict::Grows);
    }

    #[test]
    fn a_leak_beside_what_is_freed_grows() {
        // Of 100 a second, half stay.
        let (leak, cache) =
            (Closing::leak((2, "x"), 400), Closing { label: (2, "x"), ..sessions(400) });
        let at = |lived_ms| Subject::of_bytes(server(lived_ms, &[leak, cache]).bytes());
        let both = growth(Some(&at(119_000)), &at(120_000), MINUTE_MS);
        let flow = both.flow.unwrap();
        assert_eq!((both.verdict, flow.came, flow.went), (Verdict::Grows, 800, 400));
    }

    #[test]
    fn a_leak_of_which_some_is_freed_does_not_turn_over() {
        // A quarter of what comes goes.
        let leak = Closing::leak((2, "x"), 15);
        let cache = Closing { label: (2, "x"), ..sessions(5) };
        let at = |lived_ms| Subject::of_bytes(server(lived_ms, &[leak, cache]).bytes());
        let both = growth(Some(&at(299_000)), &at(300_000), MINUTE_MS);
        let flow = both.flow.unwrap();
        assert_eq!((both.verdict, flow.came, flow.went), (Verdict::Grows, 20, 5));
    }

    fn shared() -> Image {
        let mut image = sample(42, 7);
        add_samples(&mut image);
        image.set_all("epochs", 7, &[("state", 3), ("closed_ms", 0)]);
        image
    }

    #[test]
    fn of_a_shared_epoch_the_sampled_objects_are_judged() {
        let before = Subject::of_bytes(shared().bytes());
        let flow_to = |image: &Image| {
            let now = Subject::of_bytes(image.bytes());
            let growths = Growths::read(Some(&before), &now, MINUTE_MS);
            let epoch = now.snapshot.epochs.iter().find(|epoch| epoch.is_shared()).unwrap();
            growths.of(epoch).unwrap().flow.map(|flow| (flow.over_ms, flow.came, flow.went))
        };
        let mut same = shared();
        same.told_ms += 1_000;
        assert_eq!(flow_to(&same), Some((1_000, 0, 0)));
        // Four of the five of that epoch; none is younger than a minute and a second.
        for row in [1, 2, 3, 5] {
            same.set("samples", row, "address", 0x9_0000 + row as u64);
        }
        assert_eq!(flow_to(&same), Some((1_000, 4, 4)));
        same.set("samples", 4, "site", 0);
        assert_eq!(flow_to(&same), Some((1_000, 4, 5)));
    }

    #[test]
    fn what_was_built_up_grows_no_more_as_it_gets_older_than_the_limit() {
        let first = Closing { until_ms: 30_000, ..Closing::leak((2, "load"), 40) };
        let growth = in_a_second(75_000, first);
        assert_eq!(growth.flow.map(|flow| (flow.came, flow.went)), Some((40, 0)));
        assert_eq!(growth.verdict, Verdict::NotKnown);
    }

    // A shared epoch that loses an object a second for ever, or for some time at first. Of these
    // one in 18 is sampled, at random.
    fn losing(lived_s: u64, until_s: u64, seed: u64) -> Image {
        let mut image = Image::new(42, 7);
        let made_ms = image.made_ms;
        image.told_ms = made_ms + lived_s * 1000;
        add_epoch(&mut image, 7, "page", &[("state", 3), ("opened_ms", 1)]);
        image.set_class("epochs", 7, "survivors", 1, lived_s.min(until_s));
        add_sampled(&mut image, &[0x1001]);
        image.set("samples", 1, "site", 0);
        let mut random = Random(seed);
        let is_sampled = |_: &u64| random.below(18) == 0;
        for (row, second) in (1..).zip((1..=until_s).filter(is_sampled)) {
            if second > lived_s {
                break;
            }
            image.reach("samples", row);
            let values = [("site", 1), ("address", second * 4096), ("bytes", 224)];
            image.set_all("samples", row, &values);
            let sampled_ms = made_ms + second * 1000;
            image.set_all("samples", row, &[("epoch", 1 << 24 | 7), ("sampled_ms", sampled_ms)]);
        }
        image
    }

    fn losing_for(over_s: Option<u64>, lived_s: u64, after_ms: u64, seed: u64) -> Option<Growth> {
        let at = |lived_s| Subject::of_bytes(losing(lived_s, u64::MAX >> 1, seed).bytes());
        let (before, now) = (over_s.map(|over_s| at(lived_s - over_s)), at(lived_s));
        let growths = Growths::read(before.as_ref(), &now, after_ms);
        growths.of(now.snapshot.epochs.iter().find(|epoch| epoch.is_shared())?)
    }

    #[test]
    fn a_leak_of_an_object_a_second_never_stands() {
        for seed in 1..=8 {
            for (lived_s, over_s) in [(30, None), (30, Some(1)), (90, Some(1)), (150, Some(60))] {
                for after_ms in [5_000, MINUTE_MS] {
                    let growth = losing_for(over_s, lived_s, after_ms, seed);
                    let is_right = |growth: &Growth| {
                        matches!(growth.verdict, Verdict::NotKnown | Verdict::Grows)
                    };
                    assert!(growth.as_ref().is_none_or(is_right), "{growth:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_counted_tells_with_a_few_samples_that_it_grows() {
        let growth = losing_for(Some(80), 100, 5_000, 3).unwrap();
        assert_eq!(growth.verdict, Verdict::Grows);
        let expected =
            "grows: 20 to 100 objects live; of the sampled ones 4 came and 0 went in 80 s";
        assert_eq!(growth.text(), expected);
    }

    #[test]
    fn of_many_samples_those_of_the_first_seconds_stand() {
        let now = Subject::of_bytes(losing(2_000, 600, 1).bytes());
        assert_eq!(growth(None, &now, MINUTE_MS).verdict, Verdict::Stands);
        let few = Subject::of_bytes(losing(2_000, 60, 1).bytes());
        assert_eq!(growth(None, &few, MINUTE_MS).verdict, Verdict::NotKnown);
    }

    #[test]
    fn epochs_of_a_label_that_shares_since_do_not_stand() {
        let mut image = losing(120, u64::MAX >> 1, 1);
        let closed = [("state", 1), ("opened_ms", 1), ("closed_ms", image.made_ms + 1_000)];
        add_epoch(&mut image, 5, "other", &closed);
        image.set_class("epochs", 5, "survivors", 1, 1);
        let of_five = |image: &Image| {
            let now = Subject::of_bytes(image.bytes());
            let five = now.snapshot.epochs.iter().find(|epoch| epoch.row == 5).unwrap();
            Growths::read(None, &now, MINUTE_MS).of(five).unwrap()
        };
        assert_eq!(of_five(&image).text(), "stands: none came for 119 s");
        image.set("epochs", 5, "label", 7);
        let continued = of_five(&image);
        assert_eq!(continued.verdict, Verdict::NotKnown);
        let expected = "none came for 119 s, as later epochs of the label share memory";
        assert!(continued.text().starts_with(expected), "{}", continued.text());
    }
}
