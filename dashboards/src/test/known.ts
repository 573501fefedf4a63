// known: holds an expression to what metrics.json promises.
import assert from "node:assert/strict";
import { metricOf } from "../metrics.js";
import { parse, type Parsed, type Selector } from "../parse.js";

/** The labels that a series can have. */
function labelsOf(series: string): readonly string[] {
  const metric = metricOf(series);
  assert.ok(metric, `${series} is not in metrics.json`);
  const bucket = metric.type === "histogram" && series.endsWith("_bucket") ? ["le"] : [];
  return ["job", "instance", ...metric.labels, ...bucket];
}

function assertCounterUse({ series, range, called }: Selector): void {
  const isCounter = metricOf(series)?.type === "counter";
  assert.equal(series.endsWith("_total"), isCounter, `${series}: _total is for counters`);
  const grows = ["rate", "irate", "increase"].includes(called) && range !== "";
  assert.equal(grows, isCounter, `${series} under "${called}": counters alone, and always, grow`);
}

/** Metrics and labels exist, counters are asked for their growth. Recorded series have colons. */
export function assertKnown(expression: string): Parsed {
  const parsed = parse(expression);
  assert.deepEqual(parsed.errors, [], expression);
  const exported = parsed.selectors.filter(({ series }) => !series.includes(":"));
  for (const selector of exported) {
    const labels = labelsOf(selector.series);
    for (const label of selector.labels) assert.ok(labels.includes(label), `${label} matched`);
    for (const label of parsed.grouping) assert.ok(labels.includes(label), `by (${label})`);
    assertCounterUse(selector);
  }
  return parsed;
}
