// slowpath: why allocations and frees are slow, and what goes back to the system, as rates.
import type { JSX } from "preact";

import type { Figure } from "../api/answers.js";
import { Sparkline } from "../chart/sparkline.js";
import type { Watched } from "../live/watched.js";
import {
  ALLOCATIONS,
  CAUSES,
  columnOf,
  field,
  LIMIT_REFUSED,
  PURGED_BYTES,
  PURGES,
  SLAB_OPENED,
  SLOW_ALLOCATIONS,
  SYSTEM_REFUSED,
  type Cause,
} from "../model/figures.js";
import { sum } from "../model/epochs.js";
import { byteRate, bytes, number, percent, rate } from "../model/text.js";
import { Panel } from "./fragments.js";

/** Seconds that a rate is the mean of, and that a sparkline shows. */
const MEAN = 10;
const RECENT = 120;

/** Of allocations; above it the slow path is worth a look. */
const MUCH = 0.05;

interface PanelProps {
  readonly watched: Watched;
}

const rateOf = ({ counts }: Watched, cause: Cause): Figure => counts.rate(columnOf(cause), MEAN);

export function SlowPathPanel({ watched }: PanelProps): JSX.Element {
  const allocations = rateOf(watched, ALLOCATIONS);
  return (
    <Panel title="Slow path" about={`${rate(allocations)} allocations`}>
      <Rates watched={watched} causes={CAUSES} name="Slow path by cause" />
      <p class="verdict">{verdict(watched, allocations)}</p>
    </Panel>
  );
}

/** The cause that weighs most, and what to do about it. */
function verdict(watched: Watched, allocations: Figure): string {
  const now = (cause: Cause): Figure => rateOf(watched, cause);
  if ((now(SYSTEM_REFUSED) ?? 0) > 0)
    return "The system refuses memory: look at ulimit -v and the cgroup.";
  if ((now(LIMIT_REFUSED) ?? 0) > 0)
    return "An epoch is at its hard limit: raise it, or find what fills it.";
  const [opened, slow] = [now(SLAB_OPENED), sum(SLOW_ALLOCATIONS.map(now))];
  if (opened === null || allocations === null) return "";
  if (allocations === 0) return "Nothing is being allocated.";
  const share = opened / allocations;
  if (share > MUCH)
    return `${percent(share)} of allocations opened a slab: epochs may be too short for slabs.`;
  return slow === null ? "" : `${percent(slow / allocations)} of allocations left the fast path.`;
}

export function PurgePanel({ watched }: PanelProps): JSX.Element {
  const { stats } = watched;
  const dirty = stats === null ? null : field(stats, "dirty_bytes");
  const purged = stats === null ? null : PURGED_BYTES.count(stats);
  return (
    <Panel title="Purge" about={`${bytes(dirty)} dirty, ${bytes(purged)} given back so far`}>
      <Rates watched={watched} causes={[PURGED_BYTES, ...PURGES]} name="Purges" />
    </Panel>
  );
}

interface RatesProps {
  readonly watched: Watched;
  readonly causes: readonly Cause[];
  readonly name: string;
}

function Rates({ watched, causes, name }: RatesProps): JSX.Element {
  return (
    <table class="rates" aria-label={name}>
      <thead>
        <tr>
          <th scope="col">cause</th>
          <th scope="col" class="figure">
            rate
          </th>
          <th scope="col">
            <span class="unseen">last two minutes</span>
          </th>
          <th scope="col" class="figure minor">
            so far
          </th>
        </tr>
      </thead>
      <tbody>
        {causes.map((cause) => (
          <Rate key={cause.name} watched={watched} cause={cause} />
        ))}
      </tbody>
    </table>
  );
}

function Rate({
  watched,
  cause,
}: {
  readonly watched: Watched;
  readonly cause: Cause;
}): JSX.Element {
  const { counts, stats } = watched;
  const isBytes = cause.unit === "bytes";
  const total = stats === null ? null : cause.count(stats);
  const now = rateOf(watched, cause);
  const recent = counts.recentRates(columnOf(cause), RECENT);
  return (
    <tr title={cause.meaning}>
      <th scope="row">{cause.name}</th>
      <td class="figure">{isBytes ? byteRate(now) : rate(now)}</td>
      <td>
        <Sparkline figures={recent} />
      </td>
      <td class="figure about minor">{isBytes ? bytes(total) : number(total)}</td>
    </tr>
  );
}
