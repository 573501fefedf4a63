//! leaks: the epochs of one process whose objects outlived them for too long.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;

use super::default_epoch::{self, DefaultEpoch};
use super::growth::{Growth, Growths, Verdict};
use super::ignored::{self, Ignored};
use super::looks::{self, Looks};
use super::outlived::Outlived;
use super::survivors::{self, Stack, Stacks};
use super::{Answer, Identity, Setting, Subject, is_pid};
use crate::control;
use crate::host::Life;
use crate::rows::EpochState;
use crate::sampling::Sampling;
use crate::snapshot::{DEFAULT_EPOCH, Epoch, Survivors, sum};
use crate::text;

/// What `leaks` is asked.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// A process, or the path of a statistics file
    #[arg(value_name = "PID")]
    target: String,

    /// How long an epoch must have been closed; if not said 60, of a process that has ended at
    /// most a tenth of its life
    #[arg(long, value_name = "SECONDS")]
    after: Option<u64>,

    /// Show open epochs too, if they were opened longer ago than this
    #[arg(long, value_name = "SECONDS")]
    open_after: Option<u64>,

    /// Show the addresses of sampled survivors
    #[arg(long)]
    addresses: bool,

    #[command(flatten)]
    looks: looks::Arguments,

    #[command(flatten)]
    ignored: ignored::Arguments,
}

// What is wanted of the survivors.
struct Wish<'a> {
    limits: Limits,
    addresses: bool,
    ignored: &'a Ignored,
}

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
    default_epoch: DefaultEpoch,
    /// Labels that were to be passed over.
    ignored: u64,
    younger: Younger,
    /// What is to be known where nothing is found.
    #[serde(skip)]
    limit: String,
}

/// Epochs with survivors that were closed later.
#[derive(Debug, Default, Serialize)]
struct Younger {
    epochs: u64,
    objects: Option<u64>,
    bytes: Option<u64>,
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
    state: Option<EpochState>,
    /// Since the first was closed, or opened if it is open; of a shared one since its oldest
    /// sampled object was allocated.
    for_ms: Option<u64>,
    /// Since the last was, or the newest sampled object.
    last_for_ms: Option<u64>,
    objects: Option<u64>,
    /// Of them, those that outlived their epoch. None: nobody knows, for a shared one whose objects
    /// were not sampled.
    outlived_objects: Option<u64>,
    bytes: Option<u64>,
    unsettled: bool,
    /// Memory that they hold themselves.
    held_bytes: Option<u64>,
    pinned_pages: Option<u64>,
    /// Of the objects, those of which the class is known.
    classes: Vec<Survivors>,
    large_objects: Option<u64>,
    /// Whether they become more. None: they are open, or nothing is known of them.
    growth: Option<Growth>,
    /// Who allocated them, as far as they were sampled.
    stacks: Vec<Stack>,
    /// Of a shared one of whose sampled objects none is old enough: those that may come to be.
    younger_stacks: Vec<Stack>,
}

/// After so long what lives in a closed epoch counts, if people do not say.
const AFTER_S: u64 = 60;

/// Since when an epoch must have been closed. What a process that has ended left behind nobody was
/// about to free, but for the last of it.
pub(super) fn after_ms(asked_s: Option<u64>, subject: &Subject) -> u64 {
    match asked_s {
        Some(seconds) => seconds.saturating_mul(1000),
        None if subject.life == Life::Alive => AFTER_S * 1000,
        None => (AFTER_S * 1000).min(subject.lived_ms() / 10),
    }
}

/// Looks for epochs that objects outlived, and whether they are more and more.
pub fn run(setting: &Setting, arguments: &Arguments) -> Result<Answer> {
    let ignored = arguments.ignored.read()?;
    let limits = |subject: &Subject| Limits {
        after_ms: after_ms(arguments.after, subject),
        open_after_ms: arguments.open_after.map(|seconds| seconds.saturating_mul(1000)),
    };
    let has_survivors = |subject: &Subject| limits(subject).finds_some(subject);
    let looks = Looks::take(setting, &arguments.target, &arguments.looks, has_survivors)?;
    let Looks { before, now } = looks;
    let limits = limits(&now);
    let wish = Wish { limits, addresses: arguments.addresses, ignored: &ignored };
    let report = Report::between(before.as_ref(), &now, &wish)?;
    let mut answer = answer(setting, &now, &report)?;
    // A file that has a name may be a copy.
    if is_pid(&arguments.target) && report.lacks_stacks(&now) {
        answer.notes.push(hurry(&now));
    }
    Ok(answer)
}

fn hurry(subject: &Subject) -> String {
    match control::hurry(&subject.path) {
        Ok(()) => {
            "not all call stacks are known: more of what outlives its epoch is sampled for a \
                   minute from now, so look again then"
                .to_owned()
        }
        Err(refused) => format!("not all call stacks are known: {refused:#}"),
    }
}

/// The same of a look, and of an earlier one if there was any.
pub fn run_between(
    setting: &Setting,
    before: Option<&Subject>,
    now: &Subject,
    limits: Limits,
) -> Result<Answer> {
    let wish = Wish { limits, addresses: false, ignored: &Ignored::default() };
    answer(setting, now, &Report::between(before, now, &wish)?)
}

fn answer(setting: &Setting, subject: &Subject, report: &Report) -> Result<Answer> {
    let hint = report.hint(subject);
    Ok(Answer {
        output: setting.output(report, Report::text)?,
        notes: subject.notes().into_iter().chain(hint).collect(),
        found: report.is_found(),
        failed: false,
    })
}

impl Report {
    #[cfg(test)]
    pub(super) fn of(subject: &Subject, limits: Limits) -> Result<Self> {
        let wish = Wish { limits, addresses: false, ignored: &Ignored::default() };
        Self::between(None, subject, &wish)
    }

    fn between(before: Option<&Subject>, subject: &Subject, wish: &Wish) -> Result<Self> {
        let (snapshot, limits) = (&subject.snapshot, wish.limits);
        check(subject)?;
        let outlived = Outlived::read(subject, limits.after_ms);
        let leaking = snapshot
            .epochs
            .iter()
            .filter(|epoch| limits.hold(epoch, subject.as_of_ms) || is_left_over(epoch, &outlived));
        let (passed_over, groups): (Vec<_>, Vec<_>) = by_label(leaking)
            .into_iter()
            .partition(|group| wish.ignored.has_label(group[0].label.as_deref()));
        let sources = Sources {
            subject,
            outlived,
            growths: Growths::read(before, subject, limits.after_ms),
            stacks: if groups.is_empty() && !default_epoch::is_sampled(subject) {
                None
            } else {
                Stacks::read(before, subject, Outlived::least_ms(limits.after_ms))
            },
        };
        let all = groups.iter().filter_map(|group| sources.leak(group));
        let (known, mut leaks): (Vec<_>, Vec<_>) =
            all.partition(|leak| survivors::are_ignored(&leak.stacks, wish.ignored));
        leaks.sort_by_key(|leak| (leak.turns_over(), Reverse(leak.bytes), leak.epoch));
        let mut default_epoch = {
            let (stacks, until_ms) = (sources.stacks.as_ref(), sources.outlived.until_ms);
            DefaultEpoch::of(before, subject, stacks, until_ms, wish.ignored)
        };
        let stacks = leaks.iter_mut().flat_map(Leak::all_stacks_mut);
        let stacks = stacks.chain(&mut default_epoch.stacks);
        stacks.filter(|_| !wish.addresses).for_each(Stack::hide_addresses);
        Ok(Self {
            identity: subject.identity(),
            after_ms: limits.after_ms,
            open_after_ms: limits.open_after_ms,
            weight_bytes: snapshot.sampling.as_ref().map(Sampling::mean_bytes),
            leaks,
            limit: default_epoch.limit_text(subject),
            default_epoch,
            ignored: (passed_over.len() + known.len()) as u64,
            younger: Younger::of(subject, limits),
        })
    }

    fn is_found(&self) -> bool {
        let is_found = |leak: &Leak| leak.is_known() && !leak.turns_over();
        self.leaks.iter().any(is_found) || !self.default_epoch.stacks.is_empty()
    }

    // Whether some of them may be named once the process samples more of what outlives its epoch.
    fn lacks_stacks(&self, subject: &Subject) -> bool {
        let is_unnamed = |leak: &Leak| !leak.turns_over() && leak.stacks.is_empty();
        let runs = subject.life == Life::Alive;
        runs && subject.samples_watched() && self.leaks.iter().any(is_unnamed)
    }

    // How to learn who allocated them.
    fn hint(&self, subject: &Subject) -> Option<String> {
        let is_known = self.leaks.iter().any(|leak| leak.all_stacks().next().is_some());
        let weight_bytes = self.weight_bytes?;
        if self.leaks.is_empty() {
            return None;
        }
        if is_known {
            return subject.partial_note().filter(|_| !subject.samples_watched());
        }
        let start = "start it with TSLAB_SAMPLE_BYTES=512K in its environment";
        Some(match (subject.life, weight_bytes) {
            (Life::Alive, 0) => format!(
                "who allocated them is not known, since the process does not sample: `tslab \
                 profile {} --keep` begins that, for objects to come; or {start}",
                subject.pid
            ),
            (_, 0) => format!("who allocated them is not known: {start}"),
            (Life::Alive, _) if subject.samples_watched() => format!(
                "{} so far, so who allocated them is not known: samples of what outlives its \
                 epoch are taken; `tslab profile {} --keep` takes more",
                self.sampled_text(),
                subject.pid
            ),
            _ => {
                let none = format!("{}, so who allocated them is not known", self.sampled_text());
                subject.partial_note().map_or(none.clone(), |note| format!("{none}: {note}"))
            }
        })
    }

    // Of what no call stack is shown.
    fn sampled_text(&self) -> &'static str {
        let is_sampled = |leak: &Leak| leak.is_shared() && leak.for_ms.is_some();
        if self.leaks.iter().any(is_sampled) {
            "of them none but requests' in flight were sampled"
        } else {
            "none of them was sampled"
        }
    }

    pub(super) fn text(&self) -> String {
        let leaks: String = self.leaks.iter().map(|leak| leak.text(self.after_ms)).collect();
        let found = leaks + &self.default_epoch.text();
        if found.is_empty() {
            let after = text::age(Some(self.after_ms));
            let none = format!("no epoch that was closed more than {after} ago has survivors\n");
            return none + &self.passed_over() + &self.limit;
        }
        found + &self.evidence() + &self.passed_over()
    }

    // What there is beside those that are shown.
    fn passed_over(&self) -> String {
        let mut out = self.younger.text();
        if self.ignored > 0 {
            out = out + "ignored: " + &text::count(Some(self.ignored), "label") + "\n";
        }
        out
    }

    // Shares are of few objects out of many.
    fn evidence(&self) -> String {
        let stacks = self.leaks.iter().flat_map(Leak::all_stacks);
        let stacks = stacks.chain(&self.default_epoch.stacks);
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

// What is known of survivors beside their epochs.
struct Sources<'a> {
    subject: &'a Subject,
    outlived: Outlived,
    growths: Growths,
    stacks: Option<Stacks<'a>>,
}

impl Sources<'_> {
    fn leak(&self, group: &[&Epoch]) -> Option<Leak> {
        let is_shared = group.iter().any(|epoch| epoch.is_shared());
        let stacks_until = |until_ms| {
            let ids = group.iter().map(|one| one.id);
            self.stacks.as_ref().map(|stacks| stacks.of(ids, until_ms)).unwrap_or_default()
        };
        let until_ms = if is_shared { self.outlived.until_ms } else { u64::MAX };
        let page_bytes = self.subject.snapshot.header.page_bytes;
        let leak = Leak::of(group, page_bytes, self.subject.as_of_ms)?;
        let leak = leak.of_samples(group, &self.outlived);
        let is_open = leak.state == Some(EpochState::Open);
        Some(Leak {
            stacks: stacks_until(until_ms),
            younger_stacks: if leak.is_known() {
                Vec::new()
            } else {
                stacks_until(self.outlived.in_flight_ms)
            },
            growth: if is_open { None } else { self.growths.of(group[0]) },
            ..leak
        })
    }
}

impl Younger {
    fn of(subject: &Subject, limits: Limits) -> Self {
        let all = Limits { after_ms: 0, open_after_ms: None };
        let now_ms = subject.as_of_ms;
        let epochs = subject.snapshot.epochs.iter();
        let younger = epochs
            .filter(|epoch| all.hold(epoch, now_ms) && !limits.hold(epoch, now_ms))
            .collect::<Vec<_>>();
        Self {
            epochs: younger.len() as u64,
            objects: sum(younger.iter().map(|epoch| epoch.live.objects)),
            bytes: sum(younger.iter().map(|epoch| epoch.live.bytes)),
        }
    }

    fn text(&self) -> String {
        if self.epochs == 0 {
            return String::new();
        }
        format!(
            "closed later: {} with {} of {}, perhaps of work in flight; --after 0 shows them\n",
            text::count(Some(self.epochs), "epoch"),
            text::count(self.objects, "object"),
            text::bytes(self.bytes)
        )
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

// Programs have an epoch for each request: what they leak is one leak for each label. Of epochs
// without a known label each is one by itself.
fn by_label<'a>(epochs: impl Iterator<Item = &'a Epoch>) -> Vec<Vec<&'a Epoch>> {
    let mut groups = BTreeMap::<_, Vec<_>>::new();
    for epoch in epochs {
        let alone = epoch.label.is_none().then_some(epoch.row);
        let is_open = epoch.state == Some(EpochState::Open);
        groups
            .entry((is_open, epoch.is_shared(), epoch.label.as_deref(), alone))
            .or_default()
            .push(epoch);
    }
    groups.into_values().collect()
}

// Of a shared epoch only samples tell whether its objects are those of requests in flight.
fn is_left_over(epoch: &Epoch, outlived: &Outlived) -> bool {
    let has_objects = epoch.live.objects.is_some_and(|objects| objects > 0);
    epoch.is_shared() && has_objects && outlived.objects(epoch) != Some(0)
}

impl Limits {
    fn finds_some(self, subject: &Subject) -> bool {
        let outlived = Outlived::read(subject, self.after_ms);
        let is_found = |epoch| self.hold(epoch, subject.as_of_ms) || is_left_over(epoch, &outlived);
        subject.snapshot.epochs.iter().any(is_found) || default_epoch::is_sampled(subject)
    }

    fn hold(self, epoch: &Epoch, now_ms: u64) -> bool {
        let is_older = |ms: Option<u64>, limit| ms.is_some_and(|ms| ms > limit);
        match epoch.state {
            _ if epoch.row == DEFAULT_EPOCH => false,
            Some(EpochState::Closed) => {
                epoch.has_survivors() && is_older(epoch.since_closed_ms(now_ms), self.after_ms)
            }
            Some(EpochState::Open) => self
                .open_after_ms
                .is_some_and(|limit| is_older(epoch.since_opened_ms(now_ms), limit)),
            Some(EpochState::Released | EpochState::Shared) | None => false,
        }
    }
}

impl Leak {
    // None: of no epochs.
    fn of(group: &[&Epoch], page_bytes: u32, now_ms: u64) -> Option<Self> {
        let for_ms = |epoch: &Epoch| match epoch.state {
            Some(EpochState::Open) => epoch.since_opened_ms(now_ms),
            _ => epoch.since_closed_ms(now_ms),
        };
        let pages = |bytes: u64| (page_bytes > 0).then(|| bytes.div_ceil(page_bytes.into()));
        let held = |epoch: &Epoch| epoch.own_bytes;
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
            outlived_objects: total(&outlived_objects),
            bytes: total(&|epoch| epoch.live.bytes),
            unsettled: group.iter().any(|epoch| epoch.live.unsettled),
            held_bytes: total(&held),
            pinned_pages: total(&|epoch| held(epoch).and_then(pages)),
            classes: classes_of(group),
            large_objects: total(&|epoch| epoch.large.objects),
            growth: None,
            stacks: Vec::new(),
            younger_stacks: Vec::new(),
        })
    }

    fn all_stacks(&self) -> impl Iterator<Item = &Stack> {
        self.stacks.iter().chain(&self.younger_stacks)
    }

    fn all_stacks_mut(&mut self) -> impl Iterator<Item = &mut Stack> {
        self.stacks.iter_mut().chain(&mut self.younger_stacks)
    }

    // What is known of the objects of a shared epoch.
    fn of_samples(self, group: &[&Epoch], outlived: &Outlived) -> Self {
        let Some(shared) = group.iter().find(|epoch| epoch.is_shared()) else { return self };
        let sampled = outlived.sampled(shared);
        Self {
            for_ms: sampled.map(|sampled| sampled.oldest_ms),
            last_for_ms: sampled.map(|sampled| sampled.newest_ms),
            outlived_objects: outlived.objects(shared),
            ..self
        }
    }

    fn turns_over(&self) -> bool {
        self.growth.is_some_and(|growth| growth.verdict == Verdict::TurnsOver)
    }

    fn is_shared(&self) -> bool {
        self.state == Some(EpochState::Shared)
    }

    // Objects of a shared epoch may be those of requests in flight.
    fn is_known(&self) -> bool {
        !self.is_shared() || self.outlived_objects.is_some()
    }

    fn text(&self, after_ms: u64) -> String {
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
        let stacks: Vec<_> = self.all_stacks().cloned().collect();
        head + &self.shared_text(after_ms)
            + &survivors::text(&self.classes, self.large_objects, &stacks)
            + &self.growth.map(|growth| format!("   {}\n", growth.text())).unwrap_or_default()
    }

    fn shared_text(&self, after_ms: u64) -> String {
        let after = text::age(Some(Outlived::least_ms(after_ms)));
        match (self.state, self.outlived_objects) {
            (Some(EpochState::Shared), Some(objects)) => {
                format!(
                    "   of its objects ~{objects} are older than {after}: they outlived theirs\n"
                )
            }
            (Some(EpochState::Shared), None) if !self.younger_stacks.is_empty() => format!(
                "   sampled so far: {}, up to {} old, which may yet be freed; a lower --after \
                 counts them\n",
                text::count(Some(self.younger_stacks.iter().map(Stack::samples).sum()), "object"),
                text::age(self.for_ms)
            ),
            (Some(EpochState::Shared), None) => "   of all epochs of the label: which of them \
                 outlived theirs, and which are of requests in flight, only samples tell\n"
                .to_owned(),
            _ => String::new(),
        }
    }

    fn since(&self) -> String {
        let (first, last) = (text::age(self.for_ms), text::age(self.last_for_ms));
        let age = if first == last { first } else { format!("{last} to {first}") };
        match self.state {
            Some(EpochState::Open) => format!("open for {age}"),
            Some(EpochState::Shared) => "shared".to_owned(),
            _ => format!("closed {age} ago"),
        }
    }
}

fn outlived_objects(epoch: &Epoch) -> Option<u64> {
    if epoch.state == Some(EpochState::Open) { Some(0) } else { epoch.live.objects }
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
mod tests;
