// track: figures over time, the oldest first. A figure that was not known is null.
import type { Figure } from "../api/answers.js";

/** After so many seconds without a word, what lies between is not known. */
const GAP_SECONDS = 5;

/** Times in seconds, then a list of figures a column: what the charts take. */
export type Series = readonly [readonly number[], ...(readonly Figure[])[]];

export class Track {
  #times: number[] = [];
  readonly #columns: Figure[][];
  readonly #most: number;

  /** Keeps at least the last `most` moments. */
  constructor(columns: number, most: number) {
    this.#columns = Array.from({ length: columns }, () => []);
    this.#most = most;
  }

  get length(): number {
    return this.#times.length;
  }

  push(seconds: number, figures: readonly Figure[]): void {
    const last = this.#times.at(-1);
    if (last !== undefined && seconds <= last) return;
    if (last !== undefined && seconds - last > GAP_SECONDS) this.#append((last + seconds) / 2, []);
    this.#append(seconds, figures);
    this.#trim();
  }

  #append(seconds: number, figures: readonly Figure[]): void {
    this.#times.push(seconds);
    this.#columns.forEach((column, index) => column.push(figures[index] ?? null));
  }

  #trim(): void {
    if (this.#times.length <= this.#most * 1.25) return;
    const surplus = this.#times.length - this.#most;
    this.#times.splice(0, surplus);
    for (const column of this.#columns) column.splice(0, surplus);
  }

  /** From a moment on. */
  since(seconds: number): Series {
    const from = this.#indexOf(seconds);
    return [this.#times.slice(from), ...this.#columns.map((column) => column.slice(from))];
  }

  #indexOf(seconds: number): number {
    const index = this.#times.findIndex((time) => time >= seconds);
    return index < 0 ? this.#times.length : index;
  }

  /** The last `most` steps of a count, each as growth a second; before them null. */
  recentRates(column: number, most: number): Figure[] {
    const figures = this.#columns[column] ?? [];
    const steps = this.#times.length - 1;
    return Array.from({ length: most }, (_, index) => {
      const from = steps - most + index;
      return from < 0 ? null : this.#growth(figures, from, from + 1);
    });
  }

  /** Growth a second of a count over the last `seconds`, as far back as it is known. */
  rate(column: number, seconds: number): Figure {
    const last = this.#times.length - 1;
    if (last < 1) return null;
    const figures = this.#columns[column] ?? [];
    const from = this.#indexOf((this.#times[last] ?? 0) - seconds);
    for (let index = from; index < last; index += 1) {
      if (isUnbroken(figures, index, last)) return this.#growth(figures, index, last);
    }
    return null;
  }

  // A count that falls has lost a part, such as a thread that ended: how much it grew is unknown.
  #growth(figures: readonly Figure[], from: number, to: number): Figure {
    const [before, after] = [figures[from] ?? null, figures[to] ?? null];
    if (before === null || after === null || after < before) return null;
    const seconds = (this.#times[to] ?? 0) - (this.#times[from] ?? 0);
    return seconds > 0 ? (after - before) / seconds : null;
  }
}

function isUnbroken(figures: readonly Figure[], from: number, to: number): boolean {
  for (let index = from; index < to; index += 1) {
    const [before, after] = [figures[index] ?? null, figures[index + 1] ?? null];
    if (before === null || after === null || after < before) return false;
  }
  return true;
}
