// figures: what is made of a process's figures: parts of its memory, and counts that become rates.
import type { Figure, SizeClass, Stats } from "../api/answers.js";
import { PROCESS, SLOW_PATHS, type Unit } from "../api/rows.js";
import { plus } from "./epochs.js";

/** A field of the process; null when its library does not tell. */
export const field = (stats: Stats, name: keyof typeof PROCESS): Figure =>
  stats.process[name] ?? null;

/** A count that the page shows as a rate. */
export interface Cause {
  readonly name: string;
  readonly meaning: string;
  readonly unit: Unit;
  readonly count: (stats: Stats) => Figure;
}

type SlowPath = keyof typeof SLOW_PATHS;

const slowPath = (cause: SlowPath): Cause => ({
  ...SLOW_PATHS[cause],
  name: cause.replaceAll("_", " "),
  count: (stats) => stats.slow_paths[cause] ?? null,
});

const slowPaths = (of: "allocation" | "free"): readonly Cause[] =>
  (Object.keys(SLOW_PATHS) as SlowPath[])
    .filter((cause) => SLOW_PATHS[cause].of === of)
    .map(slowPath);

export const SLAB_OPENED = slowPath("slab_opened");

/** Why an allocation left the fast path. */
export const SLOW_ALLOCATIONS = slowPaths("allocation");

/** Why a free did. */
export const SLOW_FREES = slowPaths("free");

const own = (name: keyof typeof PROCESS, shown: string): Cause => ({
  ...PROCESS[name],
  name: shown,
  count: (stats) => field(stats, name),
});

export const LIMIT_REFUSED = own("limits_refused", "hard limit");
export const SYSTEM_REFUSED = own("memory_refused", "system refused");

export const CAUSES: readonly Cause[] = [
  ...SLOW_ALLOCATIONS,
  ...SLOW_FREES,
  LIMIT_REFUSED,
  SYSTEM_REFUSED,
];

/** Memory that goes back to the system. */
export const PURGES: readonly Cause[] = [
  own("purges", "purges"),
  own("purges_refused", "purges refused"),
];

export const PURGED_BYTES = own("purged_bytes", "given back");

export const ALLOCATIONS: Cause = {
  name: "allocations",
  meaning: "objects allocated",
  unit: "objects",
  count: (stats) => stats.allocations,
};

/** All that is kept over time, in the order of its columns. */
export const COUNTED: readonly Cause[] = [ALLOCATIONS, PURGED_BYTES, ...CAUSES, ...PURGES];

export const columnOf = (cause: Cause): number =>
  COUNTED.findIndex(({ name }) => name === cause.name);

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

/** Where the memory of the process's objects is, or null when a part is not known. */
export function memoryParts(stats: Stats): MemoryPart[] | null {
  const { live_bytes: live, hot_bytes: hot, spare_bytes: spare } = stats.totals;
  const cached = plus(field(stats, "cached_bytes"), stats.totals.thread_cached_bytes);
  const dirty = field(stats, "dirty_bytes");
  if (live === null || hot === null || spare === null) return null;
  if (cached === null || dirty === null) return null;
  return [
    { key: "live", name: "live", meaning: "objects that the program has not freed", bytes: live },
    { key: "hot", name: "at hand", meaning: "free blocks that threads keep at hand", bytes: hot },
    {
      key: "room",
      name: "room",
      meaning: "free blocks in slabs and cells",
      bytes: spare,
    },
    {
      key: "cached",
      name: "cached",
      meaning: "empty units, of threads and for all threads",
      bytes: cached,
    },
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

/** Live bytes of a size class. */
export const classBytes = (one: SizeClass): Figure =>
  one.live === null || one.bytes === null ? null : one.live * one.bytes;

/** Blocks that slabs miss as a part of those that they have. */
export function fill(one: SizeClass): Figure {
  const blocks = one.slabs === null || one.capacity === null ? null : one.slabs * one.capacity;
  return blocks === null || one.out === null || blocks === 0 ? null : Math.min(1, one.out / blocks);
}
