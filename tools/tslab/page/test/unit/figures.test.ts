import assert from "node:assert/strict";
import { test } from "node:test";

import type { Leak, SizeClass, Stats } from "../../src/api/answers.js";
import {
  ALLOCATIONS,
  LIMIT_REFUSED,
  SLAB_OPENED,
  fill,
  memoryParts,
  ratio,
  usedClasses,
} from "../../src/model/figures.js";
import { leakSum, orderedLeaks, partsOf, partsText } from "../../src/model/survivors.js";

const NO_TOTALS = {
  live_objects: null,
  live_bytes: null,
  hot_bytes: null,
  epochs_open: null,
  epochs_closed_with_survivors: null,
  threads: null,
  unsettled: false,
};

function stats(more: Partial<Stats> = {}): Stats {
  const identity = {
    pid: 1,
    name: null,
    life: "alive",
    version: "1",
    last_word_ms: 0,
    full_tables: [],
  } as const;
  const nothing = { rss_bytes: null, totals: NO_TOTALS, classes: [], process: {} } as const;
  return { ...identity, ...nothing, allocations: null, slow_paths: {}, ...more };
}

function sizeClass(bytes: number, more: Partial<SizeClass> = {}): SizeClass {
  const none = {
    slab_bytes: 65536,
    capacity: 10,
    live: 0,
    hot: 0,
    slabs: 0,
    opened: 0,
    allocations: 0,
    refills: 0,
    returned: 0,
  };
  return { bytes, ...none, unsettled: false, ...more };
}

test("the parts of the memory add up, whatever moments they are of", () => {
  const totals = { ...NO_TOTALS, live_bytes: 50, hot_bytes: 5 };
  const process = { open_bytes: 100, free_bytes: 20, dirty_bytes: 7, cached_bytes: 10 };
  const parts = memoryParts(stats({ totals, process })) ?? [];
  assert.deepEqual(
    parts.map((part) => part.bytes),
    [50, 5, 15, 10, 7],
  );
  const late = memoryParts(stats({ totals: { ...totals, live_bytes: 90 }, process })) ?? [];
  assert.deepEqual(
    late.map((part) => part.bytes),
    [90, 5, 0, 10, 7],
  );
});

test("one part that is not known makes all unknown", () => {
  const process = { open_bytes: 100, free_bytes: 20, dirty_bytes: null, cached_bytes: 10 };
  assert.equal(
    memoryParts(stats({ totals: { ...NO_TOTALS, live_bytes: 1, hot_bytes: 1 }, process })),
    null,
  );
  assert.equal(memoryParts(stats()), null);
});

test("counts that an older library does not have are not known", () => {
  assert.equal(SLAB_OPENED.count(stats({ slow_paths: { slab_opened: 7 } })), 7);
  assert.equal(SLAB_OPENED.count(stats()), null);
  assert.equal(ALLOCATIONS.count(stats({ allocations: 7 })), 7);
  assert.equal(LIMIT_REFUSED.count(stats({ process: { limits_refused: 2 } })), 2);
  assert.equal(LIMIT_REFUSED.count(stats()), null);
});

test("ratios need both figures, and something that lives", () => {
  assert.deepEqual(
    [ratio(30, 10), ratio(null, 1), ratio(1, null), ratio(1, 0)],
    [3, null, null, null],
  );
});

test("classes in use, the heavier first", () => {
  const classes = [
    sizeClass(64, { live: 1 }),
    sizeClass(128),
    sizeClass(256, { live: 1 }),
    sizeClass(512, { opened: 1, live: null }),
  ];
  assert.deepEqual(
    usedClasses(stats({ classes })).map((one) => one.bytes),
    [256, 64, 512],
  );
});

test("blocks in use are a part of those that slabs have", () => {
  assert.equal(fill(sizeClass(64, { live: 4, hot: 1, slabs: 1 })), 0.5);
  assert.equal(fill(sizeClass(64, { live: 4, hot: null, slabs: 1 })), null);
  assert.equal(fill(sizeClass(64)), null);
});

function leak(more: Partial<Leak> = {}): Leak {
  const figures = {
    for_ms: 1,
    objects: 20,
    bytes: 100,
    held_bytes: 4096,
    pinned_pages: 1,
    large_objects: 0,
  };
  return {
    epoch: 7,
    id: 7,
    epochs: 1,
    label: "x",
    state: "closed",
    unsettled: false,
    classes: [],
    ...figures,
    ...more,
  };
}

test("survivors by class: known ones, large ones, and the rest", () => {
  const classes = [
    { class_bytes: 64, objects: 3 },
    { class_bytes: 1024, objects: 2 },
    { class_bytes: null, objects: 1 },
  ];
  const parts = partsOf(leak({ classes, large_objects: 4 }));
  assert.deepEqual(
    parts.map(({ name, objects, bytes }) => [name, objects, bytes]),
    [
      ["1.0 KiB", 2, 2048],
      ["64 B", 3, 192],
      ["class not known", 1, null],
      ["large", 4, null],
      ["class not known", 10, null],
    ],
  );
  assert.equal(partsText(leak({ classes, objects: 6 }), 2), "2 × 1.0 KiB, 3 × 64 B, 1 more");
});

test("survivors in sum and in order", () => {
  const leaks = [leak({ bytes: 1 }), leak({ bytes: null }), leak({ bytes: 5, epochs: 2 })];
  assert.deepEqual(
    orderedLeaks(leaks, { column: "bytes", falling: true }).map(({ bytes }) => bytes),
    [5, 1, null],
  );
  assert.deepEqual(leakSum(leaks), { epochs: 4, objects: 60, bytes: null, held: 12_288 });
  assert.deepEqual(leakSum([]), { epochs: 0, objects: 0, bytes: 0, held: 0 });
});
