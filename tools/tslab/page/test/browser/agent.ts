// agent: stands in for `tslab serve`: the built page, and answers that a test makes up.
import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { extname } from "node:path";

import type { HostEvents } from "../../src/api/answers.js";
import { processOf } from "../../src/model/processes.js";
import type { Told } from "./answers.js";

const DIST = new URL("../../../dist/", import.meta.url);

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".png": "image/png",
};

/** As strict as a page can be held. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
  "require-trusted-types-for 'script'";

const API =
  /^\/api\/v1\/processes(?:\/(\d+(?:\.\d+)?)(?:\/(epochs|leaks|profile|history|why|doctor))?)?$/;

type Answer = readonly [status: number, body: unknown];

export class Agent {
  /** What it tells from now on. */
  told: Told[] = [];
  /** What clients must send. */
  token: string | null = null;
  /** It hangs up instead of answering. */
  isSilent = false;
  /** Questions so far, with their parameters. */
  readonly asked: string[] = [];
  readonly #server = createServer((request, response) => void this.#serve(request, response));

  /** The address of the page. */
  async start(port = 0): Promise<string> {
    await new Promise<void>((started) => this.#server.listen(port, "127.0.0.1", started));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((stopped) => this.#server.close(stopped));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://agent");
    if (!url.pathname.startsWith("/api/")) {
      await serveFile(url.pathname, response);
      return;
    }
    this.asked.push(url.pathname + url.search);
    if (this.isSilent) {
      request.socket.destroy();
      return;
    }
    const isLocked =
      this.token !== null && request.headers.authorization !== `Bearer ${this.token}`;
    const [status, body] = isLocked ? [401, { error: "token" }] : this.#answer(url);
    response.writeHead(status, { "Content-Type": "application/json" });
    response.end(JSON.stringify(body));
  }

  #answer(url: URL): Answer {
    if (url.pathname === "/api/v1/events") return [200, hostEvents(this.told)];
    const [match, handle, part] = API.exec(url.pathname) ?? [];
    if (match === undefined) return [404, { error: "no such address" }];
    if (handle === undefined) {
      return [200, { processes: this.told.map(({ process }) => process) }];
    }
    const meant = processOf(
      this.told.map(({ process }) => process),
      handle,
    );
    const told = this.told.find(({ process }) => process === meant);
    if (told === undefined) return [404, { error: `there is no process ${handle}` }];
    return answerOf(told, part, url.searchParams);
  }
}

function answerOf(told: Told, part: string | undefined, parameters: URLSearchParams): Answer {
  switch (part) {
    case "epochs": {
      const isAll = parameters.get("all") === "true";
      const epochs = told.epochs.epochs.filter(({ state }) => isAll || state !== "released");
      return [200, { ...told.epochs, epochs }];
    }
    case "leaks": {
      const after = Number(parameters.get("after")) * 1000;
      const leaks = told.leaks.leaks.filter(({ for_ms }) => (for_ms ?? 0) > after);
      return [200, { ...told.leaks, after_ms: after, leaks }];
    }
    case "history":
      return [200, told.history];
    case "why":
      return told.why === null ? [500, { error: "the system does not tell" }] : [200, told.why];
    case "doctor":
      return [200, told.doctor];
    case "profile":
      return told.profile === null ? [404, { error: "Sampling is off." }] : [200, told.profile];
    default:
      return [200, told.stats];
  }
}

/** Of all processes together. */
function hostEvents(told: readonly Told[]): HostEvents {
  const events = told.flatMap(({ process: { pid, name, path }, history }) => {
    const start_ticks = Number(path.split(".").at(-1));
    return history.events.map((event) => ({ ...event, pid, start_ticks, name }));
  });
  const kept = told.filter(({ history }) => history.kept);
  return {
    kept: kept.length > 0,
    now_s: kept[0]?.history.now_s ?? 0,
    events: events.sort((a, b) => a.at_s - b.at_s),
  };
}

async function serveFile(path: string, response: ServerResponse): Promise<void> {
  const name = path === "/" ? "index.html" : path.slice(1);
  try {
    const body = await readFile(new URL(name, DIST));
    const type = TYPES[extname(name)] ?? "application/octet-stream";
    response.writeHead(200, { "Content-Type": type, "Content-Security-Policy": POLICY });
    response.end(body);
  } catch {
    response.writeHead(404).end();
  }
}
