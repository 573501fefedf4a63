//! The statistics file: how it is described, and its tables.
//!
//! Written by `tools/reader_tables.py` from `src/tell/rows.h` and
//! `include/tslab_stats.h`: change those, then run `make format`.
#![allow(dead_code, reason = "each program uses a part")]

use std::fmt;

use serde::Serialize;

/// The values of a field in a row, each of so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// One.
    One(u16),
    /// One for each size class.
    Each(u16),
    /// Several.
    List(u16),
    /// Those of a text.
    Text(u16),
}

/// A field of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    pub table: &'static str,
    pub name: &'static str,
    pub shape: Shape,
    pub kind: Kind,
    pub unit: Unit,
}

impl fmt::Display for Field {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{}.{}", self.table, self.name)
    }
}

/// Why the fast path is left.
#[derive(Clone, Copy, Debug)]
pub struct SlowPath {
    pub cause: &'static str,
    pub meaning: &'static str,
    /// Counts it, over all rows.
    pub field: Field,
    /// Its count is subtracted.
    pub less: Option<Field>,
}

macro_rules! tables {
    ($($table:ident {
        $($(#[$doc:meta])* $constant:ident $name:literal $shape:ident $width:literal $kind:ident
            $unit:ident;)*
    })*) => {
        $(pub mod $table {
            use crate::rows::{Field, Kind, Shape, Unit};

            pub const TABLE: &str = stringify!($table);
            $($(#[$doc])* pub const $constant: Field = Field {
                table: TABLE,
                name: $name,
                shape: Shape::$shape($width),
                kind: Kind::$kind,
                unit: Unit::$unit,
            };)*
            pub const FIELDS: &[Field] = &[$($constant),*];
        })*

        /// In the file's order.
        pub const TABLES: &[&[Field]] = &[$($table::FIELDS),*];
    };
}

/// How a file begins.
pub const MAGIC: &[u8] = b"tslabst\0";
/// The format.
pub const ABI: u32 = 1;
/// Of a unit.
pub const UNIT_BYTES: u32 = 65_536;
/// Row in labels of those that have no row of their own.
pub const OTHER_LABEL: u32 = 1;
/// `sample_bytes` of control by which none is taken.
pub const NO_SAMPLES: u32 = 4_294_967_295;
/// Of `short_frees` and `frees_by_decade` of sites.
pub const SHORT_MS: u32 = 10;
/// Values of `frees_by_decade` of sites.
pub const DECADES: u32 = 7;

/// The kind of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Gauge,
    Counter,
    Id,
    Text,
}

impl Kind {
    /// By its number in the file; none: a newer library's.
    pub fn of(number: u64) -> Option<Self> {
        match number {
            0 => Some(Self::Gauge),
            1 => Some(Self::Counter),
            2 => Some(Self::Id),
            3 => Some(Self::Text),
            _ => None,
        }
    }
}

/// The unit of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    None,
    Bytes,
    Ms,
    Ns,
    Objects,
    Pieces,
}

impl Unit {
    /// By its number in the file; none: a newer library's.
    pub fn of(number: u64) -> Option<Self> {
        match number {
            0 => Some(Self::None),
            1 => Some(Self::Bytes),
            2 => Some(Self::Ms),
            3 => Some(Self::Ns),
            4 => Some(Self::Objects),
            5 => Some(Self::Pieces),
            _ => None,
        }
    }
}

/// `state` of epochs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EpochState {
    Open,
    Closed,
    Released,
    Shared,
}

impl EpochState {
    /// By its number in the file; none: a newer library's.
    pub fn of(number: u64) -> Option<Self> {
        match number {
            0 => Some(Self::Open),
            1 => Some(Self::Closed),
            2 => Some(Self::Released),
            3 => Some(Self::Shared),
            _ => None,
        }
    }
}

impl EpochState {
    /// What people read.
    pub fn text(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::Released => "released",
            Self::Shared => "shared",
        }
    }
}

/// `state` of heaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HeapState {
    Nobodys,
    AThreads,
    Pooled,
}

impl HeapState {
    /// By its number in the file; none: a newer library's.
    pub fn of(number: u64) -> Option<Self> {
        match number {
            0 => Some(Self::Nobodys),
            1 => Some(Self::AThreads),
            2 => Some(Self::Pooled),
            _ => None,
        }
    }
}

impl HeapState {
    /// What people read.
    pub fn text(self) -> &'static str {
        match self {
            Self::Nobodys => "nobody's",
            Self::AThreads => "a thread's",
            Self::Pooled => "a home without one",
        }
    }
}

/// Where the parts of `struct tslab_stats_header` lie.
pub mod header {
    use std::ops::Range;

    pub const MAGIC: Range<usize> = 0..8;
    pub const ABI: usize = 8;
    pub const HEADER_BYTES: usize = 12;
    pub const FILE_BYTES: usize = 16;
    pub const TABLES_AT: usize = 24;
    pub const TABLES: usize = 32;
    pub const TABLE_BYTES: usize = 36;
    pub const FIELDS_AT: usize = 40;
    pub const FIELDS: usize = 48;
    pub const FIELD_BYTES: usize = 52;
    pub const LAYOUT_HASH: usize = 56;
    pub const PID: usize = 64;
    pub const PAGE_BYTES: usize = 68;
    pub const START_TICKS: usize = 72;
    pub const MADE_MS: usize = 80;
    pub const TOLD_MS: usize = 88;
    pub const VERSION: Range<usize> = 96..112;
    /// Bytes of all.
    pub const SIZE: usize = 112;
}

/// Where the parts of `struct tslab_stats_table` lie.
pub mod table {
    use std::ops::Range;

    pub const NAME: Range<usize> = 0..16;
    pub const AT: usize = 16;
    pub const ROW_BYTES: usize = 24;
    pub const MOST_ROWS: usize = 28;
    pub const ROWS: usize = 32;
    pub const IS_FULL: usize = 36;
    /// Bytes of all.
    pub const SIZE: usize = 40;
}

/// Where the parts of `struct tslab_stats_field` lie.
pub mod field {
    use std::ops::Range;

    pub const NAME: Range<usize> = 0..32;
    pub const TABLE: usize = 32;
    pub const KIND: usize = 34;
    pub const UNIT: usize = 35;
    pub const AT: usize = 36;
    pub const BYTES: usize = 40;
    pub const COUNT: usize = 42;
    pub const UNUSED: usize = 44;
    /// Bytes of all.
    pub const SIZE: usize = 48;
}

tables! {
    process {
        /// Memory that was ever opened for blocks.
        OPEN_BYTES "open_bytes" One 8 Gauge Bytes;
        /// Of `open_bytes`: nobody's.
        FREE_BYTES "free_bytes" One 8 Gauge Bytes;
        /// Of `free_bytes`: not given back yet.
        DIRTY_BYTES "dirty_bytes" One 8 Gauge Bytes;
        /// Empty units at hand for all threads.
        CACHED_BYTES "cached_bytes" One 8 Gauge Bytes;
        /// The most of `open_bytes` that was neither free nor cached when threads reported.
        PEAK_HELD_BYTES "peak_held_bytes" One 8 Gauge Bytes;
        /// When it was `peak_held_bytes`.
        PEAK_MS "peak_ms" One 8 Gauge Ms;
        /// Live blocks of whole units.
        LARGE_OBJECTS "large_objects" One 8 Gauge Objects;
        /// Of `large_objects`.
        LARGE_BYTES "large_bytes" One 8 Gauge Bytes;
        /// Blocks of whole units so far.
        LARGE_ALLOCATIONS "large_allocations" One 8 Counter Objects;
        /// Calls that gave pages back to the system.
        PURGES "purges" One 8 Counter Pieces;
        /// Given back to the system.
        PURGED_BYTES "purged_bytes" One 8 Counter Bytes;
        /// Calls to give pages back that the system refused.
        PURGES_REFUSED "purges_refused" One 8 Counter Pieces;
        /// Times that a hard limit refused memory.
        LIMITS_REFUSED "limits_refused" One 8 Counter Pieces;
        /// Times that the system refused memory.
        MEMORY_REFUSED "memory_refused" One 8 Counter Pieces;
        /// In force; 0: none.
        SOFT_LIMIT_BYTES "soft_limit_bytes" One 8 Gauge Bytes;
        /// Between samples on average; 0: none is taken.
        SAMPLE_BYTES "sample_bytes" One 8 Gauge Bytes;
        /// The same in epochs that objects outlive.
        WATCH_BYTES "watch_bytes" One 8 Gauge Bytes;
        /// Since when all, what is watched, or nothing is sampled; 0: since there is a file.
        SAMPLING_SINCE_MS "sampling_since_ms" One 8 Gauge Ms;
        /// Mean by which `times` counts; 0: no samples.
        WEIGHT_BYTES "weight_bytes" One 8 Gauge Bytes;
        /// Blocks.
        SAMPLES_TAKEN "samples_taken" One 8 Counter Objects;
        /// For which a table had no row.
        SAMPLES_LOST "samples_lost" One 8 Counter Objects;
        /// Address of the region: the allocator's memory is in.
        REGION_AT "region_at" One 8 Id None;
        /// Addresses of the region, most without memory.
        REGION_BYTES "region_bytes" One 8 Gauge Bytes;
        /// Address in the region from which on blocks lie.
        BLOCKS_AT "blocks_at" One 8 Id None;
        /// Addresses where blocks lie or may come to lie.
        BLOCKS_BYTES "blocks_bytes" One 8 Gauge Bytes;
        /// Address of the library; 0: it lies in the program.
        CODE_AT "code_at" One 8 Id None;
        /// Addresses from there on that its code lies in.
        CODE_BYTES "code_bytes" One 8 Gauge Bytes;
        /// Of `control`: the last one that was followed.
        PURGE_REQUEST "purge_request" One 8 Id None;
        /// Of the process, as the file was made.
        NAME "name" Text 1 Text None;
    }
    classes {
        /// Of a block.
        BYTES "bytes" One 4 Gauge Bytes;
        /// Of a slab.
        SLAB_BYTES "slab_bytes" One 4 Gauge Bytes;
        /// Blocks that a slab holds.
        CAPACITY "capacity" One 4 Gauge Objects;
        /// Pages of open slabs that went back.
        PURGED_BYTES "purged_bytes" One 8 Counter Bytes;
    }
    labels {
        /// The label of row `label`.
        TEXT "text" Text 1 Text None;
        /// Times that a limit of its epochs refused memory.
        LIMITS_REFUSED "limits_refused" One 8 Counter Pieces;
        /// Times that the system refused its epochs memory.
        MEMORY_REFUSED "memory_refused" One 8 Counter Pieces;
        /// Its epochs that were closed of late, with memory of their own and no guests.
        ENDED "ended" One 4 Gauge Pieces;
        /// 1: an epoch was released or reset, or a block of it kept for its parent: none shares.
        RELEASED "released" One 4 Gauge None;
        /// 1: the next epochs share memory.
        SHARES "shares" One 4 Gauge None;
        /// That `ended` held at their ends.
        ENDED_BYTES "ended_bytes" One 8 Gauge Bytes;
        /// Of them: objects that lived on.
        ENDED_SURVIVOR_BYTES "ended_survivor_bytes" One 8 Gauge Bytes;
        /// Of them: cells and slabs in which objects lived on.
        ENDED_PINNED_BYTES "ended_pinned_bytes" One 8 Gauge Bytes;
        /// That `ended` were open, added up.
        ENDED_LIVED_MS "ended_lived_ms" One 8 Gauge Ms;
    }
    epochs {
        /// 0, but in row 0: the row is nobody's, or being written.
        ID "id" One 8 Id None;
        /// The parent's row; 0: none.
        PARENT "parent" One 8 Id None;
        /// Row in labels.
        LABEL "label" One 4 Id None;
        /// Where it is in its life.
        STATE "state" One 4 Id None;
        /// When it was opened.
        OPENED_MS "opened_ms" One 8 Gauge Ms;
        /// When it was closed or released; 0: it is open.
        CLOSED_MS "closed_ms" One 8 Gauge Ms;
        /// Its cells, slabs, large blocks, its children's.
        HELD_BYTES "held_bytes" One 8 Gauge Bytes;
        /// 0: none.
        SOFT_LIMIT_BYTES "soft_limit_bytes" One 8 Gauge Bytes;
        /// 0: none.
        HARD_LIMIT_BYTES "hard_limit_bytes" One 8 Gauge Bytes;
        /// Live blocks of whole units.
        LARGE_OBJECTS "large_objects" One 8 Gauge Objects;
        /// Of `large_objects`.
        LARGE_BYTES "large_bytes" One 8 Gauge Bytes;
        /// Live, in parts that were sealed.
        SURVIVORS "survivors" Each 4 Gauge Objects;
    }
    heaps {
        /// Whose it is.
        STATE "state" One 4 Id None;
        /// Row in epochs whose part this is.
        EPOCH "epoch" One 4 Id None;
        /// Row of the same thread's part of the default epoch.
        HOME "home" One 4 Id None;
        /// Of a home: the thread, as the system numbers it.
        THREAD "thread" One 4 Id None;
        /// Open in it when it was last told, or its epoch ended.
        SCOPES "scopes" One 4 Gauge Pieces;
        /// Of `unit_bytes`, empty, that the thread keeps.
        CACHED_UNITS "cached_units" One 4 Gauge Pieces;
        /// Allocated in cells.
        CUT_OBJECTS "cut_objects" One 8 Counter Objects;
        /// Of `cut_objects`.
        CUT_BYTES "cut_bytes" One 8 Counter Bytes;
        /// Of `cut_objects`: freed by the thread.
        FREED_OBJECTS "freed_objects" One 8 Counter Objects;
        /// Of `freed_objects`.
        FREED_BYTES "freed_bytes" One 8 Counter Bytes;
        /// Freed by others; of slabs also in `taken`.
        AWAY_OBJECTS "away_objects" One 8 Counter Objects;
        /// Of `away_objects`.
        AWAY_BYTES "away_bytes" One 8 Counter Bytes;
        /// Its cells.
        CELL_BYTES "cell_bytes" One 8 Gauge Bytes;
    }
    bins {
        /// In slabs.
        ALLOCATIONS "allocations" Each 8 Counter Objects;
        /// Blocks that slabs miss: live, hot or sent.
        OUT "out" Each 4 Gauge Objects;
        /// Free blocks that the thread keeps at hand.
        HOT "hot" Each 4 Gauge Objects;
        /// Frees of blocks of other homes.
        SENT "sent" Each 8 Counter Objects;
        /// Frees by others that came back to the slabs.
        TAKEN "taken" Each 8 Counter Objects;
        /// Of a part: its `away_objects` in slabs.
        AWAY "away" Each 8 Counter Objects;
        /// Open now.
        SLABS "slabs" Each 4 Gauge Pieces;
        /// Slabs so far.
        OPENED "opened" Each 4 Counter Pieces;
        /// Times that an empty bin took blocks of a slab.
        REFILLS "refills" Each 8 Counter Pieces;
        /// Freed without room at hand: put in slabs.
        RETURNED "returned" Each 8 Counter Objects;
        /// Of a home: by its thread, in all epochs.
        CELLS_TAKEN "cells_taken" One 8 Counter Pieces;
        /// Of a home: empty cells that it cut anew.
        CELLS_RESTARTED "cells_restarted" One 8 Counter Pieces;
        /// Of a home: `cut_objects` of parts it ended.
        ENDED_OBJECTS "ended_objects" One 8 Counter Objects;
        /// Of `ended_objects`.
        ENDED_BYTES "ended_bytes" One 8 Counter Bytes;
        /// Of a home: for slabs, kept by its thread.
        UNITS_KEPT "units_kept" One 8 Counter Pieces;
        /// The same, from the cache of all threads.
        UNITS_SHARED "units_shared" One 8 Counter Pieces;
        /// The same, nobody's, with pages.
        UNITS_REUSED "units_reused" One 8 Counter Pieces;
        /// The same, nobody's, whose pages were not there.
        UNITS_FRESH "units_fresh" One 8 Counter Pieces;
        /// Of a home: epochs that its thread closed.
        CLOSES "closes" One 8 Counter Pieces;
        /// The same, released; their children count.
        RELEASES "releases" One 8 Counter Pieces;
        /// Of a home: parts that its thread ended.
        END_PARTS "end_parts" One 8 Counter Pieces;
        /// Cells and slabs of `end_parts`.
        END_PIECES "end_pieces" One 8 Counter Pieces;
        /// Of `end_pieces`: given back at once.
        END_PIECES_GIVEN "end_pieces_given" One 8 Counter Pieces;
        /// Of `end_pieces`, whether or not resident.
        END_BYTES "end_bytes" One 8 Counter Bytes;
        /// Of `end_pieces_given`.
        END_BYTES_GIVEN "end_bytes_given" One 8 Counter Bytes;
        /// Of `end_parts`: those of at least 64 pieces.
        END_TIMED_PARTS "end_timed_parts" One 8 Counter Pieces;
        /// That the walks over `end_timed_parts` took.
        END_TIMED_NS "end_timed_ns" One 8 Counter Ns;
    }
    control {
        /// Wanted; 0: what the option says, `no_samples`: none.
        SAMPLE_BYTES "sample_bytes" One 4 Gauge Bytes;
        /// Number of the last request to give idle memory back; 0: none.
        PURGE_REQUEST "purge_request" One 4 Id None;
        /// Number of the last request to sample what is watched faster for a minute; 0: none.
        WATCH_REQUEST "watch_request" One 4 Id None;
    }
    sites {
        /// Samples, each `times`.
        ALLOCATIONS "allocations" One 8 Counter Objects;
        /// Of these samples, each `times`.
        BYTES "bytes" One 8 Counter Bytes;
        /// Of these samples, each `times`.
        FREES "frees" One 8 Counter Objects;
        /// Of `frees`: lived less than `short_ms`.
        SHORT_FREES "short_frees" One 8 Counter Objects;
        /// Of `frees`: lived less than `short_ms`, 10 times that, and so on; last: longer.
        FREES_BY_DECADE "frees_by_decade" List 8 Counter Objects;
        /// That those of `frees` lived, added up.
        LIFETIME_MS "lifetime_ms" One 8 Counter Ms;
        /// Row in labels.
        LABEL "label" One 4 Id None;
        /// Row in classes; beyond them: blocks of whole units.
        CLASS "class" One 4 Id None;
        /// Calls in frames; 0: the row is nobody's.
        DEPTH "depth" One 8 Gauge Pieces;
        /// Return addresses, innermost first.
        FRAMES "frames" List 8 Id None;
    }
    samples {
        /// Row in sites; 0: the row is nobody's, or being written.
        SITE "site" One 4 Id None;
        /// Samples at `weight_bytes` that it stands for.
        TIMES "times" One 4 Gauge Objects;
        /// Of the live block.
        ADDRESS "address" One 8 Id None;
        /// Of the block, unweighted.
        BYTES "bytes" One 8 Gauge Bytes;
        /// Id of its epoch; 0: the default one.
        EPOCH "epoch" One 8 Id None;
        /// When it was allocated.
        SAMPLED_MS "sampled_ms" One 8 Gauge Ms;
    }
    events {
        /// When; 0: the row is nobody's, or being written.
        AT_NS "at_ns" One 8 Gauge Ns;
        /// Of the block, unweighted; 0: it was freed.
        BYTES "bytes" One 8 Gauge Bytes;
        /// Samples at `weight_bytes` that it stands for.
        TIMES "times" One 4 Gauge Objects;
        /// Number of the sample, the next one's after its free.
        SAMPLE "sample" One 4 Id None;
        /// Row in sites of who allocated or freed; 0: not known.
        SITE "site" One 4 Id None;
        /// As the system numbers it.
        THREAD "thread" One 4 Id None;
    }
}

/// Why the fast path is left.
pub const SLOW_PATHS: [SlowPath; 8] = [
    SlowPath {
        cause: "bin_empty",
        meaning: "no block was at hand: up to 64 were taken from a slab",
        field: bins::REFILLS,
        less: Some(bins::OPENED),
    },
    SlowPath {
        cause: "slab_opened",
        meaning: "no slab of the class had room: another was opened",
        field: bins::OPENED,
        less: None,
    },
    SlowPath {
        cause: "cell_full",
        meaning: "the epoch's newest cell was full: another was taken",
        field: bins::CELLS_TAKEN,
        less: None,
    },
    SlowPath {
        cause: "cell_restarted",
        meaning: "the newest cell was full, and all in it free: it was begun anew",
        field: bins::CELLS_RESTARTED,
        less: None,
    },
    SlowPath {
        cause: "whole_units",
        meaning: "blocks above 32 KiB",
        field: process::LARGE_ALLOCATIONS,
        less: None,
    },
    SlowPath {
        cause: "sampled",
        meaning: "allocations that the profiler took",
        field: process::SAMPLES_TAKEN,
        less: None,
    },
    SlowPath {
        cause: "bin_full",
        meaning: "there was no room at hand for a freed block",
        field: bins::RETURNED,
        less: None,
    },
    SlowPath {
        cause: "other_thread",
        meaning: "blocks of the default epoch that other threads freed",
        field: bins::SENT,
        less: None,
    },
];
