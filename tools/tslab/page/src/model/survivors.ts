// survivors: objects that outlived their epochs, and what they cost.
import type { Epoch, Figure, Leak } from "../api/answers.js";
import { sorted, sum, type Order } from "./epochs.js";
import { bytes, label, number } from "./text.js";

export type LeakColumn = "label" | "closed" | "objects" | "bytes" | "pages";

const KEYS: Record<LeakColumn, (leak: Leak) => string | Figure> = {
  label: (leak) => label(leak.label, leak.epoch),
  closed: (leak) => leak.for_ms,
  objects: (leak) => leak.objects,
  bytes: (leak) => leak.bytes,
  pages: (leak) => leak.pinned_pages,
};

export const orderedLeaks = (leaks: readonly Leak[], order: Order<LeakColumn>): Leak[] =>
  sorted(leaks, KEYS[order.column ?? "bytes"], order.falling);

export interface LeakSum {
  readonly epochs: number;
  readonly objects: Figure;
  readonly bytes: Figure;
  readonly held: Figure;
}

/** Whether its objects may be those of requests in flight. */
export const isShared = ({ state }: Pick<Leak, "state">): boolean => state === "shared";

/** All of closed epochs together. */
export function leakSum(all: readonly Leak[]): LeakSum {
  const leaks = all.filter((leak) => !isShared(leak));
  const total = (figure: (leak: Leak) => Figure): Figure =>
    leaks.length === 0 ? 0 : sum(leaks.map(figure));
  return {
    epochs: leaks.reduce((epochs, leak) => epochs + leak.epochs, 0),
    objects: total((leak) => leak.objects),
    bytes: total((leak) => leak.bytes),
    held: total((leak) => leak.held_bytes),
  };
}

/** Objects of one kind in an epoch. */
export interface Part {
  readonly name: string;
  readonly objects: number;
  readonly bytes: Figure;
}

/**
 * The objects of an epoch by size class, the larger sums first. Of objects in cells of threads that
 * have not left the epoch the class is not known.
 */
export function partsOf(leak: Leak): Part[] {
  const classes = leak.classes.map(({ class_bytes, objects }) => ({
    name: class_bytes === null ? "class not known" : bytes(class_bytes),
    objects,
    bytes: class_bytes === null ? null : class_bytes * objects,
  }));
  const parts: Part[] = sorted(classes, (part) => part.bytes, true);
  const large = leak.large_objects ?? 0;
  if (large > 0) parts.push({ name: "large", objects: large, bytes: null });
  const known = parts.reduce((objects, part) => objects + part.objects, 0);
  const rest = (leak.objects ?? 0) - known;
  if (rest > 0) parts.push({ name: "class not known", objects: rest, bytes: null });
  return parts;
}

/** "340 × 128 B, 17 × 256 B, 3 more" */
export function partsText(leak: Leak, most: number): string {
  const parts = partsOf(leak);
  const texts = parts.slice(0, most).map((part) => `${number(part.objects)} × ${part.name}`);
  const more = parts.slice(most).reduce((objects, part) => objects + part.objects, 0);
  return [...texts, ...(more > 0 ? [`${number(more)} more`] : [])].join(", ");
}

/** What is known of the objects of a shared epoch. */
export const sharedText = ({ outlived_objects: outlived }: Leak): string =>
  outlived === null
    ? "shared: some may be of requests in flight"
    : `shared: about ${number(outlived)} outlived their epochs`;

/** The leak that an epoch is a part of, or that epochs of its label are. */
export const leakOf = (leaks: readonly Leak[], epoch: Epoch): Leak | undefined =>
  leaks.find(({ id, epochs, label, state }) =>
    epochs === 1 ? id === epoch.id : label === epoch.label && state === epoch.state,
  );
