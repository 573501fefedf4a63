// round: one round of questions to the agent, and its answers.
import type {
  Doctor,
  Epochs,
  History,
  HostEvents,
  Leaks,
  Processes,
  Profile,
  Stats,
  Why,
} from "../api/answers.js";
import type { Client, Outcome } from "../api/client.js";

/** What is looked at. */
export interface Wanted {
  readonly handle: string | null;
  /** Epochs that have ended and hold nothing, too. */
  readonly all: boolean;
  /** Survivors of epochs that were closed longer ago than this. */
  readonly afterSeconds: number;
  /** Stacks, too. */
  readonly profile: boolean;
  /** The past, too: after this moment by the agent's clock, or all of it; null: not now. */
  readonly past: { readonly after: number | null } | null;
  /** Where its memory went and what is wrong, too. */
  readonly judgement: boolean;
  /** Events of all processes, too: after this moment, or all of them; null: not now. */
  readonly events: { readonly after: number | null } | null;
}

export interface Detail {
  readonly handle: string;
  readonly stats: Outcome<Stats>;
  readonly epochs: Outcome<Epochs>;
  readonly leaks: Outcome<Leaks>;
  /** Null: not asked for. */
  readonly profile: Outcome<Profile> | null;
  /** Null: not asked for. */
  readonly history: Outcome<History> | null;
  /** Null: not asked for. */
  readonly judgement: Judgement | null;
}

export interface Judgement {
  readonly why: Outcome<Why>;
  readonly doctor: Outcome<Doctor>;
}

export interface Round {
  readonly processes: Outcome<Processes>;
  /** Null: not asked for. */
  readonly events: Outcome<HostEvents> | null;
  readonly detail: Detail | null;
}

const API = "api/v1/processes";
const EVENTS = "api/v1/events";

export async function askRound(client: Client, wanted: Wanted): Promise<Round> {
  const [processes, events, detail] = await Promise.all([
    client.ask<Processes>(API),
    wanted.events === null
      ? null
      : client.ask<HostEvents>(`${EVENTS}${afterText(wanted.events.after)}`),
    wanted.handle === null ? null : askDetail(client, wanted.handle, wanted),
  ]);
  return { processes, events, detail };
}

async function askDetail(client: Client, handle: string, wanted: Wanted): Promise<Detail> {
  const [stats, epochs, leaks, profile, history, judgement] = await Promise.all([
    client.ask<Stats>(`${API}/${handle}`),
    client.ask<Epochs>(`${API}/${handle}/epochs?all=${wanted.all}`),
    client.ask<Leaks>(`${API}/${handle}/leaks?after=${wanted.afterSeconds}`),
    wanted.profile ? client.ask<Profile>(`${API}/${handle}/profile`) : null,
    wanted.past === null
      ? null
      : client.ask<History>(`${API}/${handle}/history${afterText(wanted.past.after)}`),
    wanted.judgement ? askJudgement(client, handle) : null,
  ]);
  return { handle, stats, epochs, leaks, profile, history, judgement };
}

async function askJudgement(client: Client, handle: string): Promise<Judgement> {
  const [why, doctor] = await Promise.all([
    client.ask<Why>(`${API}/${handle}/why`),
    client.ask<Doctor>(`${API}/${handle}/doctor`),
  ]);
  return { why, doctor };
}

const afterText = (after: number | null): string => (after === null ? "" : `?after=${after}`);
