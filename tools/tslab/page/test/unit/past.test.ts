import assert from "node:assert/strict";
import { test } from "node:test";

import type { History } from "../../src/api/answers.js";
import { Past } from "../../src/model/past.js";

function history(moments: History["moments"], more: Partial<History> = {}): History {
  return { kept: true, now_s: 1000, moments, labels: [], events: [], ...more };
}

const NONE = [[], [], []] as const;

test("the past comes before what the page saw", () => {
  const past = new Past();
  const moments = [
    [980, 5, 1],
    [990, 6, 2],
    [1000, 7, 3],
  ] as const;
  past.apply(1000, history(moments));
  assert.deepEqual(past.before([[995], [9], [8]], 985), [
    [990, 995],
    [6, 9],
    [2, 8],
  ]);
});

test("a time in which the agent did not look is a gap", () => {
  const past = new Past();
  const moments = [
    [100, 5, 1],
    [900, 6, 2],
  ] as const;
  past.apply(1000, history(moments));
  assert.deepEqual(past.before(NONE, 0), [
    [100, 500, 900],
    [5, null, 6],
    [1, null, 2],
  ]);
});

test("what is known is not asked for again, nor taken in twice", () => {
  const past = new Past();
  assert.equal(past.after, null);
  const event = { at_s: 995, kind: "purge", label: null, count: 1, bytes: 2 };
  past.apply(1000, history([[990, 5, 1]], { events: [event] }));
  assert.equal(past.after, 990);
  past.apply(1010, history([[990, 5, 1]], { now_s: 1010, events: [event] }));
  assert.equal(past.before(NONE, 0)[0].length, 1);
  assert.equal(past.events.length, 1);
});

test("times are by the browser's clock", () => {
  const past = new Past();
  const event = { at_s: 995, kind: "purge", label: null, count: 1, bytes: 2 };
  past.apply(5000, history([[990, 5, 1]], { events: [event] }));
  assert.deepEqual(past.before(NONE, 0)[0], [4990]);
  assert.equal(past.seconds(event), 4995);
});

test("it is asked for every ten seconds", () => {
  const past = new Past();
  assert.ok(past.isDue(1));
  past.asked(1);
  assert.ok(!past.isDue(10) && past.isDue(11));
});

test("many events of a kind leave those of others", () => {
  const past = new Past();
  const event = { at_s: 1, kind: "limit", label: null, count: 1, bytes: null };
  const purges = Array.from({ length: 600 }, (_, second) => ({
    ...event,
    at_s: 2 + second,
    kind: "purge",
  }));
  past.apply(1000, history([], { events: [event, ...purges] }));
  assert.equal(past.events.length, 501);
  assert.equal(past.events[0]?.kind, "limit");
  assert.equal(past.events.at(-1)?.at_s, 601);
});
