// route: what is looked at, as the part of the address behind #.

export interface Route {
  /** Null: none was chosen. */
  readonly pid: number | null;
  /** The id of an epoch of that process. */
  readonly epoch: number | null;
}

const PATTERN = /^#\/(\d+)(?:\/epoch\/(\d+))?$/;

export function routeOf(hash: string): Route {
  const [, pid, epoch] = PATTERN.exec(hash) ?? [];
  return { pid: numberOf(pid), epoch: numberOf(epoch) };
}

function numberOf(digits: string | undefined): number | null {
  return digits === undefined ? null : Number(digits);
}

export const LIST = "#/";

export const hashOfProcess = (pid: number): string => `#/${pid}`;

export const hashOfEpoch = (pid: number, id: number): string => `#/${pid}/epoch/${id}`;
