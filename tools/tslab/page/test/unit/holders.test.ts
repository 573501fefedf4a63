import assert from "node:assert/strict";
import { test } from "node:test";

import type { Epoch, History } from "../../src/api/answers.js";
import { Holders, MOST_DRAWN, liveByLabel } from "../../src/model/holders.js";

const MIB = 1024 * 1024;

const epoch = (label: string | null, bytes: number | null): Epoch => ({
  epoch: 1,
  id: 1,
  parent: null,
  depth: 0,
  label,
  state: "open",
  age_ms: 1,
  closed_for_ms: null,
  live: { objects: 1, bytes, unsettled: false },
  held_bytes: null,
  own_bytes: null,
  soft_limit_bytes: null,
  hard_limit_bytes: null,
});

const history = (labels: History["labels"], now_s = 1000): History => ({
  kept: true,
  now_s,
  moments: [],
  labels,
  events: [],
});

const past = (label: string, ...moments: [number, number][]) => ({ label, moments });

test("the past comes before what the page saw, by the browser's clock", () => {
  const holders = new Holders(10);
  holders.apply(1500, history([past("a", [400, 2 * MIB], [460, 3 * MIB])]));
  holders.push(1020, [epoch("a", 4 * MIB)]);
  assert.deepEqual(holders.since(0).series, [
    [900, 960, 1020],
    [2 * MIB, 3 * MIB, 4 * MIB],
  ]);
  assert.deepEqual(holders.since(950).series[0], [960, 1020]);
});

test("a label that was not among the most is a gap, not zero", () => {
  const holders = new Holders(10);
  const a = past("a", [400, 9 * MIB], [460, 9 * MIB], [520, 9 * MIB]);
  holders.apply(1000, history([a, past("b", [400, MIB], [520, MIB])]));
  const { labels, series } = holders.since(0);
  assert.deepEqual(
    labels.map(({ label }) => label),
    ["a", "b"],
  );
  assert.deepEqual(series[2], [MIB, null, MIB]);
});

test("a time in which the agent did not look is a gap of all", () => {
  const holders = new Holders(10);
  holders.apply(1000, history([past("a", [100, MIB], [900, MIB])]));
  assert.deepEqual(holders.since(0).series, [
    [100, 500, 900],
    [MIB, null, MIB],
  ]);
});

test("what is known is not taken in twice, and what is old goes", () => {
  const holders = new Holders(10);
  holders.apply(1000, history([past("a", [900, MIB])]));
  holders.apply(1010, history([past("a", [900, MIB], [960, MIB])], 1010));
  assert.deepEqual(holders.since(0).series[0], [900, 960]);
  holders.apply(87_350, history([], 87_350));
  assert.deepEqual(holders.since(0).series[0], [960]);
});

test("the labels that held most are drawn, and none that is too small to be seen", () => {
  const holders = new Holders(10);
  const many = Array.from({ length: 12 }, (_, index) =>
    epoch(`tenant ${index}`, (index + 9) * MIB),
  );
  holders.push(1, [...many, epoch("small", 100 * 1024)]);
  const names = holders.since(0).labels.map(({ label }) => label);
  assert.equal(names.length, MOST_DRAWN);
  assert.ok(names.includes("tenant 11") && !names.includes("tenant 3"));
  const other = new Holders(10);
  other.push(1, [epoch("large", 11 * MIB), epoch("small", 100 * 1024), epoch("tiny", 1024)]);
  assert.deepEqual(other.since(0).labels, [{ label: "large", colour: 0 }]);
});

test("a label keeps its colour while it is drawn", () => {
  const holders = new Holders(10);
  const colours = (): string[] => holders.since(0).labels.map((it) => `${it.colour} ${it.label}`);
  holders.push(1, [epoch("a", 2 * MIB), epoch("b", MIB)]);
  assert.deepEqual(colours(), ["0 a", "1 b"]);
  holders.push(2, [epoch("a", 2 * MIB), epoch("b", 9 * MIB), epoch("c", 20 * MIB)]);
  assert.deepEqual(colours(), ["0 a", "1 b", "2 c"]);
  assert.deepEqual(
    holders.since(2).labels.map(({ label }) => label),
    ["a", "b", "c"],
  );
});

test("the page's own looks are bounded", () => {
  const holders = new Holders(4);
  for (let second = 1; second <= 20; second += 1) holders.push(second, [epoch("a", MIB)]);
  const [times] = holders.since(0).series;
  assert.ok(times.length <= 5, `${times.length}`);
  assert.equal(times.at(-1), 20);
});

test("labels are added up as the agent does", () => {
  const epochs = [epoch("a", 1), epoch("a", 2), epoch("b", null), epoch(null, 4), epoch("", 5)];
  assert.deepEqual(
    [...liveByLabel([...epochs, epoch("b", 6)])],
    [
      ["a", 3],
      ["b", null],
      ["other", 9],
    ],
  );
});
