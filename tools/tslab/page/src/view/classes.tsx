// classes: the size classes of a process, and every figure that it tells of itself.
import type { JSX } from "preact";

import type { SizeClass, Stats } from "../api/answers.js";
import { classBytes, fill, usedClasses } from "../model/figures.js";
import { bytes, number, percent, printable } from "../model/text.js";
import { Bar, Empty, Panel } from "./fragments.js";

export function ClassesPanel({ stats }: { readonly stats: Stats }): JSX.Element {
  const classes = usedClasses(stats);
  const most = classes.reduce((most, one) => Math.max(most, classBytes(one) ?? 0), 0);
  return (
    <Panel title="Size classes" about="Objects in slabs, and those that outlived their epochs.">
      {classes.length === 0 ? <Empty>{emptyText(stats)}</Empty> : null}
      <div class="scroll" hidden={classes.length === 0}>
        <table aria-label="Size classes">
          <thead>
            <tr>
              <th scope="col" class="figure">
                class
              </th>
              <th scope="col" class="figure">
                live
              </th>
              <th scope="col" class="figure">
                objects
              </th>
              <th scope="col" class="figure minor">
                at hand
              </th>
              <th scope="col" class="figure minor">
                slabs
              </th>
              <th scope="col" class="figure">
                in use
              </th>
              <th scope="col" class="figure minor">
                opened
              </th>
              <th scope="col" class="figure minor">
                allocations
              </th>
            </tr>
          </thead>
          <tbody>
            {classes.map((one, index) => (
              <ClassRow key={one.bytes ?? `unknown ${index}`} one={one} most={most} />
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

const emptyText = (stats: Stats): string =>
  stats.classes.length === 0
    ? "The process does not tell of its size classes."
    : "No size class is in use.";

function ClassRow({ one, most }: { readonly one: SizeClass; readonly most: number }): JSX.Element {
  const live = classBytes(one);
  return (
    <tr>
      <th scope="row" class="figure">
        {one.bytes === null ? number(null) : `${number(one.bytes)} B`}
      </th>
      <td class="figure barred">
        <Bar part={live === null || most === 0 ? null : live / most} tone="live" />
        <span>{bytes(live)}</span>
      </td>
      <td class="figure">{number(one.live)}</td>
      <td class="figure minor">{number(one.hot)}</td>
      <td class="figure minor">{number(one.slabs)}</td>
      <td class="figure">{percent(fill(one))}</td>
      <td class="figure minor">{number(one.opened)}</td>
      <td class="figure minor">{number(one.allocations)}</td>
    </tr>
  );
}

/** Fields under their own names, with those that this page does not know. */
export function FiguresPanel({ stats }: { readonly stats: Stats }): JSX.Element {
  const figures = Object.entries(stats.process);
  return (
    <details class="panel figures">
      <summary>All that the process tells of itself</summary>
      <dl>
        {figures.map(([name, value]) => (
          <div key={name}>
            <dt>
              <code>{printable(name)}</code>
            </dt>
            <dd>{name.endsWith("_bytes") ? bytes(value) : number(value)}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
