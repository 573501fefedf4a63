import assert from "node:assert/strict";
import { test } from "node:test";

import type { Process, Profile, Stats } from "../../src/api/answers.js";
import type { Outcome } from "../../src/api/client.js";
import { Model } from "../../src/live/model.js";
import type { Detail, Round } from "../../src/live/round.js";
import { routeOf } from "../../src/model/route.js";
import { AGE_MARKS, logScale, marksOn, placeOn } from "../../src/model/scale.js";
import { NO_SAMPLES } from "./profiles.js";

const process = (pid: number, rss: number, more: Partial<Process> = {}): Process => ({
  pid,
  path: `tslab.${pid}.1`,
  name: "x",
  life: "alive",
  version: "1",
  last_word_ms: 0,
  rss_bytes: rss,
  live_bytes: 1,
  epochs_open: 0,
  epochs_closed_with_survivors: 0,
  error: null,
  of_other_user: false,
  ...more,
});

const told = <T>(answer: T): Outcome<T> => ({ kind: "told", answer });
const LOST = { kind: "lost", why: "no connection" } as const;

const list = (...processes: Process[]): Round => ({
  processes: told({ processes }),
  events: null,
  detail: null,
});

function detail(pid: number, stats: Outcome<Stats>): Detail {
  return {
    handle: String(pid),
    stats,
    epochs: LOST,
    leaks: { kind: "refused", why: "it lacks bins.taken" },
    profile: null,
    history: null,
    judgement: null,
  };
}

test("the process that was largest at first stays chosen", () => {
  const model = new Model();
  model.apply(1, list(process(1, 10), process(2, 20), process(3, 99, { life: "dead" })), false);
  assert.equal(model.handle, "2");
  model.apply(2, list(process(1, 50), process(2, 20)), false);
  assert.equal(model.handle, "2");
  model.go({ handle: "1", epoch: null });
  assert.equal(model.watched?.pid, 1);
});

test("what the agent said last stays while it is lost", () => {
  const model = new Model();
  model.apply(1, list(process(1, 10)), false);
  model.apply(2, { processes: LOST, events: null, detail: null }, false);
  model.apply(3, { processes: LOST, events: null, detail: null }, false);
  assert.deepEqual(model.link, { kind: "lost", since: 2, why: "no connection" });
  assert.equal(model.told, 1);
  assert.equal(model.watched?.gone, false);
  model.apply(4, list(process(1, 11)), false);
  assert.equal(model.link.kind, "live");
});

test("a process that has gone stays, and comes back", () => {
  const model = new Model();
  model.apply(1, list(process(1, 10)), false);
  model.apply(2, list(process(2, 10)), false);
  assert.deepEqual([model.watched?.pid, model.watched?.gone], [1, true]);
  assert.ok(model.tracks.has("tslab.1.1"));
  model.apply(3, list(process(1, 10)), false);
  assert.equal(model.watched?.gone, false);
});

test("of a process that has gone the last profile stays", () => {
  const model = new Model();
  const missing = { kind: "missing", why: "there is no process 1" } as const;
  const round = (number: number, profile: Outcome<Profile>): Round => ({
    ...list(process(number, 10)),
    detail: { ...detail(1, LOST), profile },
  });
  model.apply(1, round(1, missing), false);
  assert.equal(model.watched?.isUnsampled, true);
  model.apply(2, round(1, told(NO_SAMPLES)), false);
  assert.deepEqual([model.watched?.profile, model.watched?.isUnsampled], [NO_SAMPLES, false]);
  model.apply(3, round(2, missing), false);
  assert.deepEqual([model.watched?.profile, model.watched?.runs], [NO_SAMPLES, false]);
});

test("another process with the same number is looked at from its beginning", () => {
  const model = new Model();
  model.apply(1, list(process(1, 10)), false);
  const before = model.watched;
  model.apply(2, list(process(1, 10, { path: "tslab.1.2" })), false);
  assert.notEqual(model.watched, before);
  assert.equal(model.watched?.process?.path, "tslab.1.2");
});

test("of two processes with one number the living one is meant", () => {
  const model = new Model();
  model.apply(1, list(process(1, 10), process(1, 99, { path: "old", life: "dead" })), false);
  assert.equal(model.watched?.process?.path, "tslab.1.1");
});

test("one that has ended is looked at, though another has its number", () => {
  const ended = process(1, 99, { path: "tslab.1.7", life: "dead" });
  const model = new Model();
  model.go({ handle: "1.7", epoch: null });
  model.apply(1, list(process(1, 10, { path: "tslab.1.8" }), ended), false);
  assert.equal(model.watched?.process, ended);
  assert.deepEqual([model.wanted(2).handle, model.watched?.pid], ["1.7", 1]);
  model.go({ handle: "1", epoch: null });
  assert.equal(model.watched?.process?.path, "tslab.1.8");
});

test("what the agent cannot tell is said, until it can", () => {
  const model = new Model();
  model.apply(1, list(process(1, 10)), false);
  model.apply(2, { ...list(process(1, 10)), detail: detail(1, LOST) }, false);
  assert.deepEqual(
    [...(model.watched?.notes ?? [])],
    [
      ["process", "The agent did not tell of the process: no connection."],
      ["epochs", "The agent did not tell of the epochs: no connection."],
      ["leaks", "it lacks bins.taken"],
    ],
  );
  model.apply(
    3,
    { processes: LOST, events: null, detail: detail(1, { kind: "missing", why: "" }) },
    false,
  );
  assert.equal(model.watched?.notes.size, 3);
});

test("answers about a process that is not looked at any more are passed over", () => {
  const model = new Model();
  model.apply(1, list(process(1, 10), process(2, 5)), false);
  model.go({ handle: "2", epoch: null });
  model.apply(2, { ...list(process(1, 10), process(2, 5)), detail: detail(1, LOST) }, false);
  assert.equal(model.watched?.notes.size, 0);
});

test("a token is asked for, and said to be wrong only if there was one", () => {
  const model = new Model();
  const locked: Round = { processes: { kind: "locked" }, events: null, detail: null };
  model.apply(1, locked, false);
  assert.deepEqual(model.link, { kind: "locked", refused: false });
  model.apply(2, locked, true);
  assert.deepEqual(model.link, { kind: "locked", refused: true });
});

test("stacks are asked for in the view of an epoch, and not every second", () => {
  const model = new Model();
  model.apply(1, list(process(1, 10)), false);
  assert.equal(model.wanted(2).profile, false);
  model.showsStacks = true;
  assert.equal(model.wanted(2).profile, false);
  assert.equal(model.wanted(100).profile, true);
  model.showsStacks = false;
  model.go({ handle: "1", epoch: 7 });
  assert.deepEqual([model.wanted(100).profile, model.wanted(100).afterSeconds], [true, 0]);
  const withProfile = { ...detail(1, LOST), profile: told(NO_SAMPLES) };
  model.apply(100, { ...list(process(1, 10)), detail: withProfile }, false);
  assert.deepEqual([model.wanted(101).profile, model.wanted(106).profile], [false, true]);
});

test("addresses lead to views", () => {
  assert.deepEqual(routeOf("#/42"), { handle: "42", epoch: null });
  assert.deepEqual(routeOf("#/42.777/epoch/7"), { handle: "42.777", epoch: 7 });
  assert.deepEqual(routeOf("#/42/epoch/7"), { handle: "42", epoch: 7 });
  for (const hash of ["", "#/", "#/x", "#/42/epoch/", "#/42/epoch/-1", "#/42."]) {
    assert.deepEqual(routeOf(hash), { handle: null, epoch: null });
  }
});

test("logarithmic axes hold every value and round marks", () => {
  const scale = logScale([50, 0, 2_000_000], 100, 600_000);
  assert.deepEqual([scale.least, scale.most], [50, 2_000_000]);
  assert.deepEqual([placeOn(scale, 50), placeOn(scale, 2_000_000), placeOn(scale, 0)], [0, 1, 0]);
  assert.deepEqual(marksOn(scale, AGE_MARKS, 3), [100, 10_000, 600_000]);
});

test("judgements and events of all processes are asked for now and then", () => {
  const model = new Model();
  assert.deepEqual(model.wanted(1).events, { after: null });
  model.apply(1, list(process(1, 10)), false);
  assert.equal(model.wanted(1).judgement, true);
  const event = {
    at_s: 90,
    kind: "purge",
    label: null,
    count: 1,
    bytes: 5,
    pid: 1,
    start_ticks: 7,
    name: "x",
  };
  const events = told({ kept: true, now_s: 100, events: [event] });
  const judgement = { why: LOST, doctor: { kind: "refused", why: "it lacks epochs" } as const };
  const round = { ...list(process(1, 10)), events, detail: { ...detail(1, LOST), judgement } };
  model.apply(200, round, false);
  assert.deepEqual([model.wanted(209).judgement, model.wanted(210).judgement], [false, true]);
  assert.deepEqual(model.watched?.doctor, { answer: null, why: "it lacks epochs" });
  assert.deepEqual(model.wanted(209).events, null);
  assert.deepEqual(model.wanted(210).events, { after: 90 });
  assert.equal(model.host.seconds(event), 190);
  model.apply(210, round, false);
  assert.equal(model.host.events.length, 1);
  model.go({ handle: "1", epoch: 7 });
  assert.equal(model.wanted(300).judgement, false);
});
