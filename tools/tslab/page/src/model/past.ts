// past: what the agent remembers of a process, before and beside what the page has seen itself.
import type { Figure, History, HostEvent, HostEvents, PastEvent } from "../api/answers.js";
import type { Series } from "./track.js";

/** What is older is let go. */
export const PAST_SECONDS = 86_400;

/** The agent has a row a minute at least: in a longer silence it did not look. */
export const GAP_SECONDS = 150;

/** Of each kind: purges are many. */
const MOST_EVENTS = 500;

const EVERY_SECONDS = 10;

export class Past {
  /** The agent keeps a history; null: it has not said. */
  isKept: boolean | null = null;
  events: readonly PastEvent[] = [];
  #moments: History["moments"] = [];
  #asked = -Infinity;
  #shift = 0;

  isDue(at: number): boolean {
    return at - this.#asked >= EVERY_SECONDS;
  }

  /** From when on it is to be told, by the agent's clock; null: all. */
  get after(): number | null {
    return this.#moments.at(-1)?.[0] ?? null;
  }

  asked(at: number): void {
    this.#asked = at;
  }

  /** `at`: now, by the browser's clock. */
  apply(at: number, history: History): void {
    this.isKept = history.kept;
    const from = history.now_s - PAST_SECONDS;
    const last = this.#moments.at(-1)?.[0] ?? -Infinity;
    const lastEvent = this.events.at(-1)?.at_s ?? -Infinity;
    const moments = history.moments.filter(([time]) => time > last);
    const events = history.events.filter(({ at_s }) => at_s > lastEvent);
    this.#shift = at - history.now_s;
    this.#moments = [...this.#moments, ...moments].filter(([time]) => time > from);
    this.events = newestOfEachKind([...this.events, ...events]);
  }

  /** When it was, by the browser's clock. */
  seconds({ at_s }: PastEvent): number {
    return at_s + this.#shift;
  }

  /** What was before the page saw it, then what it saw. */
  before(seen: Series, since: number): Series {
    const first = seen[0][0] ?? Infinity;
    const times: number[] = [];
    const columns: Figure[][] = seen.slice(1).map(() => []);
    const push = (time: number, figures: readonly Figure[]): void => {
      const last = times.at(-1);
      if (last !== undefined && time - last > GAP_SECONDS) append((last + time) / 2, []);
      append(time, figures);
    };
    const append = (time: number, figures: readonly Figure[]): void => {
      times.push(time);
      columns.forEach((column, index) => column.push(figures[index] ?? null));
    };
    for (const [at, ...figures] of this.#moments) {
      const time = at + this.#shift;
      if (time >= since && time < first) push(time, figures);
    }
    const [seenTimes, ...seenColumns] = seen;
    seenTimes.forEach((time, index) =>
      push(
        time,
        seenColumns.map((column) => column[index] ?? null),
      ),
    );
    return [times, ...columns];
  }
}

/** What the agent remembers of all processes. */
export class HostPast {
  /** The agent keeps a history; null: it has not said. */
  isKept: boolean | null = null;
  events: readonly HostEvent[] = [];
  #asked = -Infinity;
  #shift = 0;

  isDue(at: number): boolean {
    return at - this.#asked >= EVERY_SECONDS;
  }

  /** From when on it is to be told, by the agent's clock; null: all. */
  get after(): number | null {
    return this.events.at(-1)?.at_s ?? null;
  }

  asked(at: number): void {
    this.#asked = at;
  }

  /** `at`: now, by the browser's clock. */
  apply(at: number, told: HostEvents): void {
    this.isKept = told.kept;
    this.#shift = at - told.now_s;
    const last = this.after ?? -Infinity;
    const events = told.events.filter(({ at_s }) => at_s > last);
    const from = told.now_s - PAST_SECONDS;
    this.events = newestOfEachKind([...this.events, ...events]).filter(({ at_s }) => at_s > from);
  }

  /** When it was, by the browser's clock. */
  seconds({ at_s }: PastEvent): number {
    return at_s + this.#shift;
  }
}

function newestOfEachKind<Event extends PastEvent>(events: readonly Event[]): Event[] {
  const counts = new Map<string, number>();
  const isNew = ({ kind }: Event): boolean => {
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    return count <= MOST_EVENTS;
  };
  return [...events].reverse().filter(isNew).reverse();
}
