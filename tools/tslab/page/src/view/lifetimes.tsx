// lifetimes: a table of how long freed objects lived, by who allocated them.
import type { JSX } from "preact";

import type { Lifetime } from "../api/answers.js";
import {
  classesText,
  keyOf,
  livedText,
  livesOf,
  stackText,
  type Lives,
} from "../model/lifetimes.js";
import { bytes, number, percent, printable } from "../model/text.js";
import { Name } from "./fragments.js";

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
        How long freed objects lived <span class="about">{summaryText(all)}</span>
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

/** "74 % were temporaries, freed within 10 ms" */
function summaryText(all: readonly Lives[]): string {
  const of = (figure: (one: Lives) => number): number =>
    all.reduce((sum, one) => sum + figure(one), 0);
  const temporary = of((one) => one.temporary_objects) / (of((one) => one.objects) || 1);
  return `${percent(temporary)} were temporaries, freed within 10 ms`;
}

const Row = ({ one }: { readonly one: Lives }): JSX.Element => (
  <tr>
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
    <td class="figure">{percent(one.temporary_objects / (one.objects || 1))}</td>
    <td class="figure">{livedText(one.lived_ms / (one.objects || 1))}</td>
  </tr>
);
