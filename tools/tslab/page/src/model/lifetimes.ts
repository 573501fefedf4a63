// lifetimes: how long objects of each stack lived, and which of them were temporaries.
import type { Figure, Lifetime } from "../api/answers.js";
import { age, bytes, printable } from "./text.js";

/** Functions of a stack that are shown. */
const SHOWN_CALLS = 3;

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
}

/** Of a label; undefined: of all. Those with most temporaries come first. */
export function livesOf(lifetimes: readonly Lifetime[], label: string | null | undefined): Lives[] {
  const all = new Map<string, Lives>();
  const freed = lifetimes.filter(({ objects }) => objects > 0);
  for (const one of freed.filter(({ epoch }) => label === undefined || epoch === label)) {
    const key = keyOf(one);
    const lives = all.get(key) ?? none(one);
    all.set(key, lives);
    lives.classes.push(one.class_bytes);
    lives.objects += one.objects;
    lives.bytes += one.bytes;
    lives.temporary_objects += one.temporary_objects;
    lives.lived_ms += (one.mean_lifetime_ms ?? 0) * one.objects;
  }
  return [...all.values()].sort(
    (a, b) => b.temporary_objects - a.temporary_objects || b.objects - a.objects,
  );
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
