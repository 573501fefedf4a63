//! Which of the samples are wanted: those of a label, a size class, an age.

use std::collections::BTreeSet;
use std::str::FromStr;

use clap::Args;

use crate::sampling::{LiveSample, Sampling, Site};
use crate::text;

/// What is asked for; nothing: all.
#[derive(Args, Clone, Debug, Default)]
#[group(skip)]
pub struct Filter {
    /// Show only what was allocated in epochs with this label, where * stands for anything
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,

    /// Show only objects of this size class: its bytes, or `large`
    #[arg(long, value_name = "BYTES")]
    class: Option<Class>,

    /// Show only what lives and was allocated longer ago than this
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["cumulative", "lifetimes"])]
    older: Option<u64>,
}

/// A size class; None: blocks of whole units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Class(Option<u64>);

impl FromStr for Class {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = text.parse().map(Some);
        let class = if text == "large" { Ok(None) } else { bytes };
        class.map(Self).map_err(|_| "a number of bytes or `large` is needed".to_owned())
    }
}

impl Filter {
    /// Leaves what is wanted. `now_ms`: the moment that ages count to.
    pub fn apply(&self, sampling: &mut Sampling, now_ms: u64) {
        let is_wanted: Vec<_> = sampling.sites.iter().map(|site| self.has_site(site)).collect();
        sampling.live.retain(|live| is_wanted[live.site] && self.has_age(live, now_ms));
        for (site, is_wanted) in sampling.sites.iter_mut().zip(is_wanted) {
            if !is_wanted || self.older.is_some() {
                *site = Site { allocations: 0, bytes: 0, ended: None, ..std::mem::take(site) };
            }
        }
    }

    fn has_site(&self, site: &Site) -> bool {
        let label = site.label.as_deref().unwrap_or_default();
        self.label.as_deref().is_none_or(|pattern| text::matches(pattern, label))
            && self.class.is_none_or(|Class(bytes)| bytes == site.class_bytes)
    }

    fn has_age(&self, live: &LiveSample, now_ms: u64) -> bool {
        let age_ms = now_ms.saturating_sub(live.sampled_ms);
        self.older.is_none_or(|seconds| age_ms > seconds.saturating_mul(1000))
    }
}

/// What to say where nothing was left of `all`.
pub fn nothing_note(all: &Sampling) -> String {
    let sites = all.sites.iter().filter(|site| site.allocations > 0);
    let (labels, classes): (BTreeSet<_>, BTreeSet<_>) =
        sites.map(|site| (site.label.as_deref(), site.class_bytes)).unzip();
    let class = |bytes: &Option<u64>| bytes.map_or("large".to_owned(), |b| b.to_string());
    let list = |texts: Vec<String>| texts.join(", ");
    format!(
        "nothing that was sampled has this label, class and age: there are labels {} and \
         classes {}",
        list(labels.into_iter().map(text::label).collect()),
        list(classes.iter().map(class).collect())
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::TOLD_MS;
    use crate::profile::sampling_of_test;

    // How many blocks were sampled, and how many of them live.
    fn left(filter: &Filter) -> (u64, usize) {
        let mut sampling = sampling_of_test();
        filter.apply(&mut sampling, TOLD_MS);
        (sampling.sites.iter().map(|site| site.allocations).sum(), sampling.live.len())
    }

    fn label(pattern: &str) -> Filter {
        Filter { label: Some(pattern.to_owned()), ..Filter::default() }
    }

    fn class(text: &str) -> Filter {
        Filter { class: Some(text.parse().unwrap()), ..Filter::default() }
    }

    #[test]
    fn samples_are_left_of_a_label_a_class_an_age() {
        assert_eq!(left(&Filter::default()), (27, 6));
        assert_eq!(left(&label("GET /upload")), (25, 5));
        assert_eq!(left(&label("*default")), (2, 1));
        assert_eq!((left(&class("256")), left(&class("large"))), ((4, 1), (2, 1)));
        let older = |seconds| Filter { older: Some(seconds), ..Filter::default() };
        // What was allocated is not told by age.
        assert_eq!((left(&older(60)), left(&older(900))), ((0, 5), (0, 1)));
        assert_eq!(left(&Filter { class: Some(Class(Some(128))), ..older(900) }), (0, 1));
    }

    #[test]
    fn where_nothing_is_left_the_note_says_what_there_is() {
        assert_eq!(left(&label("upload")), (0, 0));
        let note = nothing_note(&sampling_of_test());
        assert!(
            note.ends_with(r#"labels "GET /upload", "default" and classes large, 128, 256"#),
            "{note}"
        );
    }

    #[test]
    fn a_class_is_a_number_or_large() {
        assert!("1K".parse::<Class>().is_err() && "".parse::<Class>().is_err());
    }
}
