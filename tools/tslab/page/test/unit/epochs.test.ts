import assert from "node:assert/strict";
import { test } from "node:test";

import type { Epoch } from "../../src/api/answers.js";
import {
  byLabel,
  closedFor,
  filtered,
  orderedEpochs,
  type EpochColumn,
} from "../../src/model/epochs.js";

function epoch(row: number, more: Partial<Epoch> = {}): Epoch {
  const live = { objects: 1, bytes: 10, unsettled: false };
  const limits = { soft_limit_bytes: null, hard_limit_bytes: null };
  const place = { epoch: row, id: 1000 + row, parent: null, depth: 0 };
  const times = { age_ms: 5, closed_for_ms: null };
  return {
    ...place,
    ...times,
    ...limits,
    label: "a",
    state: "open",
    live,
    held_bytes: row,
    own_bytes: row,
    ...more,
  };
}

const rows = (epochs: readonly Epoch[]): number[] => epochs.map((one) => one.epoch);

const order = (column: EpochColumn | null, falling = false) => ({ column, falling });

test("without a column the order is the tree's", () => {
  assert.deepEqual(rows(orderedEpochs([epoch(3), epoch(1)], order(null))), [3, 1]);
});

test("what is not known comes last both ways", () => {
  const epochs = [epoch(1), epoch(2, { held_bytes: null }), epoch(3)];
  assert.deepEqual(rows(orderedEpochs(epochs, order("held"))), [1, 3, 2]);
  assert.deepEqual(rows(orderedEpochs(epochs, order("held", true))), [3, 1, 2]);
});

test("an open epoch has not been closed, whatever the file says", () => {
  const epochs = [epoch(1, { closed_for_ms: 9 }), epoch(2, { state: "closed", closed_for_ms: 1 })];
  assert.deepEqual(rows(orderedEpochs(epochs, order("closed", true))), [2, 1]);
});

test("the shared epoch of a label is none of its open ones, and has no age", () => {
  const shared = epoch(1, { state: "shared", own_bytes: 100, age_ms: 900, closed_for_ms: 3 });
  const [sum] = byLabel([shared, epoch(2)], { column: "held", falling: true });
  assert.deepEqual([sum?.epochs, sum?.open, sum?.oldest, sum?.held], [1, 1, 5, 102]);
  assert.equal(closedFor(shared), null);
  const states = orderedEpochs([shared, epoch(2)], order("state"));
  assert.deepEqual(rows(states), [2, 1]);
});

test("the default epoch is none of the program's", () => {
  const own = epoch(0, { label: "default", own_bytes: 9 });
  const [sum] = byLabel([own], { column: "held", falling: true });
  assert.deepEqual([sum?.epochs, sum?.open, sum?.held], [0, 0, 9]);
});

test("a filter keeps the ancestors in the tree alone", () => {
  const tree = [
    epoch(1, { label: "tenant" }),
    epoch(2, { label: "GET /upload", parent: 1 }),
    epoch(3, { label: "other", parent: 1 }),
  ];
  assert.deepEqual(rows(filtered(tree, " UPload get ", true)), [1, 2]);
  assert.deepEqual(rows(filtered(tree, "upload", false)), [2]);
  assert.deepEqual(rows(filtered(tree, "1003", false)), [3]);
  assert.deepEqual(rows(filtered(tree, "open", false)), [1, 2, 3]);
  assert.deepEqual(rows(filtered(tree, " ", false)), [1, 2, 3]);
});

test("parents in a ring, as in a damaged file, end", () => {
  const ring = [
    epoch(1, { parent: 2 }),
    epoch(2, { parent: 1, label: "x" }),
    epoch(3, { parent: 3 }),
  ];
  assert.deepEqual(rows(filtered(ring, "x", true)), [1, 2]);
});

test("no byte counts twice in sums by label", () => {
  const epochs = [
    epoch(1, { label: "tenant", held_bytes: 100, own_bytes: 50 }),
    epoch(2, { parent: 1, held_bytes: 30, own_bytes: 30, age_ms: 7 }),
    epoch(3, { parent: 1, held_bytes: 20, own_bytes: 20, state: "closed", age_ms: 90 }),
  ];
  const [tenant, requests] = byLabel(epochs, { column: "held", falling: true });
  assert.deepEqual([tenant?.name, tenant?.held], ["tenant", 50]);
  assert.deepEqual([requests?.held, requests?.epochs, requests?.open], [50, 2, 1]);
  assert.deepEqual([requests?.closed, requests?.oldest, requests?.largest.epoch], [1, 90, 2]);
});

test("a sum of which a part is not known is not known", () => {
  const live = { objects: null, bytes: 3, unsettled: false };
  const [sum] = byLabel([epoch(1), epoch(2, { live })], { column: null, falling: true });
  assert.deepEqual([sum?.objects, sum?.live], [null, 13]);
});
