// flame: sampled stacks as a flame graph, roots on top. It is drawn here because libraries for it
// serve the mouse alone and put names into innerHTML; frames are buttons that the arrow keys reach.
import type { JSX, TargetedKeyboardEvent } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import type { Age, Figure, Profile, Sample } from "../api/answers.js";
import { useWidth } from "../chart/width.js";
import {
  ANY,
  callAt,
  callTree,
  classesIn,
  coverage,
  filteredSamples,
  flameRows,
  pathOf,
  type Call,
  type Filter,
  type Frame,
  type Weight,
} from "../model/flame.js";
import { bytes, count, percent, printable } from "../model/text.js";
import { Choice, ClassPick, Empty, Pick } from "./fragments.js";

const WEIGHTS = [
  ["bytes", "bytes"],
  ["objects", "objects"],
] as const;

/** In pixels: what is narrower is not drawn, or has no text. */
const LEAST_WIDTH = 2;
const LEAST_TEXT = 28;

/** Of the style sheet. The graph keeps its height, so that nothing moves away below the mouse. */
const COLOURS = 6;
const ROW_REM = 1.6;

const AGES: readonly (readonly [Age | "", string])[] = [
  ["", "all ages"],
  ["1-10s", "1 s and older"],
  ["10-60s", "10 s and older"],
  ["1-10min", "1 min and older"],
  ["10-60min", "10 min and older"],
  ["1-24h", "1 h and older"],
  ["1d+", "1 d and older"],
];

interface FlameProps {
  readonly profile: Profile;
  /** Those that may be shown. */
  readonly samples: readonly Sample[];
  /** Bytes of the objects that could have been sampled. */
  readonly live: Figure;
}

export function Flame({ profile, samples: all, live }: FlameProps): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place, 800);
  const [weight, choose] = useState<Weight>("bytes");
  const [top, zoom] = useState<readonly string[]>([]);
  const [pointed, point] = useState<readonly string[]>([]);
  const [search, setSearch] = useState("");
  const [filter, setFilter] = useState<Filter>(ANY);
  const samples = filteredSamples(all, filter);
  const root = callTree(samples, weight);
  const rows = flameRows(callAt(root, top), LEAST_WIDTH / width);
  const at = drawn(rows, callAt(root, pointed)) ?? callAt(root, top);
  const find = search.trim().toLowerCase();
  const graph: Graph = { root, weight, width, find, at, top, point, zoom };
  useFocus(place, keyOf(at));
  return (
    <div class="flame">
      <div class="tools">
        <Choice name="Width of a frame" values={WEIGHTS} chosen={weight} choose={choose} />
        <ClassPick
          name="Size class of objects"
          classes={classesIn(all)}
          chosen={filter.class_bytes}
          choose={(class_bytes) => setFilter({ ...filter, class_bytes })}
        />
        <Pick
          name="Age of objects"
          values={AGES}
          chosen={filter.age ?? ""}
          choose={(age) =>
            setFilter({ ...filter, age: AGES.find(([key]) => key === age)?.[0] || null })
          }
        />
        <input
          type="search"
          class="filter"
          aria-label="Find functions"
          placeholder="find  /"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
          data-filter
        />
        <button type="button" disabled={top.length === 0} onClick={() => zoom([])}>
          Whole graph
        </button>
      </div>
      <p class="about">{coverage(profile, samples, live)}</p>
      {root.weight === 0 ? <Empty>No object of this class and age has been sampled.</Empty> : null}
      <div
        class="frames"
        ref={place}
        style={{ minHeight: `${ROW_REM * flameRows(root, LEAST_WIDTH / width).length}rem` }}
        role="group"
        aria-label="Flame graph: callers above callees"
        onKeyDown={(event) => steer(event, rows, graph)}
      >
        {rows.map((row, depth) => (
          <div key={depth} class="row">
            {row.map((frame) => (
              <FrameButton key={keyOf(frame.call)} frame={frame} graph={graph} />
            ))}
          </div>
        ))}
      </div>
      <p class="detail">{aboutText(at, graph)}</p>
    </div>
  );
}

interface Graph {
  readonly root: Call;
  readonly weight: Weight;
  readonly width: number;
  /** What names are searched for. */
  readonly find: string;
  /** The call that the mouse or the keyboard is at. */
  readonly at: Call;
  /** Path of the call that has the whole width. */
  readonly top: readonly string[];
  readonly point: (path: readonly string[]) => void;
  readonly zoom: (path: readonly string[]) => void;
}

/** The same call has the same key, whatever else there is in a later graph. */
const keyOf = (call: Call): string => JSON.stringify(pathOf(call));

const drawn = (rows: readonly Frame[][], call: Call): Call | undefined =>
  rows[call.depth]?.find((frame) => frame.call === call)?.call;

/** While a frame has the focus, it goes where the keys point. */
function useFocus(place: { readonly current: HTMLElement | null }, at: string): void {
  useLayoutEffect(() => {
    const { activeElement } = document;
    const isInside = activeElement !== null && place.current?.contains(activeElement) === true;
    if (isInside) place.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus();
  }, [at]);
}

interface FrameProps {
  readonly frame: Frame;
  readonly graph: Graph;
}

function FrameButton({ frame, graph }: FrameProps): JSX.Element {
  const { call, left, width } = frame;
  const name = printable(call.name);
  const isHit = graph.find !== "" && name.toLowerCase().includes(graph.find);
  const isMiss = graph.find !== "" && !isHit;
  const path = pathOf(call);
  return (
    <button
      type="button"
      class={`frame c${colourOf(call)} ${isHit ? "hit" : ""} ${isMiss ? "miss" : ""}`}
      style={{ left: `${left * 100}%`, width: `${width * 100}%` }}
      tabIndex={call === graph.at ? 0 : -1}
      aria-label={aboutText(call, graph)}
      onClick={() => {
        graph.point(path);
        graph.zoom(path);
      }}
      onMouseEnter={() => graph.point(path)}
      onFocus={() => graph.point(path)}
    >
      {width * graph.width < LEAST_TEXT ? "" : <bdi>{name}</bdi>}
    </button>
  );
}

/** The same name has the same colour wherever it stands. */
function colourOf({ name, parent }: Call): number | string {
  if (parent === null) return "root";
  let hash = 7;
  for (const char of name) hash = (hash * 31 + (char.codePointAt(0) ?? 0)) % 65_521;
  return hash % COLOURS;
}

function aboutText(call: Call, { root, weight }: Graph): string {
  const text = (amount: number): string =>
    weight === "bytes" ? bytes(amount) : count(Math.round(amount), "object");
  const share = percent(root.weight > 0 ? call.weight / root.weight : null);
  const own = call.own > 0 ? `, ${text(call.own)} of it itself` : "";
  return `${printable(call.name)}: ${text(call.weight)}, ${share}${own}`;
}

function steer(
  event: TargetedKeyboardEvent<HTMLElement>,
  rows: readonly Frame[][],
  graph: Graph,
): void {
  if (event.key === "Escape" || event.key === "Backspace") {
    if (graph.top.length === 0) return;
    graph.point(graph.top);
    graph.zoom(graph.top.slice(0, -1));
  } else {
    const next = neighbour(event.key, rows, graph.at);
    if (next === undefined) return;
    graph.point(pathOf(next));
  }
  event.preventDefault();
  event.stopPropagation();
}

/** Up to the caller, down to the heaviest callee, aside in the row. */
function neighbour(key: string, rows: readonly Frame[][], at: Call): Call | undefined {
  const row = rows[at.depth] ?? [];
  const index = row.findIndex(({ call }) => call === at);
  switch (key) {
    case "ArrowUp":
      return at.parent ?? undefined;
    case "ArrowDown":
      return rows[at.depth + 1]?.find(({ call }) => call.parent === at)?.call;
    case "ArrowLeft":
      return row[index - 1]?.call;
    case "ArrowRight":
      return row[index + 1]?.call;
    default:
      return undefined;
  }
}
