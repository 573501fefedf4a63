//! leaks: the epochs of one process whose objects outlived them for too long.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anyhow::{Result, bail};
use serde::Serialize;

use super::survivors::{self, Stack, Stacks};
use super::{Answer, Identity, Setting, Subject};
use crate::host::Life;
use crate::snapshot::{DEFAULT_EPOCH, Epoch, Snapshot, State, Survivors, sum};
use crate::text;

/// From when on an epoch is of interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Ms since it was closed.
    pub after_ms: u64,
    /// Ms since it was opened, if it still is open; None: never.
    pub open_after_ms: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(super) struct Report {
    #[serde(flatten)]
    identity: Identity,
    after_ms: u64,
    open_after_ms: Option<u64>,
    /// Bytes from sample to sample on average, of all stacks; 0: there are none, None: not told.
    weight_bytes: Option<u64>,
    leaks: Vec<Leak>,
}

/// All epochs of a label that leak in the same way.
#[derive(Debug, Serialize)]
struct Leak {
    /// The first of them.
    epoch: u64,
    id: u64,
    /// How many there are.
    epochs: u64,
    label: Option<Arc<str>>,
    state: Option<State>,
    /// Since the first was closed, or opened if it is open.
    for_ms: Option<u64>,
    /// Since the last was.
    last_for_ms: Option<u64>,
    objects: Option<u64>,
    bytes: Option<u64>,
    unsettled: bool,
    /// Memory that they hold themselves.
    held_bytes: Option<u64>,
    pinned_pages: Option<u64>,
    /// Of the objects, those of which the class is known.
    classes: Vec<Survivors>,
    large_objects: Option<u64>,
    /// Who allocated them, as far as they were sampled.
    stacks: Vec<Stack>,
}

/// Looks for epochs that objects outlived.
pub fn run(setting: &Setting, target: &str, limits: Limits) -> Result<Answer> {
    let subject = Subject::find(setting, target)?;
    answer(setting, &subject, &Report::of(&subject, limits)?)
}

/// The same, with the addresses of objects that were sampled.
pub fn run_with_addresses(setting: &Setting, target: &str, limits: Limits) -> Result<Answer> {
    let subject = Subject::find(setting, target)?;
    answer(setting, &subject, &Report::with_addresses(&subject, limits)?)
}

fn answer(setting: &Setting, subject: &Subject, report: &Report) -> Result<Answer> {
    let hint = report.hint(subject);
    Ok(Answer {
        output: setting.output(report, Report::text)?,
        notes: subject.notes().into_iter().chain(hint).collect(),
        found: !report.leaks.is_empty(),
        failed: false,
    })
}

impl Report {
    pub(super) fn of(subject: &Subject, limits: Limits) -> Result<Self> {
        let mut report = Self::with_addresses(subject, limits)?;
        let stacks = report.leaks.iter_mut().flat_map(|leak| &mut leak.stacks);
        stacks.for_each(Stack::hide_addresses);
        Ok(report)
    }

    fn with_addresses(subject: &Subject, limits: Limits) -> Result<Self> {
        let snapshot = &subject.snapshot;
        check(subject)?;
        let own = own_bytes(snapshot);
        let leaking = snapshot.epochs.iter().filter(|epoch| limits.hold(epoch, subject.as_of_ms));
        let groups = by_label(leaking);
        let stacks = if groups.is_empty() { None } else { Stacks::read(subject) };
        let stacks = |group: &[&Epoch]| Some(stacks.as_ref()?.of(group.iter().map(|one| one.id)));
        let page_bytes = snapshot.header.page_bytes;
        let mut leaks: Vec<_> = groups
            .iter()
            .filter_map(|group| {
                let leak = Leak::of(group, &own, page_bytes, subject.as_of_ms)?;
                Some(Leak { stacks: stacks(group).unwrap_or_default(), ..leak })
            })
            .collect();
        leaks.sort_by_key(|leak| (Reverse(leak.bytes), leak.epoch));
        Ok(Self {
            identity: subject.identity(),
            after_ms: limits.after_ms,
            open_after_ms: limits.open_after_ms,
            weight_bytes: snapshot.sampling.as_ref().map(|sampling| sampling.weight_bytes),
            leaks,
        })
    }

    // How to learn who allocated them.
    fn hint(&self, subject: &Subject) -> Option<String> {
        let is_known = self.leaks.iter().any(|leak| !leak.stacks.is_empty());
        let weight_bytes = self.weight_bytes?;
        if self.leaks.is_empty() || is_known {
            return None;
        }
        let start = "start it with TSLAB_SAMPLE_BYTES=512K in its environment";
        Some(match (subject.life, weight_bytes) {
            (Life::Alive, 0) => format!(
                "who allocated them is not known, since the process does not sample: `tslab \
                 profile {} --keep` begins that, for objects to come; or {start}",
                subject.pid
            ),
            (_, 0) => format!("who allocated them is not known: {start}"),
            _ => "none of them was sampled, so who allocated them is not known".to_owned(),
        })
    }

    pub(super) fn text(&self) -> String {
        if self.leaks.is_empty() {
            let after = text::age(Some(self.after_ms));
            return format!("no epoch that was closed more than {after} ago has survivors\n");
        }
        let leaks: String = self.leaks.iter().map(Leak::text).collect();
        leaks + &self.evidence()
    }

    // Shares are of few objects out of many.
    fn evidence(&self) -> String {
        let stacks = self.leaks.iter().flat_map(|leak| &leak.stacks);
        match stacks.map(Stack::samples).sum::<u64>() {
            0 => String::new(),
            samples => format!(
                "call stacks are of {}, a byte in {} on average\n",
                text::count(Some(samples), "sampled object"),
                text::bytes(self.weight_bytes)
            ),
        }
    }
}

// That there are no leaks is only said of a file that would tell of them.
fn check(subject: &Subject) -> Result<()> {
    let snapshot = &subject.snapshot;
    if !snapshot.missing.is_empty() {
        bail!(
            "the file of process {} does not tell which objects outlived their epochs, since it \
             lacks {}: use the command that came with its library, version {}",
            subject.pid,
            snapshot.missing.join(", "),
            text::printable(&snapshot.header.version)
        );
    }
    Ok(())
}

// What each epoch holds without its children, by row.
pub(super) fn own_bytes(snapshot: &Snapshot) -> HashMap<u64, u64> {
    let held = snapshot.epochs.iter().filter_map(|epoch| Some((epoch.row, epoch.held_bytes?)));
    let mut own: HashMap<_, _> = held.collect();
    for epoch in &snapshot.epochs {
        let parent = epoch.parent.filter(|parent| *parent != epoch.row);
        if let (Some(parent), Some(held)) = (parent, epoch.held_bytes)
            && let Some(own) = own.get_mut(&parent)
        {
            *own = own.saturating_sub(held);
        }
    }
    own
}

// Programs have an epoch for each request: what they leak is one leak for each label. Of epochs
// without a known label each is one by itself.
fn by_label<'a>(epochs: impl Iterator<Item = &'a Epoch>) -> Vec<Vec<&'a Epoch>> {
    let mut groups = BTreeMap::<_, Vec<_>>::new();
    for epoch in epochs {
        let alone = epoch.label.is_none().then_some(epoch.row);
        let is_open = epoch.state == Some(State::Open);
        groups.entry((is_open, epoch.label.as_deref(), alone)).or_default().push(epoch);
    }
    groups.into_values().collect()
}

impl Limits {
    fn hold(self, epoch: &Epoch, now_ms: u64) -> bool {
        let is_older = |ms: Option<u64>, limit| ms.is_some_and(|ms| ms > limit);
        match epoch.state {
            _ if epoch.row == DEFAULT_EPOCH => false,
            Some(State::Closed) => {
                epoch.has_survivors() && is_older(epoch.since_closed_ms(now_ms), self.after_ms)
            }
            Some(State::Open) => self
                .open_after_ms
                .is_some_and(|limit| is_older(epoch.since_opened_ms(now_ms), limit)),
            Some(State::Released) | None => false,
        }
    }
}

impl Leak {
    // None: of no epochs.
    fn of(group: &[&Epoch], own: &HashMap<u64, u64>, page_bytes: u32, now_ms: u64) -> Option<Self> {
        let for_ms = |epoch: &Epoch| match epoch.state {
            Some(State::Open) => epoch.since_opened_ms(now_ms),
            _ => epoch.since_closed_ms(now_ms),
        };
        let pages = |bytes: u64| (page_bytes > 0).then(|| bytes.div_ceil(page_bytes.into()));
        let held = |epoch: &Epoch| own.get(&epoch.row).copied();
        let total = |part: &dyn Fn(&Epoch) -> Option<u64>| sum(group.iter().map(|one| part(one)));
        let first = group.iter().max_by_key(|epoch| (for_ms(epoch), Reverse(epoch.row)))?;
        Some(Self {
            epoch: first.row,
            id: first.id,
            epochs: group.len() as u64,
            label: first.label.clone(),
            state: first.state,
            for_ms: for_ms(first),
            last_for_ms: group.iter().map(|epoch| for_ms(epoch)).min().flatten(),
            objects: total(&|epoch| epoch.live.objects),
            bytes: total(&|epoch| epoch.live.bytes),
            unsettled: group.iter().any(|epoch| epoch.live.unsettled),
            held_bytes: total(&held),
            pinned_pages: total(&|epoch| held(epoch).and_then(pages)),
            classes: classes_of(group),
            large_objects: total(&|epoch| epoch.large_objects),
            stacks: Vec::new(),
        })
    }

    fn text(&self) -> String {
        let who = match self.epochs {
            1 => format!("epoch {}", self.epoch),
            epochs => format!("{epochs} epochs"),
        };
        let head = format!(
            "{who}  {}  {}  {}  {}  pins {}\n",
            text::label(self.label.as_deref()),
            self.since(),
            text::count(self.objects, "object"),
            text::bytes(self.bytes),
            text::count(self.pinned_pages, "page"),
        );
        head + &survivors::text(&self.classes, self.large_objects, &self.stacks)
    }

    fn since(&self) -> String {
        let (first, last) = (text::age(self.for_ms), text::age(self.last_for_ms));
        let age = if first == last { first } else { format!("{last} to {first}") };
        match self.state {
            Some(State::Open) => format!("open for {age}"),
            _ => format!("closed {age} ago"),
        }
    }
}

// By size; those of unknown size come last.
fn classes_of(group: &[&Epoch]) -> Vec<Survivors> {
    let mut objects = BTreeMap::<_, u64>::new();
    for survivors in group.iter().flat_map(|epoch| &epoch.survivors) {
        let size = survivors.class_bytes;
        let sum = objects.entry((size.is_none(), size)).or_default();
        *sum = sum.saturating_add(survivors.objects);
    }
    let classes = objects.into_iter();
    classes.map(|((_, class_bytes), objects)| Survivors { class_bytes, objects }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Image, TOLD_MS, add_epoch, add_samples, sample};

    const MINUTE: Limits = Limits { after_ms: 60_000, open_after_ms: None };

    fn report(image: &Image, limits: Limits) -> Report {
        Report::of(&Subject::of_bytes(image.bytes()), limits).unwrap()
    }

    fn rows(image: &Image, limits: Limits) -> Vec<u64> {
        report(image, limits).leaks.iter().map(|leak| leak.epoch).collect()
    }

    #[test]
    fn an_epoch_and_its_survivors_are_named() {
        let text = report(&sample(42, 7), MINUTE).text();
        let expected = "epoch 7  \"GET /upload\"  closed 61 s ago  357 objects  46.8 KiB  \
                        pins 12 pages\n   128 B   340\n   256 B    17\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn sampled_survivors_tell_who_allocated_them() {
        let mut image = sample(42, 7);
        add_samples(&mut image);
        let subject = Subject::of_bytes(image.bytes());
        let with_addresses = Report::with_addresses(&subject, MINUTE).unwrap();
        assert!(with_addresses.text().contains("at 0x7000\n"));
        let report = report(&image, MINUTE);
        let text = report.text();
        let expected = "   128 B   340    75 %  0x1000  <-  0x2000\n\
                        \x20                 25 %  0x1000  <-  0x3000\n";
        assert!(text.contains(expected), "{text}");
        assert!(text.ends_with("stacks are of 5 sampled objects, a byte in 4.0 KiB on average\n"));
        assert_eq!(report.hint(&subject), None);
    }

    #[test]
    fn without_samples_there_is_a_hint() {
        let image = sample(42, 7);
        let mut subject = Subject::of_bytes(image.bytes());
        let report = report(&image, MINUTE);
        let hint = report.hint(&subject).unwrap();
        assert!(hint.contains("TSLAB_SAMPLE_BYTES=512K") && !hint.contains("--keep"), "{hint}");
        subject.life = Life::Alive;
        assert!(report.hint(&subject).unwrap().contains("`tslab profile 42 --keep`"));
    }

    #[test]
    fn only_epochs_that_were_closed_for_longer_count() {
        let limits = |after_ms| Limits { after_ms, open_after_ms: None };
        assert_eq!(rows(&sample(42, 7), limits(60_999)), [7]);
        assert!(rows(&sample(42, 7), limits(61_000)).is_empty());
        let text = report(&sample(42, 7), limits(61_000)).text();
        assert_eq!(text, "no epoch that was closed more than 61 s ago has survivors\n");
    }

    #[test]
    fn epochs_of_a_label_are_one_leak() {
        let mut image = sample(42, 7);
        let earlier = [("state", 1), ("opened_ms", 1), ("closed_ms", TOLD_MS - 181_000)];
        add_epoch(&mut image, 2, "GET /upload", &earlier);
        image.set_all("epochs", 2, &[("held_bytes", 8192), ("large_objects", 2)]);
        let report = report(&image, MINUTE);
        let text = report.text();
        let expected = "2 epochs  \"GET /upload\"  closed 61 s to 3 min ago  359 objects  ";
        assert!(text.starts_with(expected), "{text}");
        let leak = &report.leaks[0];
        assert_eq!((report.leaks.len(), leak.epochs, leak.epoch), (1, 2, 2));
        assert_eq!((leak.for_ms, leak.last_for_ms), (Some(181_000), Some(61_000)));
        assert_eq!((leak.pinned_pages, leak.large_objects), (Some(14), Some(2)));
        assert_eq!(leak.classes.iter().map(|class| class.objects).collect::<Vec<_>>(), [340, 17]);
    }

    #[test]
    fn open_epochs_count_when_they_are_asked_for_the_larger_first() {
        let limits = Limits { after_ms: 60_000, open_after_ms: Some(9_999) };
        assert_eq!(rows(&sample(42, 7), limits), [3, 7]);
        let text = report(&sample(42, 7), limits).text();
        let open = "epoch 3  \"batch\"  open for 10 s  319 objects  151.3 KiB  pins 64 pages\n";
        assert!(text.starts_with(&format!("{open}   large     1\n")), "{text}");
        let later = Limits { open_after_ms: Some(10_000), ..limits };
        assert_eq!(rows(&sample(42, 7), later), [7]);
    }

    #[test]
    fn pages_of_children_are_not_counted_twice() {
        let mut image = sample(42, 7);
        let child = [("parent", 7), ("held_bytes", 40_960), ("opened_ms", TOLD_MS)];
        add_epoch(&mut image, 2, "child", &child);
        assert_eq!(report(&image, MINUTE).leaks[0].pinned_pages, Some(2));
        image.set("epochs", 2, "held_bytes", u64::MAX);
        assert_eq!(report(&image, MINUTE).leaks[0].pinned_pages, Some(0));
        image.page_bytes = 0;
        assert_eq!(report(&image, MINUTE).leaks[0].pinned_pages, None);
    }

    #[test]
    fn a_file_that_would_not_tell_of_leaks_is_no_proof_of_their_absence() {
        let mut image = sample(42, 7);
        image.forget("bins", "taken");
        let error = Report::of(&Subject::of_bytes(image.bytes()), MINUTE).unwrap_err();
        assert!(error.to_string().contains("lacks bins.taken"), "{error}");
    }
}
