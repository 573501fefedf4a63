// survivors: objects that outlived their epochs, and what they cost.
import type { Epoch, Figure, Growth, Leak, Stack, StackCall } from "../api/answers.js";
import { sorted, sum, type Order } from "./epochs.js";
import { age, bytes, count, label, number, printable } from "./text.js";

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

/** Whether its objects outlived their epochs, and do not go as others come. */
export const isAlarming = (leak: Leak): boolean =>
  !isShared(leak) && leak.growth?.verdict !== "turns_over";

/** All that is alarming together. */
export function leakSum(all: readonly Leak[]): LeakSum {
  const leaks = all.filter(isAlarming);
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

/** Undefined: any class. Null: large objects. */
export type ClassChoice = number | null | undefined;

const stacksOf = ({ stacks, younger_stacks: younger }: Leak): Stack[] => [...stacks, ...younger];

/** The classes of survivors, from small to large ones. */
export function classesOfLeaks(leaks: readonly Leak[]): (number | null)[] {
  const classes = leaks.flatMap((leak) => [
    ...leak.classes.map(({ class_bytes }) => class_bytes).filter((size) => size !== null),
    ...stacksOf(leak).map(({ class_bytes }) => class_bytes),
    ...((leak.large_objects ?? 0) > 0 ? [null] : []),
  ]);
  return [...new Set(classes)].sort((a, b) => (a ?? Infinity) - (b ?? Infinity));
}

/** What survives of one class. What each class holds and pins is not known. */
export function leaksOfClass(leaks: readonly Leak[], size: ClassChoice): Leak[] {
  if (size === undefined) return [...leaks];
  const part = (leak: Leak): Leak => {
    const classes = leak.classes.filter(({ class_bytes }) => size !== null && class_bytes === size);
    const counted = sum(classes.map(({ objects }) => objects));
    const objects = size === null ? leak.large_objects : counted;
    return {
      ...leak,
      classes,
      objects,
      bytes: size === null || objects === null ? null : objects * size,
      held_bytes: null,
      pinned_pages: null,
      large_objects: size === null ? leak.large_objects : 0,
      stacks: leak.stacks.filter(({ class_bytes }) => class_bytes === size),
      younger_stacks: leak.younger_stacks.filter(({ class_bytes }) => class_bytes === size),
    };
  };
  return leaks.map(part).filter((leak) => (leak.objects ?? 0) > 0 || stacksOf(leak).length > 0);
}

/** Of the call stacks the one with most samples: objects are sampled by their bytes. */
export const topStack = (stacks: readonly Stack[]): Stack | undefined =>
  stacks.reduce<Stack | undefined>(
    (top, stack) => (top === undefined || stack.samples > top.samples ? stack : top),
    undefined,
  );

/** "http.c:211", or "" when it is not known. */
export function placeOf({ file, line }: StackCall): string {
  if (file === null) return "";
  const name = printable(file.slice(file.lastIndexOf("/") + 1));
  return line === null ? name : `${name}:${line}`;
}

/** What becomes of survivors, and how that is known; "" while it is not. */
export function growthText(growth: Growth | null): string {
  if (growth === null) return "";
  const { verdict, flow, oldest_ms, newest_ms } = growth;
  const moved =
    flow === null
      ? ""
      : `${number(flow.came)} came, ${number(flow.went)} went in ${age(flow.over_ms)}`;
  switch (verdict) {
    case "grows":
      return `grows: ${flow !== null && flow.came > flow.went ? moved : `of all ages up to ${age(oldest_ms)}`}`;
    case "turns_over":
      return `turns over: ${moved}`;
    case "stands":
      return `stands: none came for ${age(newest_ms)}`;
    case "not_known":
      return "";
  }
}

/** What is known of the objects of a shared epoch. */
export function sharedText({ outlived_objects: outlived, ...leak }: Leak): string {
  if (outlived !== null) return `shared: about ${number(outlived)} outlived their epochs`;
  const sampled = leak.younger_stacks.reduce((sum, { samples }) => sum + samples, 0);
  return sampled === 0
    ? "shared: some may be of requests in flight"
    : `shared: ${count(sampled, "object")} sampled so far, up to ${age(leak.for_ms)} old, may yet be freed`;
}

/** Of objects that outlived epochs which share memory, and become more; "" where there are none. */
export function sharedAlarmText(leaks: readonly Leak[]): string {
  const growing = leaks.filter((leak) => isShared(leak) && leak.growth?.verdict === "grows");
  const objects = growing.reduce((sum, { outlived_objects: some }) => sum + (some ?? 0), 0);
  if (objects === 0) return "";
  return `About ${count(objects, "object")} outlived epochs that share memory, and become more.`;
}

/** The leak that an epoch is a part of, or that epochs of its label are. */
export const leakOf = (leaks: readonly Leak[], epoch: Epoch): Leak | undefined =>
  leaks.find(({ id, epochs, label, state }) =>
    epochs === 1 ? id === epoch.id : label === epoch.label && state === epoch.state,
  );
