// sparkline: the recent past of one figure, as large as a word.
import type { JSX } from "preact";

import type { Figure } from "../api/answers.js";

const WIDTH = 96;
const HEIGHT = 20;

/** Evenly spaced figures; what is not known is a gap. */
export function Sparkline({ figures }: { readonly figures: readonly Figure[] }): JSX.Element {
  return (
    <svg class="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
      <path d={pathOf(figures)} />
    </svg>
  );
}

export function pathOf(figures: readonly Figure[]): string {
  const most = figures.reduce<number>((most, figure) => Math.max(most, figure ?? 0), 0);
  const step = WIDTH / Math.max(1, figures.length - 1);
  let isDrawing = false;
  return figures
    .map((figure, index) => {
      const command = isDrawing ? "L" : "M";
      isDrawing = figure !== null;
      if (figure === null) return "";
      const up = most > 0 ? figure / most : 0;
      return `${command}${(index * step).toFixed(1)} ${(HEIGHT - 1 - up * (HEIGHT - 2)).toFixed(1)}`;
    })
    .join("");
}
