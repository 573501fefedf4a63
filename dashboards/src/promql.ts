// promql: expressions over metrics that exist, narrowed by the dashboard's variables.
import { metricOf } from "./metrics.js";

/** The variable that chooses among a label's values. */
const VARIABLES: Readonly<Record<string, string>> = {
  job: "job",
  instance: "instance",
  process: "process",
  epoch: "epoch",
  handler: "epoch",
};

/** What tells one process from another. */
export const PROCESS = ["instance", "process", "pid"];
export const PROCESS_LEGEND = "{{instance}} {{process}} {{pid}}";

/** A metric's series, those alone that these labels' variables choose. */
function chosen(name: string, isWanted: (label: string) => boolean, matchers: string[]): string {
  const metric = metricOf(name);
  if (metric === undefined) throw new Error(`${name} is not in metrics.json`);
  const by = ["job", "instance", ...metric.labels].filter(isWanted).flatMap((label) => {
    const variable = VARIABLES[label];
    return variable === undefined ? [] : [`${label}=~"$${variable}"`];
  });
  return `${name}{${[...by, ...matchers].join(", ")}}`;
}

/** A metric's series, those alone that the variables choose. */
export const series = (name: string, ...matchers: string[]): string =>
  chosen(name, () => true, matchers);

/** The same of all epochs' labels: two metrics have different ones in `other`. */
export const ofAllEpochs = (name: string): string =>
  chosen(name, (label) => VARIABLES[label] !== "epoch", []);

export const rate = (counter: string): string => `rate(${series(counter)}[$__rate_interval])`;

/** Growth of a counter over what the dashboard shows. */
export const increase = (counter: string): string => `increase(${series(counter)}[$__range])`;

export const sum = (expression: string, ...by: string[]): string =>
  by.length === 0 ? `sum(${expression})` : `sum by (${by.join(", ")}) (${expression})`;

export const top = (expression: string): string => `topk(10, ${expression})`;
