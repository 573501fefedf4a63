// parse: what stands in a PromQL expression, by Prometheus's own grammar for editors.
import type { SyntaxNode } from "@lezer/common";
import { parser } from "@prometheus-io/lezer-promql";

export interface Selector {
  readonly series: string;
  /** As written: `job=~"$job"`. */
  readonly matchers: readonly string[];
  /** The labels in the matchers. */
  readonly labels: readonly string[];
  /** Of a range selector, as written; else empty. */
  readonly range: string;
  /** The function that it is the argument of, or empty. */
  readonly called: string;
}

export interface Parsed {
  /** Where the grammar does not fit. */
  readonly errors: readonly string[];
  readonly selectors: readonly Selector[];
  /** The labels of every by (...), on (...) and the like. */
  readonly grouping: readonly string[];
}

/** Stand-ins of the same length for Grafana's own durations, which no grammar knows. */
const DURATIONS = /\$__(?:rate_interval|range)\b/g;
const standIn = (name: string): string => "1m".padStart(name.length, "0");

function ancestor(node: SyntaxNode, name: string): SyntaxNode | null {
  let above = node.parent;
  while (above !== null && above.name !== name) above = above.parent;
  return above;
}

export function parse(written: string): Parsed {
  const errors: string[] = [];
  const selectors: Selector[] = [];
  const grouping: string[] = [];
  const text = (node: SyntaxNode | null): string =>
    node === null ? "" : written.slice(node.from, node.to);

  function selector(node: SyntaxNode): Selector {
    const matchers = node.getChild("LabelMatchers")?.getChildren("UnquotedLabelMatcher") ?? [];
    const matrix = node.parent?.name === "MatrixSelector" ? node.parent : null;
    const holder = matrix ?? node;
    const call =
      holder.parent?.name === "FunctionCallBody" ? ancestor(holder, "FunctionCall") : null;
    return {
      series: text(node.getChild("Identifier")),
      matchers: matchers.map(text),
      labels: matchers.map((matcher) => text(matcher.getChild("LabelName"))),
      range: matrix === null ? "" : written.slice(node.to + 1, matrix.to - 1),
      called: text(call?.getChild("FunctionIdentifier") ?? null),
    };
  }

  parser.parse(written.replace(DURATIONS, standIn)).iterate({
    enter({ node }) {
      if (node.type.isError) errors.push(`at ${node.from}: ${written.slice(node.from)}`);
      if (node.name === "VectorSelector") selectors.push(selector(node));
      if (node.name === "GroupingLabels") grouping.push(...node.getChildren("LabelName").map(text));
    },
  });
  return { errors, selectors, grouping };
}
