// watched: the process that is looked at: the last that was said of it, and its recent past.
import type { Doctor, Epoch, Epochs, Leaks, Process, Profile, Stats, Why } from "../api/answers.js";
import type { Outcome } from "../api/client.js";
import { COUNTED } from "../model/figures.js";
import { Holders } from "../model/holders.js";
import { Past } from "../model/past.js";
import { Track } from "../model/track.js";
import type { Detail } from "./round.js";

/** Moments that are kept: an hour of seconds. */
export const MOST_MOMENTS = 3_600;

const PROFILE_SECONDS = 5;
/** The system takes its time to say what is resident. */
const JUDGEMENT_SECONDS = 10;

/** An answer; null: not known, and perhaps why. */
export interface Judged<T> {
  readonly answer: T | null;
  readonly why: string | null;
}

/** An epoch that is looked at. */
export class WatchedEpoch {
  readonly id: number;
  /** The last that was said of it; null: nothing yet. */
  last: Epoch | null;
  /** It was there, and is no more. */
  gone = false;
  /** Held and live bytes. */
  readonly track = new Track(2, MOST_MOMENTS);

  constructor(id: number, epochs: readonly Epoch[]) {
    this.id = id;
    this.last = epochs.find((epoch) => epoch.id === id) ?? null;
  }

  apply(at: number, epochs: readonly Epoch[]): void {
    const epoch = epochs.find(({ id }) => id === this.id);
    this.gone = epoch === undefined;
    if (epoch === undefined) return;
    this.last = epoch;
    this.track.push(at, [epoch.held_bytes, epoch.live.bytes]);
  }
}

export class Watched {
  /** As the agent is asked for it. */
  readonly handle: string;
  /** What the list of processes last said. */
  process: Process | null = null;
  stats: Stats | null = null;
  epochs: Epochs | null = null;
  leaks: Leaks | null = null;
  profile: Profile | null = null;
  /** The process keeps no samples. */
  isUnsampled = false;
  #profiled = 0;
  why: Judged<Why> = { answer: null, why: null };
  doctor: Judged<Doctor> = { answer: null, why: null };
  #judged = -Infinity;
  epoch: WatchedEpoch | null = null;
  /** It was there, and is no more. */
  gone = false;
  /** What the agent cannot tell, by question. */
  readonly notes = new Map<string, string>();
  readonly past = new Past();
  readonly holders = new Holders(MOST_MOMENTS);
  readonly counts = new Track(COUNTED.length, MOST_MOMENTS);

  constructor(handle: string) {
    this.handle = handle;
  }

  get pid(): number {
    return Number.parseInt(this.handle, 10);
  }

  /** Takes in what the list of processes says: undefined when it is not there. */
  follow(process: Process | undefined): void {
    this.gone = process === undefined && this.process !== null;
    this.process = process ?? this.process;
  }

  apply(at: number, detail: Detail): void {
    this.stats = this.#take("process", detail.stats) ?? this.stats;
    this.epochs = this.#take("epochs", detail.epochs) ?? this.epochs;
    this.leaks = this.#take("leaks", detail.leaks) ?? this.leaks;
    if (detail.profile !== null) {
      this.#profiled = at;
      this.#takeProfile(detail.profile);
    }
    if (detail.judgement !== null) {
      this.#judged = at;
      this.why = judged(detail.judgement.why, this.why);
      this.doctor = judged(detail.judgement.doctor, this.doctor);
    }
    if (detail.history !== null) {
      this.past.asked(at);
      if (detail.history.kind === "told") {
        this.past.apply(at, detail.history.answer);
        this.holders.apply(at, detail.history.answer);
      }
    }
    if (detail.stats.kind === "told") {
      const stats = detail.stats.answer;
      this.counts.push(
        at,
        COUNTED.map((cause) => cause.count(stats)),
      );
    }
    if (detail.epochs.kind === "told") {
      this.epoch?.apply(at, detail.epochs.answer.epochs);
      this.holders.push(at, detail.epochs.answer.epochs);
    }
  }

  /** It can be asked for something. */
  get runs(): boolean {
    return !this.gone && (this.stats?.life ?? this.process?.life) === "alive";
  }

  /** Profiles are large and change slowly. `at`: now. */
  isProfileDue(at: number): boolean {
    return at - this.#profiled >= PROFILE_SECONDS;
  }

  /** `at`: now. */
  isJudgementDue(at: number): boolean {
    return at - this.#judged >= JUDGEMENT_SECONDS;
  }

  watchEpoch(id: number | null): void {
    if ((this.epoch?.id ?? null) === id) return;
    this.epoch = id === null ? null : new WatchedEpoch(id, this.epochs?.epochs ?? []);
  }

  #take<T>(question: string, outcome: Outcome<T>): T | null {
    this.notes.delete(question);
    if (outcome.kind === "told") return outcome.answer;
    if (outcome.kind === "refused") this.notes.set(question, outcome.why);
    if (outcome.kind === "lost") {
      this.notes.set(question, `The agent did not tell of the ${question}: ${outcome.why}.`);
    }
    return null;
  }

  #takeProfile(outcome: Outcome<Profile>): void {
    this.profile = this.#take("profile", outcome) ?? this.profile;
    if (outcome.kind === "told") this.isUnsampled = false;
    if (outcome.kind === "missing" && !this.gone) {
      this.isUnsampled = true;
      this.profile = null;
    }
  }
}

function judged<T>(outcome: Outcome<T>, before: Judged<T>): Judged<T> {
  if (outcome.kind === "told") return { answer: outcome.answer, why: null };
  const why = "why" in outcome ? outcome.why : null;
  return { answer: outcome.kind === "lost" ? before.answer : null, why };
}
