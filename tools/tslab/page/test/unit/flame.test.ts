import assert from "node:assert/strict";
import { test } from "node:test";

import type { Sample } from "../../src/api/answers.js";
import {
  callAt,
  callTree,
  classSums,
  flameRows,
  pathOf,
  samplesOf,
} from "../../src/model/flame.js";

const sample = (stack: string, bytes: number, epoch: string | null = "e"): Sample => ({
  stack: stack === "" ? [] : stack.split(";"),
  epoch,
  class_bytes: 64,
  objects: 1,
  bytes,
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
