// process: one process: its memory over time, its epochs, what outlived them, and why it is slow.
import type { JSX } from "preact";

import type { Stats } from "../api/answers.js";
import { TimeChart, spanOf, type Line } from "../chart/timechart.js";
import type { Model } from "../live/model.js";
import type { Watched } from "../live/watched.js";
import { memoryParts, ratio } from "../model/figures.js";
import { LIST } from "../model/route.js";
import { bytes, count, number, percent, printable, times } from "../model/text.js";
import { ClassesPanel, FiguresPanel } from "./classes.js";
import { EpochsPanel } from "./epochs.js";
import { Events, HostEventsPanel } from "./events.js";
import { Choice, Empty, Name, Panel, Tile } from "./fragments.js";
import { HoldersPanel } from "./holders.js";
import { FindingsPanel, WhyPanel } from "./judgement.js";
import { RANGES, useRange, type Range } from "./range.js";
import { PurgePanel, SlowPathPanel } from "./slowpath.js";
import { ProcessStacks } from "./stacks.js";
import { SurvivorsPanel } from "./survivors.js";

interface ViewProps {
  readonly model: Model;
  readonly watched: Watched;
  readonly theme: string;
}

export function ProcessView({ model, watched, theme }: ViewProps): JSX.Element {
  const { stats } = watched;
  const range = useRange();
  return (
    <>
      <ProcessHead watched={watched} />
      <MemoryPanel model={model} watched={watched} theme={theme} range={range} />
      <HoldersPanel model={model} watched={watched} theme={theme} range={range} />
      <div class="pair">
        <FindingsPanel watched={watched} />
        <WhyPanel watched={watched} />
      </div>
      <div class="pair">
        <SurvivorsPanel model={model} watched={watched} />
        <div class="stack">
          <SlowPathPanel watched={watched} />
          <PurgePanel watched={watched} />
        </div>
      </div>
      <EpochsPanel model={model} watched={watched} />
      <ProcessStacks model={model} watched={watched} />
      {stats === null ? null : <ClassesPanel stats={stats} />}
      {stats === null ? null : <FiguresPanel stats={stats} />}
      <HostEventsPanel model={model} />
    </>
  );
}

export function ProcessHead({ watched }: { readonly watched: Watched }): JSX.Element {
  const { process, stats } = watched;
  const name = stats?.name ?? process?.name ?? null;
  const version = stats?.version ?? process?.version ?? null;
  return (
    <header class="head">
      <a class="back" href={LIST}>
        ← Processes
      </a>
      <h1 tabIndex={-1}>
        <Name>{name === null ? "unnamed process" : printable(name)}</Name>
        <span class="pid">{watched.pid}</span>
      </h1>
      <p class="about">{version === null ? "" : `tslab ${printable(version)}`}</p>
      <ProcessNotes watched={watched} />
    </header>
  );
}

function ProcessNotes({ watched }: { readonly watched: Watched }): JSX.Element {
  const notes = notesOf(watched);
  return (
    <div role="status">
      {notes.map((note) => (
        <p key={note} class="note">
          {note}
        </p>
      ))}
    </div>
  );
}

function notesOf({ gone, process, stats, notes }: Watched): string[] {
  const life = stats?.life ?? process?.life;
  const full = (stats?.full_tables ?? []).map(
    (table) =>
      `The system had no memory for all rows of table ${printable(table)}: figures are too low.`,
  );
  return [
    ...(gone ? ["This process has ended. What is shown is the last that it told."] : []),
    ...(!gone && life === "dead"
      ? ["This process has ended and left its file; ages count to its last word."]
      : []),
    ...(!gone && life === "stale"
      ? ["The process with this number does not use this file any more, or never did."]
      : []),
    ...(process?.error == null ? [] : [`Its file cannot be read: ${printable(process.error)}`]),
    ...full,
    ...[...notes.values()].map((note) => printable(note)),
  ];
}

const LINES: readonly [Line, Line] = [
  { name: "RSS", colour: "rss", width: 2.5 },
  { name: "live", colour: "live", isArea: true, width: 1.5 },
];

const MIB = 1024 * 1024;

interface MemoryProps extends ViewProps {
  readonly range: Range;
}

function MemoryPanel({ model, watched, theme, range }: MemoryProps): JSX.Element {
  const { seconds, choose } = range;
  const since = (model.told ?? 0) - seconds;
  const track = model.tracks.get(watched.process?.path ?? "");
  const series = watched.past.before(track?.since(since) ?? [[], [], []], since);
  return (
    <Panel
      title="Resident against live"
      about="Hatched: resident memory that no live object accounts for."
      tools={<Choice name="Time shown" values={RANGES} chosen={seconds} choose={choose} />}
      class="memory"
    >
      <Tiles watched={watched} />
      {track === undefined ? (
        <Empty>Nothing is known yet.</Empty>
      ) : (
        <TimeChart
          key={seconds}
          name="Resident against live bytes"
          lines={LINES}
          isHatched
          series={series}
          seconds={seconds}
          height={280}
          text={bytes}
          unit={MIB}
          theme={theme}
        />
      )}
      <Events watched={watched} span={spanOf(series, seconds)} />
      {watched.stats === null ? null : <PartsBar stats={watched.stats} />}
    </Panel>
  );
}

function Tiles({ watched }: { readonly watched: Watched }): JSX.Element {
  const { process, stats } = watched;
  const rss = process?.rss_bytes ?? stats?.rss_bytes ?? null;
  const live = stats?.totals.live_bytes ?? process?.live_bytes ?? null;
  const survivors = stats?.totals.epochs_closed_with_survivors ?? null;
  const objects = stats?.totals.live_objects ?? null;
  return (
    <dl class="tiles">
      <Tile name="RSS" value={bytes(rss)} tone="rss" />
      <Tile name="live" value={bytes(live)} about={count(objects, "object")} tone="live" />
      <Tile name="held" value={bytes(stats?.totals.held_bytes ?? null)} about="free blocks too" />
      <Tile name="RSS over live" value={times(ratio(rss, live))} />
      <Tile name="epochs open" value={number(stats?.totals.epochs_open ?? null)} />
      <Tile
        name="epochs with survivors"
        value={number(survivors)}
        tone={(survivors ?? 0) > 0 ? "alarm" : undefined}
      />
      <Tile name="threads" value={number(stats?.totals.threads ?? null)} />
    </dl>
  );
}

function PartsBar({ stats }: { readonly stats: Stats }): JSX.Element {
  const parts = memoryParts(stats);
  if (parts === null) return <Empty>The process does not tell where its memory is.</Empty>;
  const some = parts.filter((part) => part.bytes > 0);
  const whole = parts.reduce((sum, part) => sum + part.bytes, 0);
  return (
    <div class="parts">
      <p class="about">
        What the allocator has opened, by use; what was never touched is not resident
      </p>
      <div class="whole" aria-hidden="true">
        {some.map((part) => (
          <span key={part.key} class={part.key} style={{ flexGrow: part.bytes / (whole || 1) }} />
        ))}
      </div>
      <ul aria-label="Where the memory is">
        {parts.map((part) => (
          <li key={part.key} title={part.meaning}>
            <span class={`swatch ${part.key}`} />
            {part.name} <b>{bytes(part.bytes)}</b>{" "}
            <span class="about">{percent(whole > 0 ? part.bytes / whole : null)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
