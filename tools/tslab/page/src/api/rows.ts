// rows: the names of what a process tells, with what they mean.
//
// Written by `tools/reader_tables.py` from `src/tell/rows.h` and
// `include/tslab_stats.h`: change those, then run `make format`.

export type Unit = "none" | "bytes" | "ms" | "ns" | "objects" | "pieces";

export type EpochState = "open" | "closed" | "released" | "shared";

/** What a process says of itself as a whole. */
export const PROCESS = {
  open_bytes: {
    unit: "bytes",
    meaning: "memory that was ever opened for blocks",
  },
  free_bytes: {
    unit: "bytes",
    meaning: "of `open_bytes`: nobody's",
  },
  dirty_bytes: {
    unit: "bytes",
    meaning: "of `free_bytes`: not given back yet",
  },
  cached_bytes: {
    unit: "bytes",
    meaning: "empty units at hand for all threads",
  },
  peak_held_bytes: {
    unit: "bytes",
    meaning: "the most of `open_bytes` that was neither free nor cached when threads reported",
  },
  peak_ms: {
    unit: "ms",
    meaning: "when it was `peak_held_bytes`",
  },
  large_objects: {
    unit: "objects",
    meaning: "live blocks of whole units",
  },
  large_bytes: {
    unit: "bytes",
    meaning: "of `large_objects`",
  },
  large_allocations: {
    unit: "objects",
    meaning: "blocks of whole units so far",
  },
  purges: {
    unit: "pieces",
    meaning: "calls that gave pages back to the system",
  },
  purged_bytes: {
    unit: "bytes",
    meaning: "given back to the system",
  },
  purges_refused: {
    unit: "pieces",
    meaning: "calls to give pages back that the system refused",
  },
  limits_refused: {
    unit: "pieces",
    meaning: "times that a hard limit refused memory",
  },
  memory_refused: {
    unit: "pieces",
    meaning: "times that the system refused memory",
  },
  soft_limit_bytes: {
    unit: "bytes",
    meaning: "in force; 0: none",
  },
  sample_bytes: {
    unit: "bytes",
    meaning: "between samples on average; 0: none is taken",
  },
  watch_bytes: {
    unit: "bytes",
    meaning: "the same in epochs that objects outlive",
  },
  sampling_since_ms: {
    unit: "ms",
    meaning: "since when all, what is watched, or nothing is sampled; 0: since there is a file",
  },
  weight_bytes: {
    unit: "bytes",
    meaning: "mean by which `times` counts; 0: no samples",
  },
  samples_taken: {
    unit: "objects",
    meaning: "blocks",
  },
  samples_lost: {
    unit: "objects",
    meaning: "for which a table had no row",
  },
  region_at: {
    unit: "none",
    meaning: "address of the region: the allocator's memory is in",
  },
  region_bytes: {
    unit: "bytes",
    meaning: "addresses of the region, most without memory",
  },
  blocks_at: {
    unit: "none",
    meaning: "address in the region from which on blocks lie",
  },
  blocks_bytes: {
    unit: "bytes",
    meaning: "addresses where blocks lie or may come to lie",
  },
  code_at: {
    unit: "none",
    meaning: "address of the library; 0: it lies in the program",
  },
  code_bytes: {
    unit: "bytes",
    meaning: "addresses from there on that its code lies in",
  },
  purge_request: {
    unit: "none",
    meaning: "of `control`: the last one that was followed",
  },
  name: {
    unit: "none",
    meaning: "of the process, as the file was made",
  },
} as const;

/** Why allocations and frees leave the fast path. */
export const SLOW_PATHS = {
  bin_empty: {
    of: "allocation",
    unit: "pieces",
    meaning: "no block was at hand: up to 64 were taken from a slab",
  },
  slab_opened: {
    of: "allocation",
    unit: "pieces",
    meaning: "no slab of the class had room: another was opened",
  },
  cell_full: {
    of: "allocation",
    unit: "pieces",
    meaning: "the epoch's newest cell was full: another was taken",
  },
  cell_restarted: {
    of: "allocation",
    unit: "pieces",
    meaning: "the newest cell was full, and all in it free: it was begun anew",
  },
  whole_units: {
    of: "allocation",
    unit: "objects",
    meaning: "blocks above 32 KiB",
  },
  sampled: {
    of: "allocation",
    unit: "objects",
    meaning: "allocations that the profiler took",
  },
  bin_full: {
    of: "free",
    unit: "objects",
    meaning: "there was no room at hand for a freed block",
  },
  other_thread: {
    of: "free",
    unit: "objects",
    meaning: "blocks of the default epoch that other threads freed",
  },
} as const;
