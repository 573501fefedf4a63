// survivors: closed epochs that objects outlived.
import type { JSX } from "preact";
import { useState } from "preact/hooks";

import type { Leak } from "../api/answers.js";
import type { Model } from "../live/model.js";
import type { Watched } from "../live/watched.js";
import type { Order } from "../model/epochs.js";
import { hashOfEpoch } from "../model/route.js";
import {
  classesOfLeaks,
  growthText,
  isAlarming,
  isShared,
  leaksOfClass,
  leakSum,
  orderedLeaks,
  partsText,
  placeOf,
  sharedText,
  topStack,
  type ClassChoice,
  type LeakColumn,
} from "../model/survivors.js";
import { age, bytes, count, label, number, printable } from "../model/text.js";
import { Bar, Choice, ClassPick, Empty, Name, Panel } from "./fragments.js";
import { useKept } from "./kept.js";
import { classesOf, Table, type Column } from "./table.js";

const COLUMNS: readonly Column<LeakColumn>[] = [
  { key: "label", name: "epoch" },
  { key: "bytes", name: "bytes", isFigure: true, falling: true },
  { key: "objects", name: "objects", isFigure: true, falling: true, isMinor: true },
  { key: "pages", name: "pins", isFigure: true, falling: true, isMinor: true },
  { key: "closed", name: "closed", isFigure: true, falling: true },
];

const AFTER = [
  [0, "any"],
  [10, "10 s"],
  [60, "60 s"],
  [600, "10 min"],
] as const;

const BY_BYTES: Order<LeakColumn> = { column: "bytes", falling: true };

const FEW_ROWS = 12;
const MOST_ROWS = 500;

interface PanelProps {
  readonly model: Model;
  readonly watched: Watched;
}

export function SurvivorsPanel({ model, watched }: PanelProps): JSX.Element {
  const [size, chooseSize] = useKept<ClassChoice>("survivors.class", undefined);
  const choose = (seconds: number): void => {
    model.afterSeconds = seconds;
    model.changed();
  };
  return (
    <Panel
      title="Survivors"
      about="Objects that live on in epochs closed for longer than"
      tools={
        <>
          <Choice
            name="Closed for longer than"
            values={AFTER}
            chosen={model.afterSeconds}
            choose={choose}
          />
          <ClassPick
            name="Size class of survivors"
            classes={classesOfLeaks(watched.leaks?.leaks ?? [])}
            chosen={size}
            choose={chooseSize}
          />
        </>
      }
      class="survivors"
    >
      <Survivors watched={watched} size={size} />
    </Panel>
  );
}

interface SurvivorsProps {
  readonly watched: Watched;
  readonly size: ClassChoice;
}

function Survivors({ watched, size }: SurvivorsProps): JSX.Element {
  const [order, sort] = useKept<Order<LeakColumn>>("survivors.order", BY_BYTES);
  const [isWhole, showWhole] = useState(false);
  if (watched.leaks === null) return <Empty>Not known.</Empty>;
  const { after_ms } = watched.leaks;
  const leaks = leaksOfClass(watched.leaks.leaks, size);
  if (leaks.length === 0) {
    const which = size === undefined ? "" : " of this size class";
    return (
      <Empty>
        No epoch closed for longer than {age(after_ms)} has survivors{which}.
      </Empty>
    );
  }
  const shown = orderedLeaks(leaks, order).slice(0, isWhole ? MOST_ROWS : FEW_ROWS);
  const most = leaks.reduce((most, leak) => Math.max(most, leak.bytes ?? 0), 0);
  return (
    <>
      {!leaks.some(isAlarming) ? null : <p class="verdict alarm">{sumText(leaks)}</p>}
      <Table name="Survivors" columns={COLUMNS} order={order} sort={sort}>
        {shown.map((leak, index) => (
          <Row key={leak.id} leak={leak} pid={watched.pid} most={most} isFirst={index === 0} />
        ))}
      </Table>
      {leaks.length > FEW_ROWS ? (
        <button type="button" class="more" onClick={() => showWhole(!isWhole)}>
          {isWhole ? "Show the first only" : moreText(leaks.length)}
        </button>
      ) : null}
    </>
  );
}

const moreText = (leaks: number): string =>
  leaks > MOST_ROWS ? `Show ${number(MOST_ROWS)} of ${number(leaks)}` : `Show all ${number(leaks)}`;

function sumText(leaks: readonly Leak[]): string {
  const sum = leakSum(leaks);
  const what = `${count(sum.objects, "object")} of ${bytes(sum.bytes)}`;
  const where = `${what} in ${count(sum.epochs, "closed epoch")}`;
  return sum.held === null
    ? `${where}.`
    : `${where} ${sum.objects === 1 ? "holds" : "hold"} ${bytes(sum.held)}.`;
}

interface RowProps {
  readonly leak: Leak;
  readonly pid: number;
  readonly most: number;
  readonly isFirst: boolean;
}

function Row({ leak, pid, most, isFirst }: RowProps): JSX.Element {
  const texts = [
    bytes(leak.bytes),
    number(leak.objects),
    count(leak.pinned_pages, "page"),
    age(leak.for_ms),
  ];
  return (
    <tr>
      <th scope="row">
        <a href={hashOfEpoch(pid, leak.id)} data-row tabIndex={isFirst ? 0 : -1}>
          <Name>{label(leak.label, leak.epoch)}</Name>
        </a>
        <span class="about classes">
          {leak.epochs > 1 ? `${count(leak.epochs, "epoch")}: ` : null}
          {isShared(leak) ? sharedText(leak) : partsText(leak, 3)}
        </span>
        <Site leak={leak} />
        <Growth leak={leak} />
      </th>
      {COLUMNS.slice(1).map((column, index) => (
        <td key={column.name} class={`${classesOf(column)} ${index === 0 ? "barred" : ""}`}>
          {index === 0 ? <Bar part={(leak.bytes ?? 0) / (most || 1)} tone="alarm" /> : null}
          <span>{texts[index]}</span>
        </td>
      ))}
    </tr>
  );
}

/** Who allocated most of them. */
function Site({ leak }: { readonly leak: Leak }): JSX.Element | null {
  const top = topStack(leak);
  const call = top?.calls[0];
  if (top === undefined || call === undefined) return null;
  const callers = top.calls.map((one) => `${printable(one.function)} ${placeOf(one)}`.trim());
  const others = leak.stacks.length - 1;
  return (
    <span class="site" title={callers.join("\n← ")}>
      <code>
        <Name>{printable(call.function)}</Name>
      </code>{" "}
      <span class="about">
        {placeOf(call)}
        {others > 0 ? ` and ${count(others, "other stack")}` : null}
      </span>
    </span>
  );
}

function Growth({ leak }: { readonly leak: Leak }): JSX.Element | null {
  const text = growthText(leak.growth);
  if (text === "") return null;
  return <span class={`growth ${leak.growth?.verdict ?? ""}`}>{text}</span>;
}
