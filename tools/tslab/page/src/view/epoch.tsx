// epoch: one epoch: its bytes over time, its size classes, and the stacks that allocated in it.
import type { JSX } from "preact";

import type { Epoch, Figure, Leak } from "../api/answers.js";
import { TimeChart, type Line } from "../chart/timechart.js";
import type { Model } from "../live/model.js";
import type { Watched, WatchedEpoch } from "../live/watched.js";
import { closedFor, isUnended, nameOf } from "../model/epochs.js";
import { classSums, gapText, samplesOf } from "../model/flame.js";
import { hashOfEpoch, hashOfProcess } from "../model/route.js";
import { leakOf, partsOf, type Part } from "../model/survivors.js";
import { age, bytes, count, number, percent, printable } from "../model/text.js";
import { State } from "./epochs.js";
import { Bar, Empty, Name, Panel, Tile } from "./fragments.js";
import { EpochStacks } from "./stacks.js";

interface ViewProps {
  readonly model: Model;
  readonly watched: Watched;
  readonly epoch: WatchedEpoch;
  readonly theme: string;
}

export function EpochView({ model, watched, epoch, theme }: ViewProps): JSX.Element {
  const { last } = epoch;
  if (last === null) return <Unknown watched={watched} epoch={epoch} />;
  return (
    <>
      <Head watched={watched} epoch={epoch} last={last} />
      <Over model={model} epoch={epoch} last={last} theme={theme} />
      <div class="pair">
        <Classes watched={watched} epoch={last} />
        <Family watched={watched} epoch={last} />
      </div>
      <EpochStacks watched={watched} epoch={last} />
    </>
  );
}

const Back = ({ watched }: { readonly watched: Watched }): JSX.Element => (
  <a class="back always" href={hashOfProcess(watched.handle)}>
    ← {watched.process?.name == null ? "process" : printable(watched.process.name)} {watched.pid}
  </a>
);

interface UnknownProps {
  readonly watched: Watched;
  readonly epoch: WatchedEpoch;
}

function Unknown({ watched, epoch }: UnknownProps): JSX.Element {
  return (
    <header class="head">
      <Back watched={watched} />
      <h1 tabIndex={-1}>Epoch</h1>
      <p class="note" role="status">
        {epoch.gone ? "There is no such epoch any more: it has drained." : "Nothing is known yet."}
      </p>
    </header>
  );
}

interface HeadProps extends UnknownProps {
  readonly last: Epoch;
}

function Head({ watched, epoch, last }: HeadProps): JSX.Element {
  return (
    <header class="head">
      <Back watched={watched} />
      <h1 tabIndex={-1}>
        <Name>{nameOf(last)}</Name>
        <span class="pid">epoch {last.epoch}</span>
      </h1>
      <p class="about">
        <State epoch={last} />
      </p>
      <div role="status">
        {epoch.gone ? (
          <p class="note">
            This epoch has drained: nothing of it is left. What is shown was last told.
          </p>
        ) : null}
        {watched.gone ? <p class="note">Its process has ended.</p> : null}
      </div>
    </header>
  );
}

const LINES: readonly [Line, Line] = [
  { name: "held", colour: "rss", width: 2.5 },
  { name: "live", colour: "live", isArea: true, width: 1.5 },
];

const SECONDS = 300;
const KIB = 1024;

interface OverProps {
  readonly model: Model;
  readonly epoch: WatchedEpoch;
  readonly last: Epoch;
  readonly theme: string;
}

function Over({ model, epoch, last, theme }: OverProps): JSX.Element {
  return (
    <Panel
      title="Held against live"
      about="Since this page looks at the epoch. Hatched: free blocks that wait for objects."
      class="memory"
    >
      <dl class="tiles">
        <Tile name="held" value={bytes(last.held_bytes)} about="children's too" tone="rss" />
        <Tile name="live" value={bytes(last.live.bytes)} tone="live" />
        <Tile name="objects" value={number(last.live.objects)} />
        <Tile name="age" value={age(last.age_ms)} />
        {isUnended(last) ? null : <Tile name="closed for" value={age(closedFor(last))} />}
        <Limit name="soft limit" held={last.held_bytes} limit={last.soft_limit_bytes} />
        <Limit name="hard limit" held={last.held_bytes} limit={last.hard_limit_bytes} />
      </dl>
      <TimeChart
        key={epoch.id}
        name="Held against live bytes of the epoch"
        lines={LINES}
        isHatched
        series={epoch.track.since((model.told ?? 0) - SECONDS)}
        seconds={SECONDS}
        height={200}
        text={bytes}
        unit={KIB}
        theme={theme}
      />
    </Panel>
  );
}

interface LimitProps {
  readonly name: string;
  readonly held: Figure;
  readonly limit: Figure;
}

function Limit({ name, held, limit }: LimitProps): JSX.Element | null {
  if (limit === null) return null;
  const used = held === null ? null : held / limit;
  const tone = (used ?? 0) >= 0.9 ? "alarm" : undefined;
  return <Tile name={name} value={bytes(limit)} about={`${percent(used)} used`} tone={tone} />;
}

interface PartProps {
  readonly watched: Watched;
  readonly epoch: Epoch;
}

/** Exact counts of a closed epoch; estimates of an open one if its process keeps samples. */
function Classes({ watched, epoch }: PartProps): JSX.Element {
  const leak = leakOf(watched.leaks?.leaks ?? [], epoch);
  if (leak !== undefined) {
    return (
      <Panel title="Size classes" about={outlivedText(leak)}>
        <Parts parts={partsOf(leak)} />
      </Panel>
    );
  }
  const samples = samplesOf(watched.profile?.samples ?? [], epoch.label);
  const sums = classSums(samples).map(({ class_bytes, objects, bytes: size }) => ({
    name: class_bytes === null ? "large" : bytes(class_bytes),
    objects,
    bytes: size,
  }));
  const gap = watched.profile === null || sums.length === 0 ? null : gapText(watched.profile);
  const about = ["Estimated from samples of all epochs with this label.", gap ?? ""].join(" ");
  return (
    <Panel title="Size classes" about={about}>
      {sums.length === 0 ? (
        <Empty>
          Not known: a process tells the classes of survivors, and of sampled objects. This epoch
          has neither.
        </Empty>
      ) : (
        <Parts parts={sums} />
      )}
    </Panel>
  );
}

function outlivedText({ epochs, state }: Leak): string {
  if (state === "shared") return "Objects of all epochs of the label, requests in flight included.";
  return epochs === 1
    ? "Objects that outlived the epoch."
    : `Objects that outlived the ${number(epochs)} epochs with this label.`;
}

function Parts({ parts }: { readonly parts: readonly Part[] }): JSX.Element {
  const most = parts.reduce((most, part) => Math.max(most, part.bytes ?? 0), 0);
  return (
    <table aria-label="Size classes of the epoch">
      <thead>
        <tr>
          <th scope="col">class</th>
          <th scope="col" class="figure">
            objects
          </th>
          <th scope="col" class="figure">
            bytes
          </th>
        </tr>
      </thead>
      <tbody>
        {parts.map((part) => (
          <tr key={part.name}>
            <th scope="row">{part.name}</th>
            <td class="figure">{number(part.objects)}</td>
            <td class="figure barred">
              <Bar
                part={part.bytes === null || most === 0 ? null : part.bytes / most}
                tone="live"
              />
              <span>{bytes(part.bytes)}</span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Its parent and children. */
function Family({ watched, epoch }: PartProps): JSX.Element {
  const epochs = watched.epochs?.epochs ?? [];
  const parent = epochs.find((other) => other.epoch === epoch.parent && other.id !== epoch.id);
  const children = epochs.filter((other) => other.parent === epoch.epoch && other.id !== epoch.id);
  return (
    <Panel title="Family" about={count(children.length, "child epoch")}>
      {parent === undefined && children.length === 0 ? <Empty>It stands alone.</Empty> : null}
      <ul class="family">
        {parent === undefined ? null : (
          <Relative epoch={parent} handle={watched.handle} as="parent" />
        )}
        {children.slice(0, MOST_CHILDREN).map((child) => (
          <Relative key={child.id} epoch={child} handle={watched.handle} as="child" />
        ))}
      </ul>
      {children.length > MOST_CHILDREN ? (
        <p class="about">and {number(children.length - MOST_CHILDREN)} more</p>
      ) : null}
    </Panel>
  );
}

const MOST_CHILDREN = 10;

interface RelativeProps {
  readonly epoch: Epoch;
  readonly handle: string;
  readonly as: string;
}

const Relative = ({ epoch, handle, as }: RelativeProps): JSX.Element => (
  <li>
    <span class="about">{as}</span>{" "}
    <a href={hashOfEpoch(handle, epoch.id)}>
      <Name>{nameOf(epoch)}</Name>
    </a>{" "}
    <b>{bytes(epoch.held_bytes)}</b>
  </li>
);
