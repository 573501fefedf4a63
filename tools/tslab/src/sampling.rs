//! What a process sampled of its allocations: who made them, and which of the blocks live.
//!
//! Allocated bytes are a line on which points lie at random, one in `sample_bytes` on average; a
//! block that holds a point is sampled (`tell/sample.h`). It stands for `times` samples, as if
//! points lay `weight_bytes` apart, and each of these, of n bytes, for
//! 1 / (1 - exp(-n / `weight_bytes`)) objects.

use std::collections::HashMap;
use std::ops::Range;

use crate::decades;
use crate::rows::{classes, labels, process, samples, sites};
use crate::segment::{Column, Error, Rows, Segment, Source};

/// Of the cells that sampled blocks lie in; small blocks share one (`heap/sampled.c`).
pub const CELL_BYTES: u64 = 4096;

/// The tables of samples, at one moment.
#[derive(Clone, Debug, Default)]
pub struct Sampling {
    /// Bytes from sample to sample on average, from now on; 0: none is taken.
    pub sample_bytes: u64,
    /// The same in epochs of labels whose objects outlive them, where none else is taken.
    pub watch_bytes: u64,
    /// Since when all, only those epochs, or nothing is sampled, as `CLOCK_MONOTONIC` in ms; 0: as
    /// long as there is a file, or not told.
    pub since_ms: u64,
    /// What `times` of all samples is counted by; 0: there are none.
    pub weight_bytes: u64,
    /// Blocks that were sampled so far.
    pub taken: u64,
    /// Of further ones nothing is known, since a table had no row for them.
    pub lost: u64,
    /// Who allocated them.
    pub sites: Vec<Site>,
    /// Those that live.
    pub live: Vec<LiveSample>,
}

/// Of which allocations samples are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Of none.
    #[default]
    Nothing,
    /// Of those in epochs of labels whose objects outlive them.
    Watched,
    /// Of all.
    All,
}

impl Reach {
    /// For programs; samples of before may be of others.
    pub fn text(self) -> &'static str {
        match self {
            Self::Nothing => "ended",
            Self::Watched => "watched",
            Self::All => "all",
        }
    }
}

/// A call stack that allocates blocks of one size class in epochs of one label.
#[derive(Clone, Debug, Default)]
pub struct Site {
    /// Its row; the same as long as the process lives.
    pub row: usize,
    /// Of the epochs.
    pub label: Option<String>,
    /// Of a block, in bytes; None: blocks of whole units, or a class that is not known.
    pub class_bytes: Option<u64>,
    /// Return addresses, innermost first; the allocator's own are among them.
    pub frames: Vec<u64>,
    /// So many of them, the innermost, lie in the allocator's library, as far as it says where that
    /// lies.
    pub own: usize,
    /// How many samples it made; those that stand for several count as several.
    pub allocations: u64,
    /// How large they were together, in bytes.
    pub bytes: u64,
    /// What became of those that were freed; None: the library does not tell.
    pub ended: Option<Ended>,
}

/// Samples of a site that were freed, counted as its allocations are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// How many.
    pub frees: u64,
    /// Of them, those that were freed within 10 ms.
    pub short_frees: u64,
    /// The same by decade of how long they lived; None: the library does not tell.
    pub by_decade: Option<[u64; decades::COUNT]>,
    /// How long they lived, added up.
    pub lifetime_ms: u64,
}

impl Ended {
    fn since(self, earlier: Self) -> Self {
        let by_decade = self.by_decade.zip(earlier.by_decade);
        Self {
            frees: self.frees.saturating_sub(earlier.frees),
            short_frees: self.short_frees.saturating_sub(earlier.short_frees),
            by_decade: by_decade.map(|(now, before)| {
                std::array::from_fn(|decade| now[decade].saturating_sub(before[decade]))
            }),
            lifetime_ms: self.lifetime_ms.saturating_sub(earlier.lifetime_ms),
        }
    }
}

impl Site {
    /// Where the calls stand: a return address is that behind a call.
    pub fn calls(&self) -> impl Iterator<Item = u64> + '_ {
        self.frames.iter().map(|address| address.saturating_sub(1))
    }
}

/// A sampled block that lives.
#[derive(Clone, Copy, Debug)]
pub struct LiveSample {
    /// Its place in `sites`.
    pub site: usize,
    /// Of the block.
    pub address: u64,
    /// Of the block.
    pub bytes: u64,
    /// Id of its epoch; 0: the default one.
    pub epoch: u64,
    /// `CLOCK_MONOTONIC` when it was allocated, in ms.
    pub sampled_ms: u64,
    /// Samples at `weight_bytes` that it stands for.
    pub times: u64,
}

impl Sampling {
    /// None when the file does not tell. Samples are read before sites, which count them.
    pub fn read<S: Source>(segment: &Segment<S>) -> Result<Option<Self>, Error> {
        let samples = segment.rows(samples::TABLE)?;
        let samples_again = segment.rows(samples::TABLE)?;
        let (sites, labels) = (segment.rows(sites::TABLE)?, segment.rows(labels::TABLE)?);
        let (classes, process) = (segment.rows(classes::TABLE)?, segment.rows(process::TABLE)?);
        let code = process.as_ref().map(code).unwrap_or_default();
        let known = Known { labels: labels.as_ref(), classes: classes.as_ref(), code };
        let sites = sites.as_ref().and_then(|sites| known.sites(sites));
        let live = samples.as_ref().zip(samples_again.as_ref());
        let live = live.and_then(|(samples, again)| live_samples(samples, again));
        let told = process.as_ref().zip(sites).zip(live);
        Ok(told.and_then(|((process, sites), live)| Self::of(process, sites, &live)))
    }

    fn of(process: &Rows, sites: Vec<Site>, live: &[(u64, LiveSample)]) -> Option<Self> {
        let figure = |field| process.column(field)?.get(0);
        let places: HashMap<_, _> =
            sites.iter().enumerate().map(|(place, site)| (site.row as u64, place)).collect();
        let at_place = |(row, sample): &(u64, LiveSample)| {
            places.get(row).map(|&site| LiveSample { site, ..*sample })
        };
        Some(Self {
            sample_bytes: figure(process::SAMPLE_BYTES)?,
            watch_bytes: figure(process::WATCH_BYTES).unwrap_or_default(),
            since_ms: figure(process::SAMPLING_SINCE_MS).unwrap_or_default(),
            weight_bytes: figure(process::WEIGHT_BYTES)?,
            taken: figure(process::SAMPLES_TAKEN).unwrap_or_default(),
            lost: figure(process::SAMPLES_LOST).unwrap_or_default(),
            live: live.iter().filter_map(at_place).collect(),
            sites,
        })
    }

    /// What was allocated since an earlier look at the same process; what lives stays.
    #[must_use]
    pub fn since(mut self, earlier: &Self) -> Self {
        let before: HashMap<_, _> = earlier.sites.iter().map(|site| (site.row, site)).collect();
        for site in &mut self.sites {
            let Some(before) = before.get(&site.row) else { continue };
            site.allocations = site.allocations.saturating_sub(before.allocations);
            site.bytes = site.bytes.saturating_sub(before.bytes);
            site.ended = site.ended.zip(before.ended).map(|(now, before)| now.since(before));
        }
        self.taken = self.taken.saturating_sub(earlier.taken);
        self.lost = self.lost.saturating_sub(earlier.lost);
        self
    }

    /// What is sampled now.
    pub fn reach(&self) -> Reach {
        match (self.sample_bytes, self.watch_bytes) {
            (0, 0) => Reach::Nothing,
            (0, _) => Reach::Watched,
            _ => Reach::All,
        }
    }

    /// Whether some of what lives was allocated while not all was sampled.
    pub fn is_partial(&self) -> bool {
        self.since_ms != 0 || self.reach() == Reach::Watched
    }

    /// For how many objects a sample stands whose block has so many bytes.
    pub fn weight(&self, bytes: f64) -> f64 {
        if self.weight_bytes == 0 || bytes <= 0.0 {
            return 1.0;
        }
        -1.0 / (-bytes / float(self.weight_bytes)).exp_m1()
    }

    /// Bytes from sample to sample on average, as far as is known; 0: there are none. Of a process
    /// that ended sampling, those of the samples that live.
    pub fn mean_bytes(&self) -> u64 {
        if self.sample_bytes != 0 || self.live.is_empty() {
            return self.sample_bytes.max(self.weight_bytes);
        }
        let times = self.live.iter().fold(0_u64, |sum, sample| sum.saturating_add(sample.times));
        self.weight_bytes.saturating_mul(times) / self.live.len() as u64
    }

    /// Who allocated the live samples, one for each.
    pub fn live_sites(&self) -> impl Iterator<Item = &Site> {
        self.live.iter().map(|live| &self.sites[live.site])
    }

    /// For how many objects a live sample stands.
    pub fn objects(&self, live: &LiveSample) -> f64 {
        float(live.times) * self.weight(float(live.bytes))
    }
}

/// A quantity with which is calculated further: digits beyond the 15th do not matter.
#[expect(clippy::cast_precision_loss, reason = "that is its purpose")]
pub fn float(value: u64) -> f64 {
    value as f64
}

/// A quantity that was calculated, as a number of things.
#[expect(clippy::cast_possible_truncation, reason = "what is too large becomes the largest")]
#[expect(clippy::cast_sign_loss, reason = "what is negative becomes 0")]
pub fn whole(value: f64) -> u64 {
    value.round() as u64
}

// What is looked up while sites are put together.
struct Known<'a> {
    labels: Option<&'a Rows<'a>>,
    classes: Option<&'a Rows<'a>>,
    // The library's.
    code: Range<u64>,
}

// Empty: not told, or the allocator lies in the program.
fn code(process: &Rows) -> Range<u64> {
    let figure = |field| process.column(field)?.get(0);
    let (at, bytes) = (figure(process::CODE_AT), figure(process::CODE_BYTES));
    let start = at.unwrap_or_default();
    start..start.saturating_add(bytes.unwrap_or_default())
}

impl Known<'_> {
    fn sites(&self, sites: &Rows) -> Option<Vec<Site>> {
        let column = |field| sites.column(field);
        let (label, class) = (column(sites::LABEL)?, column(sites::CLASS)?);
        let (allocations, bytes) = (column(sites::ALLOCATIONS)?, column(sites::BYTES)?);
        let (depth, frames) = (column(sites::DEPTH)?, column(sites::FRAMES)?);
        let (frees, short_frees) = (column(sites::FREES), column(sites::SHORT_FREES));
        let (decades, lifetime_ms) = (column(sites::FREES_BY_DECADE), column(sites::LIFETIME_MS));
        let ended = |row| {
            Some(Ended {
                frees: frees?.get(row)?,
                short_frees: short_frees?.get(row)?,
                by_decade: decades.and_then(|decades| by_decade(decades, row)),
                lifetime_ms: lifetime_ms?.get(row)?,
            })
        };
        let site = |row| {
            let frames = calls(depth, frames, row);
            (!frames.is_empty()).then_some(())?;
            let own = frames.iter().take_while(|address| self.code.contains(address)).count();
            Some(Site {
                own,
                row,
                label: label.get(row).and_then(|label| self.label(label)),
                class_bytes: class.get(row).and_then(|class| self.class_bytes(class)),
                frames,
                allocations: allocations.get(row)?,
                bytes: bytes.get(row)?,
                ended: ended(row),
            })
        };
        Some((0..sites.len()).filter_map(site).collect())
    }

    fn label(&self, row: u64) -> Option<String> {
        self.labels?.column(labels::TEXT)?.text(usize::try_from(row).ok()?)
    }

    fn class_bytes(&self, row: u64) -> Option<u64> {
        self.classes?.column(classes::BYTES)?.get(usize::try_from(row).ok()?)
    }
}

fn calls(depth: Column, frames: Column, row: usize) -> Vec<u64> {
    let depth = depth.get(row).unwrap_or_default();
    frames.each(row).take(usize::try_from(depth).unwrap_or(usize::MAX)).collect()
}

// Further decades of a newer library are behind our last one. Where there are fewer the last one is
// another.
fn by_decade(frees: Column, row: usize) -> Option<[u64; decades::COUNT]> {
    (frees.count() >= decades::COUNT).then_some(())?;
    let mut sums = [0_u64; decades::COUNT];
    for (decade, frees) in frees.each(row).enumerate() {
        let sum = &mut sums[decade.min(decades::COUNT - 1)];
        *sum = sum.saturating_add(frees);
    }
    Some(sums)
}

// With the rows of their sites. A row that is another block's by now is left out: its fields may be
// of both.
fn live_samples(samples: &Rows, again: &Rows) -> Option<Vec<(u64, LiveSample)>> {
    let (now, later) = (Live::of(samples)?, Live::of(again)?);
    let same = |row| now.sample(row).filter(|sample| later.sample(row).as_ref() == Some(sample));
    let live = |(site, [address, bytes, epoch, sampled_ms, times]): (u64, [u64; 5])| {
        (site, LiveSample { site: 0, address, bytes, epoch, sampled_ms, times })
    };
    Some((0..samples.len()).filter_map(same).map(live).collect())
}

// Fields of samples: the site, and the others.
struct Live<'a> {
    site: Column<'a>,
    others: [Column<'a>; 4],
    // Files of older libraries do not tell: there each stands for itself.
    times: Option<Column<'a>>,
}

impl<'a> Live<'a> {
    fn of(samples: &'a Rows) -> Option<Self> {
        let column = |field| samples.column(field);
        let (address, bytes) = (column(samples::ADDRESS)?, column(samples::BYTES)?);
        let others = [address, bytes, column(samples::EPOCH)?, column(samples::SAMPLED_MS)?];
        Some(Self { site: column(samples::SITE)?, others, times: column(samples::TIMES) })
    }

    fn sample(&self, row: usize) -> Option<(u64, [u64; 5])> {
        let site = self.site.get(row).filter(|&site| site != 0)?;
        let mut values = [0; 4];
        for (value, column) in values.iter_mut().zip(self.others) {
            *value = column.get(row)?;
        }
        let times = self.times.and_then(|times| times.get(row)).unwrap_or(1).max(1);
        let [address, bytes, epoch, sampled_ms] = values;
        Some((site, [address, bytes, epoch, sampled_ms, times]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Image, add_samples, sample};

    fn sampled() -> Image {
        let mut image = sample(42, 7);
        add_samples(&mut image);
        image
    }

    fn read(image: &Image) -> Option<Sampling> {
        Sampling::read(&Segment::open(image.bytes()).unwrap()).unwrap()
    }

    #[test]
    fn sites_and_live_samples_are_understood() {
        let sampling = read(&sampled()).unwrap();
        assert_eq!((sampling.sample_bytes, sampling.weight_bytes), (0, 4096));
        assert_eq!((sampling.taken, sampling.lost), (40, 1));
        assert_eq!(sampling.sites.len(), 4);
        let site = &sampling.sites[0];
        assert_eq!((site.row, site.label.as_deref()), (1, Some("GET /upload")));
        assert_eq!((site.class_bytes, site.frames.as_slice()), (Some(128), &[0x1001, 0x2001][..]));
        assert_eq!((site.allocations, site.bytes), (20, 2560));
        assert_eq!(sampling.sites[3].class_bytes, None);
        let by_decade = Some([12, 3, 2, 0, 0, 0, 0]);
        let ended = Ended { frees: 17, short_frees: 12, by_decade, lifetime_ms: 680 };
        assert_eq!(site.ended, Some(ended));
        let first = sampling.live[0];
        assert_eq!((first.site, first.address, first.bytes), (0, 0x7000, 128));
        assert_eq!(sampling.live.len(), 6);
    }

    #[test]
    fn a_sample_stands_for_as_many_objects_as_were_passed_over() {
        let sampling = Sampling { weight_bytes: 4096, ..Sampling::default() };
        assert!((sampling.weight(128.0) - 32.5).abs() < 0.01);
        assert!((sampling.weight(1e9) - 1.0).abs() < 1e-9);
        // A sum of no bytes, and a mean that is not known.
        assert!((sampling.weight(0.0) - 1.0).abs() < 1e-9);
        assert!((Sampling::default().weight(128.0) - 1.0).abs() < 1e-9);
        let sparse = Sampling { weight_bytes: u64::MAX, ..Sampling::default() };
        assert!(sparse.weight(1.0).is_finite());
        assert_eq!((whole(1e300), whole(-5.0), whole(2.5)), (u64::MAX, 0, 3));
    }

    // Nobody was asked at first, then for all, then for none, and a label was watched in between.
    #[test]
    fn samples_are_of_all_that_lives_if_all_was_sampled_ever_since() {
        let partial = |sample_bytes, watch_bytes, since_ms| {
            let mut image = sampled();
            let told = [("sample_bytes", sample_bytes), ("watch_bytes", watch_bytes)];
            image.set_all("process", 0, &told);
            image.set("process", 0, "sampling_since_ms", since_ms);
            let sampling = read(&image).unwrap();
            (sampling.reach(), sampling.is_partial())
        };
        assert_eq!(partial(4096, 0, 0), (Reach::All, false));
        assert_eq!(partial(4096, 0, 5), (Reach::All, true));
        assert_eq!(partial(0, 4096, 5), (Reach::Watched, true));
        assert_eq!(partial(0, 4096, 0), (Reach::Watched, true), "in the child of a fork");
        assert_eq!(partial(0, 0, 5), (Reach::Nothing, true));
    }

    #[test]
    fn what_was_there_before_is_not_counted_again() {
        let earlier = read(&sampled()).unwrap();
        let mut image = sampled();
        image.set_all("sites", 1, &[("allocations", 25), ("bytes", 3200)]);
        image.set_all("sites", 1, &[("frees", 19), ("short_frees", 13), ("lifetime_ms", 700)]);
        image.set_class("sites", 1, "frees_by_decade", 0, 13);
        image.set_class("sites", 1, "frees_by_decade", 2, 3);
        image.set_all("process", 0, &[("samples_taken", 45)]);
        let since = read(&image).unwrap().since(&earlier);
        assert_eq!((since.sites[0].allocations, since.sites[0].bytes), (5, 640));
        let by_decade = Some([1, 0, 1, 0, 0, 0, 0]);
        let ended = Ended { frees: 2, short_frees: 1, by_decade, lifetime_ms: 20 };
        assert_eq!(since.sites[0].ended, Some(ended));
        assert_eq!((since.sites[1].allocations, since.taken, since.live.len()), (0, 5, 6));
    }

    #[test]
    fn numbers_of_rows_that_are_not_there_harm_nobody() {
        let mut image = sampled();
        image.set_all("sites", 1, &[("depth", u64::MAX), ("class", u32::MAX.into())]);
        image.set("sites", 2, "label", u32::MAX.into());
        image.set("samples", 2, "site", u32::MAX.into());
        image.set("samples", 3, "site", 7);
        let sampling = read(&image).unwrap();
        assert_eq!(sampling.sites[0].frames.len(), 32);
        assert_eq!((sampling.sites[0].class_bytes, &sampling.sites[1].label), (None, &None));
        assert_eq!(sampling.live.len(), 4);
    }

    #[test]
    fn the_librarys_calls_are_known_by_where_its_code_lies() {
        let mut image = sampled();
        let own = |image: &Image| -> Vec<usize> {
            read(image).unwrap().sites.iter().map(|site| site.own).collect()
        };
        assert_eq!(own(&image), [0, 0, 0, 0], "it lies in the program, or does not tell");
        image.set_all("process", 0, &[("code_at", 0x1000), ("code_bytes", 0x1000)]);
        assert_eq!(own(&image), [1, 1, 0, 0]);
        image.set_all("process", 0, &[("code_at", 0x4000), ("code_bytes", u64::MAX)]);
        assert_eq!(own(&image), [0, 0, 1, 1], "only those before any other");
    }

    #[test]
    fn further_decades_of_newer_libraries_are_the_last_one() {
        let mut image = sampled();
        for decade in [6, 7, 31] {
            image.set_class("sites", 1, "frees_by_decade", decade, 5);
        }
        let ended = read(&image).unwrap().sites[0].ended.unwrap();
        assert_eq!(ended.by_decade, Some([12, 3, 2, 0, 0, 0, 15]));
    }

    #[test]
    fn files_of_older_libraries_do_not_tell() {
        for table in ["sites", "samples", "process"] {
            let mut image = sampled();
            image.tables.retain(|known| known.name != table);
            assert!(read(&image).is_none(), "{table}");
        }
        let mut image = sampled();
        image.forget("samples", "times");
        assert!(read(&image).unwrap().live.iter().all(|sample| sample.times == 1));
        image.set("process", 0, "sampling_since_ms", 5);
        image.forget("process", "sampling_since_ms");
        assert!(!read(&image).unwrap().is_partial());
        let by_decade = |image: &Image| read(image).unwrap().sites[0].ended.unwrap().by_decade;
        let decades = image.table("sites").fields.iter_mut();
        decades.filter(|field| field.name == "frees_by_decade").for_each(|field| field.count = 6);
        assert_eq!(by_decade(&image), None, "there the last has no end");
        image.forget("sites", "frees_by_decade");
        assert_eq!(by_decade(&image), None);
        image.forget("sites", "lifetime_ms");
        assert_eq!(read(&image).unwrap().sites[0].ended, None);
        for (table, field) in [("process", "weight_bytes"), ("sites", "frames")] {
            let mut image = sampled();
            image.forget(table, field);
            assert!(read(&image).is_none(), "{table}.{field}");
        }
    }
}
