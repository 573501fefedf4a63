import assert from "node:assert/strict";
import { test } from "node:test";

import type { Growth, Leak, SizeClass, Stack, Stats } from "../../src/api/answers.js";
import {
  ALLOCATIONS,
  COUNTED,
  LIMIT_REFUSED,
  SLAB_OPENED,
  SLOW_ALLOCATIONS,
  SLOW_FREES,
  columnOf,
  fill,
  memoryParts,
  ratio,
  usedClasses,
} from "../../src/model/figures.js";
import {
  classesOfLeaks,
  growthText,
  leaksOfClass,
  leakSum,
  orderedLeaks,
  partsOf,
  partsText,
  placeOf,
  sharedAlarmText,
  sharedText,
  topStack,
} from "../../src/model/survivors.js";

const NO_TOTALS = {
  live_objects: null,
  live_bytes: null,
  large_bytes: null,
  held_bytes: null,
  hot_bytes: null,
  spare_bytes: null,
  thread_cached_bytes: null,
  epochs_open: null,
  epochs_shared: null,
  epochs_closed_with_survivors: null,
  threads: null,
  unsettled: false,
};

function stats(more: Partial<Stats> = {}): Stats {
  const identity = {
    pid: 1,
    start_ticks: 5,
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
    out: 0,
    hot: 0,
    slabs: 0,
    opened: 0,
    allocations: 0,
    refills: 0,
    returned: 0,
  };
  return { bytes, ...none, unsettled: false, ...more };
}

test("the parts of the memory are what all faces show", () => {
  const own = { live_bytes: 50, hot_bytes: 5, spare_bytes: 15, thread_cached_bytes: 4 };
  const totals = { ...NO_TOTALS, ...own };
  const parts = memoryParts(stats({ totals, process: { dirty_bytes: 7, cached_bytes: 10 } }));
  assert.deepEqual(
    parts?.map((part) => part.bytes),
    [50, 5, 15, 14, 7],
  );
});

test("one part that is not known makes all unknown", () => {
  const known = { live_bytes: 1, hot_bytes: 1, spare_bytes: 1, thread_cached_bytes: 1 };
  const totals = { ...NO_TOTALS, ...known };
  const process = { dirty_bytes: 1, cached_bytes: 1 };
  assert.notEqual(memoryParts(stats({ totals, process })), null);
  assert.equal(memoryParts(stats({ totals, process: { ...process, dirty_bytes: null } })), null);
  for (const name of Object.keys(known)) {
    assert.equal(memoryParts(stats({ totals: { ...totals, [name]: null }, process })), null);
  }
});

test("each count has a column of its own, whichever object names it", () => {
  assert.deepEqual(COUNTED.map(columnOf), [...COUNTED.keys()]);
  assert.equal(COUNTED[columnOf(SLAB_OPENED)]?.name, "slab opened");
  assert.equal(columnOf(ALLOCATIONS), 0);
  const slow = [...SLOW_ALLOCATIONS, ...SLOW_FREES].map(({ name }) => name);
  assert.deepEqual(slow.slice(0, 2), ["bin empty", "slab opened"]);
  assert.ok(SLOW_FREES.some(({ name }) => name === "other thread"));
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
  assert.equal(fill(sizeClass(64, { out: 5, slabs: 1 })), 0.5);
  assert.equal(fill(sizeClass(64, { out: null, slabs: 1 })), null);
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
    outlived_objects: 1,
  };
  return {
    epoch: 7,
    id: 7,
    epochs: 1,
    label: "x",
    state: "closed",
    unsettled: false,
    classes: [],
    growth: null,
    stacks: [],
    younger_stacks: [],
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

test("objects of a shared epoch may be of requests in flight", () => {
  const shared = leak({ state: "shared", outlived_objects: null });
  assert.equal(sharedText(shared), "shared: some may be of requests in flight");
  assert.equal(
    sharedText(leak({ state: "shared", outlived_objects: 120 })),
    "shared: about 120 outlived their epochs",
  );
});

test("survivors in sum and in order", () => {
  const leaks = [leak({ bytes: 1 }), leak({ bytes: null }), leak({ bytes: 5, epochs: 2 })];
  assert.deepEqual(
    orderedLeaks(leaks, { column: "bytes", falling: true }).map(({ bytes }) => bytes),
    [5, 1, null],
  );
  assert.deepEqual(leakSum(leaks), { epochs: 4, objects: 60, bytes: null, held: 12_288 });
  const shared = leak({ state: "shared", bytes: 7 });
  assert.equal(leakSum([shared, leak({ bytes: 5 })]).bytes, 5);
  const cache = leak({ growth: growth("turns_over"), bytes: 7 });
  assert.equal(leakSum([cache, leak({ bytes: 5 })]).bytes, 5);
  assert.deepEqual(leakSum([]), { epochs: 0, objects: 0, bytes: 0, held: 0 });
});

const growth = (verdict: Growth["verdict"], more: Partial<Growth> = {}): Growth => ({
  verdict,
  flow: null,
  oldest_ms: 300_000,
  newest_ms: 20_000,
  ...more,
});

test("whether survivors become more, and how that is known", () => {
  const flow = (came: number, went: number) => ({ flow: { over_ms: 10_000, came, went } });
  assert.equal(growthText(growth("grows", flow(40, 1))), "grows: 40 came, 1 went in 10 s");
  assert.equal(growthText(growth("grows")), "grows: of all ages up to 5 min");
  assert.equal(growthText(growth("grows", flow(0, 0))), "grows: of all ages up to 5 min");
  assert.equal(growthText(growth("stands")), "stands: none came for 20 s");
  assert.equal(growthText(growth("turns_over", flow(7, 8))), "turns over: 7 came, 8 went in 10 s");
  assert.equal(growthText(growth("not_known")) + growthText(null), "");
});

const stack = (class_bytes: number | null, samples: number): Stack => ({
  class_bytes,
  samples,
  estimated_objects: 1,
  percent: 100,
  growth: null,
  calls: [],
});

test("the stack with most samples, and places without folders", () => {
  const stacks = [stack(64, 1), stack(128, 9), stack(null, 9)];
  assert.equal(topStack(stacks), stacks[1]);
  assert.equal(topStack([]), undefined);
  const place = (file: string | null, line: number | null): string =>
    placeOf({ function: "f", file, line });
  assert.deepEqual(
    [place("/src/a.c", 7), place("a.c", null), place(null, 7)],
    ["a.c:7", "a.c", ""],
  );
});

test("of a shared epoch what is sampled so far counts while nothing is old enough", () => {
  const younger_stacks = [stack(64, 2), stack(1024, 3)];
  const shared = leak({ state: "shared", outlived_objects: null, for_ms: 20_000, younger_stacks });
  const expected = "shared: 5 objects sampled so far, up to 20 s old, may yet be freed";
  assert.equal(sharedText(shared), expected);
  assert.deepEqual(classesOfLeaks([shared]), [64, 1024]);
  assert.deepEqual(leaksOfClass([shared], 64)[0]?.younger_stacks, [stack(64, 2)]);
});

test("of shared epochs what outlived theirs alarms where it becomes more", () => {
  const shared = (verdict: Growth["verdict"], outlived_objects: number | null): Leak =>
    leak({ state: "shared", growth: growth(verdict), outlived_objects });
  const closed = leak({ growth: growth("grows") });
  const expected = "About 7 objects outlived epochs that share memory, and become more.";
  assert.equal(sharedAlarmText([shared("grows", 7), shared("stands", 5), closed]), expected);
  assert.equal(sharedAlarmText([shared("turns_over", 7), shared("grows", null), closed]), "");
});

test("survivors of one class", () => {
  const classes = [
    { class_bytes: 64, objects: 3 },
    { class_bytes: 1024, objects: 2 },
    { class_bytes: null, objects: 1 },
  ];
  const leaks = [
    leak({ classes, large_objects: 4, stacks: [stack(64, 1), stack(1024, 1)] }),
    leak({ stacks: [stack(256, 1)] }),
  ];
  assert.deepEqual(classesOfLeaks(leaks), [64, 256, 1024, null]);
  assert.equal(leaksOfClass(leaks, undefined).length, 2);
  const [only, ...others] = leaksOfClass(leaks, 64);
  assert.equal(others.length, 0);
  assert.deepEqual([only?.objects, only?.bytes, only?.held_bytes], [3, 192, null]);
  assert.deepEqual([only?.classes.length, only?.stacks.length, only?.large_objects], [1, 1, 0]);
  assert.deepEqual(
    leaksOfClass(leaks, null).map(({ objects, bytes }) => [objects, bytes]),
    [[4, null]],
  );
  assert.deepEqual(
    leaksOfClass(leaks, 256).map(({ objects }) => objects),
    [null],
  );
});
