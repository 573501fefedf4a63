// epochs: the epochs of a process: a chart of bytes against age, and a table, as a tree or by label.
import type { JSX } from "preact";

import type { Epoch } from "../api/answers.js";
import { Scatter } from "../chart/scatter.js";
import type { Model } from "../live/model.js";
import type { Watched } from "../live/watched.js";
import {
  byLabel,
  closedFor,
  isUnended,
  filtered,
  nameOf,
  orderedEpochs,
  type EpochColumn,
  type LabelColumn,
  type LabelSum,
  type Order,
} from "../model/epochs.js";
import { hashOfEpoch } from "../model/route.js";
import { age, bytes, number } from "../model/text.js";
import { Bar, Choice, Empty, Name, Panel } from "./fragments.js";
import { useKept } from "./kept.js";
import { classesOf, Table, type Column } from "./table.js";

type Mode = "tree" | "labels";

const MODES = [
  ["tree", "tree"],
  ["labels", "by label"],
] as const;

/** Nobody reads more rows: unless the reader chose the tree, more epochs are shown by label. */
const MOST_ROWS = 200;

interface PanelProps {
  readonly model: Model;
  readonly watched: Watched;
}

export function EpochsPanel({ model, watched }: PanelProps): JSX.Element {
  const [filter, setFilter] = useKept("epochs.filter", "");
  const [chosen, setMode] = useKept<Mode | null>("epochs.mode", null);
  const epochs = watched.epochs?.epochs ?? [];
  const mode = chosen ?? (epochs.length > MOST_ROWS ? "labels" : "tree");
  const tools = (
    <>
      <Filter text={filter} change={setFilter} />
      <Choice name="Epochs shown as" values={MODES} chosen={mode} choose={setMode} />
      <EndedSwitch model={model} />
    </>
  );
  return (
    <Panel title="Epochs" about={aboutText(epochs)} tools={tools} class="epochs">
      <Scatter epochs={filtered(epochs, filter, false)} handle={watched.handle} />
      {mode === "tree" ? (
        <EpochTable epochs={epochs} filter={filter} handle={watched.handle} />
      ) : (
        <LabelTable epochs={filtered(epochs, filter, false)} handle={watched.handle} />
      )}
    </Panel>
  );
}

function aboutText(epochs: readonly Epoch[]): string | undefined {
  if (epochs.length === 0) return undefined;
  const counted = epochs.filter(({ epoch }) => epoch !== 0);
  const of = (state: string): number => counted.filter((epoch) => epoch.state === state).length;
  const parts = [`${number(of("open"))} open`, `${number(of("closed"))} closed`];
  const seldom = ["released", "shared"].filter((state) => of(state) > 0);
  return [...parts, ...seldom.map((state) => `${number(of(state))} ${state}`)].join(", ");
}

interface FilterProps {
  readonly text: string;
  readonly change: (text: string) => void;
}

function Filter({ text, change }: FilterProps): JSX.Element {
  return (
    <input
      type="search"
      class="filter"
      aria-label="Filter epochs by label or state"
      placeholder="filter  /"
      value={text}
      onInput={(event) => change(event.currentTarget.value)}
      data-filter
    />
  );
}

function EndedSwitch({ model }: { readonly model: Model }): JSX.Element {
  const change = (isChecked: boolean): void => {
    model.showsEnded = isChecked;
    model.changed();
  };
  return (
    <label class="switch">
      <input
        type="checkbox"
        checked={model.showsEnded}
        onChange={(event) => change(event.currentTarget.checked)}
      />
      ended too
    </label>
  );
}

const COLUMNS: readonly Column<EpochColumn>[] = [
  { key: "label", name: "label" },
  { key: "state", name: "state" },
  { key: "held", name: "held", isFigure: true, falling: true },
  { key: "live", name: "live", isFigure: true, falling: true, isMinor: true },
  { key: "objects", name: "objects", isFigure: true, falling: true, isMinor: true },
  { key: "age", name: "age", isFigure: true, falling: true },
  { key: "closed", name: "closed for", isFigure: true, falling: true, isMinor: true },
];

const UNSORTED = { column: null, falling: false };

interface EpochTableProps {
  readonly epochs: readonly Epoch[];
  readonly filter: string;
  readonly handle: string;
}

function EpochTable({ epochs, filter, handle }: EpochTableProps): JSX.Element {
  const [order, sort] = useKept<Order<EpochColumn>>("epochs.order", UNSORTED);
  const isTree = order.column === null;
  const all = orderedEpochs(filtered(epochs, filter, isTree), order);
  const most = epochs.reduce((most, epoch) => Math.max(most, epoch.held_bytes ?? 0), 0);
  if (epochs.length === 0) return <Empty>No epochs are known.</Empty>;
  if (all.length === 0) return <Empty>No epoch has “{filter}” in its label or state.</Empty>;
  return (
    <>
      <Table name="Epochs" columns={COLUMNS} order={order} sort={sort} canUnsort>
        {all.slice(0, MOST_ROWS).map((epoch, index) => (
          <EpochRow
            key={epoch.id}
            epoch={epoch}
            handle={handle}
            most={most}
            depth={isTree ? epoch.depth : 0}
            isFirst={index === 0}
          />
        ))}
      </Table>
      <Rest shown={MOST_ROWS} of={all.length} />
    </>
  );
}

const Rest = ({
  shown,
  of,
}: {
  readonly shown: number;
  readonly of: number;
}): JSX.Element | null =>
  of <= shown ? null : (
    <p class="about">
      The first {number(shown)} of {number(of)}: filter, sort, or show them by label.
    </p>
  );

/** Deeper ones are indented no further. */
const MOST_INDENT = 8;

interface EpochRowProps {
  readonly epoch: Epoch;
  readonly handle: string;
  readonly most: number;
  readonly depth: number;
  readonly isFirst: boolean;
}

function EpochRow({ epoch, handle, most, depth, isFirst }: EpochRowProps): JSX.Element {
  const closed = closedFor(epoch);
  const cells = [
    <State key="state" epoch={epoch} />,
    bytes(epoch.held_bytes),
    bytes(epoch.live.bytes),
    number(epoch.live.objects),
    age(epoch.age_ms),
    isUnended(epoch) ? "" : age(closed),
  ];
  return (
    <tr class={epoch.state ?? ""}>
      <th
        scope="row"
        style={{ paddingInlineStart: `${0.6 + 1.1 * Math.min(depth, MOST_INDENT)}rem` }}
      >
        <a href={hashOfEpoch(handle, epoch.id)} data-row tabIndex={isFirst ? 0 : -1}>
          <Name>{nameOf(epoch)}</Name>
        </a>
      </th>
      {COLUMNS.slice(1).map((column, index) => (
        <td
          key={column.name}
          class={`${classesOf(column)} ${column.key === "held" ? "barred" : ""}`}
        >
          {column.key === "held" ? <Bar part={(epoch.held_bytes ?? 0) / (most || 1)} /> : null}
          <span>{cells[index]}</span>
        </td>
      ))}
    </tr>
  );
}

const SHARED_TEXT = "Epochs of the label lie here side by side. It never ends.";

/** The shape says what the colour says. */
export const State = ({ epoch }: { readonly epoch: Epoch }): JSX.Element => (
  <span
    class={`state ${epoch.state ?? "unknown"}`}
    title={epoch.state === "shared" ? SHARED_TEXT : undefined}
  >
    {epoch.state ?? "–"}
  </span>
);

const LABEL_COLUMNS: readonly Column<LabelColumn>[] = [
  { key: "name", name: "label" },
  { key: "epochs", name: "epochs", isFigure: true, falling: true },
  { key: "held", name: "held", isFigure: true, falling: true },
  { key: "live", name: "live", isFigure: true, falling: true, isMinor: true },
  { key: "objects", name: "objects", isFigure: true, falling: true, isMinor: true },
  { key: "oldest", name: "oldest", isFigure: true, falling: true },
];

const BY_HELD: Order<LabelColumn> = { column: "held", falling: true };

interface LabelTableProps {
  readonly epochs: readonly Epoch[];
  readonly handle: string;
}

function LabelTable({ epochs, handle }: LabelTableProps): JSX.Element {
  const [order, sort] = useKept<Order<LabelColumn>>("labels.order", BY_HELD);
  const sums = byLabel(epochs, order);
  const most = sums.reduce((most, sum) => Math.max(most, sum.held ?? 0), 0);
  if (sums.length === 0) return <Empty>No epoch matches.</Empty>;
  return (
    <>
      <Table name="Epochs by label" columns={LABEL_COLUMNS} order={order} sort={sort}>
        {sums.slice(0, MOST_ROWS).map((sum, index) => (
          <LabelRow key={sum.name} sum={sum} handle={handle} most={most} isFirst={index === 0} />
        ))}
      </Table>
      <Rest shown={MOST_ROWS} of={sums.length} />
    </>
  );
}

interface LabelRowProps {
  readonly sum: LabelSum;
  readonly handle: string;
  readonly most: number;
  readonly isFirst: boolean;
}

function LabelRow({ sum, handle, most, isFirst }: LabelRowProps): JSX.Element {
  const cells = [
    number(sum.epochs),
    bytes(sum.held),
    bytes(sum.live),
    number(sum.objects),
    age(sum.oldest),
  ];
  return (
    <tr>
      <th scope="row">
        <a
          href={hashOfEpoch(handle, sum.largest.id)}
          title="The largest epoch of this label"
          data-row
          tabIndex={isFirst ? 0 : -1}
        >
          <Name>{sum.name}</Name>
        </a>
      </th>
      {LABEL_COLUMNS.slice(1).map((column, index) => (
        <td
          key={column.name}
          class={`${classesOf(column)} ${column.key === "held" ? "barred" : ""}`}
        >
          {column.key === "held" ? <Bar part={(sum.held ?? 0) / (most || 1)} /> : null}
          <span>{cells[index]}</span>
        </td>
      ))}
    </tr>
  );
}
