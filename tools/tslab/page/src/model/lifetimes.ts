// lifetimes: how long objects of each stack lived, how old those are that live, and which of them
// were temporaries.
import type { Decade, Figure, Lifetime } from "../api/answers.js";
import { age, bytes, printable } from "./text.js";

/** Functions of a stack that are shown. */
const SHOWN_CALLS = 3;

/** A decade's parts, of one. */
export interface Share {
  /** "1-10s" */
  readonly name: string;
  /** Freed and live ones. */
  readonly objects: number;
  /** Null, as may be the next: nobody knows. */
  readonly freed: Figure;
  readonly live: Figure;
}

/** Objects of one stack and label that live, of all classes. */
export interface LiveOnes {
  objects: number;
  bytes: number;
  /** Added up. */
  lived_ms: number;
  decades: readonly Decade[] | null;
}

/** Freed objects of one stack and label, of all classes. */
export interface Lives {
  readonly stack: readonly string[];
  readonly epoch: string | null;
  /** Null: large objects. */
  readonly classes: Figure[];
  objects: number;
  bytes: number;
  temporary_objects: number;
  /** Added up. */
  lived_ms: number;
  /** Null: the library does not tell. */
  decades: readonly Decade[] | null;
  readonly live: LiveOnes;
}

/** Of a label; undefined: of all. Those with most temporaries come first. */
export function livesOf(lifetimes: readonly Lifetime[], label: string | null | undefined): Lives[] {
  const all = new Map<string, Lives>();
  const some = lifetimes.filter(({ objects, live }) => objects > 0 || live.objects > 0);
  for (const one of some.filter(({ epoch }) => label === undefined || epoch === label)) {
    const key = keyOf(one);
    const lives = all.get(key) ?? none(one);
    all.set(key, lives);
    lives.classes.push(one.class_bytes);
    lives.objects += one.objects;
    lives.bytes += one.bytes;
    lives.temporary_objects += one.temporary_objects;
    lives.lived_ms += (one.mean_lifetime_ms ?? 0) * one.objects;
    lives.decades = together(lives.decades, one.by_decade);
    const { live } = lives;
    live.objects += one.live.objects;
    live.bytes += one.live.bytes;
    live.lived_ms += (one.live.mean_age_ms ?? 0) * one.live.objects;
    live.decades = together(live.decades, one.live.by_decade);
  }
  return [...all.values()].sort(
    (a, b) =>
      b.temporary_objects - a.temporary_objects ||
      b.objects - a.objects ||
      b.live.objects - a.live.objects,
  );
}

/** Both, by their bounds, in the order of time. */
function together(
  sum: readonly Decade[] | null,
  more: readonly Decade[] | null,
): readonly Decade[] | null {
  if (sum === null || more === null) return sum ?? more;
  const objects = new Map<Figure, number>();
  for (const { below_ms, objects: some } of [...sum, ...more]) {
    objects.set(below_ms, (objects.get(below_ms) ?? 0) + some);
  }
  return [...objects]
    .map(([below_ms, objects]) => ({ below_ms, objects }))
    .sort((a, b) => (a.below_ms ?? Infinity) - (b.below_ms ?? Infinity));
}

/** From the first decade that has objects to the last, with the words of the command. */
export function sharesOf(freed: Lives): Share[] {
  const { live } = freed;
  const all = together(freed.decades, live.decades) ?? [];
  const partOfFreed = partsOf(freed);
  const partOfLive = partsOf(live);
  const shares = all.map(({ below_ms, objects }, index) => ({
    name: decadeText(all[index - 1]?.below_ms ?? 0, below_ms),
    objects,
    freed: partOfFreed(below_ms),
    live: partOfLive(below_ms),
  }));
  const isSome = shares.map(({ objects }) => objects > 0);
  return shares.slice(isSome.indexOf(true), isSome.lastIndexOf(true) + 1);
}

/** Of a decade with this bound. */
function partsOf({ objects, decades }: LiveOnes): (below_ms: Figure) => Figure {
  if (decades === null) return () => (objects === 0 ? 0 : null);
  const all = decades.reduce((sum, { objects }) => sum + objects, 0) || 1;
  const parts = new Map(decades.map(({ below_ms, objects }) => [below_ms, objects / all]));
  return (below_ms) => parts.get(below_ms) ?? 0;
}

/** "0-10ms", "0.1-1s", "1000s+" */
function decadeText(fromMs: number, belowMs: Figure): string {
  const inSeconds = belowMs === null || belowMs >= 1000;
  const text = (ms: number): string => `${inSeconds ? ms / 1000 : ms}`;
  const unit = inSeconds ? "s" : "ms";
  return belowMs === null ? `${text(fromMs)}${unit}+` : `${text(fromMs)}-${text(belowMs)}${unit}`;
}

export const keyOf = ({ stack, epoch }: Pick<Lifetime, "stack" | "epoch">): string =>
  JSON.stringify([stack, epoch]);

const none = ({ stack, epoch }: Lifetime): Lives => ({
  stack,
  epoch,
  classes: [],
  objects: 0,
  bytes: 0,
  temporary_objects: 0,
  lived_ms: 0,
  decades: null,
  live: { objects: 0, bytes: 0, lived_ms: 0, decades: null },
});

/** "128 B", "large", "5 classes" */
export function classesText([first, ...others]: readonly Figure[]): string {
  if (others.length > 0) return `${others.length + 1} classes`;
  return first == null ? "large" : bytes(first);
}

/** "0 ms", "85 ms", "1.4 s" */
export const livedText = (ms: number): string => (ms < 1000 ? `${Math.round(ms)} ms` : age(ms));

/** "copy_name ← handle ← main ← …" */
export function stackText(stack: readonly string[]): string {
  const shown = stack.slice(0, SHOWN_CALLS).map((name) => printable(name));
  return [...shown, ...(stack.length > SHOWN_CALLS ? ["…"] : [])].join(" ← ");
}
