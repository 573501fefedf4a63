// scatter: epochs by age and bytes on logarithmic axes. What is old and large stands top right.
import type { JSX } from "preact";
import { useRef } from "preact/hooks";

import type { Epoch } from "../api/answers.js";
import { nameOf } from "../model/epochs.js";
import { hashOfEpoch } from "../model/route.js";
import { AGE_MARKS, BYTE_MARKS, logScale, marksOn, placeOn } from "../model/scale.js";
import { age, bytes } from "../model/text.js";
import { useWidth } from "./width.js";

const HEIGHT = 220;
const LEFT = 76;
const RIGHT = 24;
const TOP = 14;
const BOTTOM = 30;

/** The largest: more of them only make a cloud. */
const MOST_DOTS = 400;

interface ScatterProps {
  readonly epochs: readonly Epoch[];
  readonly handle: string;
}

/** What it shows is in the table too, so that screen readers pass it over. */
export function Scatter({ epochs, handle }: ScatterProps): JSX.Element {
  const place = useRef<HTMLElement>(null);
  const width = useWidth(place, 800);
  const shown = placeable(epochs);
  const ages = logScale(
    shown.map((epoch) => epoch.age_ms ?? 0),
    100,
    600_000,
  );
  const sizes = logScale(
    shown.map((epoch) => epoch.held_bytes ?? 0),
    4096,
    1024 * 1024,
  );
  const across = (ms: number): number => LEFT + placeOn(ages, ms) * (width - LEFT - RIGHT);
  const down = (held: number): number =>
    HEIGHT - BOTTOM - placeOn(sizes, held) * (HEIGHT - TOP - BOTTOM);
  return (
    <figure class="scatter" aria-hidden="true" ref={place} hidden={shown.length === 0}>
      <svg viewBox={`0 0 ${width} ${HEIGHT}`} width={width} height={HEIGHT}>
        {marksOn(ages, AGE_MARKS, width / 90).map((mark) => (
          <g key={mark} class="mark">
            <line x1={across(mark)} x2={across(mark)} y1={TOP} y2={HEIGHT - BOTTOM} />
            <text x={across(mark)} y={HEIGHT - 10} text-anchor="middle">
              {age(mark)}
            </text>
          </g>
        ))}
        {marksOn(sizes, BYTE_MARKS, 5).map((mark) => (
          <g key={mark} class="mark">
            <line x1={LEFT} x2={width - RIGHT} y1={down(mark)} y2={down(mark)} />
            <text x={LEFT - 8} y={down(mark) + 4} text-anchor="end">
              {bytes(mark).replace(".0", "")}
            </text>
          </g>
        ))}
        {shown.map((epoch) => (
          <Dot
            key={epoch.id}
            epoch={epoch}
            href={hashOfEpoch(handle, epoch.id)}
            x={across(epoch.age_ms ?? 0)}
            y={down(epoch.held_bytes ?? 0)}
          />
        ))}
      </svg>
      <figcaption>
        Age to the right, bytes held upwards: what is old and large stands top right.{" "}
        <span class="state open">open</span> <span class="state closed">closed</span>
      </figcaption>
    </figure>
  );
}

const placeable = (epochs: readonly Epoch[]): Epoch[] =>
  epochs
    .filter((epoch) => epoch.age_ms !== null && (epoch.held_bytes ?? 0) > 0)
    .filter((epoch) => epoch.epoch !== 0 && epoch.state !== "shared")
    .sort((a, b) => (b.held_bytes ?? 0) - (a.held_bytes ?? 0))
    .slice(0, MOST_DOTS);

interface DotProps {
  readonly epoch: Epoch;
  readonly href: string;
  readonly x: number;
  readonly y: number;
}

/** Round while it is open, a diamond once it is closed. */
function Dot({ epoch, href, x, y }: DotProps): JSX.Element {
  const about = `${nameOf(epoch)}: ${bytes(epoch.held_bytes)}, ${age(epoch.age_ms)} old`;
  return (
    <a href={href} tabindex={-1} class={`dot ${epoch.state ?? ""}`}>
      <title>{about}</title>
      {epoch.state === "open" ? (
        <circle cx={x} cy={y} r={5} />
      ) : (
        <path d={`M${x} ${y - 6}L${x + 6} ${y}L${x} ${y + 6}L${x - 6} ${y}Z`} />
      )}
    </a>
  );
}
