// judgement: what is wrong with a process's memory, and what its resident memory is made of.
import type { JSX } from "preact";

import type { Doctor, Why } from "../api/answers.js";
import type { Judged, Watched } from "../live/watched.js";
import { age, bytes, count, percent, printable } from "../model/text.js";
import { Bar, Empty, Panel } from "./fragments.js";

interface PanelProps {
  readonly watched: Watched;
}

const Unknown = ({ why }: Pick<Judged<unknown>, "why">): JSX.Element => (
  <Empty>{why === null ? "Not known." : `Not known: ${printable(why)}.`}</Empty>
);

export function FindingsPanel({ watched: { doctor } }: PanelProps): JSX.Element {
  const over = doctor.answer?.over_ms ?? null;
  const about = over === null ? undefined : `As doctor says, of the last ${age(over)}.`;
  return (
    <Panel title="Findings" about={about} class="findings">
      {doctor.answer === null ? <Unknown why={doctor.why} /> : <Findings doctor={doctor.answer} />}
    </Panel>
  );
}

function Findings({ doctor }: { readonly doctor: Doctor }): JSX.Element {
  const { findings, not_checked } = doctor;
  return (
    <>
      {findings.length === 0 ? <Empty>Nothing was found.</Empty> : null}
      <ul aria-label="Findings">
        {findings.map((finding, index) => (
          <li key={index}>
            <p>
              <b>{printable(finding.cause)}</b>: {printable(finding.what)}
            </p>
            <p class="about">→ {printable(finding.advice)}</p>
          </li>
        ))}
      </ul>
      {not_checked.length === 0 ? null : (
        <details>
          <summary>{count(not_checked.length, "check")} could not be made</summary>
          <ul aria-label="Not checked">
            {not_checked.map(({ cause, missing }) => (
              <li key={cause}>
                {printable(cause)}: <span class="about">needs {printable(missing)}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

export function WhyPanel({ watched: { why } }: PanelProps): JSX.Element {
  const { answer } = why;
  const about =
    answer === null
      ? undefined
      : `RSS ${bytes(answer.rss_bytes)}, of which the allocator has ${bytes(answer.resident_bytes)}.`;
  return (
    <Panel title="Where memory went" about={about} class="why">
      {answer === null ? <Unknown why={why.why} /> : <Parts why={answer} />}
    </Panel>
  );
}

function Parts({ why }: { readonly why: Why }): JSX.Element {
  const whole = why.parts.reduce((sum, part) => sum + part.bytes, 0);
  const parts = why.parts.filter((part) => part.bytes > 0);
  return (
    <table aria-label="Where memory went">
      <tbody>
        {parts.map((part) => (
          <Row key={part.part} text={part.text} size={part.bytes} of={whole} />
        ))}
        {why.not_resident_bytes === 0 ? null : (
          <Row text="of these not resident" size={why.not_resident_bytes} of={whole} isLess />
        )}
        {why.others.map(({ what, bytes: size }) => (
          <Row key={what} text={what} size={size} of={null} />
        ))}
      </tbody>
    </table>
  );
}

interface RowProps {
  readonly text: string;
  readonly size: number;
  /** Of the allocator's memory; null: it is not part of that. */
  readonly of: number | null;
  readonly isLess?: boolean;
}

const Row = ({ text, size, of, isLess = false }: RowProps): JSX.Element => (
  <tr>
    <th scope="row" class={of === null || isLess ? "about" : ""}>
      {printable(text)}
    </th>
    <td class="figure barred">
      {of === null || isLess ? null : <Bar part={size / (of || 1)} tone="live" />}
      <span>
        {isLess ? "−" : ""}
        {bytes(size)}
      </span>
    </td>
    <td class="figure about minor">{of === null ? "" : percent(size / (of || 1))}</td>
  </tr>
);
