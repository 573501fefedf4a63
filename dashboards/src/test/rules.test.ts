// What promtool does not ask of rules.yaml: names that exist, runbooks, and a test of each alert.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parse as parseYaml } from "yaml";
import { DASHBOARDS } from "../generated.js";
import { readText } from "../metrics.js";
import { assertKnown } from "./known.js";

interface Rule {
  readonly record?: string;
  readonly alert?: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels?: { readonly severity?: string };
  readonly annotations?: Readonly<Record<string, string>>;
}

interface AlertTest {
  readonly alertname: string;
  readonly exp_alerts: readonly unknown[];
}

const { groups } = parseYaml(readText("rules.yaml")) as { groups: { rules: Rule[] }[] };
const { tests } = parseYaml(readText("rules_test.yaml")) as {
  tests: { promql_expr_test?: { expr: string }[]; alert_rule_test?: AlertTest[] }[];
};
const rules = groups.flatMap((group) => group.rules);
const recorded = new Set(rules.flatMap(({ record }) => record ?? []));

/** As a page on the web turns a heading into an anchor. */
const anchor = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, "")
    .replaceAll(" ", "-");

function assertRunbook(url: string): void {
  const [path = "", wanted = ""] = url.split("#");
  const headings = readText(`../${path}`).matchAll(/^#+ (.+)$/gm);
  assert.ok(
    [...headings].some(([, heading = ""]) => anchor(heading) === wanted),
    url,
  );
}

for (const { record, alert, expr, ...rule } of rules) {
  test(`${record ?? alert}: metrics and labels exist`, () => {
    for (const { series } of assertKnown(expr).selectors) {
      assert.ok(!series.includes(":") || recorded.has(series), `nothing records ${series}`);
    }
  });

  if (record !== undefined) {
    test(`${record}: named level:metric:operation, and tested`, () => {
      assert.match(record, /^[a-z_]+:tslab_[a-z_]+:[a-z0-9_]+$/);
      const exprs = tests.flatMap(({ promql_expr_test = [] }) => promql_expr_test);
      assert.ok(exprs.some(({ expr }) => expr.startsWith(record)));
    });
  }

  if (alert !== undefined) {
    test(`${alert}: says how bad it is, for how long, and what to do`, () => {
      assert.match(alert, /^Tslab[A-Z]/);
      assert.match(rule.for ?? "", /^[1-9]\d*m$/);
      assert.ok(["warning", "critical"].includes(rule.labels?.severity ?? ""));
      const { summary = "", description = "", runbook_url = "" } = rule.annotations ?? {};
      assert.match(summary, /^\S.*[^.]$/);
      assert.match(description, /^\S[^]*\.$/);
      assertRunbook(runbook_url);
    });

    test(`${alert}: tested firing and quiet`, () => {
      const cases = tests
        .flatMap(({ alert_rule_test = [] }) => alert_rule_test)
        .filter(({ alertname }) => alertname === alert);
      assert.ok(
        cases.some(({ exp_alerts }) => exp_alerts.length > 0),
        "never fires",
      );
      assert.ok(
        cases.some(({ exp_alerts }) => exp_alerts.length === 0),
        "is never quiet",
      );
    });
  }
}

test("the runbook names dashboards and panels that exist", () => {
  const titles = DASHBOARDS.flatMap(({ title, panels }) => [title, ...panels.map((p) => p.title)]);
  const runbook = readText("../docs/runbook.md").replace(/\s+/g, " ");
  const named = [...runbook.matchAll(/(?<!\*)\*([^*]+)\*(?!\*)/g)].map(([, name = ""]) => name);
  assert.ok(named.length > 0);
  for (const name of named) assert.ok(titles.includes(name), name);
});
