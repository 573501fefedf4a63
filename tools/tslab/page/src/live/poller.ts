// poller: asks the agent once a second, while somebody looks.
import type { Client } from "../api/client.js";
import type { Model } from "./model.js";
import { askRound } from "./round.js";

const EVERY_MS = 1_000;

export class Poller {
  readonly #client: Client;
  readonly #model: Model;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isAsking = false;
  #isPaused = false;

  constructor(client: Client, model: Model) {
    this.#client = client;
    this.#model = model;
    document.addEventListener("visibilitychange", () => this.now());
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  pause(isPaused: boolean): void {
    this.#isPaused = isPaused;
    this.now();
  }

  /** Asks at once, unless it is about to answer anyway. */
  now(): void {
    clearTimeout(this.#timer);
    const mayAsk = !document.hidden && !this.#isPaused && !this.#isAsking;
    if (mayAsk) void this.#ask();
  }

  async #ask(): Promise<void> {
    const start = performance.now();
    this.#isAsking = true;
    const hadToken = this.#client.token !== null;
    const round = await askRound(this.#client, this.#model.wanted(Date.now() / 1000));
    this.#isAsking = false;
    this.#model.apply(Date.now() / 1000, round, hadToken);
    if (this.#model.link.kind === "locked") return;
    // What a process tells is wanted as soon as the process is known.
    const isWhole = (round.detail?.handle ?? null) === this.#model.handle;
    const wait = isWhole ? restOf(performance.now() - start) : 0;
    this.#timer = setTimeout(() => this.now(), wait);
  }
}

/** Until the next round. An agent that has much to tell rests for half of the time. */
const restOf = (asked: number): number => Math.max(EVERY_MS - asked, asked);
