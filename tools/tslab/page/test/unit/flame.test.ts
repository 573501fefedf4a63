import assert from "node:assert/strict";
import { test } from "node:test";

import type { Profile, Reach, Sample } from "../../src/api/answers.js";
import {
  ANY,
  callAt,
  callTree,
  classesIn,
  classSums,
  coverage,
  filteredSamples,
  flameRows,
  gapText,
  labelsIn,
  pathOf,
  samplesOf,
} from "../../src/model/flame.js";
import { NO_SAMPLES } from "./profiles.js";

const sample = (stack: string, bytes: number, epoch: string | null = "e"): Sample => ({
  stack: stack === "" ? [] : stack.split(";"),
  epoch,
  class_bytes: 64,
  age: "0-1s",
  samples: 1,
  objects: 1,
  bytes,
  deviation_bytes: 0,
});

const SAMPLES = [
  sample("c;b;main", 30),
  sample("d;b;main", 50),
  sample("b;main", 10),
  sample("x;main", 10),
];

test("stacks with the same callers are one", () => {
  const main = callAt(callTree(SAMPLES, "bytes"), ["main"]);
  assert.deepEqual([main.weight, main.own], [100, 0]);
  const b = callAt(main, ["b"]);
  assert.deepEqual([b.weight, b.own, pathOf(b)], [90, 10, ["main", "b"]]);
  assert.equal(callTree(SAMPLES, "objects").weight, 4);
});

test("recursion and empty stacks keep their weight", () => {
  const root = callTree([sample("f;f;f", 5), sample("", 7)], "bytes");
  assert.deepEqual([root.weight, root.own], [12, 7]);
  assert.equal(callAt(root, ["f", "f", "f"]).own, 5);
});

test("a path leads as far as the tree goes", () => {
  const root = callTree(SAMPLES, "bytes");
  assert.deepEqual(pathOf(callAt(root, ["main", "b", "gone", "d"])), ["main", "b"]);
});

test("frames stand below their callers, the heavier first", () => {
  const rows = flameRows(callTree(SAMPLES, "bytes"), 0.01);
  const texts = rows.map((row) =>
    row.map(({ call, left, width }) => `${call.name} ${left.toFixed(2)} ${width.toFixed(2)}`),
  );
  assert.deepEqual(texts, [
    ["all 0.00 1.00"],
    ["main 0.00 1.00"],
    ["b 0.00 0.90", "x 0.90 0.10"],
    ["d 0.00 0.50", "c 0.50 0.30"],
  ]);
});

test("a call that is looked at has the whole width below its callers", () => {
  const top = callAt(callTree(SAMPLES, "bytes"), ["main", "b", "c"]);
  const rows = flameRows(top, 0.01);
  assert.deepEqual(
    rows.map((row) => row.map(({ call }) => call.name)),
    [["all"], ["main"], ["b"], ["c"]],
  );
});

test("frames too narrow to see are left out, and nothing divides by 0", () => {
  assert.equal(flameRows(callTree(SAMPLES, "bytes"), 0.4).at(-1)?.length, 1);
  assert.equal(flameRows(callTree([sample("a;b", 0)], "bytes"), 0.01).length, 1);
});

test("samples of a label, and their classes", () => {
  const samples = [
    sample("a", 1, "x"),
    sample("a", 2, null),
    { ...sample("a", 9, "x"), class_bytes: 128 },
  ];
  assert.equal(samplesOf(samples, null).length, 1);
  assert.deepEqual(classSums(samplesOf(samples, "x")), [
    { class_bytes: 128, objects: 1, bytes: 9 },
    { class_bytes: 64, objects: 1, bytes: 1 },
  ]);
});

test("filters keep a class, and what is at least so old", () => {
  const samples: Sample[] = [
    sample("a", 1),
    { ...sample("b", 2), age: "1-10min" },
    { ...sample("c", 3), age: "1d+", class_bytes: null },
    { ...sample("d", 0), age: null, class_bytes: 8 },
  ];
  const names = (filter: Parameters<typeof filteredSamples>[1]): string =>
    filteredSamples(samples, filter)
      .map(({ stack }) => stack[0])
      .join("");
  assert.equal(names(ANY), "abcd");
  assert.equal(names({ ...ANY, class_bytes: 64 }), "ab");
  assert.equal(names({ ...ANY, class_bytes: null }), "c");
  assert.equal(names({ ...ANY, age: "0-1s" }), "abc");
  assert.equal(names({ ...ANY, age: "1-10min" }), "bc");
  assert.equal(names({ class_bytes: 64, age: "10-60min" }), "");
  assert.deepEqual(classesIn(samples), [64, null]);
  assert.deepEqual(labelsIn([...samples, sample("x", 1, "b")]), ["b", "e"]);
});

test("a flame graph says how much of what lives it covers", () => {
  const profile: Profile = {
    ...NO_SAMPLES,
    weight_bytes: 512 * 1024,
    samples_taken: 90,
    samples_lost: 0,
  };
  const half = { ...sample("a", 20 * 1024 ** 2), samples: 406, deviation_bytes: 1024 ** 2 };
  const samples = [half, half];
  assert.equal(
    coverage(profile, samples, 42 * 1024 ** 2),
    "812 live samples, a byte in 512.0 KiB; stands for 40.0 MiB ± 2.8 MiB of 42.0 MiB live.",
  );
  assert.equal(
    coverage({ ...profile, samples_lost: 3 }, [], null),
    "0 live samples, a byte in 512.0 KiB; stands for 0 B live. 3 further samples found no room.",
  );
  assert.equal(coverage(NO_SAMPLES, [], null), "0 live samples; stands for 0 B live.");
});

test("a profile of a part says what is missing", () => {
  const text = (sampled: Reach | null, partial: boolean): string | null =>
    gapText({ ...NO_SAMPLES, sampled, partial });
  assert.match(
    text("watched", true) ?? "",
    /^Only labels and size classes whose objects have outlived/,
  );
  assert.match(text("ended", true) ?? "", /^Sampling has ended: these are samples from before/);
  assert.match(text("ended", false) ?? "", /^Sampling has ended/);
  assert.match(text("all", true) ?? "", /^All is sampled, but was not from the start/);
  assert.deepEqual([text("all", false), text(null, false)], [null, null]);
});
