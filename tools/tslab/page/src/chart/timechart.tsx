// timechart: figures over time on a canvas, drawn by uPlot: it is small, has no dependencies, draws
// an hour of seconds in a millisecond, and needs neither inline styles nor eval.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";

import type { Figure } from "../api/answers.js";
import { clock } from "../model/text.js";
import type { Series } from "../model/track.js";
import { colour, hatch } from "./palette.js";

export interface Line {
  readonly name: string;
  /** Of the style sheet. */
  readonly colour: string;
  readonly isArea?: boolean;
  readonly width?: number;
  /** Lengths of dashes and of what lies between them; empty: none. */
  readonly dashes?: readonly number[];
}

const WIDTH = 2;

interface TimeChartProps {
  readonly name: string;
  readonly lines: readonly Line[];
  /** What lies between the first two is hatched. */
  readonly isHatched?: boolean;
  readonly series: Series;
  /** Seconds that the chart reaches back. */
  readonly seconds: number;
  readonly height: number;
  readonly text: (value: Figure) => string;
  /** The steps of the vertical axis are these times 1, 2, 4, ... */
  readonly unit: number;
  readonly theme: string;
}

export function TimeChart(props: TimeChartProps): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [pointed, point] = useState<number | null>(null);
  const latest = useRef(props);
  latest.current = props;

  useEffect(() => {
    if (place.current === null) return;
    const made = newPlot(place.current, latest, point);
    plot.current = made;
    const resize = new ResizeObserver(([entry]) => {
      const width = Math.floor(entry?.contentRect.width ?? 0);
      if (width > 0) made.setSize({ width, height: latest.current.height });
    });
    resize.observe(place.current);
    return () => {
      resize.disconnect();
      made.destroy();
    };
  }, [props.theme]);

  useEffect(() => {
    plot.current?.setData(props.series as unknown as uPlot.AlignedData);
  }, [props.series]);

  const [times, ...columns] = props.series;
  const at = pointed === null || pointed >= times.length ? times.length - 1 : pointed;
  const figures = columns.map((column) => column[at] ?? null);
  return (
    <figure class="timechart">
      <div class="canvas" ref={place} role="img" aria-label={summary(props, columns)} />
      <figcaption>
        {props.lines.map((line, index) => (
          <span key={line.colour} class="key">
            <Swatch line={line} />
            <bdi class="name" title={line.name}>
              {line.name}
            </bdi>{" "}
            <b>{props.text(figures[index] ?? null)}</b>
          </span>
        ))}
        <span class="time">{times[at] === undefined ? "" : clock(times[at])}</span>
      </figcaption>
    </figure>
  );
}

const Swatch = ({ line }: { readonly line: Line }): JSX.Element =>
  line.dashes === undefined ? (
    <span class={`swatch ${line.isArea === true ? "area" : "line"} ${line.colour}`} />
  ) : (
    <svg class="swatch dashes" viewBox="0 0 28 4" aria-hidden="true">
      <path
        d="M0 2H28"
        stroke={`var(--${line.colour})`}
        stroke-width={line.width ?? WIDTH}
        stroke-dasharray={line.dashes.join(" ")}
      />
    </svg>
  );

/** The chart for those who do not see it. */
function summary(
  { name, lines, text }: TimeChartProps,
  columns: readonly (readonly Figure[])[],
): string {
  const parts = lines.map((line, index) => {
    const known = (columns[index] ?? []).filter((figure): figure is number => figure !== null);
    if (known.length === 0) return `${line.name} not known`;
    const [least, most] = [Math.min(...known), Math.max(...known)];
    return `${line.name} ${text(known.at(-1) ?? null)}, between ${text(least)} and ${text(most)}`;
  });
  return `${name}: ${parts.join("; ")}`;
}

type Latest = { readonly current: TimeChartProps };

function newPlot(place: HTMLElement, latest: Latest, point: (index: number | null) => void): uPlot {
  const { lines, height, isHatched } = latest.current;
  const options: uPlot.Options = {
    width: Math.max(200, place.clientWidth),
    height,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
    scales: {
      x: { time: true, range: () => spanOf(latest.current.series, latest.current.seconds) },
      y: { range: (_plot, _least, most) => [0, Math.max(latest.current.unit, (most ?? 0) * 1.08)] },
    },
    axes: [timeAxis(), valueAxis(latest)],
    series: [{}, ...lines.map(seriesOf)],
    bands: isHatched === true ? [{ series: [1, 2], fill: (self) => hatch(self.ctx, "gap") }] : [],
    hooks: { setCursor: [(self) => point(self.cursor.idx ?? null)] },
  };
  return new uPlot(options, latest.current.series as unknown as uPlot.AlignedData, place);
}

/** What is known over the whole width, if that is not much. */
const LEAST_SPAN = 60;

/** From when to when the chart reaches. */
export function spanOf(series: Series, seconds: number): [number, number] {
  const end = series[0].at(-1) ?? Date.now() / 1000;
  const known = end - (series[0][0] ?? end);
  return [end - Math.min(seconds, Math.max(known, LEAST_SPAN)), end];
}

const seriesOf = (line: Line): uPlot.Series => ({
  label: line.name,
  stroke: () => colour(line.colour),
  width: line.width ?? WIDTH,
  dash: [...(line.dashes ?? [])],
  points: { show: true, size: 4, filter: alone, fill: () => colour(line.colour) },
  spanGaps: false,
  ...(line.isArea === true ? { fill: () => colour(`${line.colour}-fill`) } : {}),
});

/** Figures between two gaps: no line goes through them. */
function alone(plot: uPlot, index: number): number[] {
  const figures = plot.data[index] ?? [];
  const isGap = (at: number): boolean => figures[at] == null;
  return [...figures.keys()].filter((at) => !isGap(at) && isGap(at - 1) && isGap(at + 1));
}

const axisBase = (): uPlot.Axis => ({
  stroke: () => colour("ink-soft"),
  grid: { stroke: () => colour("grid"), width: 1 },
  ticks: { show: false },
  font: "12px system-ui, sans-serif",
});

const timeAxis = (): uPlot.Axis => ({
  ...axisBase(),
  grid: { show: false },
  size: 30,
  space: 90,
  values: (_plot, splits) => splits.map(clock),
});

const valueAxis = (latest: Latest): uPlot.Axis => ({
  ...axisBase(),
  size: 78,
  space: 44,
  incrs: Array.from({ length: 60 }, (_, power) => latest.current.unit * 2 ** power),
  values: (_plot, splits) => splits.map((value) => latest.current.text(value)),
});
