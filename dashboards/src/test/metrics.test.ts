// The names that metrics.json promises follow Prometheus's conventions.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Metric, METRICS, readText } from "../metrics.js";

const TYPES = ["counter", "gauge", "histogram"];
const UNITS = ["", "bytes", "seconds", "objects"];
/** Words that a scrape or a site sets for itself. */
const RESERVED =
  "job instance le quantile type region zone cluster owner customer service env".split(" ");

for (const metric of METRICS.values()) {
  const { name, type, unit, help, labels } = metric;
  test(name, () => {
    assert.match(name, /^tslab(_[a-z]+)+$/);
    assert.ok(TYPES.includes(type), type);
    assert.equal(name.endsWith("_total"), type === "counter");
    assert.ok(UNITS.includes(unit), unit);
    assert.ok(unit === "" || name.replace(/_total$/, "").endsWith(`_${unit}`));
    assert.match(help, /^\S.*\.$/);
    for (const label of labels) assert.ok(!RESERVED.includes(label), label);
    assert.equal(labels.includes("pid"), labels.includes("process"));
  });
}

test("each name stands once", () => {
  assert.equal((JSON.parse(readText("metrics.json")) as Metric[]).length, METRICS.size);
});
