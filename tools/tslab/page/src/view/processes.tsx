// processes: the list of processes on this host.
import type { JSX } from "preact";

import type { Process } from "../api/answers.js";
import { Sparkline } from "../chart/sparkline.js";
import type { Model } from "../live/model.js";
import { hashOfProcess } from "../model/route.js";
import { bytes, count, number, printable } from "../model/text.js";
import { Empty, Name } from "./fragments.js";
import { walk } from "./table.js";

/** Seconds of a sparkline. */
const RECENT = 120;

export function ProcessList({ model }: { readonly model: Model }): JSX.Element {
  const processes = listed(model);
  const isFolded = (process: Process) => process.life === "dead" && !isWatched(model, process);
  const ended = processes.filter(isFolded);
  return (
    <nav class="processes" aria-label="Processes">
      <h2>
        Processes <span class="count">{number(model.processes.length)}</span>
      </h2>
      {processes.length === 0 ? <Empty>{emptyText(model)}</Empty> : null}
      <Items processes={processes.filter((process) => !isFolded(process))} model={model} />
      {ended.length === 0 ? null : (
        <details>
          <summary>
            Ended <span class="count">{number(ended.length)}</span>
          </summary>
          <Items processes={ended} model={model} />
        </details>
      )}
    </nav>
  );
}

interface ItemsProps {
  readonly processes: readonly Process[];
  readonly model: Model;
}

const Items = ({ processes, model }: ItemsProps): JSX.Element => (
  <ul onKeyDown={walk}>
    {processes.map((process) => (
      <Item key={process.path} process={process} model={model} />
    ))}
  </ul>
);

const isWatched = ({ watched }: Model, process: Process): boolean =>
  watched?.process?.path === process.path;

/** The larger first; a process that has gone stays while it is looked at. */
function listed({ processes, watched }: Model): Process[] {
  const gone = watched?.gone === true && watched.process !== null ? [watched.process] : [];
  return [...processes, ...gone].sort(
    (a, b) =>
      Number(b.life === "alive") - Number(a.life === "alive") ||
      (b.rss_bytes ?? -1) - (a.rss_bytes ?? -1) ||
      a.pid - b.pid,
  );
}

const emptyText = ({ link }: Model): JSX.Element | string =>
  link.kind === "live" ? (
    <>
      No process here runs on tslab. Start one with <code>LD_PRELOAD=libtslab-preload.so</code>.
    </>
  ) : (
    "Nothing is known yet."
  );

interface ItemProps {
  readonly process: Process;
  readonly model: Model;
}

function Item({ process, model }: ItemProps): JSX.Element {
  const isCurrent = isWatched(model, process);
  const isGone = isCurrent && model.watched?.gone === true;
  const [, rss = []] = model.tracks.get(process.path)?.since((model.told ?? 0) - RECENT) ?? [[]];
  return (
    <li class={isGone || process.life === "dead" ? "ended" : ""}>
      <a href={hashOfProcess(process.pid)} aria-current={isCurrent ? "page" : undefined} data-row>
        <span class="who">
          <Name>{process.name === null ? "unnamed" : printable(process.name)}</Name>
        </span>
        <span class="memory">
          {process.error === null ? bytes(process.rss_bytes) : "unreadable"}
        </span>
        <Sparkline figures={padded(rss)} />
        <Marks process={process} isGone={isGone} />
      </a>
    </li>
  );
}

const padded = (figures: readonly (number | null)[]): (number | null)[] => [
  ...Array.from({ length: Math.max(0, RECENT - figures.length) }, () => null),
  ...figures,
];

function Marks({
  process,
  isGone,
}: {
  readonly process: Process;
  readonly isGone: boolean;
}): JSX.Element {
  const survivors = process.epochs_closed_with_survivors ?? 0;
  return (
    <span class="marks">
      <span class="pid">{process.pid}</span>
      {isGone ? <span class="mark">gone</span> : null}
      {!isGone && process.life !== "alive" ? <span class="mark">{lifeText(process)}</span> : null}
      {survivors > 0 ? (
        <span class="mark alarm">survivors in {count(survivors, "epoch")}</span>
      ) : null}
    </span>
  );
}

const lifeText = ({ life }: Process): string => (life === "dead" ? "ended" : "file not in use");
