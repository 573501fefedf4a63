// range: how far back the charts of a process reach.
import { useKept } from "./kept.js";

export const RANGES = [
  [60, "1 min"],
  [300, "5 min"],
  [3600, "1 h"],
  [86_400, "1 d"],
] as const;

export interface Range {
  readonly seconds: number;
  readonly choose: (seconds: number) => void;
}

/** One for all of them, so that they show the same time. */
export function useRange(): Range {
  const [seconds, choose] = useKept<number>("memory.seconds", 300);
  return { seconds, choose };
}
