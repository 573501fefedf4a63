import assert from "node:assert/strict";
import { test } from "node:test";

import { Track } from "../../src/model/track.js";

function trackOf(...moments: (readonly [number, number | null])[]): Track {
  const track = new Track(1, 100);
  for (const [seconds, figure] of moments) track.push(seconds, [figure]);
  return track;
}

test("gives what is as young as asked", () => {
  const track = trackOf([1, 10], [2, null], [3, 30]);
  assert.deepEqual(track.since(2), [
    [2, 3],
    [null, 30],
  ]);
  assert.deepEqual(track.since(4), [[], []]);
});

test("time in which nothing was told is a gap", () => {
  assert.deepEqual(trackOf([1, 10], [21, 20]).since(0), [
    [1, 11, 21],
    [10, null, 20],
  ]);
});

test("a clock that goes back adds nothing", () => {
  assert.deepEqual(trackOf([5, 1], [4, 2], [5, 3]).since(0), [[5], [1]]);
});

test("forgets what is old", () => {
  const track = new Track(1, 10);
  for (let second = 0; second < 1000; second += 1) track.push(second, [second]);
  assert.ok(track.length >= 10 && track.length <= 13);
  assert.equal(track.since(0)[0].at(-1), 999);
});

test("a rate is the mean of the time asked for", () => {
  const track = trackOf([0, 0], [1, 100], [2, 100], [3, 130], [4, 140]);
  assert.equal(track.rate(0, 2), 20);
  assert.equal(track.rate(0, 100), 35);
});

test("no rate is made up", () => {
  assert.equal(trackOf().rate(0, 10), null);
  assert.equal(trackOf([1, 5]).rate(0, 10), null);
  assert.equal(trackOf([1, null], [2, null]).rate(0, 10), null);
  assert.equal(trackOf([1, 100], [2, 7]).rate(0, 10), null);
});

test("a count that fell begins anew, a gap too", () => {
  assert.equal(trackOf([1, 100], [2, 7], [3, 9]).rate(0, 10), 2);
  assert.equal(trackOf([1, 1], [21, 90], [22, 93]).rate(0, 100), 3);
});

test("recent rates have as many steps as asked for", () => {
  const track = trackOf([1, 10], [2, 12], [3, 5], [4, 6]);
  assert.deepEqual(track.recentRates(0, 5), [null, null, 2, null, 1]);
  assert.deepEqual(trackOf().recentRates(0, 2), [null, null]);
});
