import assert from "node:assert/strict";
import { test } from "node:test";

import type { Lifetime } from "../../src/api/answers.js";
import { lifetimesOf, livedText, stackText } from "../../src/model/lifetimes.js";

const lifetime = (epoch: string | null, objects: number, temporary: number): Lifetime => ({
  stack: ["a"],
  epoch,
  class_bytes: 64,
  objects,
  bytes: 64 * objects,
  temporary_objects: temporary,
  temporary_percent: 0,
  mean_lifetime_ms: 1,
});

test("of a label or of all, those with most temporaries first", () => {
  const all = [lifetime("x", 9, 0), lifetime(null, 5, 1), lifetime("x", 99, 0)];
  const objects = (label?: string | null): number[] =>
    lifetimesOf(all, label).map((one) => one.objects);
  assert.deepEqual(objects(), [5, 99, 9]);
  assert.deepEqual(objects("x"), [99, 9]);
  assert.deepEqual(objects(null), [5]);
});

test("lives are told in ms where they are short", () => {
  assert.deepEqual([0, 999, 1_400, 61_000].map(livedText), ["0 ms", "999 ms", "1.4 s", "61 s"]);
});

test("of a stack the innermost functions are shown, and nothing of them controls the page", () => {
  assert.equal(stackText(["a", "b"]), "a ← b");
  assert.equal(stackText(["a\n", "b", "c", "d"]), "a\\n ← b ← c ← …");
});
