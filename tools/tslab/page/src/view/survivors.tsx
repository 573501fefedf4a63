// survivors: closed epochs that objects outlived.
import type { JSX } from "preact";
import { useState } from "preact/hooks";

import type { Leak, Leaks } from "../api/answers.js";
import type { Model } from "../live/model.js";
import type { Watched } from "../live/watched.js";
import type { Order } from "../model/epochs.js";
import { hashOfEpoch } from "../model/route.js";
import {
  classesOfLeaks,
  isAlarming,
  isShared,
  leaksOfClass,
  leakSum,
  orderedLeaks,
  partsText,
  sharedAlarmText,
  sharedText,
  type ClassChoice,
  type LeakColumn,
} from "../model/survivors.js";
import { age, bytes, count, label, NOT_KNOWN, number } from "../model/text.js";
import { Bar, Choice, ClassPick, Empty, Name, Panel } from "./fragments.js";
import { useKept } from "./kept.js";
import { Outside } from "./outside.js";
import { GrowthLine, Site } from "./site.js";
import { classesOf, Table, type Column } from "./table.js";

const COLUMNS: readonly Column<LeakColumn>[] = [
  { key: "label", name: "epoch" },
  { key: "bytes", name: "bytes", isFigure: true, falling: true },
  { key: "objects", name: "objects", isFigure: true, falling: true, isMinor: true },
  { key: "pages", name: "pages", isFigure: true, falling: true, isMinor: true },
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
      {watched.leaks === null ? (
        <Empty>Not known.</Empty>
      ) : (
        <>
          <Survivors handle={watched.handle} told={watched.leaks} size={size} />
          <Outside watched={watched} leaks={watched.leaks} />
        </>
      )}
    </Panel>
  );
}

interface SurvivorsProps {
  readonly handle: string;
  readonly told: Leaks;
  readonly size: ClassChoice;
}

function Survivors({ handle, told, size }: SurvivorsProps): JSX.Element {
  const [order, sort] = useKept<Order<LeakColumn>>("survivors.order", BY_BYTES);
  const [isWhole, showWhole] = useState(false);
  const { after_ms } = told;
  const leaks = leaksOfClass(told.leaks, size);
  if (leaks.length === 0) {
    const which = size === undefined ? "" : " of this size class";
    return (
      <Empty>
        No epoch closed for longer than {age(after_ms)} has survivors{which}.
      </Empty>
    );
  }
  const shown = orderedLeaks(leaks, order).slice(0, isWhole ? MOST_ROWS : FEW_ROWS);
  const sharedAlarm = sharedAlarmText(leaks);
  const most = leaks.reduce((most, leak) => Math.max(most, leak.bytes ?? 0), 0);
  return (
    <>
      {!leaks.some(isAlarming) ? null : <p class="verdict alarm">{sumText(leaks)}</p>}
      {sharedAlarm === "" ? null : <p class="verdict alarm">{sharedAlarm}</p>}
      <Table name="Survivors" columns={COLUMNS} order={order} sort={sort}>
        {shown.map((leak, index) => (
          <Row key={leak.id} leak={leak} handle={handle} most={most} isFirst={index === 0} />
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
  readonly handle: string;
  readonly most: number;
  readonly isFirst: boolean;
}

function Row({ leak, handle, most, isFirst }: RowProps): JSX.Element {
  const texts = [
    bytes(leak.bytes),
    number(leak.objects),
    number(leak.pinned_pages),
    isShared(leak) ? NOT_KNOWN : age(leak.for_ms),
  ];
  return (
    <tr>
      <th scope="row">
        <a href={hashOfEpoch(handle, leak.id)} data-row tabIndex={isFirst ? 0 : -1}>
          <Name>{label(leak.label, leak.epoch)}</Name>
        </a>
        <span class="about classes">
          {leak.epochs > 1 ? `${count(leak.epochs, "epoch")}: ` : null}
          {isShared(leak) ? sharedText(leak) : partsText(leak, 3)}
        </span>
        <Site stacks={leak.stacks} />
        <Site stacks={leak.younger_stacks} before="so far" />
        <GrowthLine growth={leak.growth} />
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
