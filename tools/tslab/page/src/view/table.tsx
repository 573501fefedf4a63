// table: rows of figures with headings that sort and links that the arrow keys walk through.
import type { ComponentChildren, JSX, TargetedKeyboardEvent } from "preact";

import type { Order } from "../model/epochs.js";

export interface Column<Key extends string> {
  readonly key: Key | null;
  readonly name: string;
  /** Figures end below each other. */
  readonly isFigure?: boolean;
  /** The order that the first click gives. */
  readonly falling?: boolean;
  /** Left out where there is little room. */
  readonly isMinor?: boolean;
}

interface TableProps<Key extends string> {
  readonly name: string;
  readonly columns: readonly Column<Key>[];
  readonly order: Order<Key>;
  readonly sort: (order: Order<Key>) => void;
  /** A third click on a heading gives up sorting. */
  readonly canUnsort?: boolean;
  readonly children: ComponentChildren;
}

export function Table<Key extends string>(props: TableProps<Key>): JSX.Element {
  return (
    <div class="scroll">
      <table aria-label={props.name} onKeyDown={walk}>
        <thead>
          <tr>
            {props.columns.map((column) => (
              <Heading key={column.name} column={column} table={props} />
            ))}
          </tr>
        </thead>
        <tbody>{props.children}</tbody>
      </table>
    </div>
  );
}

interface HeadingProps<Key extends string> {
  readonly column: Column<Key>;
  readonly table: TableProps<Key>;
}

function Heading<Key extends string>({ column, table }: HeadingProps<Key>): JSX.Element {
  const classes = classesOf(column);
  const { key } = column;
  if (key === null) {
    return (
      <th scope="col" class={classes}>
        {column.name}
      </th>
    );
  }
  const { order } = table;
  const isSorted = order.column === key;
  const direction = order.falling ? "descending" : "ascending";
  return (
    <th scope="col" class={classes} aria-sort={isSorted ? direction : "none"}>
      <button type="button" onClick={() => table.sort(nextOrder(column, table))}>
        {column.name}
        <span class="arrow" aria-hidden="true">
          {isSorted ? (order.falling ? "↓" : "↑") : ""}
        </span>
      </button>
    </th>
  );
}

export const classesOf = <Key extends string>(column: Column<Key>): string =>
  `${column.isFigure === true ? "figure" : ""} ${column.isMinor === true ? "minor" : ""}`.trim();

function nextOrder<Key extends string>(
  { key, falling = false }: Column<Key>,
  { order, canUnsort = false }: TableProps<Key>,
): Order<Key> {
  if (order.column !== key) return { column: key, falling };
  if (canUnsort && order.falling !== falling) return { column: null, falling: false };
  return { column: key, falling: !order.falling };
}

const STEPS: Readonly<Record<string, number>> = {
  ArrowDown: 1,
  ArrowUp: -1,
  PageDown: 10,
  PageUp: -10,
  Home: -Infinity,
  End: Infinity,
};

/** Moves the focus among the `data-row` elements of a list or table. */
export function walk(event: TargetedKeyboardEvent<HTMLElement>): void {
  const step = STEPS[event.key];
  if (step === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
  const rows = [...event.currentTarget.querySelectorAll<HTMLElement>("[data-row]")];
  const at = rows.findIndex((row) => row === document.activeElement);
  if (at < 0) return;
  event.preventDefault();
  rows[Math.max(0, Math.min(rows.length - 1, at + step))]?.focus();
}
