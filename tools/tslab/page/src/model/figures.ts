// figures: what is made of a process's figures: parts of its memory, and counts that become rates.
import type { Figure, SizeClass, Stats } from "../api/answers.js";
import { plus } from "./epochs.js";

/** A field of the process; null when its library does not tell. */
export const field = (stats: Stats, name: string): Figure => stats.process[name] ?? null;

/** A count that the page shows as a rate. */
export interface Cause {
  readonly name: string;
  readonly meaning: string;
  readonly count: (stats: Stats) => Figure;
}

const slowPath = (key: string, name: string, meaning: string): Cause => ({
  name,
  meaning,
  count: (stats) => stats.slow_paths[key] ?? null,
});

export const SLAB_OPENED = slowPath(
  "slab_opened",
  "slab opened",
  "no slab of the size class had room, so another was opened",
);

/** Why an allocation left the fast path. */
export const SLOW_ALLOCATIONS: readonly Cause[] = [
  slowPath("bin_empty", "bin empty", "no block was at hand: up to 64 were taken from a slab"),
  SLAB_OPENED,
  slowPath("cell_full", "cell full", "the epoch's newest cell was full: another was taken"),
  slowPath("cell_restarted", "cell restarted", "the newest cell was full, and all in it free"),
  slowPath("whole_units", "whole units", "blocks above 32 KiB"),
  slowPath("sampled", "sampled", "allocations that the profiler took"),
];

/** Why a free did. */
export const SLOW_FREES: readonly Cause[] = [
  slowPath("bin_full", "bin full", "no room at hand for a freed block"),
  slowPath(
    "other_thread",
    "other thread",
    "of the default epoch, freed by another thread than allocated it",
  ),
];

export const LIMIT_REFUSED: Cause = {
  name: "hard limit",
  meaning: "the epoch was at its hard limit, and memory was refused",
  count: (stats) => field(stats, "limits_refused"),
};

export const SYSTEM_REFUSED: Cause = {
  name: "system refused",
  meaning: "the system gave no more memory to the process",
  count: (stats) => field(stats, "memory_refused"),
};

export const CAUSES: readonly Cause[] = [
  ...SLOW_ALLOCATIONS,
  ...SLOW_FREES,
  LIMIT_REFUSED,
  SYSTEM_REFUSED,
];

/** Memory that goes back to the system. */
export const PURGES: readonly Cause[] = [
  {
    name: "purges",
    meaning: "calls that gave pages back to the system",
    count: (stats) => field(stats, "purges"),
  },
  {
    name: "purges refused",
    meaning: "such calls that the system refused",
    count: (stats) => field(stats, "purges_refused"),
  },
];

export const PURGED_BYTES: Cause = {
  name: "given back",
  meaning: "bytes given back to the system",
  count: (stats) => field(stats, "purged_bytes"),
};

export const ALLOCATIONS: Cause = {
  name: "allocations",
  meaning: "objects allocated",
  count: (stats) => stats.allocations,
};

/** All that is kept over time, in the order of its columns. */
export const COUNTED: readonly Cause[] = [ALLOCATIONS, PURGED_BYTES, ...CAUSES, ...PURGES];

export const columnOf = (cause: Cause): number => COUNTED.indexOf(cause);

/** How many times the live bytes are resident. */
export function ratio(rss: Figure, live: Figure): Figure {
  return rss === null || live === null || live <= 0 ? null : rss / live;
}

export interface MemoryPart {
  readonly key: "live" | "hot" | "room" | "cached" | "dirty";
  readonly name: string;
  readonly meaning: string;
  readonly bytes: number;
}

/**
 * Where the memory of the process's objects is, or null when a part is not known. Live bytes are
 * counted at another moment than the rest, so the room between them is what is left over.
 */
export function memoryParts(stats: Stats): MemoryPart[] | null {
  const [open, free] = [field(stats, "open_bytes"), field(stats, "free_bytes")];
  const [dirty, cached] = [field(stats, "dirty_bytes"), field(stats, "cached_bytes")];
  const [live, hot] = [stats.totals.live_bytes, stats.totals.hot_bytes];
  if (open === null || free === null || dirty === null || cached === null) return null;
  if (live === null || hot === null) return null;
  const room = Math.max(0, open - free - cached - live - hot);
  return [
    { key: "live", name: "live", meaning: "objects that the program has not freed", bytes: live },
    { key: "hot", name: "at hand", meaning: "free blocks that threads keep at hand", bytes: hot },
    {
      key: "room",
      name: "room",
      meaning: "free blocks in slabs and cells, and units that threads keep",
      bytes: room,
    },
    { key: "cached", name: "cached", meaning: "empty units for all threads", bytes: cached },
    {
      key: "dirty",
      name: "dirty",
      meaning: "free, not given back to the system yet",
      bytes: dirty,
    },
  ];
}

/** Size classes that were ever used, the ones with most live bytes first. */
export function usedClasses(stats: Stats): SizeClass[] {
  const isUsed = (one: SizeClass): boolean =>
    [one.live, one.hot, one.slabs, one.opened, one.allocations].some((figure) => (figure ?? 0) > 0);
  const bytesOf = (one: SizeClass): number => classBytes(one) ?? -1;
  return stats.classes.filter(isUsed).sort((a, b) => bytesOf(b) - bytesOf(a));
}

/** Live bytes of a size class in the default epoch. */
export const classBytes = (one: SizeClass): Figure =>
  one.live === null || one.bytes === null ? null : one.live * one.bytes;

/** Live objects as a part of the blocks that the open slabs have. */
export function fill(one: SizeClass): Figure {
  const blocks = one.slabs === null || one.capacity === null ? null : one.slabs * one.capacity;
  const taken = plus(one.live, one.hot);
  return blocks === null || taken === null || blocks === 0 ? null : Math.min(1, taken / blocks);
}
