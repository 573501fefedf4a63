import assert from "node:assert/strict";
import { test } from "node:test";

import type { Ages, Decade, Lifetime } from "../../src/api/answers.js";
import { classesText, livedText, livesOf, sharesOf, stackText } from "../../src/model/lifetimes.js";

const NONE: Ages = { objects: 0, bytes: 0, mean_age_ms: null, by_decade: null };
const BOUNDS = [10, 100, 1_000, 10_000, 100_000, 1_000_000, null];

const decades = (...some: number[]): Decade[] =>
  BOUNDS.map((below_ms, index) => ({ below_ms, objects: some[index] ?? 0 }));

const lifetime = (epoch: string | null, objects: number, temporary: number): Lifetime => ({
  stack: [epoch ?? "nobody"],
  epoch,
  class_bytes: 64,
  objects,
  bytes: 64 * objects,
  temporary_objects: temporary,
  temporary_percent: 0,
  mean_lifetime_ms: 1,
  by_decade: null,
  live: NONE,
});

test("of a label or of all, those with most temporaries first", () => {
  const all = [lifetime("x", 9, 0), lifetime(null, 5, 1), lifetime("y", 99, 0)];
  const objects = (label?: string | null): number[] =>
    livesOf(all, label).map((one) => one.objects);
  assert.deepEqual(objects(), [5, 99, 9]);
  assert.deepEqual(objects("x"), [9]);
  assert.deepEqual(objects(null), [5]);
});

test("where nothing was freed and nothing lives there is nothing to say", () => {
  assert.deepEqual(livesOf([lifetime("x", 0, 0)], "x"), []);
  const live = { ...NONE, objects: 3, bytes: 192, mean_age_ms: 7 };
  const [lives] = livesOf([{ ...lifetime("x", 0, 0), live }], "x");
  assert.deepEqual(lives?.live, { objects: 3, bytes: 192, lived_ms: 21, decades: null });
});

test("shares by decade, from the first to the last that has objects", () => {
  const freed = { ...lifetime("x", 4, 0), by_decade: decades(0, 3, 1) };
  const live = { ...NONE, objects: 4, by_decade: decades(0, 0, 0, 0, 1, 3) };
  const other = { ...freed, by_decade: decades(0, 4), live };
  const [lives] = livesOf([freed, other], "x");
  assert.ok(lives);
  assert.deepEqual(
    sharesOf(lives).map(({ name, freed, live }) => [name, freed, live]),
    [
      ["10-100ms", 7 / 8, 0],
      ["0.1-1s", 1 / 8, 0],
      ["1-10s", 0, 0],
      ["10-100s", 0, 1 / 4],
      ["100-1000s", 0, 3 / 4],
    ],
  );
});

test("where the library does not tell, or nothing lives, no shares are made up", () => {
  const shares = (one: Lifetime): unknown[] =>
    livesOf([one], "x").flatMap((lives) =>
      sharesOf(lives).map(({ name, freed, live }) => [name, freed, live]),
    );
  assert.deepEqual(shares(lifetime("x", 5, 1)), []);
  const live = { ...NONE, objects: 2, by_decade: decades(0, 0, 0, 0, 0, 0, 2) };
  assert.deepEqual(shares({ ...lifetime("x", 5, 1), live }), [["1000s+", null, 1]]);
  assert.deepEqual(shares({ ...lifetime("x", 5, 1), by_decade: decades(5) }), [["0-10ms", 1, 0]]);
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
    decades: null,
    live: { objects: 0, bytes: 0, lived_ms: 0, decades: null },
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
