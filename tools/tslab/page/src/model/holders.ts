// holders: what labels held over time: what the agent has kept, then what the page has seen.
import type { Epoch, Figure, History } from "../api/answers.js";
import { plus } from "./epochs.js";
import { GAP_SECONDS, PAST_SECONDS } from "./past.js";
import type { Series } from "./track.js";

/** Drawn at once. */
export const MOST_DRAWN = 8;

/** Seen at once: more than are drawn, so that no line ends where two labels change places. */
const MOST_SEEN = 2 * MOST_DRAWN;

/** Who never held as much is not drawn. */
const LEAST_BYTES = 64 * 1024;

/** Nor who never held such a part of the most that one did: its line would lie on the axis. */
const LEAST_PART = 0.01;

/** What stands for no label, as in the agent's answers. */
const NO_LABEL = "other";

/** Labels that held most at a moment, and live bytes of each. */
interface Look {
  readonly seconds: number;
  readonly live: ReadonlyMap<string, number>;
}

/** A label that is drawn. Its colour stays as long as it is. */
export interface Drawn {
  readonly label: string;
  readonly colour: number;
}

export interface Holding {
  readonly labels: readonly Drawn[];
  /** A column a label: null where it was not among the labels that held most. */
  readonly series: Series;
}

export class Holders {
  /** By the agent's clock. */
  #kept: Look[] = [];
  #seen: Look[] = [];
  #shift = 0;
  readonly #colours: (string | null)[] = Array.from({ length: MOST_DRAWN }, () => null);
  readonly #mostLooks: number;

  /** Keeps at least the last `mostLooks` of the page's own. */
  constructor(mostLooks: number) {
    this.#mostLooks = mostLooks;
  }

  /** Takes in what the agent has kept. `at`: now, by the browser's clock. */
  apply(at: number, history: History): void {
    const from = history.now_s - PAST_SECONDS;
    const last = this.#kept.at(-1)?.seconds ?? -Infinity;
    const looks = looksOf(history).filter(({ seconds }) => seconds > last);
    this.#kept = [...this.#kept, ...looks].filter(({ seconds }) => seconds > from);
    this.#shift = at - history.now_s;
  }

  /** Takes in what the page sees. `at`: now, by the browser's clock. */
  push(at: number, epochs: readonly Epoch[]): void {
    if (at <= (this.#seen.at(-1)?.seconds ?? -Infinity)) return;
    this.#seen.push({ seconds: at, live: largest(liveByLabel(epochs)) });
    if (this.#seen.length > this.#mostLooks * 1.25) {
      this.#seen.splice(0, this.#seen.length - this.#mostLooks);
    }
  }

  /** From a moment on, by the browser's clock. */
  since(seconds: number): Holding {
    const first = this.#seen[0]?.seconds ?? Infinity;
    const kept = this.#kept.map((look) => ({ ...look, seconds: look.seconds + this.#shift }));
    const before = kept.filter((look) => look.seconds < first);
    const looks = [...before, ...this.#seen].filter((look) => look.seconds >= seconds);
    const labels = this.#coloured(drawn(looks));
    return { labels, series: seriesOf(looks, labels) };
  }

  #coloured(labels: readonly string[]): Drawn[] {
    const colours = this.#colours;
    colours.forEach((label, index) => {
      if (label !== null && !labels.includes(label)) colours[index] = null;
    });
    for (const label of labels) {
      if (!colours.includes(label)) colours[colours.indexOf(null)] = label;
    }
    return colours.flatMap((label, colour) => (label === null ? [] : [{ label, colour }]));
  }
}

function looksOf(history: History): Look[] {
  const looks = new Map<number, Map<string, number>>();
  for (const { label, moments } of history.labels) {
    for (const [seconds, bytes] of moments) {
      const live = looks.get(seconds) ?? new Map<string, number>();
      looks.set(seconds, live.set(label, bytes));
    }
  }
  const inOrder = [...looks].sort(([a], [b]) => a - b);
  return inOrder.map(([seconds, live]) => ({ seconds, live }));
}

/** Of all epochs of a label, as the agent adds them up; null: a part is not known. */
export function liveByLabel(epochs: readonly Epoch[]): Map<string, Figure> {
  const sums = new Map<string, Figure>();
  for (const { label, live } of epochs) {
    const name = label === null || label === "" ? NO_LABEL : label;
    sums.set(name, plus(sums.get(name) ?? (sums.has(name) ? null : 0), live.bytes));
  }
  return sums;
}

function largest(live: ReadonlyMap<string, Figure>): Map<string, number> {
  const known = [...live].filter((entry): entry is [string, number] => entry[1] !== null);
  return new Map(known.sort(([, a], [, b]) => b - a).slice(0, MOST_SEEN));
}

/** Those that held most at some moment, the largest first. */
function drawn(looks: readonly Look[]): string[] {
  const peaks = new Map<string, number>();
  for (const { live } of looks) {
    for (const [label, bytes] of live) peaks.set(label, Math.max(bytes, peaks.get(label) ?? 0));
  }
  const least = Math.max(LEAST_BYTES, LEAST_PART * Math.max(0, ...peaks.values()));
  const large = [...peaks].filter(([, bytes]) => bytes >= least);
  return large
    .sort(([, a], [, b]) => b - a)
    .slice(0, MOST_DRAWN)
    .map(([label]) => label);
}

function seriesOf(looks: readonly Look[], labels: readonly Drawn[]): Series {
  const times: number[] = [];
  const columns: Figure[][] = labels.map(() => []);
  const append = (seconds: number, live: Look["live"]): void => {
    times.push(seconds);
    labels.forEach(({ label }, index) => columns[index]?.push(live.get(label) ?? null));
  };
  for (const { seconds, live } of looks) {
    const last = times.at(-1);
    if (last !== undefined && seconds - last > GAP_SECONDS) append((last + seconds) / 2, new Map());
    append(seconds, live);
  }
  return [times, ...columns];
}
