// lifetimes: how long objects of each stack lived, and which of them were temporaries.
import type { Lifetime } from "../api/answers.js";
import { age, printable } from "./text.js";

/** Functions of a stack that are shown. */
const SHOWN_CALLS = 3;

/** Of these labels; undefined: of all. Those with most temporaries come first. */
export const lifetimesOf = (
  lifetimes: readonly Lifetime[],
  label: string | null | undefined,
): Lifetime[] =>
  lifetimes
    .filter(({ epoch }) => label === undefined || epoch === label)
    .sort((a, b) => b.temporary_objects - a.temporary_objects || b.objects - a.objects);

/** "0 ms", "85 ms", "1.4 s" */
export const livedText = (ms: number): string => (ms < 1000 ? `${Math.round(ms)} ms` : age(ms));

/** "copy_name ← handle ← main ← …" */
export function stackText(stack: readonly string[]): string {
  const shown = stack.slice(0, SHOWN_CALLS).map((name) => printable(name));
  return [...shown, ...(stack.length > SHOWN_CALLS ? ["…"] : [])].join(" ← ");
}
