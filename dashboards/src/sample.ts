// sample: print what an exporter with a little of everything would give, out of metrics.json.
//
// `metrics`: as a scrape, for promtool to check the names. `answers`: as a test, in which each
// expression of the dashboards must find something; promtool checks its types on the way.
import { DASHBOARDS } from "./generated.js";
import { type Metric, METRICS } from "./metrics.js";

const MINUTES = 60;

/** What stands for Grafana's variables: all values, and durations. */
const VARIABLES: readonly (readonly [RegExp, string])[] = [
  [/"\$\w+"/g, '".+"'],
  [/\$__rate_interval/g, "5m"],
  [/\$__range/g, `${MINUTES}m`],
];

const VALUES: Readonly<Record<string, readonly string[]>> = {
  cause: ["one", "another"],
  class: ["64", "128"],
  epoch: ["request", "tenant"],
  handler: ["request", "tenant"],
  le: ["1", "60", "+Inf"],
  part: ["live", "dirty"],
  pid: ["7"],
  process: ["server"],
  sampled: ["all", "watched", "ended"],
  site: ["keep (a.c:1)", "other"],
  source: ["thread", "fresh"],
  state: ["open", "closed"],
  version: ["0.1.0"],
};

/** Every combination of the labels' values, as it stands between braces. */
function combinations(labels: readonly string[]): string[] {
  return labels.reduce<string[]>(
    (before, label) =>
      (VALUES[label] ?? []).flatMap((value) =>
        before.map((text) => `${text}${text === "" ? "" : ","}${label}="${value}"`),
      ),
    [""],
  );
}

function seriesOf({ name, type, labels }: Metric, ...more: string[]): string[] {
  const all = [...more, ...labels];
  const named = (suffix: string, of: readonly string[]): string[] =>
    combinations(of).map((text) => `${name}${suffix}{${text}}`);
  if (type !== "histogram") return named("", all);
  return [...named("_bucket", [...all, "le"]), ...named("_sum", all), ...named("_count", all)];
}

function scrape(): string {
  return [...METRICS.values()]
    .flatMap((metric) => [
      `# HELP ${metric.name} ${metric.help}`,
      `# TYPE ${metric.name} ${metric.type}`,
      ...seriesOf(metric).map((series) => `${series} 1`),
    ])
    .join("\n");
}

const expanded = (expr: string): string =>
  VARIABLES.reduce((text, [variable, value]) => text.replaceAll(variable, value), expr);

function answers(): string {
  const series = [...METRICS.values()].flatMap((metric) => seriesOf(metric));
  const test = {
    interval: "1m",
    input_series: series.map((text) => ({
      series: text.replace("{", '{job="tslab",instance="a:1",').replace(",}", "}"),
      values: `1+1x${MINUTES}`,
    })),
    // Only what gives an answer is not absent.
    promql_expr_test: DASHBOARDS.flatMap(({ panels }) => panels)
      .flatMap(({ targets = [] }) => targets)
      .map(({ expr }) => ({ expr: `absent(${expanded(expr)})`, eval_time: `${MINUTES}m` })),
  };
  return JSON.stringify({ rule_files: [], evaluation_interval: "1m", tests: [test] }, null, 1);
}

console.log(process.argv[2] === "metrics" ? scrape() : answers());
