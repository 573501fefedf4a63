// epochs: the order in which epochs are shown, what a filter leaves of them, and sums by label.
import type { Epoch, Figure } from "../api/answers.js";
import type { EpochState } from "../api/rows.js";
import { label } from "./text.js";

export type EpochColumn = "label" | "state" | "age" | "closed" | "objects" | "live" | "held";

/** Null: the order of the tree. */
export interface Order<Column> {
  readonly column: Column | null;
  readonly falling: boolean;
}

export const nameOf = (epoch: Pick<Epoch, "label" | "epoch">): string =>
  label(epoch.label, epoch.epoch);

/** Whether it never was closed: open, or the shared one of its label, which never ends. */
export const isUnended = ({ state }: Pick<Epoch, "state">): boolean =>
  state === "open" || state === "shared";

/** Null while an epoch goes on: only then it cannot have been closed. */
export const closedFor = (epoch: Epoch): Figure => (isUnended(epoch) ? null : epoch.closed_for_ms);

const STATES: readonly (EpochState | null)[] = ["open", "closed", "released", "shared"];

const KEYS: Record<EpochColumn, (epoch: Epoch) => string | Figure> = {
  label: nameOf,
  state: (epoch) => (epoch.state === null ? null : STATES.indexOf(epoch.state)),
  age: (epoch) => epoch.age_ms,
  closed: closedFor,
  objects: (epoch) => epoch.live.objects,
  live: (epoch) => epoch.live.bytes,
  held: (epoch) => epoch.held_bytes,
};

/** What is not known comes last, whichever way the order goes. Equal ones stay as they were. */
export function sorted<Row>(
  rows: readonly Row[],
  key: (row: Row) => string | Figure,
  falling: boolean,
): Row[] {
  const way = falling ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [left, right] = [key(a), key(b)];
    if (left === null || right === null) return Number(left === null) - Number(right === null);
    if (typeof left === "string" || typeof right === "string") {
      return way * String(left).localeCompare(String(right));
    }
    return way * (left - right);
  });
}

export function orderedEpochs(epochs: readonly Epoch[], order: Order<EpochColumn>): Epoch[] {
  if (order.column === null) return [...epochs];
  return sorted(epochs, KEYS[order.column], order.falling);
}

/** Whether the label or state has all the words in it, or the id is the text. */
export function matches(epoch: Epoch, filter: string): boolean {
  const text = filter.trim().toLowerCase();
  if (text === String(epoch.epoch) || text === String(epoch.id)) return true;
  const about = `${nameOf(epoch)} ${epoch.state ?? ""}`.toLowerCase();
  return text.split(/\s+/).every((word) => about.includes(word));
}

/** Those that match and, in the order of the tree, the ancestors that they stand below. */
export function filtered(epochs: readonly Epoch[], filter: string, isTree: boolean): Epoch[] {
  if (filter.trim() === "") return [...epochs];
  const shown = new Set(epochs.filter((epoch) => matches(epoch, filter)));
  if (isTree) {
    const byRow = new Map(epochs.map((epoch) => [epoch.epoch, epoch]));
    for (const epoch of [...shown]) addAncestors(shown, byRow, epoch);
  }
  return epochs.filter((epoch) => shown.has(epoch));
}

function addAncestors(shown: Set<Epoch>, byRow: ReadonlyMap<number, Epoch>, epoch: Epoch): void {
  let next = epoch.parent === null ? undefined : byRow.get(epoch.parent);
  while (next !== undefined && !shown.has(next)) {
    shown.add(next);
    next = next.parent === null ? undefined : byRow.get(next.parent);
  }
}

/** Whether the program opened it: the default one and the shared one of a label are the library's. */
export const isThePrograms = ({ epoch, state }: Epoch): boolean =>
  epoch !== 0 && (state === "open" || state === "closed");

const isIn = (epoch: Epoch, state: EpochState): boolean =>
  isThePrograms(epoch) && epoch.state === state;

/** All epochs of one label; those of the library count for what they hold alone. */
export interface LabelSum {
  readonly name: string;
  epochs: number;
  open: number;
  closed: number;
  oldest: Figure;
  objects: Figure;
  live: Figure;
  /** Each byte counts once, although parents hold what their children hold. */
  held: Figure;
  /** The one that holds most: where to look first. */
  largest: Epoch;
}

export type LabelColumn = "name" | "epochs" | "oldest" | "objects" | "live" | "held";

const LABEL_KEYS: Record<LabelColumn, (sum: LabelSum) => string | Figure> = {
  name: (sum) => sum.name,
  epochs: (sum) => sum.epochs,
  oldest: (sum) => sum.oldest,
  objects: (sum) => sum.objects,
  live: (sum) => sum.live,
  held: (sum) => sum.held,
};

export function byLabel(epochs: readonly Epoch[], order: Order<LabelColumn>): LabelSum[] {
  const sums = new Map<string, LabelSum>();
  for (const epoch of epochs) {
    const name = nameOf(epoch);
    const sum = sums.get(name);
    if (sum === undefined) sums.set(name, labelSum(name, epoch));
    else addEpoch(sum, epoch);
  }
  return sorted([...sums.values()], LABEL_KEYS[order.column ?? "held"], order.falling);
}

/** A shared epoch is as old as its label: its age says nothing. */
const ageOf = (epoch: Epoch): Figure => (epoch.state === "shared" ? null : epoch.age_ms);

function labelSum(name: string, epoch: Epoch): LabelSum {
  return {
    name,
    epochs: Number(isThePrograms(epoch)),
    open: Number(isIn(epoch, "open")),
    closed: Number(isIn(epoch, "closed")),
    oldest: ageOf(epoch),
    objects: epoch.live.objects,
    live: epoch.live.bytes,
    held: epoch.own_bytes,
    largest: epoch,
  };
}

function addEpoch(sum: LabelSum, epoch: Epoch): void {
  sum.epochs += Number(isThePrograms(epoch));
  sum.open += Number(isIn(epoch, "open"));
  sum.closed += Number(isIn(epoch, "closed"));
  sum.oldest = larger(sum.oldest, ageOf(epoch));
  sum.objects = plus(sum.objects, epoch.live.objects);
  sum.live = plus(sum.live, epoch.live.bytes);
  sum.held = plus(sum.held, epoch.own_bytes);
  if ((epoch.held_bytes ?? 0) > (sum.largest.held_bytes ?? 0)) sum.largest = epoch;
}

/** Not known when a part is not known. */
export const plus = (a: Figure, b: Figure): Figure => (a === null || b === null ? null : a + b);

export const larger = (a: Figure, b: Figure): Figure =>
  a === null || b === null ? (a ?? b) : Math.max(a, b);

/** Not known when there is nothing to add. */
export const sum = (figures: readonly Figure[]): Figure =>
  figures.length === 0 ? null : figures.reduce(plus);
