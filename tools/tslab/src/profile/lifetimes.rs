//! How long blocks lived, by who allocated them: which of them are temporaries.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Key, Profile, key_of};
use crate::names::Names;
use crate::sampling::{Sampling, Site, float, whole};
use crate::symbols::Line;
use crate::text::{self, Align, Grid};

// Of a stack in a row of the table.
const SHOWN_CALLS: usize = 4;

/// What is known of blocks that were freed: estimates.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Freed {
    /// How many.
    pub objects: f64,
    /// Their size.
    pub bytes: f64,
    /// How many of them were temporaries: freed within 10 ms.
    pub short_objects: f64,
    /// How long they lived, added up.
    pub lived_ms: f64,
}

impl Freed {
    /// Both together.
    pub fn add(&mut self, other: Self) {
        self.objects += other.objects;
        self.bytes += other.bytes;
        self.short_objects += other.short_objects;
        self.lived_ms += other.lived_ms;
    }

    /// How long a block lived on average.
    pub fn mean_ms(&self) -> u64 {
        whole(self.lived_ms / self.objects)
    }

    /// The share of temporaries.
    pub fn short_percent(&self) -> u64 {
        whole(100.0 * self.short_objects / self.objects)
    }
}

/// Blocks of one call stack, label and class, of which some were freed.
#[derive(Clone, Debug)]
pub struct Lifetime {
    /// What they have in common.
    pub key: Key,
    /// Those that were freed.
    pub freed: Freed,
}

/// All of which a block was freed, those with most temporaries first. None in files of libraries
/// that do not tell.
pub fn of(sampling: &Sampling, names: &Names) -> Vec<Lifetime> {
    let mut sites = BTreeMap::<Key, Freed>::new();
    for site in &sampling.sites {
        if let Some(freed) = freed(sampling, site) {
            sites.entry(key_of(site, names)).or_default().add(freed);
        }
    }
    let mut lifetimes: Vec<_> =
        sites.into_iter().map(|(key, freed)| Lifetime { key, freed }).collect();
    lifetimes.sort_by_key(|lifetime| {
        Reverse((whole(lifetime.freed.short_objects), whole(lifetime.freed.objects)))
    });
    lifetimes
}

fn freed(sampling: &Sampling, site: &Site) -> Option<Freed> {
    let ended = site.ended.filter(|ended| ended.frees > 0 && site.allocations > 0)?;
    let bytes = float(site.bytes) / float(site.allocations);
    let weight = sampling.weight(bytes);
    let objects = float(ended.frees) * weight;
    Some(Freed {
        objects,
        bytes: objects * bytes,
        short_objects: float(ended.short_frees.min(ended.frees)) * weight,
        lived_ms: float(ended.lifetime_ms) * weight,
    })
}

/// A table for people, of lifetimes in `sampling` with the names of its profile.
pub fn text(sampling: &Sampling, profile: &Profile) -> String {
    let mut grid = Grid::new(&[
        ("FREED", Align::Right),
        ("BYTES", Align::Right),
        ("TEMPORARY", Align::Right),
        ("MEAN LIFE", Align::Right),
        ("CLASS", Align::Right),
        ("LABEL", Align::Left),
        ("STACK", Align::Left),
    ]);
    let lifetimes = of(sampling, &profile.names);
    for lifetime in &lifetimes {
        grid.row(texts(profile, lifetime));
    }
    grid.render()
}

fn texts(profile: &Profile, Lifetime { key, freed }: &Lifetime) -> Vec<String> {
    let lines = key.calls.iter().flat_map(|call| profile.names.lines(*call));
    let shown: Vec<_> = lines.take(SHOWN_CALLS).map(|line| call_text(&line)).collect();
    let class = key.class_bytes.map_or_else(|| "large".to_owned(), |bytes| format!("{bytes} B"));
    vec![
        whole(freed.objects).to_string(),
        text::bytes(Some(whole(freed.bytes))),
        format!("{} %", freed.short_percent()),
        lived(freed.mean_ms()),
        class,
        key.label.as_deref().map_or_else(String::new, |label| text::label(Some(label))),
        shown.join(" <- "),
    ]
}

// The same function may allocate in several places.
fn call_text(line: &Line) -> String {
    let place = text::place(line.file.as_deref(), line.number);
    format!("{} {place}", text::printable(&line.function)).trim_end().to_owned()
}

fn lived(ms: u64) -> String {
    if ms < 1000 { format!("{ms} ms") } else { text::age(Some(ms)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{of_test, sampling_of_test};
    use crate::sampling::Ended;

    #[test]
    fn sites_with_most_temporaries_come_first() {
        let lines = text(&sampling_of_test(), &of_test());
        let lines: Vec<_> = lines.lines().collect();
        let upload =
            "  553  69.1 KiB       71 %      40 ms  128 B  \"GET /upload\"  handle server.c:88";
        assert_eq!(lines[1], upload);
        assert!(lines[2].contains("0 %     16 min  large  \"default\""), "{}", lines[2]);
        assert_eq!(lines.len(), 3, "of the others nothing was freed");
    }

    #[test]
    fn equal_stacks_are_added_up() {
        let site = |frees, short_frees| Site {
            frames: vec![0x2001],
            allocations: 10,
            bytes: 1 << 30,
            ended: Some(Ended { frees, short_frees, lifetime_ms: 100 * frees }),
            ..Site::default()
        };
        let sites = vec![site(1, 1), site(3, 0), site(0, 0)];
        let sampling = Sampling { weight_bytes: 4096, sites, ..Sampling::default() };
        let found = of(&sampling, &Names::default());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].freed.mean_ms(), found[0].freed.short_percent()), (100, 25));
        assert_eq!(whole(found[0].freed.objects), 4);
    }

    #[test]
    fn older_libraries_do_not_tell() {
        let sites = vec![Site { allocations: 1, bytes: 1, ..Site::default() }];
        let sampling = Sampling { sites, ..Sampling::default() };
        assert!(of(&sampling, &Names::default()).is_empty());
    }
}
