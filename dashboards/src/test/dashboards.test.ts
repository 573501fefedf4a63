// The rules of Grafana's dashboard-linter, by its names, and our own.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as units from "@grafana/grafana-foundation-sdk/units";
import {
  type Dashboard,
  DASHBOARDS,
  FILES,
  type Panel,
  type Target,
  type Variable,
} from "../generated.js";
import { metricOf } from "../metrics.js";
import { parse } from "../parse.js";
import { assertKnown } from "./known.js";
import { SHOWN } from "./shown.js";

const UNITS = new Set<unknown>(Object.values(units));

function variable({ templating }: Dashboard, name: string): Variable {
  const found = templating.list.find((one) => one.name === name);
  assert.ok(found, `no variable ${name}`);
  return found;
}

/** Those that choose values by a query. */
const queries = ({ templating }: Dashboard): readonly Variable[] =>
  templating.list.filter(({ type }) => type === "query");

const unitsOf = ({ fieldConfig }: Panel): unknown[] => [
  fieldConfig?.defaults.unit,
  ...(fieldConfig?.overrides ?? [])
    .flatMap(({ properties }) => properties)
    .filter(({ id }) => id === "unit")
    .map(({ value }) => value),
];

const seriesOf = ({ expr }: Target): string[] => [
  ...new Set(parse(expr).selectors.map(({ series }) => series)),
];

/** A mean has the unit of what is divided. */
const dividendOf = (target: Target): Target => ({
  ...target,
  expr: target.expr.split(" / ")[0] ?? "",
});

/** A line of shown.ts: legends that only name labels are left out. */
function lineOf(target: Target): string {
  const { legendFormat = "" } = target;
  const isFixed = legendFormat !== "" && !/{{|^__auto$/.test(legendFormat);
  return `${isFixed ? `${legendFormat}: ` : ""}${seriesOf(target).join(" ")}`;
}

/** The units that metrics have where a panel has this one; ratios and tables have any. */
const METRIC_UNITS: Readonly<Record<string, readonly string[]>> = {
  bytes: ["bytes"],
  binBps: ["bytes"],
  s: ["seconds"],
  short: ["", "objects"],
  ops: ["", "objects"],
  cps: ["", "objects"],
  reqps: [""],
};

for (const dashboard of DASHBOARDS) {
  const panels = dashboard.panels.filter(({ type }) => type !== "row");
  const targets = panels.flatMap(({ targets = [] }) => targets);

  describe(dashboard.title, () => {
    test("template-datasource-rule", () => {
      const { type, label, query } = variable(dashboard, "datasource");
      assert.deepEqual([type, label, query], ["datasource", "Data source", "prometheus"]);
    });

    for (const name of ["job", "instance", "process"]) {
      test(`template-${name}-rule`, () => {
        const found = variable(dashboard, name);
        assert.equal(found.type, "query");
        assert.equal(found.label, name.charAt(0).toUpperCase() + name.slice(1));
        assert.equal(found.datasource?.uid, "${datasource}");
        assert.ok(found.multi);
        assert.equal(found.allValue, ".+");
      });
    }

    test("template-label-promql-rule", () => {
      for (const { name, query } of queries(dashboard)) {
        const [, selector = "", label = ""] = /^label_values\((.+), (\w+)\)$/.exec(query) ?? [];
        const { selectors } = assertKnown(selector);
        const labels = metricOf(selectors[0]?.series ?? "")?.labels ?? [];
        assert.equal(label, name);
        assert.ok(["job", "instance", ...labels].includes(label), query);
      }
    });

    test("template-on-time-change-reload-rule", () => {
      for (const { name, refresh } of queries(dashboard)) assert.equal(refresh, 2, name);
    });

    test("uneditable-dashboard", () => assert.equal(dashboard.editable, false));

    test("panel-datasource-rule", () => {
      for (const { datasource } of [...panels, ...targets]) {
        assert.equal(datasource?.uid, "${datasource}");
      }
    });

    test("panel-title-description-rule", () => {
      for (const { title, description } of panels) {
        assert.match(title, /^\S.*[^.]$/);
        assert.match(description ?? "", /^\S.*\.$/, title);
      }
    });

    test("panel-units-rule", () => {
      for (const panel of panels) {
        for (const unit of unitsOf(panel)) assert.ok(UNITS.has(unit), `${unit}`);
      }
    });

    test("a panel shows what its title says", () => {
      const shown = panels.map(({ title, targets = [] }) => [title, targets.map(lineOf)]);
      assert.deepEqual(Object.fromEntries(shown), SHOWN[dashboard.title]);
    });

    test("a panel's unit is its metrics'", () => {
      for (const panel of panels) {
        const wanted = METRIC_UNITS[panel.fieldConfig?.defaults.unit ?? "none"];
        if (wanted === undefined) continue;
        for (const series of (panel.targets ?? []).map(dividendOf).flatMap(seriesOf)) {
          if (series.endsWith("_bucket")) continue;
          assert.ok(wanted.includes(metricOf(series)?.unit ?? "?"), `${panel.title}: ${series}`);
        }
      }
    });

    test("a share is of the same labels above and below", () => {
      for (const { title, targets = [] } of panels) {
        for (const { expr } of targets.filter(({ expr }) => expr.includes(" / "))) {
          const chooses = parse(expr).selectors.map(({ matchers }) => {
            return matchers.some((matcher) => matcher.endsWith('=~"$epoch"'));
          });
          assert.equal(new Set(chooses).size, 1, title);
        }
      }
    });

    test("panel-no-targets-rule", () => {
      for (const { title, targets = [] } of panels) assert.ok(targets.length > 0, title);
    });

    test("target-promql-rule, target-counter-agg-rule, metrics and labels exist", () => {
      for (const { expr } of targets) assertKnown(expr);
    });

    test("target-rate-interval-rule", () => {
      for (const { range, called } of targets.flatMap(({ expr }) => parse(expr).selectors)) {
        const wanted = { rate: "$__rate_interval", increase: "$__range" }[called] ?? "";
        assert.equal(range, wanted, called);
      }
    });

    test("target-job-rule, target-instance-rule, and what else a variable chooses", () => {
      for (const { title, targets = [] } of panels) {
        for (const { series, matchers } of targets.flatMap(({ expr }) => parse(expr).selectors)) {
          const labels = ["job", "instance", ...(metricOf(series)?.labels ?? [])];
          for (const { name } of queries(dashboard)) {
            if (!labels.includes(name)) continue;
            const isChosen = name !== "epoch" || !title.endsWith(", all labels");
            const matcher = `${name}=~"$${name}"`;
            assert.equal(matchers.includes(matcher), isChosen, `${title}: ${series}: ${name}`);
          }
        }
      }
    });

    test("legends name labels that the result has", () => {
      for (const { expr, legendFormat = "" } of targets) {
        const { grouping, selectors } = parse(expr);
        const aggregated = /\b(sum|max)\b/.test(expr);
        const own = ["job", "instance", ...(metricOf(selectors[0]?.series ?? "")?.labels ?? [])];
        for (const [, label = ""] of legendFormat.matchAll(/{{(\w+)}}/g)) {
          assert.ok((aggregated ? grouping : own).includes(label), `${label} in ${legendFormat}`);
        }
      }
    });

    test("names by which others find it", () => {
      assert.ok(FILES.includes(`${dashboard.uid}.json`));
      assert.match(dashboard.title, /^tslab: /);
      assert.ok(dashboard.tags.includes("tslab"));
      assert.match(dashboard.description, /\.$/);
    });

    test("panels' numbers and titles are their own", () => {
      for (const key of ["id", "title"] as const) {
        assert.equal(
          new Set(dashboard.panels.map((panel) => panel[key])).size,
          dashboard.panels.length,
          key,
        );
      }
    });
  });
}
