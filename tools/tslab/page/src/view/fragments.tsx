// fragments: small pieces that several views are made of.
import type { ComponentChildren, JSX } from "preact";

import type { Figure } from "../api/answers.js";
import { bytes, NOT_KNOWN } from "../model/text.js";

/** Longer names are cut off where there are many of them. */
const LONG_NAME = 60;

/** Text of another process: its reading direction ends with it. */
export const Name = ({ children }: { readonly children: string }): JSX.Element => (
  <bdi class="name" title={children.length > LONG_NAME ? children : undefined}>
    {children}
  </bdi>
);

interface TileProps {
  readonly name: string;
  readonly value: string;
  readonly about?: ComponentChildren;
  readonly tone?: "rss" | "live" | "alarm" | undefined;
}

/** A figure that is worth a look of its own. */
export const Tile = ({ name, value, about, tone }: TileProps): JSX.Element => (
  <div class={`tile ${tone ?? ""}`}>
    <dt>{name}</dt>
    <dd>
      <span class={value === NOT_KNOWN ? "value unknown" : "value"}>{value}</span>
      {about === undefined ? null : <span class="about">{about}</span>}
    </dd>
  </div>
);

interface PanelProps {
  readonly title: string;
  readonly about?: ComponentChildren;
  readonly tools?: ComponentChildren;
  readonly class?: string;
  readonly children: ComponentChildren;
}

export function Panel({ title, about, tools, class: more, children }: PanelProps): JSX.Element {
  const id = `panel-${title.toLowerCase().replace(/\W+/g, "-")}`;
  return (
    <section class={`panel ${more ?? ""}`} aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {about === undefined ? null : <p class="about">{about}</p>}
        {tools === undefined ? null : <div class="tools">{tools}</div>}
      </header>
      {children}
    </section>
  );
}

/** What stands where there is nothing to show. */
export const Empty = ({ children }: { readonly children: ComponentChildren }): JSX.Element => (
  <p class="empty">{children}</p>
);

interface ChoiceProps<Value extends string | number> {
  readonly name: string;
  readonly values: readonly (readonly [Value, string])[];
  readonly chosen: Value;
  readonly choose: (value: Value) => void;
}

/** One of a few: the arrow keys change it. */
export function Choice<Value extends string | number>(props: ChoiceProps<Value>): JSX.Element {
  const group = props.name.replace(/\W+/g, "-");
  return (
    <fieldset class="choice">
      <legend class="unseen">{props.name}</legend>
      {props.values.map(([value, text]) => (
        <label key={value}>
          <input
            type="radio"
            name={group}
            checked={value === props.chosen}
            onChange={() => props.choose(value)}
          />
          <span>{text}</span>
        </label>
      ))}
    </fieldset>
  );
}

interface PickProps {
  readonly name: string;
  /** Of each its key and its text. */
  readonly values: readonly (readonly [string, string])[];
  readonly chosen: string;
  readonly choose: (value: string) => void;
}

/** One of many. */
export const Pick = ({ name, values, chosen, choose }: PickProps): JSX.Element => (
  <select aria-label={name} value={chosen} onChange={(event) => choose(event.currentTarget.value)}>
    {values.map(([value, text]) => (
      <option key={value} value={value} selected={value === chosen}>
        {text}
      </option>
    ))}
  </select>
);

interface ClassPickProps {
  readonly name: string;
  /** Null: large objects. */
  readonly classes: readonly (number | null)[];
  /** Undefined: any. */
  readonly chosen: number | null | undefined;
  readonly choose: (size: number | null | undefined) => void;
}

const keyOfClass = (size: number | null | undefined): string =>
  size === undefined ? "" : String(size);

/** A size class. One that is chosen stays, whether there is something of it or not. */
export function ClassPick({ name, classes, chosen, choose }: ClassPickProps): JSX.Element {
  const all = [undefined, ...classes];
  const sizes = all.includes(chosen) ? all : [...all, chosen];
  const text = (size: number | null | undefined): string =>
    size === undefined ? "all classes" : size === null ? "large" : bytes(size);
  return (
    <Pick
      name={name}
      values={sizes.map((size) => [keyOfClass(size), text(size)])}
      chosen={keyOfClass(chosen)}
      choose={(key) => choose(sizes.find((size) => keyOfClass(size) === key))}
    />
  );
}

interface BarProps {
  readonly part: Figure;
  readonly tone?: "held" | "live" | "alarm";
}

/** A part of the largest, behind a figure. */
export const Bar = ({ part, tone }: BarProps): JSX.Element | null =>
  part === null || part <= 0 ? null : (
    <span
      class={`bar ${tone ?? "held"}`}
      style={{ width: `${Math.min(100, part * 100).toFixed(1)}%` }}
      aria-hidden="true"
    />
  );
