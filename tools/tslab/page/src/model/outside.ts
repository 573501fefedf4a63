// outside: what lives outside of epochs, where no close tells what is lost.
import type { DefaultEpoch } from "../api/answers.js";
import { age, bytes, count } from "./text.js";

/** Younger objects are never judged. */
const LEAST_MS = 1_000;

/** "96.0 MiB live outside of epochs; 2 call stacks keep more and more." */
export function alarmText({ bytes: live, stacks }: DefaultEpoch): string {
  const keep = stacks.length === 1 ? "keeps" : "keep";
  return `${bytes(live)} live outside of epochs; ${count(stacks.length, "call stack")} ${keep} more and more.`;
}

/** What there is to know where nothing is found; "" where nothing lives. */
export function quietText(outside: DefaultEpoch): string {
  const { objects, samples, old_samples, old_ms } = outside;
  if ((objects ?? 0) === 0) return "";
  const live = `${bytes(outside.bytes)} live outside of epochs`;
  if (samples === null) return `${live}. Only samples tell whether they become more.`;
  const sampled = count(samples, "sampled object");
  if (old_samples === 0) {
    const young = `${live}. Of ${sampled} none is older than ${age(old_ms)}.`;
    return old_ms > LEAST_MS ? `${young} A shorter time judges younger ones.` : young;
  }
  return `${live}. Of ${sampled} no call stack keeps more and more.`;
}
