// round: one round of questions to the agent, and its answers.
import type { Epochs, History, Leaks, Processes, Profile, Stats } from "../api/answers.js";
import type { Client, Outcome } from "../api/client.js";

/** What is looked at. */
export interface Wanted {
  readonly pid: number | null;
  /** Epochs that have ended and hold nothing, too. */
  readonly all: boolean;
  /** Survivors of epochs that were closed longer ago than this. */
  readonly afterSeconds: number;
  /** Stacks, too. */
  readonly profile: boolean;
  /** The past, too: after this moment by the agent's clock, or all of it; null: not now. */
  readonly past: { readonly after: number | null } | null;
}

export interface Detail {
  readonly pid: number;
  readonly stats: Outcome<Stats>;
  readonly epochs: Outcome<Epochs>;
  readonly leaks: Outcome<Leaks>;
  /** Null: not asked for. */
  readonly profile: Outcome<Profile> | null;
  /** Null: not asked for. */
  readonly history: Outcome<History> | null;
}

export interface Round {
  readonly processes: Outcome<Processes>;
  readonly detail: Detail | null;
}

const API = "api/v1/processes";

export async function askRound(client: Client, wanted: Wanted): Promise<Round> {
  const [processes, detail] = await Promise.all([
    client.ask<Processes>(API),
    wanted.pid === null ? null : askDetail(client, wanted.pid, wanted),
  ]);
  return { processes, detail };
}

async function askDetail(client: Client, pid: number, wanted: Wanted): Promise<Detail> {
  const [stats, epochs, leaks, profile, history] = await Promise.all([
    client.ask<Stats>(`${API}/${pid}`),
    client.ask<Epochs>(`${API}/${pid}/epochs?all=${wanted.all}`),
    client.ask<Leaks>(`${API}/${pid}/leaks?after=${wanted.afterSeconds}`),
    wanted.profile ? client.ask<Profile>(`${API}/${pid}/profile`) : null,
    wanted.past === null ? null : client.ask<History>(pathOfPast(pid, wanted.past.after)),
  ]);
  return { pid, stats, epochs, leaks, profile, history };
}

const pathOfPast = (pid: number, after: number | null): string =>
  `${API}/${pid}/history${after === null ? "" : `?after=${after}`}`;
