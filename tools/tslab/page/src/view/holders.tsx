// holders: which labels hold the live bytes of a process, over time.
import type { JSX } from "preact";

import { TimeChart, type Line } from "../chart/timechart.js";
import type { Model } from "../live/model.js";
import type { Watched } from "../live/watched.js";
import type { Drawn } from "../model/holders.js";
import { bytes, printable } from "../model/text.js";
import { Choice, Empty, Panel } from "./fragments.js";
import { RANGES, type Range } from "./range.js";

const KIB = 1024;

/** Beside its colour a line is told by its dashes and its width. */
const DASHES: readonly (readonly number[])[] = [[], [9, 4], [3, 3], [12, 3, 3, 3]];
const [WIDE, THIN] = [3, 1.5];

interface HoldersProps {
  readonly model: Model;
  readonly watched: Watched;
  readonly theme: string;
  readonly range: Range;
}

export function HoldersPanel({ model, watched, theme, range }: HoldersProps): JSX.Element {
  const { labels, series } = watched.holders.since((model.told ?? 0) - range.seconds);
  return (
    <Panel
      title="Live bytes by label"
      about="At most eight, those that held most. A gap: the label was not among them, or nobody looked."
      tools={
        <Choice
          name="Time shown by label"
          values={RANGES}
          chosen={range.seconds}
          choose={range.choose}
        />
      }
      class="holders"
    >
      {labels.length === 0 ? (
        <Empty>No label held 64 KiB in this time.</Empty>
      ) : (
        <TimeChart
          key={[range.seconds, ...labels.map(({ label, colour }) => `${colour} ${label}`)].join(
            "\n",
          )}
          name="Live bytes by label"
          lines={labels.map(lineOf)}
          series={series}
          seconds={range.seconds}
          height={240}
          text={bytes}
          unit={KIB}
          theme={theme}
        />
      )}
    </Panel>
  );
}

const lineOf = ({ label, colour }: Drawn): Line => ({
  name: printable(label),
  colour: `label-${colour}`,
  width: colour < DASHES.length ? WIDE : THIN,
  dashes: DASHES[colour % DASHES.length] ?? [],
});
