// processes: the list of processes: which are shown, in which order.
import type { HostEvent, Process } from "../api/answers.js";

/** A list that is longer has a filter. */
export const FEW = 12;

/**
 * How the agent is asked for it: by its number, and after its end by when it began, too, since
 * another process may have the number by now.
 */
export function handleOf({ life, path, pid }: Process): string {
  return life === "dead" ? `${pid}${startOf(path)}` : String(pid);
}

/** When the process of a statistics file began, as its name ends; "": it is not named so. */
const startOf = (path: string): string => /\.\d+$/.exec(path)?.[0] ?? "";

/** Of several that had the number the living one, unless it is said which. */
export function processOf(processes: readonly Process[], handle: string): Process | undefined {
  const isMeant = (process: Process): boolean =>
    handleOf(process) === handle || String(process.pid) === handle;
  const meant = processes.filter(isMeant);
  return meant.find(({ life }) => life === "alive") ?? meant.at(-1);
}

/** Whose event it was; undefined: it has gone. */
export const processOfEvent = (
  processes: readonly Process[],
  { pid, start_ticks }: HostEvent,
): Process | undefined =>
  processes.find((process) => process.pid === pid && startOf(process.path) === `.${start_ticks}`);

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
