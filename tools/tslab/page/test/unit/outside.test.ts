import assert from "node:assert/strict";
import { test } from "node:test";

import type { DefaultEpoch, Stack } from "../../src/api/answers.js";
import { alarmText, quietText } from "../../src/model/outside.js";

const outside = (more: Partial<DefaultEpoch> = {}): DefaultEpoch => ({
  objects: 10,
  bytes: 4096,
  samples: null,
  old_samples: 0,
  old_ms: 60_000,
  stacks: [],
  ...more,
});

const STACK: Stack = {
  class_bytes: 64,
  samples: 1,
  estimated_objects: 1,
  percent: 100,
  growth: null,
  calls: [],
};

test("call stacks that keep more and more are counted", () => {
  const one = "4.0 KiB live outside of epochs; 1 call stack keeps more and more.";
  assert.equal(alarmText(outside({ stacks: [STACK] })), one);
  const two = "4.0 KiB live outside of epochs; 2 call stacks keep more and more.";
  assert.equal(alarmText(outside({ stacks: [STACK, STACK] })), two);
});

test("where nothing is found it is said what that is worth", () => {
  const live = "4.0 KiB live outside of epochs. ";
  const none = quietText(outside());
  assert.equal(none, `${live}Only samples tell whether they become more.`);
  const young = quietText(outside({ samples: 7 }));
  assert.equal(
    young,
    `${live}Of 7 sampled objects none is older than 60 s. A shorter time judges younger ones.`,
  );
  const youngest = quietText(outside({ samples: 7, old_ms: 1_000 }));
  assert.equal(youngest, `${live}Of 7 sampled objects none is older than 1.0 s.`);
  const old = quietText(outside({ samples: 7, old_samples: 1 }));
  assert.equal(old, `${live}Of 7 sampled objects no call stack keeps more and more.`);
  assert.equal(quietText(outside({ objects: 0 })) + quietText(outside({ objects: null })), "");
});
