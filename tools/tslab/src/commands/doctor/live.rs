//! Whether what lives outside of epochs becomes more all the time: of it no close tells what is
//! lost.

use serde_json::Value;

use super::finding::{Finding, Found, MIB, Patient, Rank, shown};
use crate::commands::default_epoch::Growing;
use crate::host::Life;
use crate::rows::process;
use crate::snapshot::{DEFAULT_EPOCH, Snapshot};
use crate::text;

const MUCH_BYTES: u64 = 64 * MIB;
const GREW_BYTES: u64 = MIB;

// Compared to the time since the start it grows at least half as fast, and at most so many times.
const SLOWEST_PARTS: u128 = 2;
const FASTEST_TIMES: u128 = 4;

fn live(snapshot: &Snapshot) -> Option<u64> {
    snapshot.epochs.iter().find(|epoch| epoch.row == DEFAULT_EPOCH)?.live.bytes
}

// A leak does, and what was built up at the start does not.
fn grows_as_ever(patient: &Patient, live: u64, grew: u64) -> Option<bool> {
    let (over_ms, lived_ms) = (patient.over_ms()?, patient.subject.lived_ms());
    let as_ever = u128::from(live) * u128::from(over_ms) / u128::from(lived_ms.max(1));
    let grew = u128::from(grew);
    let is_old = lived_ms > patient.after_ms;
    Some(is_old && grew * SLOWEST_PARTS >= as_ever && grew <= as_ever * FASTEST_TIMES)
}

// What comes and goes was more before.
fn is_at_peak(patient: &Patient) -> Option<bool> {
    let peak_ms = patient.snapshot().process_figure(process::PEAK_MS)?;
    Some(peak_ms >= patient.before?.as_of_ms)
}

/// What lives becomes more: by the ages of samples, or as it always did.
pub(super) fn growth(patient: &Patient) -> Found {
    by_ages(patient).map_or_else(|| by_counts(patient), |found| Some(vec![found]))
}

fn by_ages(patient: &Patient) -> Option<Finding> {
    let live = live(patient.snapshot())?;
    let growing = Growing::read(patient.before, patient.subject, patient.outlived.until_ms);
    let bytes = growing.iter().fold(0_u64, |sum, one| sum.saturating_add(one.bytes)).min(live);
    let most = growing.first().filter(|_| bytes >= GREW_BYTES)?;
    let count = growing.len() as u64;
    let what = format!(
        "{} live, about {} of them by {} that {} more and more: a leak, or a cache that fills; {}",
        shown(live),
        shown(bytes),
        text::count(Some(count), "call stack"),
        if count == 1 { "keeps" } else { "keep" },
        most.growth.text()
    );
    let evidence = [
        ("live_bytes", Value::from(live)),
        ("growing_bytes", Value::from(bytes)),
        ("call_stacks", Value::from(count)),
        ("lived_ms", Value::from(patient.subject.lived_ms())),
    ];
    let names = if count == 1 { "names it" } else { "names them" };
    let advice = format!("`tslab leaks {}` {names}", patient.subject.pid);
    Some(Finding::new("live-growth", Rank::of_bytes(bytes), what, &evidence, advice))
}

fn by_counts(patient: &Patient) -> Found {
    let now = live(patient.snapshot())?;
    let grew = now.saturating_sub(live(&patient.before?.snapshot)?);
    let is_found = grows_as_ever(patient, now, grew)? && is_at_peak(patient)?;
    if now < MUCH_BYTES || grew < GREW_BYTES || !is_found {
        return Some(Vec::new());
    }
    let lived_ms = patient.subject.lived_ms();
    let what = format!(
        "{} live, {} of them new {}, and it has grown like that for {}: a leak, or a cache that \
         fills",
        shown(now),
        shown(grew),
        patient.span(),
        text::age(Some(lived_ms))
    );
    let evidence = [
        ("live_bytes", Value::from(now)),
        ("grew_bytes", Value::from(grew)),
        ("over_ms", Value::from(patient.over_ms())),
        ("lived_ms", Value::from(lived_ms)),
    ];
    let (rank, advice) = (Rank::of_bytes(now), advice(patient));
    Some(vec![Finding::new("live-growth", rank, what, &evidence, advice)])
}

/// Whether it may become more, and so slowly that these looks do not tell.
pub(super) fn undecided(patient: &Patient) -> Option<String> {
    growth(patient)?.is_empty().then_some(())?;
    let (now, over_ms) = (live(patient.snapshot())?, patient.over_ms()?);
    let lived_ms = patient.subject.lived_ms();
    // What has grown like that since the start becomes so much more in this time.
    let wanted_ms = u128::from(lived_ms) * u128::from(GREW_BYTES) / u128::from(now.max(1));
    let wanted_ms = u64::try_from(wanted_ms).unwrap_or(u64::MAX);
    let peak_ms = patient.snapshot().process_figure(process::PEAK_MS)?;
    let peak_ago_ms = patient.subject.as_of_ms.saturating_sub(peak_ms);
    let may_grow = now >= MUCH_BYTES && lived_ms > patient.after_ms && peak_ago_ms <= wanted_ms;
    (may_grow && over_ms < wanted_ms).then(|| {
        format!(
            "{} live, and the process held most {} ago: whether that grows slowly, a longer look \
             tells (--over {})",
            shown(now),
            text::age(Some(peak_ago_ms)),
            wanted_ms.saturating_mul(2).div_ceil(1000)
        )
    })
}

fn advice(patient: &Patient) -> String {
    let (subject, pid) = (patient.subject, patient.subject.pid);
    match subject.life {
        _ if subject.samples_all() => {
            format!("`tslab leaks {pid}` names the call stacks that keep more and more")
        }
        Life::Alive => format!(
            "`tslab profile {pid} --keep` samples what is allocated from now on; a minute later \
             `tslab leaks {pid} --after 10 --over 20` names the call stacks that keep more and more"
        ),
        _ => {
            "start it with TSLAB_SAMPLE_BYTES=512K: `tslab leaks` then names the call stacks that \
              keep more and more"
                .to_owned()
        }
    }
}
