// panels: the kinds of panel that the dashboards are made of, each with all that a reader needs.
import type { Builder } from "@grafana/grafana-foundation-sdk/cog";
import * as common from "@grafana/grafana-foundation-sdk/common";
import * as dashboard from "@grafana/grafana-foundation-sdk/dashboard";
import {
  PanelBuilder as HeatmapBuilder,
  YAxisConfigBuilder,
} from "@grafana/grafana-foundation-sdk/heatmap";
import * as prometheus from "@grafana/grafana-foundation-sdk/prometheus";
import { PanelBuilder as StatBuilder } from "@grafana/grafana-foundation-sdk/stat";
import { PanelBuilder as TableBuilder } from "@grafana/grafana-foundation-sdk/table";
import { PanelBuilder as ChartBuilder } from "@grafana/grafana-foundation-sdk/timeseries";

export const DATASOURCE = { type: "prometheus", uid: "${datasource}" };

/** Of 24 columns. */
const WIDTH = { stat: 4, chart: 12, table: 24 };
const HEIGHT = { stat: 4, chart: 8, table: 9 };

export interface About {
  readonly title: string;
  readonly description: string;
  readonly unit: string;
}

export interface Line {
  readonly expr: string;
  readonly legend: string;
}

export interface Column {
  readonly name: string;
  readonly unit: string;
  readonly expr: string;
}

type Steps = readonly [colour: string, from: number | null][];

/** The state that needs no attention, and where attention begins. */
export const steps = (warn: number, alarm: number): Steps => [
  ["green", null],
  ["orange", warn],
  ["red", alarm],
];
export const anyIsBad: Steps = [
  ["green", null],
  ["red", 0.001],
];
const PLAIN: Steps = [["text", null]];

function thresholds(of: Steps): dashboard.ThresholdsConfigBuilder {
  return new dashboard.ThresholdsConfigBuilder()
    .mode(dashboard.ThresholdsMode.Absolute)
    .steps(of.map(([color, value]) => ({ color, value })));
}

function query(expr: string, index: number): prometheus.DataqueryBuilder {
  return new prometheus.DataqueryBuilder()
    .refId(String.fromCharCode("A".charCodeAt(0) + index))
    .datasource(DATASOURCE)
    .editorMode(prometheus.QueryEditorMode.Code)
    .expr(expr);
}

/** One figure with its recent course. */
export function stat(about: About, expr: string, of: Steps = PLAIN): StatBuilder {
  return new StatBuilder()
    .title(about.title)
    .description(about.description)
    .unit(about.unit)
    .datasource(DATASOURCE)
    .height(HEIGHT.stat)
    .span(WIDTH.stat)
    .reduceOptions(new common.ReduceDataOptionsBuilder().calcs(["lastNotNull"]).values(false))
    .colorMode(common.BigValueColorMode.Value)
    .graphMode(common.BigValueGraphMode.Area)
    .thresholds(thresholds(of))
    .withTarget(query(expr, 0).range());
}

/** Courses over time; the legend ranks them by their last value. */
export function chart(about: About, ...lines: Line[]): ChartBuilder {
  const panel = new ChartBuilder()
    .title(about.title)
    .description(about.description)
    .unit(about.unit)
    .datasource(DATASOURCE)
    .height(HEIGHT.chart)
    .span(WIDTH.chart)
    .min(0)
    .fillOpacity(8)
    .showPoints(common.VisibilityMode.Never)
    .thresholds(thresholds(PLAIN))
    .legend(
      new common.VizLegendOptionsBuilder()
        .displayMode(common.LegendDisplayMode.Table)
        .placement(common.LegendPlacement.Bottom)
        .showLegend(true)
        .calcs(["lastNotNull", "max"])
        .sortBy("Last *")
        .sortDesc(true),
    )
    .tooltip(
      new common.VizTooltipOptionsBuilder()
        .mode(common.TooltipDisplayMode.Multi)
        .sort(common.SortOrder.Descending),
    );
  lines.forEach(({ expr, legend }, index) =>
    panel.withTarget(query(expr, index).range().legendFormat(legend)),
  );
  return panel;
}

export const stacked = (panel: ChartBuilder): ChartBuilder =>
  panel
    .fillOpacity(30)
    .stacking(new common.StackingConfigBuilder().mode(common.StackingMode.Normal).group("A"));

/** A chart with a dashed line where attention begins. */
export const limited = (panel: ChartBuilder, from: number): ChartBuilder =>
  panel
    .thresholds(
      thresholds([
        ["transparent", null],
        ["red", from],
      ]),
    )
    .thresholdsStyle(
      new common.GraphThresholdsStyleConfigBuilder().mode(common.GraphThresholdsStyleMode.Dashed),
    );

/** How many fall into each bucket of a histogram, over time. */
export function heatmap(about: About, buckets: string): HeatmapBuilder {
  return new HeatmapBuilder()
    .title(about.title)
    .description(about.description)
    .unit("short")
    .datasource(DATASOURCE)
    .height(HEIGHT.chart)
    .span(WIDTH.chart)
    .calculate(false)
    .yAxis(new YAxisConfigBuilder().unit(about.unit))
    .withTarget(
      query(buckets, 0).range().format(prometheus.PromQueryFormat.Heatmap).legendFormat("{{le}}"),
    );
}

/** What holds now: a row for each set of `keys`, ranked by the first column. */
export function table(
  about: Omit<About, "unit">,
  keys: readonly string[],
  ...columns: [Column, ...Column[]]
): TableBuilder {
  const values = columns.map((_, index) => `Value #${String.fromCharCode(65 + index)}`);
  const panel = new TableBuilder()
    .title(about.title)
    .description(about.description)
    .unit("none")
    .datasource(DATASOURCE)
    .height(HEIGHT.table)
    .span(WIDTH.table)
    .filterable(true)
    .cellOptions({ type: common.TableCellDisplayMode.Auto })
    .thresholds(thresholds(PLAIN))
    .sortBy([new common.TableSortByFieldStateBuilder().displayName(columns[0].name).desc(true)])
    .withTransformation({ id: "merge", options: {} })
    .withTransformation({
      id: "organize",
      options: {
        excludeByName: { Time: true },
        indexByName: Object.fromEntries([...keys, ...values].map((name, index) => [name, index])),
        renameByName: Object.fromEntries(columns.map(({ name }, index) => [values[index], name])),
      },
    });
  columns.forEach(({ name, unit, expr }, index) =>
    panel
      .withTarget(query(expr, index).instant().format(prometheus.PromQueryFormat.Table))
      .overrideByName(name, [{ id: "unit", value: unit }]),
  );
  return panel;
}

export type Panel = Builder<dashboard.Panel> & { id(id: number): Panel };
