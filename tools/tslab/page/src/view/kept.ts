// kept: what the reader has set, which must not be lost when the view changes.
import { useState } from "preact/hooks";

const kept = new Map<string, unknown>();

/** As useState; whoever asks for the same name gets what was set last. */
export function useKept<T>(name: string, atFirst: T): readonly [T, (value: T) => void] {
  const [value, set] = useState<T>(kept.has(name) ? (kept.get(name) as T) : atFirst);
  const keep = (next: T): void => {
    kept.set(name, next);
    set(next);
  };
  return [value, keep];
}
