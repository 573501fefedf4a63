// events: what happened to a process, along the time of its chart and as a list.
import type { JSX } from "preact";

import type { HostEvent, PastEvent, Process } from "../api/answers.js";
import type { Model } from "../live/model.js";
import type { Watched } from "../live/watched.js";
import { handleOf, processOfEvent } from "../model/processes.js";
import { hashOfProcess } from "../model/route.js";
import { bytes, clock, count, number, printable } from "../model/text.js";
import { Empty, Name, Panel } from "./fragments.js";

const KINDS: Readonly<Record<string, string>> = {
  survivors: "survivors",
  purge: "purge",
  limit: "limit",
  memory: "no memory",
};

const MOST_LISTED = 50;

interface EventsProps {
  readonly watched: Watched;
  /** Of the chart above. */
  readonly span: readonly [number, number];
}

export function Events({ watched, span: [from, to] }: EventsProps): JSX.Element | null {
  const { past } = watched;
  if (past.isKept === null) return null;
  if (!past.isKept) {
    return <p class="about">The agent keeps no history: the past and events are not known.</p>;
  }
  const shown = past.events.filter((event) => past.seconds(event) >= from);
  const place = (event: PastEvent): number =>
    Math.min(100, ((past.seconds(event) - from) / (to - from || 1)) * 100);
  const name = watched.stats?.name ?? watched.process?.name ?? String(watched.pid);
  return (
    <div class="events">
      <div class="lanes" role="img" aria-label={summary(shown)}>
        {Object.entries(KINDS).map(([kind, word]) => (
          <div key={kind} class={`lane ${kind}`}>
            <span class="word">{word}</span>
            <span class="line">
              {shown
                .filter((event) => event.kind === kind)
                .map((event, index) => (
                  <i key={index} style={{ left: `${place(event).toFixed(2)}%` }} />
                ))}
            </span>
          </div>
        ))}
      </div>
      {shown.length === 0 ? null : (
        <details>
          <summary>{count(shown.length, "event")} in this time</summary>
          <EventTable
            name="Events"
            events={shown.map((event) => ({
              event,
              at: past.seconds(event),
              who: <Name>{printable(name)}</Name>,
            }))}
          />
        </details>
      )}
    </div>
  );
}

interface Row {
  readonly event: PastEvent;
  /** In seconds since 1970. */
  readonly at: number;
  readonly who: JSX.Element;
}

interface EventTableProps {
  readonly name: string;
  readonly events: readonly Row[];
}

/** The newest first. */
const EventTable = ({ name, events }: EventTableProps): JSX.Element => (
  <div class="scroll" tabIndex={0} role="region" aria-label={`${name} in this time`}>
    <table aria-label={name}>
      <thead>
        <tr>
          <th scope="col">Time</th>
          <th scope="col">Process</th>
          <th scope="col">What</th>
          <th scope="col">How much</th>
        </tr>
      </thead>
      <tbody>
        {events
          .slice(-MOST_LISTED)
          .reverse()
          .map(({ event, at, who }, index) => (
            <tr key={index}>
              <td class="time">{clock(at)}</td>
              <td>{who}</td>
              <td>{what(event)}</td>
              <td>{howMuch(event)}</td>
            </tr>
          ))}
      </tbody>
    </table>
  </div>
);

/** What happened to all processes in the last day. */
export function HostEventsPanel({ model }: { readonly model: Model }): JSX.Element | null {
  const { host } = model;
  if (host.isKept !== true) return null;
  const { events } = host;
  const about =
    events.length > MOST_LISTED
      ? `The newest ${MOST_LISTED} of ${number(events.length)} in a day.`
      : `${count(events.length, "event")} in a day.`;
  return (
    <Panel title="Events of all processes" about={about} class="host">
      {events.length === 0 ? (
        <Empty>Nothing happened.</Empty>
      ) : (
        <EventTable
          name="Events of all processes"
          events={events.map((event) => ({
            event,
            at: host.seconds(event),
            who: <Who event={event} process={processOfEvent(model.processes, event)} />,
          }))}
        />
      )}
    </Panel>
  );
}

interface WhoProps {
  readonly event: HostEvent;
  readonly process: Process | undefined;
}

function Who({ event, process }: WhoProps): JSX.Element {
  const who = (
    <>
      <Name>{printable(event.name ?? "unnamed")}</Name> {event.pid}
    </>
  );
  return process === undefined ? who : <a href={hashOfProcess(handleOf(process))}>{who}</a>;
}

function summary(events: readonly PastEvent[]): string {
  const parts = Object.entries(KINDS).map(([kind, word]) => {
    const times = events.filter((event) => event.kind === kind).length;
    return `${word} ${times}`;
  });
  return `Events: ${parts.join(", ")}`;
}

const WHAT: Readonly<Record<string, string>> = {
  purge: "Purged",
  limit: "Limit of an epoch reached",
  memory: "The system refused memory",
};

const what = ({ kind, label }: PastEvent): JSX.Element =>
  kind === "survivors" ? (
    <>
      Closed with survivors: <Name>{printable(label ?? "other")}</Name>
    </>
  ) : (
    <>{WHAT[kind] ?? printable(kind)}</>
  );

function howMuch(event: PastEvent): string {
  const thing = event.kind === "survivors" ? "epoch" : "time";
  const often = count(event.count, thing);
  return event.bytes === null ? often : `${often}, ${bytes(event.bytes)}`;
}
