//! Sites: the calls that allocated most of what lives, as far as processes sampled it.
//!
//!  S1  a scrape takes the names that there are, and waits for none: what has no name yet is in the
//!      row `other`, so that the rows of a process add up to what its samples stand for
//!  S2  a process has at most `EVER` times as many sites and labels of its own as are told at a
//!      time, however long it runs, each with up to three values of `sampled`
//!  S3  what is kept is bounded, of each process and of all

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::earlier::{Key, key};
use super::labels::{OTHER, known_label};
use super::samples::{OfProcess, Samples};
use crate::commands::Subject;
use crate::commands::callers::{Caller, Callers, MOST_STACKS, held};
use crate::sampling::{Sampling, whole};

/// A process that runs for weeks comes to have other sites that hold most.
const EVER: usize = 6;

/// What holds less than this part of what was sampled is in `other`: chance alone may have
/// brought it up.
const LEAST_PART: f64 = 0.01;

/// Names are asked for once stacks without one hold more than this part.
const NAMELESS_PART: f64 = 0.02;

/// What made so many tries fail will make the next fail, too.
const MOST_FAILURES: u32 = 3;

const MOST_NAMED: usize = 4 * MOST_STACKS;
const MOST_BYTES: usize = 4 << 20;

/// Of a row beside its texts, at most.
const ROW_BYTES: usize = 64;

/// A site and the label of the epochs in which it allocates.
type Place = (Arc<str>, Arc<str>);

/// The sites of all processes.
#[derive(Debug, Default)]
pub struct Sites {
    /// Told at a time in each process; 0: none are.
    most: usize,
    processes: Mutex<HashMap<Key, Process>>,
}

#[derive(Debug, Default)]
struct Process {
    /// Of its file: another program, run by exec, makes another.
    made_ms: u64,
    is_asked: bool,
    /// There was no room for an answer.
    is_refused: bool,
    /// In a row: answers that did not come.
    failures: u32,
    /// By the row in `sites`; None: nobody knows.
    names: HashMap<usize, Option<Arc<str>>>,
    /// Those that had a series.
    told: BTreeSet<Place>,
}

impl Sites {
    /// `most`: how many to tell apart in each process.
    pub fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Whether names are wanted of a process; then it is true again only after `keep`, `withdraw`
    /// or `fail`.
    pub fn take_wish(&self, subject: &Subject) -> bool {
        let Some(sampling) = self.sampling(subject) else { return false };
        let held = held(sampling);
        let mut processes = self.processes();
        let process = processes.entry(key(subject)).or_default();
        process.follow(subject.snapshot.header.made_ms);
        let is_nameless =
            |(place, _): &&(usize, f64)| !process.names.contains_key(&sampling.sites[*place].row);
        let nameless = sum(held.iter().take(MOST_STACKS).filter(is_nameless));
        let wants = process.may_ask() && nameless > NAMELESS_PART * sum(held.iter());
        process.is_asked |= wants;
        wants
    }

    /// Keeps what was found.
    pub fn keep(&self, key: Key, callers: Callers) {
        let mut processes = self.processes();
        let Some(process) = processes.get_mut(&key) else { return };
        process.is_asked = false;
        if callers.made_ms != process.made_ms {
            return;
        }
        process.failures = 0;
        process.make_way(&callers);
        let bytes: usize = processes.values().map(Process::bytes).sum();
        let Some(process) = processes.get_mut(&key) else { return };
        process.is_refused = !process.keep(callers, MOST_BYTES.saturating_sub(bytes));
    }

    /// Nobody was asked: names are wanted as before.
    pub fn withdraw(&self, key: Key) {
        if let Some(process) = self.processes().get_mut(&key) {
            process.is_asked = false;
        }
    }

    /// No answer came. True: it was the last try.
    pub fn fail(&self, key: Key) -> bool {
        let mut processes = self.processes();
        let Some(process) = processes.get_mut(&key) else { return false };
        process.is_asked = false;
        process.failures += 1;
        process.failures == MOST_FAILURES
    }

    /// Forgets all other processes. Their room is for those that were refused.
    pub fn retain(&self, is_there: impl Fn(&Key) -> bool) {
        let mut processes = self.processes();
        let before = processes.len();
        processes.retain(|key, _| is_there(key));
        if processes.len() < before {
            processes.values_mut().for_each(|process| process.is_refused = false);
        }
    }

    /// Adds what the sites of a process hold to what a scrape gets.
    pub fn add(&self, samples: &mut Samples, subject: &Subject) {
        let Some(sampling) = self.sampling(subject) else { return };
        let made_ms = subject.snapshot.header.made_ms;
        let mut processes = self.processes();
        let mut unknown = Process::default();
        let process = processes.get_mut(&key(subject)).unwrap_or(&mut unknown);
        let is_known = process.made_ms == made_ms;
        let held = process.by_place(sampling, is_known);
        let rows = process.choose(held, self.most);
        let mut out = OfProcess::new(samples, subject.pid, subject.name.as_deref().unwrap_or(""));
        let reach: Arc<str> = sampling.reach().text().into();
        for ((site, label), bytes) in rows {
            let labels = [&site, &label, &reach];
            out.gauge("tslab_site_live_bytes", &labels, Some(whole(bytes)));
        }
    }

    // None: there is nothing to tell.
    fn sampling<'a>(&self, subject: &'a Subject) -> Option<&'a Sampling> {
        let sampling = subject.snapshot.sampling.as_ref().filter(|_| self.most > 0);
        sampling.filter(|sampling| !sampling.live.is_empty())
    }

    // Nobody panics who has it.
    fn processes(&self) -> MutexGuard<'_, HashMap<Key, Process>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn sum<'a>(held: impl Iterator<Item = &'a (usize, f64)>) -> f64 {
    held.map(|(_, bytes)| bytes).sum()
}

fn other() -> Place {
    (OTHER.into(), OTHER.into())
}

impl Process {
    // What was told stays told: the process has the same number.
    fn follow(&mut self, made_ms: u64) {
        if std::mem::replace(&mut self.made_ms, made_ms) != made_ms {
            self.names.clear();
            self.is_asked = false;
            self.is_refused = false;
            self.failures = 0;
        }
    }

    fn may_ask(&self) -> bool {
        !self.is_asked && !self.is_refused && self.failures < MOST_FAILURES
    }

    // A name that is still wanted stays, even if there is no room for others.
    fn make_way(&mut self, callers: &Callers) {
        if self.names.len() > MOST_NAMED - MOST_STACKS {
            let wanted = callers.callers.iter().flat_map(|caller| &caller.rows);
            let wanted: BTreeSet<_> = wanted.copied().collect();
            self.names.retain(|row, _| wanted.contains(row));
        }
    }

    // A row is one call stack for good: its first name is that of the program as it was then.
    // False: there was no room for all.
    fn keep(&mut self, callers: Callers, room: usize) -> bool {
        let mut bytes = 0;
        for Caller { name, mut rows } in callers.callers {
            rows.retain(|row| !self.names.contains_key(row));
            if rows.is_empty() {
                continue;
            }
            bytes += name.as_ref().map_or(0, String::len) + rows.len() * ROW_BYTES;
            if bytes > room {
                return false;
            }
            let name: Option<Arc<str>> = name.map(Into::into);
            self.names.extend(rows.into_iter().map(|row| (row, name.clone())));
        }
        true
    }

    fn bytes(&self) -> usize {
        let told = self.told.iter().flat_map(|(site, label)| [site, label]);
        let texts: BTreeSet<_> = self.names.values().flatten().chain(told).collect();
        let rows = self.names.len() + self.told.len();
        rows * ROW_BYTES + texts.iter().map(|text| text.len()).sum::<usize>()
    }

    fn by_place(&self, sampling: &Sampling, is_known: bool) -> BTreeMap<Place, f64> {
        let mut places = BTreeMap::from([(other(), 0.0)]);
        for (place, bytes) in held(sampling) {
            let site = &sampling.sites[place];
            let name = self.names.get(&site.row).filter(|_| is_known).cloned().flatten();
            let label = || known_label(site.label.as_deref()).into();
            *places.entry(name.map_or_else(other, |name| (name, label()))).or_default() += bytes;
        }
        places
    }

    fn choose(&mut self, held: BTreeMap<Place, f64>, most: usize) -> BTreeMap<Place, f64> {
        let all: f64 = held.values().sum();
        let mut ranked: Vec<_> = held.into_iter().collect();
        ranked.sort_by_key(|(_, bytes)| Reverse(whole(*bytes)));
        let mut chosen = BTreeMap::from([(other(), 0.0)]);
        for (place, bytes) in ranked {
            let is_told = place != other()
                && chosen.len() <= most
                && bytes >= LEAST_PART * all
                && self.may_tell(&place, EVER * most);
            *chosen.entry(if is_told { place } else { other() }).or_default() += bytes;
        }
        chosen
    }

    fn may_tell(&mut self, place: &Place, ever: usize) -> bool {
        let is_told = self.told.contains(place) || self.told.len() < ever;
        if is_told {
            self.told.insert(place.clone());
        }
        is_told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::serve::samples::Value;
    use crate::fixture::{Image, sampled};

    const KEY: Key = (42, 7);

    fn subject(image: &Image) -> Subject {
        Subject::of_bytes(image.bytes())
    }

    fn callers(image: &Image, named: &[(Option<&str>, &[usize])]) -> Callers {
        let caller = |(name, rows): &(Option<&str>, &[usize])| Caller {
            name: name.map(str::to_owned),
            rows: rows.to_vec(),
        };
        Callers { made_ms: image.made_ms, callers: named.iter().map(caller).collect() }
    }

    // Site, label, what is sampled, and bytes.
    fn told(sites: &Sites, image: &Image) -> Vec<(String, String, String, u64)> {
        let mut samples = Samples::default();
        sites.add(&mut samples, &subject(image));
        let row = |sample: &super::super::samples::Sample| {
            let [_, _, site, label, scope] = &sample.labels[..] else { panic!("five labels") };
            let Value::Gauge(bytes) = sample.value else { panic!("a gauge") };
            (site.to_string(), label.to_string(), scope.to_string(), bytes)
        };
        samples.of("tslab_site_live_bytes").iter().map(row).collect()
    }

    fn row(site: &str, label: &str, bytes: u64) -> (String, String, String, u64) {
        (site.to_owned(), label.to_owned(), "all".to_owned(), bytes)
    }

    // 100,000 bytes in row 4, 12,481 in row 1, 4,225 in row 3 and 4,160 in row 2.
    fn image() -> Image {
        let mut image = sampled();
        image.set("process", 0, "sample_bytes", 4096);
        image
    }

    #[test]
    fn what_has_no_name_yet_is_in_other() {
        let (sites, image) = (Sites::new(10), image());
        assert_eq!(told(&sites, &image), [row("other", "other", 120_867)]);
        assert!(sites.take_wish(&subject(&image)));
        assert!(!sites.take_wish(&subject(&image)), "it was asked already");
        let (large, small): (&[_], &[_]) = (&[4], &[1, 3]);
        sites.keep(KEY, callers(&image, &[(Some("load"), large), (Some("keep"), small)]));
        let named = [
            row("keep", "GET /upload", 16_706),
            row("load", "default", 100_000),
            row("other", "other", 4_160),
        ];
        assert_eq!(told(&sites, &image), named);
        assert!(sites.take_wish(&subject(&image)), "more than a fiftieth has no name");
        sites.keep(KEY, callers(&image, &[(None, &[2]), (Some("another"), large)]));
        assert_eq!(told(&sites, &image), named, "a row keeps its name");
        assert!(!sites.take_wish(&subject(&image)));
    }

    #[test]
    fn names_are_asked_for_again_when_none_came() {
        let (sites, mut image) = (Sites::new(10), image());
        let fails = |image: &Image| {
            assert!(sites.take_wish(&subject(image)));
            sites.fail(KEY)
        };
        assert_eq!([fails(&image), fails(&image)], [false, false]);
        assert!(sites.take_wish(&subject(&image)));
        sites.withdraw(KEY);
        assert!(fails(&image) && !sites.take_wish(&subject(&image)), "three tries failed");
        image.made_ms += 1;
        assert!(!fails(&image) && !fails(&image), "another program may do better");
        assert!(sites.take_wish(&subject(&image)));
        sites.keep(KEY, callers(&image, &[]));
        assert!(!fails(&image), "an answer came in between");
        sites.retain(|_| false);
        sites.keep(KEY, callers(&image, &[(Some("load"), &[4])]));
        assert_eq!(told(&sites, &image).len(), 1, "it is gone");
    }

    #[test]
    fn those_that_hold_most_are_told_apart() {
        let (sites, image) = (Sites::new(1), image());
        assert!(sites.take_wish(&subject(&image)));
        let named: [(_, &[_]); 3] = [(Some("load"), &[4]), (Some("keep"), &[1]), (Some("x"), &[3])];
        sites.keep(KEY, callers(&image, &named));
        let rows = [row("load", "default", 100_000), row("other", "other", 20_867)];
        assert_eq!(told(&sites, &image), rows);
        assert!(
            told(&Sites::new(0), &image).is_empty() && !Sites::new(0).take_wish(&subject(&image))
        );
    }

    #[test]
    fn another_program_of_the_same_process_has_other_sites() {
        let (sites, mut image) = (Sites::new(10), image());
        assert!(sites.take_wish(&subject(&image)));
        let old = callers(&image, &[(Some("load"), &[4])]);
        sites.keep(KEY, old);
        assert_eq!(told(&sites, &image).len(), 2);
        let late = callers(&image, &[(Some("keep"), &[1])]);
        image.made_ms += 1;
        assert_eq!(told(&sites, &image), [row("other", "other", 120_867)]);
        assert!(sites.take_wish(&subject(&image)));
        assert!(!sites.take_wish(&subject(&image)));
        sites.keep(KEY, late);
        assert_eq!(told(&sites, &image).len(), 1);
    }

    #[test]
    fn which_allocations_are_sampled_is_said() {
        let (sites, mut image) = (Sites::new(10), image());
        let mut after = |sample_bytes, watch_bytes, since_ms| {
            let asked = [
                ("sample_bytes", sample_bytes),
                ("watch_bytes", watch_bytes),
                ("sampling_since_ms", since_ms),
            ];
            image.set_all("process", 0, &asked);
            told(&sites, &image)[0].2.clone()
        };
        let asked = [(4096, 0, 0), (4096, 1024, 5), (0, 1024, 5), (0, 1024, 0), (0, 0, 5)];
        let said = asked.map(|(all, of, since_ms)| after(all, of, since_ms));
        assert_eq!(said, ["all", "all", "watched", "watched", "ended"]);
        let unsampled = crate::fixture::sample(42, 7);
        assert!(told(&sites, &unsampled).is_empty() && !sites.take_wish(&subject(&unsampled)));
    }

    #[test]
    fn a_process_has_few_series_however_long_it_runs() {
        let (mut process, most) = (Process::default(), 3);
        let mut ever = BTreeSet::new();
        for round in 0..100 {
            let place = |number| (format!("{}", round + number).into(), "default".into());
            let held = (0..5).map(|number| (place(number), 10.0)).chain([(other(), 1.0)]);
            let chosen = process.choose(held.collect(), most);
            assert!(chosen.len() <= most + 1 && (chosen.values().sum::<f64>() - 51.0).abs() < 0.1);
            ever.extend(chosen.into_keys());
        }
        assert_eq!(ever.len(), EVER * most + 1);
    }

    #[test]
    fn little_has_no_series() {
        let held = [("much", 1_000.0), ("little", 9.0)];
        let held = held.map(|(site, bytes)| ((site.into(), "default".into()), bytes));
        let chosen = Process::default().choose(held.into(), 10);
        assert_eq!(chosen.into_values().collect::<Vec<_>>(), [1_000.0, 9.0]);
        let mut process = Process::default();
        let named_so = [((OTHER.into(), OTHER.into()), 5.0)];
        assert_eq!(process.choose(named_so.into(), 10).len(), 1);
        assert!(process.told.is_empty());
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let (sites, image) = (Sites::new(10), image());
        let mut subject = subject(&image);
        let names: Vec<_> = (0..MOST_STACKS).map(|row| format!("{row:0>1000}")).collect();
        let rows: Vec<_> = (0..MOST_STACKS).map(|row| [row + 100]).collect();
        let large: Vec<_> =
            names.iter().zip(&rows).map(|(name, rows)| (Some(name.as_str()), &rows[..])).collect();
        for pid in 0..40 {
            subject.pid = pid;
            assert!(sites.take_wish(&subject));
            sites.keep((pid, 7), callers(&image, &large));
        }
        assert!(!sites.take_wish(&subject), "there is no room");
        let kept = || sites.processes().values().map(Process::bytes).sum::<usize>();
        assert!((MOST_BYTES - 2000..=MOST_BYTES).contains(&kept()), "{}", kept());
        sites.retain(|_| true);
        assert!(!sites.take_wish(&subject), "there is no more room than before");
        let last = (subject.pid, 7);
        sites.retain(|key| *key == last);
        assert!(sites.take_wish(&subject), "others ended");
        sites.keep(last, callers(&image, &large));
        assert_eq!(sites.processes()[&last].names.len(), MOST_STACKS);
    }

    #[test]
    fn known_names_take_no_room_and_survive_a_refusal() {
        let (mut process, image) = (Process::default(), image());
        let rows: Vec<_> = (0..MOST_NAMED).collect();
        assert!(process.keep(callers(&image, &[(Some("x"), &rows)]), MOST_BYTES));
        assert!(process.keep(callers(&image, &[(Some("another"), &rows)]), 0));
        let (old, new): (&[_], &[_]) = (&[1, 2], &[MOST_NAMED]);
        let wanted = || callers(&image, &[(Some("x"), old), (Some("new"), new)]);
        process.make_way(&wanted());
        assert!(!process.keep(wanted(), ROW_BYTES));
        assert_eq!((process.names.len(), process.names[&1].as_deref()), (2, Some("x")));
        assert!(process.keep(wanted(), ROW_BYTES + 3));
        assert_eq!(process.names[&MOST_NAMED].as_deref(), Some("new"));
    }

    #[test]
    fn a_process_has_few_names() {
        let (mut process, image) = (Process::default(), image());
        for start in (0..10_000).step_by(MOST_STACKS) {
            let rows: Vec<_> = (start..start + MOST_STACKS).collect();
            let found = callers(&image, &[(Some("x"), &rows)]);
            process.make_way(&found);
            process.keep(found, MOST_BYTES);
            assert!(process.names.len() <= MOST_NAMED);
            assert_eq!(process.names[&start].as_deref(), Some("x"));
        }
    }
}
