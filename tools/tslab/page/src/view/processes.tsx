// processes: the list of processes on this host.
import type { JSX } from "preact";

import type { Process } from "../api/answers.js";
import { Sparkline } from "../chart/sparkline.js";
import type { Model } from "../live/model.js";
import { FEW, found, handleOf, ordered } from "../model/processes.js";
import { hashOfProcess } from "../model/route.js";
import { age, bytes, count, number, printable } from "../model/text.js";
import { Empty, Name } from "./fragments.js";
import { useKept } from "./kept.js";
import { walk } from "./table.js";

/** Seconds of a sparkline. */
const RECENT = 120;

export function ProcessList({ model }: { readonly model: Model }): JSX.Element {
  const [filter, setFilter] = useKept("processes.filter", "");
  const known = listed(model);
  const all = known.filter((process) => !process.of_other_user || isWatched(model, process));
  const others = known.length - all.length;
  const isFolded = (process: Process) => process.life === "dead" && !isWatched(model, process);
  const isFiltered = all.length > FEW && filter.trim() !== "";
  const processes = isFiltered ? found(all, filter) : all;
  const ended = processes.filter(isFolded);
  return (
    <nav class="processes" aria-label="Processes">
      <h2>
        Processes{" "}
        <span class="count">{number(all.filter((process) => !isFolded(process)).length)}</span>
      </h2>
      {all.length > FEW ? <Filter text={filter} change={setFilter} /> : null}
      {known.length === 0 ? <Empty>{emptyText(model)}</Empty> : null}
      {isFiltered && processes.length === 0 ? (
        <Empty>No process has “{filter}” in its name or number.</Empty>
      ) : null}
      <Items processes={processes.filter((process) => !isFolded(process))} model={model} />
      {ended.length === 0 ? null : <Ended processes={ended} model={model} />}
      {others === 0 ? null : (
        <Empty>Of other users: {count(others, "file")}, which only they and root may read.</Empty>
      )}
    </nav>
  );
}

interface FilterProps {
  readonly text: string;
  readonly change: (text: string) => void;
}

const Filter = ({ text, change }: FilterProps): JSX.Element => (
  <input
    type="search"
    class="filter"
    aria-label="Filter processes"
    placeholder="name or number"
    value={text}
    onInput={(event) => change(event.currentTarget.value)}
    data-filter
  />
);

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

function Ended({ processes, model }: ItemsProps): JSX.Element {
  const [isOpen, open] = useKept("processes.ended", false);
  return (
    <details open={isOpen} onToggle={(event) => open(event.currentTarget.open)}>
      <summary>
        Ended <span class="count">{number(processes.length)}</span>
      </summary>
      {isOpen ? <Items processes={processes} model={model} /> : null}
    </details>
  );
}

const isWatched = ({ watched }: Model, process: Process): boolean =>
  watched?.process?.path === process.path;

/** A process that has gone stays while it is looked at. */
function listed({ processes, watched }: Model): Process[] {
  const gone = watched?.gone === true && watched.process !== null ? [watched.process] : [];
  return ordered([...processes, ...gone]);
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
      <a
        href={hashOfProcess(handleOf(process))}
        aria-current={isCurrent ? "page" : undefined}
        data-row
      >
        <span class="who">
          <Name>{process.name === null ? "unnamed" : printable(process.name)}</Name>
        </span>
        <span class="memory">{memoryText(process)}</span>
        {process.life === "dead" ? null : <Sparkline figures={padded(rss)} />}
        <Marks process={process} isGone={isGone} />
      </a>
    </li>
  );
}

/** Of a process that has ended nothing is resident: what lived in it at last. */
function memoryText({ error, life, rss_bytes, live_bytes }: Process): string {
  if (error !== null) return "unreadable";
  return life === "dead" ? `${bytes(live_bytes)} live` : bytes(rss_bytes);
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

const lifeText = ({ life, last_word_ms }: Process): string =>
  life !== "dead"
    ? "file not in use"
    : last_word_ms === null
      ? "ended"
      : `last word ${age(last_word_ms)} ago`;
