// lifetimes: a table of how long freed objects lived, and how old the others are, by who allocated
// them.
import type { JSX } from "preact";

import type { Figure, Lifetime } from "../api/answers.js";
import {
  classesText,
  keyOf,
  livedText,
  livesOf,
  sharesOf,
  stackText,
  type LiveOnes,
  type Lives,
} from "../model/lifetimes.js";
import { bytes, count, NOT_KNOWN, number, percent, printable } from "../model/text.js";
import { Bar, Name } from "./fragments.js";

const FEW_ROWS = 8;

interface Props {
  readonly lifetimes: readonly Lifetime[];
  /** Of their epochs; undefined: of all. */
  readonly label: string | null | undefined;
}

export function Lifetimes({ lifetimes, label }: Props): JSX.Element | null {
  const all = livesOf(lifetimes, label);
  if (all.length === 0) return null;
  return (
    <details class="lifetimes">
      <summary>
        How long freed objects lived, and how old the others are{" "}
        <span class="about">{summaryText(all)}</span>
      </summary>
      <div class="scroll">
        <table aria-label="Lifetimes">
          <thead>
            <tr>
              <th scope="col">allocated by</th>
              <th scope="col" class="figure minor">
                freed
              </th>
              <th scope="col" class="figure minor">
                bytes
              </th>
              <th scope="col" class="figure">
                within 10 ms
              </th>
              <th scope="col" class="figure">
                mean life
              </th>
            </tr>
          </thead>
          <tbody>
            {all.slice(0, FEW_ROWS).map((one) => (
              <Row key={keyOf(one)} one={one} />
            ))}
          </tbody>
        </table>
      </div>
      {all.length <= FEW_ROWS ? null : (
        <p class="about">
          The first {number(FEW_ROWS)} of {number(all.length)}, those with most temporaries.
        </p>
      )}
    </details>
  );
}

/** "74 % were temporaries, freed within 10 ms"; of those that were freed. */
function summaryText(all: readonly Lives[]): string {
  const of = (figure: (one: Lives) => number): number =>
    all.reduce((sum, one) => sum + figure(one), 0);
  const freed = of((one) => one.objects);
  if (freed === 0) return "none was freed";
  const temporary = of((one) => one.temporary_objects) / freed;
  return `${percent(temporary)} were temporaries, freed within 10 ms`;
}

interface RowProps {
  readonly one: Lives;
}

const Row = ({ one }: RowProps): JSX.Element => (
  <>
    <tr class="site">
      <th scope="row">
        <Name>{stackText(one.stack)}</Name>
        <span class="about">
          {" "}
          {classesText(one.classes)}
          {one.epoch === null ? "" : `, ${printable(one.epoch)}`}
        </span>
      </th>
      <td class="figure minor">{number(one.objects)}</td>
      <td class="figure minor">{bytes(one.bytes)}</td>
      <td class="figure">
        {percent(one.objects > 0 ? one.temporary_objects / one.objects : null)}
      </td>
      <td class="figure">{meanText(one)}</td>
    </tr>
    <tr>
      <td colSpan={5}>
        <Decades one={one} />
      </td>
    </tr>
  </>
);

const meanText = ({ objects, lived_ms }: { objects: number; lived_ms: number }): string =>
  objects > 0 ? livedText(lived_ms / objects) : NOT_KNOWN;

function Decades({ one }: RowProps): JSX.Element | null {
  const { live } = one;
  const shares = sharesOf(one);
  if (shares.length === 0) return null;
  return (
    <table class="decades" aria-label={`By decade: ${stackText(one.stack)}`}>
      <caption>{liveText(live)}</caption>
      <thead>
        <tr>
          <th scope="col">for</th>
          <th scope="col">freed</th>
          <th scope="col">live</th>
        </tr>
      </thead>
      <tbody>
        {shares.map(({ name, freed, live }) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <Part part={freed} tone="held" />
            <Part part={live} tone="live" />
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** "12 objects of 1.5 KiB live, 61 s old on average" */
const liveText = (live: LiveOnes): string =>
  live.objects === 0
    ? "none lives"
    : `${count(live.objects, "object")} of ${bytes(live.bytes)} ` +
      `${live.objects === 1 ? "lives" : "live"}, ${meanText(live)} old on average`;

interface PartProps {
  readonly part: Figure;
  readonly tone: "held" | "live";
}

/** Blank where there are none, as in the text of the command. */
const Part = ({ part, tone }: PartProps): JSX.Element => (
  <td class="barred">
    <Bar part={part} tone={tone} />
    <span>{part === null ? NOT_KNOWN : part > 0 ? percent(part) : ""}</span>
  </td>
);
