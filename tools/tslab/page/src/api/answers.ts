// answers: what the agent says, as `tslab ps | stats | epochs | leaks --json` do. Times are in ms,
// sizes in bytes; null: not known.
import type { EpochState, SLOW_PATHS } from "./rows.js";

export type Figure = number | null;

/** Stale: the process runs, and does not use the file. */
export type Life = "alive" | "stale" | "dead";

export interface Process {
  readonly pid: number;
  /** Of the statistics file; the number of a process may return, its path does not. */
  readonly path: string;
  readonly name: string | null;
  readonly life: Life;
  readonly version: string | null;
  readonly last_word_ms: Figure;
  readonly rss_bytes: Figure;
  readonly live_bytes: Figure;
  readonly epochs_open: Figure;
  readonly epochs_closed_with_survivors: Figure;
  readonly error: string | null;
  /** Its file may not be read. */
  readonly of_other_user: boolean;
}

export interface Processes {
  readonly processes: readonly Process[];
}

export interface Identity {
  readonly pid: number;
  /** When it began, in clock ticks since boot. */
  readonly start_ticks: number;
  readonly name: string | null;
  readonly life: Life;
  readonly version: string;
  readonly last_word_ms: Figure;
  readonly full_tables: readonly string[];
}

export interface Totals {
  readonly live_objects: Figure;
  readonly live_bytes: Figure;
  readonly large_bytes: Figure;
  /** Slabs, cells and large blocks of all epochs, with what is free in them. */
  readonly held_bytes: Figure;
  readonly hot_bytes: Figure;
  /** Held, and neither live nor at hand. */
  readonly spare_bytes: Figure;
  /** Empty units of threads. */
  readonly thread_cached_bytes: Figure;
  readonly epochs_open: Figure;
  readonly epochs_shared: Figure;
  readonly epochs_closed_with_survivors: Figure;
  readonly threads: Figure;
  readonly unsettled: boolean;
}

export interface SizeClass {
  readonly bytes: Figure;
  readonly slab_bytes: Figure;
  readonly capacity: Figure;
  /** In slabs of all epochs, and what outlived its epoch. */
  readonly live: Figure;
  /** Blocks that the slabs miss. */
  readonly out: Figure;
  readonly hot: Figure;
  readonly slabs: Figure;
  readonly opened: Figure;
  readonly allocations: Figure;
  readonly refills: Figure;
  readonly returned: Figure;
  readonly unsettled: boolean;
}

export interface Stats extends Identity {
  readonly rss_bytes: Figure;
  readonly totals: Totals;
  readonly classes: readonly SizeClass[];
  /** The process's own fields, with names that the page may not know. */
  readonly process: Readonly<Record<string, Figure>>;
  /** Objects so far. */
  readonly allocations: Figure;
  /** How often the fast path was left, by cause. */
  readonly slow_paths: Readonly<Partial<Record<keyof typeof SLOW_PATHS, Figure>>>;
}

export interface Live {
  readonly objects: Figure;
  readonly bytes: Figure;
  readonly unsettled: boolean;
}

/** In the order of the tree: parents stand before their children. */
export interface Epoch {
  /** Its row; row 0 is the default epoch. */
  readonly epoch: number;
  /** Never used again. */
  readonly id: number;
  /** The parent's row. */
  readonly parent: number | null;
  readonly depth: number;
  readonly label: string | null;
  readonly state: EpochState | null;
  readonly age_ms: Figure;
  readonly closed_for_ms: Figure;
  readonly live: Live;
  /** Its children's included. */
  readonly held_bytes: Figure;
  /** Of it, without its children's. */
  readonly own_bytes: Figure;
  readonly soft_limit_bytes: Figure;
  readonly hard_limit_bytes: Figure;
}

export interface Epochs extends Identity {
  readonly epochs: readonly Epoch[];
}

export interface ClassCount {
  readonly class_bytes: Figure;
  readonly objects: number;
}

/** Whether survivors become more. Of those that turn over as many go as come. */
export type Verdict = "grows" | "stands" | "turns_over" | "not_known";

/** What came and went between two looks. */
export interface Flow {
  readonly over_ms: number;
  readonly came: number;
  readonly went: number;
}

export interface Growth {
  readonly verdict: Verdict;
  /** Null: there was one look. */
  readonly flow: Flow | null;
  readonly oldest_ms: number;
  readonly newest_ms: number;
}

export interface StackCall {
  readonly function: string;
  readonly file: string | null;
  readonly line: Figure;
}

/** Sampled survivors of one class that were allocated by the same calls. */
export interface Stack {
  /** Null: large objects. */
  readonly class_bytes: Figure;
  readonly samples: number;
  /** For how many they stand. */
  readonly estimated_objects: number;
  /** Of the sampled survivors of the class. */
  readonly percent: number;
  readonly growth: Growth | null;
  /** The innermost first. */
  readonly calls: readonly StackCall[];
}

/** All epochs of a label that leak in the same way. */
export interface Leak {
  /** The first of them. */
  readonly epoch: number;
  readonly id: number;
  /** How many there are. */
  readonly epochs: number;
  readonly label: string | null;
  readonly state: EpochState | null;
  readonly for_ms: Figure;
  readonly objects: Figure;
  /** Of them, those that outlived their epoch; null: nobody knows of a shared one's. */
  readonly outlived_objects: Figure;
  readonly bytes: Figure;
  readonly unsettled: boolean;
  /** Without their children's. */
  readonly held_bytes: Figure;
  readonly pinned_pages: Figure;
  /** Of the objects, those of which the class is known. */
  readonly classes: readonly ClassCount[];
  readonly large_objects: Figure;
  /** Null: they are open, or nothing is known. */
  readonly growth: Growth | null;
  /** Who allocated them, as far as they were sampled. */
  readonly stacks: readonly Stack[];
  /** Of a shared one of whose sampled objects none is old enough: those that may come to be. */
  readonly younger_stacks: readonly Stack[];
}

/** What lives outside of epochs. */
export interface DefaultEpoch {
  readonly objects: Figure;
  readonly bytes: Figure;
  /** Of the objects, those that were sampled; null: none is. */
  readonly samples: Figure;
  /** Of these, those that are old enough to be judged, and how old that is. */
  readonly old_samples: number;
  readonly old_ms: number;
  /** Whose objects become more. */
  readonly stacks: readonly Stack[];
}

export interface Leaks extends Identity {
  readonly after_ms: number;
  readonly leaks: readonly Leak[];
  readonly default_epoch: DefaultEpoch;
}

/** A part of the allocator's memory. */
export interface WhyPart {
  readonly part: string;
  readonly bytes: number;
  readonly text: string;
}

/** What is resident, and not the allocator's. */
export interface WhyOther {
  readonly what: string;
  readonly bytes: number;
}

export interface Why extends Identity {
  readonly rss_bytes: number;
  /** Of the allocator. */
  readonly resident_bytes: number;
  /** Of the parts. */
  readonly not_resident_bytes: number;
  readonly parts: readonly WhyPart[];
  readonly others: readonly WhyOther[];
}

export interface Finding {
  readonly cause: string;
  /** That it is about, and no other finding is; null: it is not about memory. */
  readonly bytes: Figure;
  readonly what: string;
  readonly advice: string;
}

export interface NotChecked {
  readonly cause: string;
  readonly missing: string;
}

export interface Doctor extends Identity {
  /** Between the two looks that are compared; null: there was one. */
  readonly over_ms: Figure;
  readonly findings: readonly Finding[];
  readonly not_checked: readonly NotChecked[];
}

/** How long ago an object was allocated. */
export type Age = "0-1s" | "1-10s" | "10-60s" | "1-10min" | "10-60min" | "1-24h" | "1d+";

export interface Sample {
  /** The function that allocated, its caller, and so on. */
  readonly stack: readonly string[];
  /** The label of its epoch. */
  readonly epoch: string | null;
  /** Null: large objects. */
  readonly class_bytes: Figure;
  /** Null: of none that lives. */
  readonly age: Age | null;
  /** Objects that were sampled and live; those that stand for several count as several. */
  readonly samples: number;
  /** For so many objects and bytes they stand. */
  readonly objects: number;
  readonly bytes: number;
  /** Of the estimate of `bytes`. */
  readonly deviation_bytes: number;
}

/** Objects of one decade of times. */
export interface Decade {
  /** And not below that of the decade before; null: all others. */
  readonly below_ms: Figure;
  readonly objects: number;
}

/** Objects that live, by how old they are: estimates. */
export interface Ages {
  readonly objects: number;
  readonly bytes: number;
  /** Null, as is the next: none lives. */
  readonly mean_age_ms: Figure;
  readonly by_decade: readonly Decade[] | null;
}

/** How long freed objects of one stack, label and class lived, and those that live: estimates. */
export interface Lifetime {
  /** The function that allocated, its caller, and so on. */
  readonly stack: readonly string[];
  /** The label of their epochs. */
  readonly epoch: string | null;
  /** Null: large objects. */
  readonly class_bytes: Figure;
  readonly objects: number;
  readonly bytes: number;
  /** Of the objects, those that were freed within 10 ms. */
  readonly temporary_objects: number;
  /** Null, as is the next: none was freed. */
  readonly temporary_percent: Figure;
  readonly mean_lifetime_ms: Figure;
  /** Null: none was freed, or the library does not tell. */
  readonly by_decade: readonly Decade[] | null;
  readonly live: Ages;
}

/** Of what is sampled: all, only what outlives its epochs, or nothing any more. */
export type Reach = "all" | "watched" | "ended";

export interface Profile {
  /** Null: there are no samples. */
  readonly sampled: Reach | null;
  /** Some of what lives was allocated while not all was sampled; null: not told. */
  readonly partial: boolean | null;
  /** From sample to sample on average, of these samples. */
  readonly weight_bytes: Figure;
  /** So far. */
  readonly samples_taken: Figure;
  /** Of which nothing is known. */
  readonly samples_lost: Figure;
  readonly samples: readonly Sample[];
  readonly lifetimes: readonly Lifetime[];
}

/** What happened between two looks of the agent. */
export interface PastEvent {
  /** When it was noticed, in seconds since 1970. */
  readonly at_s: number;
  readonly kind: string;
  readonly label: string | null;
  readonly count: number;
  readonly bytes: Figure;
}

/** An event, and whose it is. */
export interface HostEvent extends PastEvent {
  readonly pid: number;
  /** When it began, in clock ticks since boot; null: before the machine was started last. */
  readonly start_ticks: Figure;
  readonly name: string | null;
}

/** What the agent has kept of all processes, the oldest first. */
export interface HostEvents {
  readonly kept: boolean;
  readonly now_s: number;
  readonly events: readonly HostEvent[];
}

/** What a label held, at the moments at which it was among those that held most. */
export interface LabelPast {
  /** "other": none. */
  readonly label: string;
  /** Time and live bytes, the oldest first. */
  readonly moments: readonly (readonly [number, number])[];
}

/** What the agent has kept of a process. */
export interface History {
  /** It keeps any. */
  readonly kept: boolean;
  /** The agent's clock, in seconds since 1970. */
  readonly now_s: number;
  /** Time, resident and live bytes, the oldest first. */
  readonly moments: readonly (readonly [number, Figure, Figure])[];
  /** The label that held most first. */
  readonly labels: readonly LabelPast[];
  readonly events: readonly PastEvent[];
}
