// route: what is looked at, as the part of the address behind #.

export interface Route {
  /** Of a process, as the agent takes it (model/processes.ts); null: none was chosen. */
  readonly handle: string | null;
  /** The id of an epoch of that process. */
  readonly epoch: number | null;
}

const PATTERN = /^#\/(\d+(?:\.\d+)?)(?:\/epoch\/(\d+))?$/;

export function routeOf(hash: string): Route {
  const [, handle = null, epoch] = PATTERN.exec(hash) ?? [];
  return { handle, epoch: epoch === undefined ? null : Number(epoch) };
}

export const LIST = "#/";

export const hashOfProcess = (handle: string): string => `#/${handle}`;

export const hashOfEpoch = (handle: string, id: number): string => `#/${handle}/epoch/${id}`;
