// frame: what all dashboards share: name, variables, links, rows.
import * as dashboard from "@grafana/grafana-foundation-sdk/dashboard";
import { DATASOURCE, type Panel } from "./panels.js";

const TAG = "tslab";

export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

export interface Frame {
  readonly uid: string;
  readonly title: string;
  readonly description: string;
  /** Label and query of the variables that come after datasource, job and instance. */
  readonly variables: readonly [name: string, query: string][];
  readonly rows: readonly Row[];
}

const capitalised = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

/** Several values may be chosen; all of them at first. */
function variable(name: string, query: string): dashboard.QueryVariableBuilder {
  return new dashboard.QueryVariableBuilder(name)
    .label(capitalised(name))
    .datasource(DATASOURCE)
    .query(query)
    .refresh(dashboard.VariableRefresh.OnTimeRangeChanged)
    .sort(dashboard.VariableSort.AlphabeticalAsc)
    .multi(true)
    .includeAll(true)
    .allValue(".+")
    .current({ selected: true, text: ["All"], value: ["$__all"] });
}

function linkToOthers(): dashboard.DashboardLinkBuilder {
  return new dashboard.DashboardLinkBuilder("tslab")
    .type(dashboard.DashboardLinkType.Dashboards)
    .tags([TAG])
    .asDropdown(false)
    .includeVars(true)
    .keepTime(true);
}

/** Without defaults that the SDK writes and Grafana's schema no longer knows in these places. */
function tidied(built: dashboard.Dashboard): dashboard.Dashboard {
  for (const model of built.templating?.list ?? []) {
    for (const name of ["auto", "auto_min", "auto_count"] as const) delete model[name];
  }
  for (const panel of built.panels ?? []) {
    if (panel.type === "table" && "options" in panel) delete panel.options.footer;
  }
  return built;
}

export function build(frame: Frame): dashboard.Dashboard {
  const builder = new dashboard.DashboardBuilder(frame.title)
    .uid(frame.uid)
    .description(frame.description)
    .tags([TAG, "memory"])
    .readonly()
    .time({ from: "now-3h", to: "now" })
    .timezone("browser")
    .refresh("1m")
    .tooltip(dashboard.DashboardCursorSync.Crosshair)
    .link(linkToOthers())
    .withVariable(
      new dashboard.DatasourceVariableBuilder("datasource").label("Data source").type("prometheus"),
    )
    .withVariable(variable("job", "label_values(tslab_build_info, job)"))
    .withVariable(variable("instance", 'label_values(tslab_build_info{job=~"$job"}, instance)'));
  for (const [name, query] of frame.variables) builder.withVariable(variable(name, query));
  let id = 0;
  for (const { title, panels } of frame.rows) {
    builder.withRow(new dashboard.RowBuilder(title).id(++id));
    for (const panel of panels) builder.withPanel(panel.id(++id));
  }
  return tidied(builder.build());
}
