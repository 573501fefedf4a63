//! leaks: the epochs of one process whose objects outlived them for too long.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt::Write;

use anyhow::{Result, bail};
use serde::Serialize;

use super::{Answer, Identity, Setting, Subject};
use crate::snapshot::{DEFAULT_EPOCH, Epoch, Snapshot, State, Survivors};
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
    leaks: Vec<Leak>,
}

#[derive(Debug, Serialize)]
struct Leak {
    epoch: u64,
    id: u64,
    label: Option<String>,
    state: Option<State>,
    /// Since it was closed, or opened if it is open.
    for_ms: Option<u64>,
    objects: Option<u64>,
    bytes: Option<u64>,
    unsettled: bool,
    /// Memory that it holds itself.
    held_bytes: Option<u64>,
    pinned_pages: Option<u64>,
    /// Of the objects, those of which the class is known.
    classes: Vec<Survivors>,
    large_objects: Option<u64>,
}

/// Looks for epochs that objects outlived.
pub fn run(setting: &Setting, target: &str, limits: Limits) -> Result<Answer> {
    let subject = Subject::find(setting, target)?;
    let report = Report::of(&subject, limits)?;
    Ok(Answer {
        output: setting.output(&report, Report::text)?,
        notes: subject.notes(),
        found: !report.leaks.is_empty(),
        failed: false,
    })
}

impl Report {
    pub(super) fn of(subject: &Subject, limits: Limits) -> Result<Self> {
        let snapshot = &subject.snapshot;
        check(subject)?;
        let own = own_bytes(snapshot);
        let leaking = snapshot.epochs.iter().filter(|epoch| limits.hold(epoch, subject.as_of_ms));
        let mut leaks: Vec<_> = leaking
            .map(|epoch| {
                let held_bytes = own.get(&epoch.row).copied();
                Leak::of(epoch, held_bytes, snapshot.header.page_bytes, subject.as_of_ms)
            })
            .collect();
        leaks.sort_by_key(|leak| (Reverse(leak.bytes), leak.epoch));
        Ok(Self {
            identity: subject.identity(),
            after_ms: limits.after_ms,
            open_after_ms: limits.open_after_ms,
            leaks,
        })
    }

    pub(super) fn text(&self) -> String {
        if self.leaks.is_empty() {
            let after = text::age(Some(self.after_ms));
            return format!("no epoch that was closed more than {after} ago has survivors\n");
        }
        self.leaks.iter().map(Leak::text).collect()
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
    fn of(epoch: &Epoch, held_bytes: Option<u64>, page_bytes: u32, now_ms: u64) -> Self {
        let is_open = epoch.state == Some(State::Open);
        let pages = |bytes: u64| (page_bytes > 0).then(|| bytes.div_ceil(page_bytes.into()));
        Self {
            epoch: epoch.row,
            id: epoch.id,
            label: epoch.label.clone(),
            state: epoch.state,
            for_ms: if is_open {
                epoch.since_opened_ms(now_ms)
            } else {
                epoch.since_closed_ms(now_ms)
            },
            objects: epoch.live.objects,
            bytes: epoch.live.bytes,
            unsettled: epoch.live.unsettled,
            held_bytes,
            pinned_pages: held_bytes.and_then(pages),
            classes: epoch.survivors.clone(),
            large_objects: epoch.large_objects,
        }
    }

    fn text(&self) -> String {
        let age = text::age(self.for_ms);
        let since = match self.state {
            Some(State::Open) => format!("open for {age}"),
            _ => format!("closed {age} ago"),
        };
        let mut out = format!(
            "epoch {}  {}  {since}  {}  {}  pins {}\n",
            self.epoch,
            text::label(self.label.as_deref()),
            text::count(self.objects, "object"),
            text::bytes(self.bytes),
            text::count(self.pinned_pages, "page"),
        );
        for class in &self.classes {
            let size = format!("{} B", text::number(class.class_bytes));
            // Writing to a String does not fail.
            let _ = writeln!(out, "{size:>8}  {:>4}", class.objects);
        }
        if let Some(large @ 1..) = self.large_objects {
            let _ = writeln!(out, "{:>8}  {large:>4}", "large");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Image, TOLD_MS, add_epoch, sample};

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
    fn only_epochs_that_were_closed_for_longer_count() {
        let limits = |after_ms| Limits { after_ms, open_after_ms: None };
        assert_eq!(rows(&sample(42, 7), limits(60_999)), [7]);
        assert!(rows(&sample(42, 7), limits(61_000)).is_empty());
        let text = report(&sample(42, 7), limits(61_000)).text();
        assert_eq!(text, "no epoch that was closed more than 61 s ago has survivors\n");
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
