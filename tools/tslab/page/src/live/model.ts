// model: all that the page knows. Rounds change it; views read it.
import type { Process } from "../api/answers.js";
import { HostPast } from "../model/past.js";
import { handleOf, processOf } from "../model/processes.js";
import { Track } from "../model/track.js";
import type { Route } from "../model/route.js";
import type { Round, Wanted } from "./round.js";
import { MOST_MOMENTS, Watched } from "./watched.js";

/** How the agent is reached. */
export type Link =
  | { readonly kind: "waiting" }
  | { readonly kind: "live" }
  /** Times in seconds since 1970. */
  | { readonly kind: "lost"; readonly since: number; readonly why: string }
  | { readonly kind: "locked"; readonly refused: boolean };

export class Model {
  link: Link = { kind: "waiting" };
  /** When the agent last answered, in seconds since 1970; null: never. */
  told: number | null = null;
  processes: readonly Process[] = [];
  watched: Watched | null = null;
  /** What happened to all processes. */
  readonly host = new HostPast();
  route: Route = { handle: null, epoch: null };
  showsEnded = false;
  afterSeconds = 60;
  /** Of the whole process. */
  showsStacks = false;
  /** Resident and live bytes, by path of the process's file. */
  readonly tracks = new Map<string, Track>();
  #largest: string | null = null;
  readonly #listeners = new Set<() => void>();

  /** Returns what ends it. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  changed(): void {
    for (const listener of this.#listeners) listener();
  }

  /** The process that was chosen, or else the one that was the largest at first. */
  get handle(): string | null {
    return this.route.handle ?? this.#largest;
  }

  go(route: Route): void {
    this.route = route;
    this.#watch();
    this.changed();
  }

  /** What to ask for. `at`: now, in seconds since 1970. */
  wanted(at: number): Wanted {
    const isEpoch = this.route.epoch !== null;
    return {
      handle: this.handle,
      all: this.showsEnded,
      afterSeconds: isEpoch ? 0 : this.afterSeconds,
      profile: (isEpoch || this.showsStacks) && this.watched?.isProfileDue(at) !== false,
      judgement: !isEpoch && this.watched?.isJudgementDue(at) === true,
      events: this.host.isDue(at) ? { after: this.host.after } : null,
      past: this.watched?.past.isDue(at) === true ? { after: this.watched.past.after } : null,
    };
  }

  /** Takes in what a round brought. `at`: now, in seconds since 1970. */
  apply(at: number, round: Round, hadToken: boolean): void {
    const { processes, detail } = round;
    if (processes.kind === "told") {
      this.link = { kind: "live" };
      this.told = at;
      this.#list(at, processes.answer.processes);
      if (round.events !== null) {
        this.host.asked(at);
        if (round.events.kind === "told") this.host.apply(at, round.events.answer);
      }
    } else if (processes.kind === "locked") {
      this.link = { kind: "locked", refused: hadToken };
    } else {
      const since = this.link.kind === "lost" ? this.link.since : at;
      this.link = { kind: "lost", since, why: processes.why };
    }
    this.#watch();
    const isOfWatched = detail !== null && detail.handle === this.watched?.handle;
    if (isOfWatched && processes.kind === "told") this.watched?.apply(at, detail);
    this.changed();
  }

  #list(at: number, processes: readonly Process[]): void {
    this.processes = processes;
    const paths = new Set(processes.map(({ path }) => path));
    for (const process of processes) this.#track(process.path).push(at, memoryOf(process));
    for (const path of this.tracks.keys()) {
      if (!paths.has(path) && path !== this.watched?.process?.path) this.tracks.delete(path);
    }
    const first = this.#largest === null ? largest(processes) : undefined;
    if (first !== undefined) this.#largest = handleOf(first);
  }

  #track(path: string): Track {
    const known = this.tracks.get(path);
    if (known !== undefined) return known;
    const track = new Track(2, MOST_MOMENTS);
    this.tracks.set(path, track);
    return track;
  }

  #watch(): void {
    const { handle } = this;
    if (handle === null) return;
    const process = processOf(this.processes, handle);
    if (this.watched?.handle !== handle || isAnother(this.watched, process)) {
      this.watched = new Watched(handle);
    }
    this.watched.follow(process);
    this.watched.watchEpoch(this.route.handle === null ? null : this.route.epoch);
  }
}

// A process with the same number as one that has ended.
const isAnother = (watched: Watched, process: Process | undefined): boolean =>
  process !== undefined && watched.process !== null && process.path !== watched.process.path;

const memoryOf = ({ rss_bytes, live_bytes }: Process): readonly (number | null)[] => [
  rss_bytes,
  live_bytes,
];

function largest(processes: readonly Process[]): Process | undefined {
  const alive = processes.filter(({ life, error }) => life === "alive" && error === null);
  const own = processes.filter(({ of_other_user }) => !of_other_user);
  const candidates = alive.length > 0 ? alive : own;
  return candidates.reduce<Process | undefined>(
    (most, process) =>
      most === undefined || (process.rss_bytes ?? 0) > (most.rss_bytes ?? 0) ? process : most,
    undefined,
  );
}
