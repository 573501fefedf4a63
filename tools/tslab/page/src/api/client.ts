// client: asks the agent, and says what came of it.

/** What became of a question. */
export type Outcome<T> =
  | { readonly kind: "told"; readonly answer: T }
  /** A token is wanted, or another one. */
  | { readonly kind: "locked" }
  /** The agent knows nothing of it. */
  | { readonly kind: "missing"; readonly why: string }
  /** The agent answered that it cannot tell. */
  | { readonly kind: "refused"; readonly why: string }
  /** Nobody answered. */
  | { readonly kind: "lost"; readonly why: string };

const PATIENCE_MS = 10_000;
const MOST_OF_AN_ERROR = 300;

export class Client {
  token: string | null = null;

  /** `path` is relative to where the page lies. */
  async ask<T>(path: string): Promise<Outcome<T>> {
    const headers: Record<string, string> = { Accept: "application/json" };
    if (this.token !== null) headers["Authorization"] = `Bearer ${this.token}`;
    const signal = AbortSignal.timeout(PATIENCE_MS);
    try {
      const response = await fetch(path, { headers, signal, cache: "no-store" });
      return await outcomeOf<T>(response);
    } catch (error) {
      return { kind: "lost", why: reason(error) };
    }
  }
}

async function outcomeOf<T>(response: Response): Promise<Outcome<T>> {
  if (response.status === 401) return { kind: "locked" };
  const text = await response.text();
  if (response.status === 404) return { kind: "missing", why: complaint(text) };
  if (!response.ok) {
    return { kind: "refused", why: complaint(text) || `status ${response.status}` };
  }
  try {
    return { kind: "told", answer: JSON.parse(text) as T };
  } catch {
    return { kind: "lost", why: "what answered is not the agent: it did not send JSON" };
  }
}

/** Of an answer that is an error: its `error`, or its text. */
function complaint(text: string): string {
  const said = errorIn(text) ?? text;
  return said.trim().slice(0, MOST_OF_AN_ERROR);
}

function errorIn(text: string): string | null {
  try {
    const { error } = JSON.parse(text) as { error?: unknown };
    return typeof error === "string" ? error : null;
  } catch {
    return null;
  }
}

function reason(error: unknown): string {
  if (error instanceof DOMException && error.name === "TimeoutError") {
    return `no answer within ${PATIENCE_MS / 1000} s`;
  }
  return "no connection";
}
