// flame: sampled stacks as the frames of a flame graph, the roots on top.
import type { Age, Figure, Profile, Sample } from "../api/answers.js";
import { bytes, count } from "./text.js";

export type Weight = "bytes" | "objects";

/** A function under the one that called it. */
export interface Call {
  readonly name: string;
  readonly parent: Call | null;
  readonly depth: number;
  weight: number;
  /** Of it, what was allocated by the function itself. */
  own: number;
  readonly calls: Map<string, Call>;
}

/** A call's place: parts of the whole width, from 0 to 1. */
export interface Frame {
  readonly call: Call;
  readonly left: number;
  readonly width: number;
}

const newCall = (name: string, parent: Call | null): Call => ({
  name,
  parent,
  depth: parent === null ? 0 : parent.depth + 1,
  weight: 0,
  own: 0,
  calls: new Map(),
});

/** Puts stacks together where their callers are the same. The root stands for all of them. */
export function callTree(samples: readonly Sample[], weight: Weight): Call {
  const root = newCall("all", null);
  for (const sample of samples) {
    let call = root;
    call.weight += sample[weight];
    for (let index = sample.stack.length - 1; index >= 0; index -= 1) {
      call = calleeOf(call, sample.stack[index] ?? "");
      call.weight += sample[weight];
    }
    call.own += sample[weight];
  }
  return root;
}

function calleeOf(caller: Call, name: string): Call {
  const known = caller.calls.get(name);
  if (known !== undefined) return known;
  const callee = newCall(name, caller);
  caller.calls.set(name, callee);
  return callee;
}

/** The callees, the heavier first. */
export const calleesOf = (call: Call): Call[] =>
  [...call.calls.values()].sort((a, b) => b.weight - a.weight || (a.name < b.name ? -1 : 1));

/** The names from the root down to a call: what finds it again in another tree. */
export function pathOf(call: Call): string[] {
  const path: string[] = [];
  for (let next: Call | null = call; next?.parent != null; next = next.parent)
    path.unshift(next.name);
  return path;
}

/** As far down the path as the tree goes. */
export function callAt(root: Call, path: readonly string[]): Call {
  let call = root;
  for (const name of path) {
    const callee = call.calls.get(name);
    if (callee === undefined) return call;
    call = callee;
  }
  return call;
}

/**
 * Rows of frames: the ancestors of `top` over the whole width, `top`, and below it what it called.
 * What is narrower than `least` is left out.
 */
export function flameRows(top: Call, least: number): Frame[][] {
  const rows: Frame[][] = [];
  for (let call = top.parent; call !== null; call = call.parent) {
    rows.unshift([{ call, left: 0, width: 1 }]);
  }
  let row: Frame[] = [{ call: top, left: 0, width: 1 }];
  while (row.length > 0) {
    rows.push(row);
    row = row.flatMap((frame) => framesBelow(frame, least));
  }
  return rows;
}

function framesBelow(frame: Frame, least: number): Frame[] {
  let left = frame.left;
  const frames: Frame[] = [];
  for (const call of calleesOf(frame.call)) {
    const part = frame.call.weight > 0 ? call.weight / frame.call.weight : 0;
    const width = frame.width * part;
    if (width >= least) frames.push({ call, left, width });
    left += width;
  }
  return frames;
}

/** Stacks of all epochs with this label. */
export const samplesOf = (samples: readonly Sample[], label: string | null): Sample[] =>
  samples.filter((sample) => sample.epoch === label);

/** What is shown of the samples. */
export interface Filter {
  /** Undefined: any. Null: large objects. */
  readonly class_bytes: number | null | undefined;
  /** At least so old; null: any. */
  readonly age: Age | null;
}

export const ANY: Filter = { class_bytes: undefined, age: null };

const AGES: readonly Age[] = ["0-1s", "1-10s", "10-60s", "1-10min", "10-60min", "1-24h", "1d+"];

export const filteredSamples = (samples: readonly Sample[], filter: Filter): Sample[] =>
  samples.filter(
    ({ class_bytes, age }) =>
      (filter.class_bytes === undefined || class_bytes === filter.class_bytes) &&
      (filter.age === null || (age !== null && AGES.indexOf(age) >= AGES.indexOf(filter.age))),
  );

/** Of samples of objects that live: the classes, from small to large ones. */
export function classesIn(samples: readonly Sample[]): (number | null)[] {
  const living = samples.filter((sample) => sample.bytes > 0);
  const classes = [...new Set(living.map(({ class_bytes }) => class_bytes))];
  return classes.sort((a, b) => (a ?? Infinity) - (b ?? Infinity));
}

/**
 * What a flame graph covers. `live`: bytes of the objects that it could show, so that the reader
 * sees how much was never sampled.
 */
export function coverage(profile: Profile, samples: readonly Sample[], live: Figure): string {
  const total = (of: (sample: Sample) => number): number =>
    samples.reduce((sum, sample) => sum + of(sample), 0);
  const sampled = count(
    total((sample) => sample.samples),
    "live sample",
  );
  const weight = profile.weight_bytes;
  const apart = weight === null || weight === 0 ? "" : `, a byte in ${bytes(weight)}`;
  const off = SURE * Math.sqrt(total((sample) => sample.deviation_bytes ** 2));
  const estimate = bytes(total((sample) => sample.bytes)) + (off > 0 ? ` ± ${bytes(off)}` : "");
  const whole = live === null ? "" : ` of ${bytes(live)}`;
  const lost = profile.samples_lost ?? 0;
  const rest = lost === 0 ? "" : ` ${count(lost, "further sample")} found no room.`;
  return `${sampled}${apart}; stands for ${estimate}${whole} live.${rest}`;
}

/** What a profile does not cover, in a sentence; null: it covers all. */
export function gapText({ sampled, partial }: Profile): string | null {
  switch (sampled) {
    case "watched":
      return (
        "Only labels and size classes whose objects have outlived their epochs are sampled; all " +
        "other objects are missing here."
      );
    case "ended":
      return (
        "Sampling has ended: these are samples from before, and what was allocated since is " +
        "missing here."
      );
    case "all":
      return partial === true
        ? "All is sampled, but was not from the start: of older objects a part at most is here."
        : null;
    case null:
      return null;
  }
}

/** So many deviations chance exceeds once in twenty times. */
const SURE = 2;

/** Of samples of objects that live: the labels in order. */
export function labelsIn(samples: readonly Sample[]): (string | null)[] {
  const labels = samples.filter(({ bytes: size }) => size > 0).map(({ epoch }) => epoch);
  return [...new Set(labels)].sort((a, b) => (a ?? "").localeCompare(b ?? ""));
}

export interface ClassSum {
  readonly class_bytes: number | null;
  objects: number;
  bytes: number;
}

/** The samples by size class, the larger sums first. */
export function classSums(samples: readonly Sample[]): ClassSum[] {
  const sums = new Map<number | null, ClassSum>();
  for (const { class_bytes, objects, bytes } of samples) {
    const sum = sums.get(class_bytes) ?? { class_bytes, objects: 0, bytes: 0 };
    sum.objects += objects;
    sum.bytes += bytes;
    sums.set(class_bytes, sum);
  }
  return [...sums.values()].sort((a, b) => b.bytes - a.bytes);
}
