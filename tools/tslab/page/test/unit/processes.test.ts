import assert from "node:assert/strict";
import { test } from "node:test";

import type { HostEvent, Process } from "../../src/api/answers.js";
import { found, handleOf, ordered, processOf, processOfEvent } from "../../src/model/processes.js";

const process = (pid: number, name: string | null, more: Partial<Process> = {}): Process => ({
  pid,
  path: `tslab.${pid}.1`,
  name,
  life: "alive",
  version: "1",
  last_word_ms: 0,
  rss_bytes: 1,
  live_bytes: 1,
  epochs_open: 0,
  epochs_closed_with_survivors: 0,
  error: null,
  of_other_user: false,
  ...more,
});

const ended = (pid: number, last_word_ms: number | null): Process =>
  process(pid, "x", { life: "dead", rss_bytes: null, last_word_ms });

const pids = (processes: readonly Process[]): number[] => processes.map(({ pid }) => pid);

test("the larger come first, then those that ended last", () => {
  const processes = [
    ended(1, null),
    ended(2, 90_000),
    ended(3, 500),
    process(7, "small too", { last_word_ms: 0 }),
    process(4, "small", { last_word_ms: 700 }),
    process(5, "large", { rss_bytes: 9 }),
    process(6, "unreadable", { rss_bytes: null }),
  ];
  assert.deepEqual(pids(ordered(processes)), [5, 4, 7, 6, 3, 2, 1]);
});

test("a filter looks at names and numbers", () => {
  const processes = [process(112, "Nginx"), process(34, null), process(5, "redis")];
  assert.deepEqual(pids(found(processes, "")), [112, 34, 5]);
  assert.deepEqual(pids(found(processes, " GIN ")), [112]);
  assert.deepEqual(pids(found(processes, "34")), [34]);
  assert.deepEqual(pids(found(processes, "null")), []);
});

test("a process that has ended is named by when it began, too", () => {
  const [runs, dead] = [process(42, "x", { path: "/dev/shm/tslab.42.778" }), ended(42, 1)];
  assert.deepEqual([handleOf(runs), handleOf(dead)], ["42", "42.1"]);
  assert.equal(handleOf(process(42, "x", { path: "copy", life: "dead" })), "42");
  assert.equal(processOf([runs, dead], "42.1"), dead);
  assert.equal(processOf([dead, runs], "42"), runs);
  assert.equal(processOf([dead], "42"), dead);
  assert.equal(processOf([runs, dead], "42.7"), undefined);
});

test("an event is of the process that had its number and began then", () => {
  const runs = process(42, "server", { path: "/dev/shm/tslab.42.91" });
  const dead = process(42, "server", { path: "/dev/shm/tslab.42.1", life: "dead" });
  const event = (start_ticks: number | null): HostEvent => ({
    at_s: 1,
    kind: "purge",
    label: null,
    count: 1,
    bytes: 1,
    pid: 42,
    start_ticks,
    name: "before an exec",
  });
  assert.equal(processOfEvent([runs, dead], event(1)), dead);
  assert.equal(processOfEvent([dead, runs], event(91)), runs);
  assert.equal(processOfEvent([runs, dead], event(2)), undefined);
  assert.equal(processOfEvent([runs, dead], event(null)), undefined);
});
