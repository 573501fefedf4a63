// processes: the list of processes: which are shown, in which order.
import type { Process } from "../api/answers.js";

/** A list that is longer has a filter. */
export const FEW = 12;

/** Those that run first, of them the larger; of those that have ended the last. */
export const ordered = (processes: readonly Process[]): Process[] =>
  [...processes].sort(
    (a, b) =>
      Number(b.life === "alive") - Number(a.life === "alive") ||
      (b.rss_bytes ?? -1) - (a.rss_bytes ?? -1) ||
      endedBefore(a) - endedBefore(b) ||
      a.pid - b.pid,
  );

/** Of those that run the last word is always another's. */
const endedBefore = ({ life, last_word_ms }: Process): number =>
  life === "alive" ? 0 : (last_word_ms ?? Number.MAX_VALUE);

/** Those that have the text in their name or number. */
export function found(processes: readonly Process[], filter: string): Process[] {
  const text = filter.trim().toLowerCase();
  return processes.filter(
    ({ name, pid }) => (name ?? "").toLowerCase().includes(text) || String(pid).includes(text),
  );
}
