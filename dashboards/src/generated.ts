// generated: the dashboards as they are committed, as far as the checks look into them.
import { readdirSync } from "node:fs";
import { readText, ROOT } from "./metrics.js";

export interface Target {
  readonly refId: string;
  readonly expr: string;
  readonly legendFormat?: string;
  readonly datasource: { readonly uid: string };
}

export interface Override {
  readonly properties: readonly { readonly id: string; readonly value: unknown }[];
}

export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly datasource?: { readonly uid: string };
  readonly fieldConfig?: {
    readonly defaults: { readonly unit?: string };
    readonly overrides: readonly Override[];
  };
  readonly targets?: readonly Target[];
}

export interface Variable {
  readonly type: string;
  readonly name: string;
  readonly label: string;
  readonly query: string;
  readonly datasource?: { readonly uid: string };
  readonly multi: boolean;
  readonly allValue?: string;
  readonly refresh?: number;
}

export interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly editable: boolean;
  readonly templating: { readonly list: readonly Variable[] };
  readonly panels: readonly Panel[];
}

export const FILES = readdirSync(new URL("generated", ROOT));
export const DASHBOARDS = FILES.map(
  (file) => JSON.parse(readText(`generated/${file}`)) as Dashboard,
);
