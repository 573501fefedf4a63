// epochs: the order in which epochs are shown, what a filter leaves of them, and sums by label.
import type { Epoch, EpochState, Figure } from "../api/answers.js";
import { label } from "./text.js";

export type EpochColumn = "label" | "state" | "age" | "closed" | "objects" | "live" | "held";

/** Null: the order of the tree. */
export interface Order<Column> {
  readonly column: Column | null;
  readonly falling: boolean;
}

export const nameOf = (epoch: Pick<Epoch, "label" | "epoch">): string =>
  label(epoch.label, epoch.epoch);

/** Null while an epoch is open: only then it cannot have been closed. */
export const closedFor = (epoch: Epoch): Figure =>
  epoch.state === "open" ? null : epoch.closed_for_ms;

const STATES: readonly (EpochState | null)[] = ["open", "closed", "released"];

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

/** What each epoch holds without its children, by row. */
export function ownBytes(epochs: readonly Epoch[]): Map<number, Figure> {
  const own = new Map<number, Figure>(epochs.map((epoch) => [epoch.epoch, epoch.held_bytes]));
  for (const epoch of epochs) {
    if (epoch.parent === null || epoch.parent === epoch.epoch) continue;
    const ofParent = own.get(epoch.parent) ?? null;
    if (ofParent === null || epoch.held_bytes === null) continue;
    own.set(epoch.parent, Math.max(0, ofParent - epoch.held_bytes));
  }
  return own;
}

/** All epochs of one label. */
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
  const own = ownBytes(epochs);
  const sums = new Map<string, LabelSum>();
  for (const epoch of epochs) {
    const name = nameOf(epoch);
    const sum = sums.get(name);
    if (sum === undefined) sums.set(name, labelSum(name, epoch, own));
    else addEpoch(sum, epoch, own);
  }
  return sorted([...sums.values()], LABEL_KEYS[order.column ?? "held"], order.falling);
}

function labelSum(name: string, epoch: Epoch, own: ReadonlyMap<number, Figure>): LabelSum {
  return {
    name,
    epochs: 1,
    open: Number(epoch.state === "open"),
    closed: Number(epoch.state === "closed"),
    oldest: epoch.age_ms,
    objects: epoch.live.objects,
    live: epoch.live.bytes,
    held: own.get(epoch.epoch) ?? null,
    largest: epoch,
  };
}

function addEpoch(sum: LabelSum, epoch: Epoch, own: ReadonlyMap<number, Figure>): void {
  sum.epochs += 1;
  sum.open += Number(epoch.state === "open");
  sum.closed += Number(epoch.state === "closed");
  sum.oldest = larger(sum.oldest, epoch.age_ms);
  sum.objects = plus(sum.objects, epoch.live.objects);
  sum.live = plus(sum.live, epoch.live.bytes);
  sum.held = plus(sum.held, own.get(epoch.epoch) ?? null);
  if ((epoch.held_bytes ?? 0) > (sum.largest.held_bytes ?? 0)) sum.largest = epoch;
}

/** Not known when a part is not known. */
export const plus = (a: Figure, b: Figure): Figure => (a === null || b === null ? null : a + b);

export const larger = (a: Figure, b: Figure): Figure =>
  a === null || b === null ? (a ?? b) : Math.max(a, b);

/** Not known when there is nothing to add. */
export const sum = (figures: readonly Figure[]): Figure =>
  figures.length === 0 ? null : figures.reduce(plus);
