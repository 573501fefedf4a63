import assert from "node:assert/strict";
import { test } from "node:test";

import type { Lifetime } from "../../src/api/answers.js";
import { classesText, livedText, livesOf, stackText } from "../../src/model/lifetimes.js";

const lifetime = (epoch: string | null, objects: number, temporary: number): Lifetime => ({
  stack: [epoch ?? "nobody"],
  epoch,
  class_bytes: 64,
  objects,
  bytes: 64 * objects,
  temporary_objects: temporary,
  temporary_percent: 0,
  mean_lifetime_ms: 1,
});

test("of a label or of all, those with most temporaries first", () => {
  const all = [lifetime("x", 9, 0), lifetime(null, 5, 1), lifetime("y", 99, 0)];
  const objects = (label?: string | null): number[] =>
    livesOf(all, label).map((one) => one.objects);
  assert.deepEqual(objects(), [5, 99, 9]);
  assert.deepEqual(objects("x"), [9]);
  assert.deepEqual(objects(null), [5]);
});

test("where nothing was freed there is nothing to say", () => {
  assert.deepEqual(livesOf([lifetime("x", 0, 0)], "x"), []);
});

test("classes of a stack are added up", () => {
  const large = { ...lifetime("x", 30, 0), class_bytes: null, mean_lifetime_ms: 500 };
  const [lives, ...others] = livesOf([lifetime("x", 10, 9), large], "x");
  assert.equal(others.length, 0);
  assert.deepEqual(lives, {
    stack: ["x"],
    epoch: "x",
    classes: [64, null],
    objects: 40,
    bytes: 64 * 40,
    temporary_objects: 9,
    lived_ms: 10 + 30 * 500,
  });
  assert.deepEqual([[64], [null], [64, null]].map(classesText), ["64 B", "large", "2 classes"]);
});

test("lives are told in ms where they are short", () => {
  assert.deepEqual([0, 999, 1_400, 61_000].map(livedText), ["0 ms", "999 ms", "1.4 s", "61 s"]);
});

test("of a stack the innermost functions are shown, and nothing of them controls the page", () => {
  assert.equal(stackText(["a", "b"]), "a ← b");
  assert.equal(stackText(["a\n", "b", "c", "d"]), "a\\n ← b ← c ← …");
});
