// schema: print a TypeScript module that compiles only while the dashboards keep Grafana's schema.
//
// Grafana publishes the schema as types (@grafana/schema). Written out as literals, the dashboards
// are held to it to the last property: names, values of enumerations, what must not be missing.
import { DASHBOARDS } from "./generated.js";

const PREAMBLE = `
import type * as grafana from "@grafana/schema";
import type * as heatmap from
  "@grafana/schema/dist/esm/raw/composable/heatmap/panelcfg/x/HeatmapPanelCfg_types.gen";
import type * as stat from
  "@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen";
import type * as table from
  "@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen";
import type * as timeseries from
  "@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen";
import type * as prometheus from "@grafana/grafana-foundation-sdk/prometheus";

// As JSON has it: the values of an enumeration of strings are strings.
type Plain<T> = unknown extends T ? T
  : T extends string ? \`\${T}\`
  : T extends number | boolean | null | undefined ? T
  : T extends readonly (infer Item)[] ? Plain<Item>[]
  : { [Key in keyof T]: Plain<T[Key]> };

type FieldConfig<Custom> = Omit<grafana.FieldConfig, "custom"> & { custom?: Custom };
type Target = Omit<prometheus.Dataquery, "_implementsDataqueryVariant">;
type Panel<Options, Custom> = Omit<grafana.Panel, "fieldConfig" | "options" | "targets"> & {
  fieldConfig: Omit<grafana.FieldConfigSource, "defaults"> & { defaults: FieldConfig<Custom> };
  options: Options;
  targets: Target[];
};

type Frame = Plain<Omit<grafana.Dashboard, "panels">>;
type Panels = {
  row: Plain<grafana.RowPanel>;
  heatmap: Plain<Panel<heatmap.Options, heatmap.FieldConfig>>;
  stat: Plain<Panel<stat.Options, {}>>;
  table: Plain<Panel<table.Options, table.FieldConfig>>;
  timeseries: Plain<Panel<timeseries.Options, timeseries.FieldConfig>>;
};
`;

console.log(PREAMBLE);
for (const { panels, ...frame } of DASHBOARDS) {
  console.log(`// ${frame.uid}\n((_: Frame) => {})(${JSON.stringify(frame)});`);
  for (const panel of panels) {
    console.log(`((_: Panels["${panel.type}"]) => {})(${JSON.stringify(panel)});`);
  }
}
