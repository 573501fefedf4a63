// metrics: what the exporter serves, as ../metrics.json promises it.
import { readFileSync } from "node:fs";

export interface Metric {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  /** The last word of the name where that is a unit, as OpenMetrics wants it; else empty. */
  readonly unit: string;
  readonly help: string;
  /** Besides job and instance, which the scrape adds. */
  readonly labels: readonly string[];
}

/** The folder that holds metrics.json and all else that is no program. */
export const ROOT = new URL("../", import.meta.url);

export const readText = (path: string): string => readFileSync(new URL(path, ROOT), "utf8");

export const METRICS = new Map(
  (JSON.parse(readText("metrics.json")) as Metric[]).map((metric) => [metric.name, metric]),
);

/** The metric that a series belongs to: those of a histogram have names of their own. */
export function metricOf(series: string): Metric | undefined {
  const histogram = METRICS.get(series.replace(/_(bucket|sum|count)$/, ""));
  return METRICS.get(series) ?? (histogram?.type === "histogram" ? histogram : undefined);
}
