// answers: what a made-up process tells: a web server whose uploads leak.
import type {
  DefaultEpoch,
  Doctor,
  Epoch,
  Epochs,
  Figure,
  Growth,
  History,
  Identity,
  LabelPast,
  Leak,
  Leaks,
  Decade,
  Lifetime,
  Process,
  Profile,
  Reach,
  Sample,
  SizeClass,
  Stack,
  Stats,
  Verdict,
  Why,
} from "../../src/api/answers.js";

const KIB = 1024;
const MIB = 1024 * KIB;

/** All that is told of one process. */
export interface Told {
  process: Process;
  stats: Stats;
  epochs: Epochs;
  leaks: Leaks;
  /** Null: it keeps no samples. */
  profile: Profile | null;
  history: History;
  /** Null: the system does not tell. */
  why: Why | null;
  doctor: Doctor;
}

interface Size {
  readonly pid: number;
  readonly name: string;
  readonly rss: Figure;
  readonly live: Figure;
}

/** `second`: how long it has run; its figures follow from it. */
export function server(second: number): Told {
  const wave = Math.sin(second / 23) + 0.4 * Math.sin(second / 5);
  const live = Math.round((180 + 28 * wave + second * 0.05) * MIB);
  const rss = Math.round(live + (52 + 9 * Math.sin(second / 61)) * MIB);
  const size = { pid: 4242, name: "upload-server", rss, live };
  return {
    process: process(size),
    stats: stats(size, second),
    epochs: { ...identity(size), epochs: epochs(second) },
    leaks: {
      ...identity(size),
      after_ms: 60_000,
      leaks: leaks(second),
      default_epoch: outside(96 * MIB),
    },
    profile: profile(samples()),
    history: history(),
    why: why(size),
    doctor: {
      ...identity(size),
      over_ms: 42_000,
      findings: [
        {
          cause: "leak",
          bytes: 820_000,
          what: "4,932 objects of 812.0 KiB outlived 3 epochs that ended more than 60 s ago",
          advice: "tslab leaks 4242 names the call stacks that allocated them",
        },
        {
          cause: "near-limit",
          bytes: null,
          what: 'epoch "tenant 17" holds 44.0 MiB, 92 % of its hard limit of 48.0 MiB',
          advice: "raise the limit, or find what fills the epoch",
        },
      ],
      not_checked: [],
    },
  };
}

function why(size: Size): Why {
  const [rss, live] = [size.rss ?? 0, size.live ?? 0];
  const part = (part: string, bytes: number, text: string) => ({ part, bytes, text });
  return {
    ...identity(size),
    rss_bytes: rss,
    resident_bytes: rss - 6 * MIB,
    not_resident_bytes: 0,
    parts: [
      part("live", live - 14 * MIB, "live objects, and their rounding to size classes"),
      part("large", 14 * MIB, "live blocks of whole units, and their rounding"),
      part("hot", 3 * MIB, "free objects that threads keep at hand"),
      part("free_in_slabs", 20 * MIB, "free in slabs and cells that hold live objects"),
      part("dirty", 6 * MIB, "free, not given back to the system yet"),
      part("residual", 0, "residual: resident, and none of the above"),
    ],
    others: [{ what: "files: the program and its libraries", bytes: 6 * MIB }],
  };
}

/** A day, with a restart of the agent in it. */
function history(): History {
  const now_s = Math.round(Date.now() / 1000);
  const moments = Array.from({ length: 1440 }, (_, minute) => {
    const live = Math.round((150 + 40 * Math.sin(minute / 90)) * MIB);
    return [now_s - (1440 - minute) * 60, live + 50 * MIB, live] as const;
  });
  const event = (ago: number, kind: string, count: number, bytes: Figure, label?: string) => ({
    at_s: now_s - ago,
    kind,
    label: label ?? null,
    count,
    bytes,
  });
  const events = [
    event(40_000, "memory", 1, null),
    event(9_000, "survivors", 2, 40 * KIB, "GET /upload"),
    event(2_400, "purge", 3, 12 * MIB),
    event(600, "limit", 17, null),
    event(200, "survivors", 1, 3 * MIB, "GET /upload"),
    event(90, "purge", 1, 4 * MIB),
  ];
  return {
    kept: true,
    now_s,
    moments: moments.filter((_, minute) => minute < 700 || minute > 760),
    labels: labels(now_s),
    events,
  };
}

/** The same day: one label grows from its middle on, one comes and goes. */
function labels(now_s: number): LabelPast[] {
  const label = (label: string, mib: (minute: number) => number): LabelPast => {
    const minutes = [...Array(1440).keys()].filter((minute) => minute < 700 || minute > 760);
    const moments = minutes.map(
      (minute) => [now_s - (1440 - minute) * 60, Math.round(mib(minute) * MIB)] as const,
    );
    return { label, moments: moments.filter(([, bytes]) => bytes > 0) };
  };
  return [
    label("default", (minute) => 69 + 6 * Math.sin(minute / 90)),
    label("tenant 17", (minute) => (minute < 800 ? 4 : 4 + (minute - 800) * 0.0433)),
    label("tenant 4", () => 22.3),
    label("tenant 29", (minute) => 13 + Math.sin(minute / 40)),
    label("session cache", (minute) => 5 + minute / 500),
    label("etl batch 7", (minute) => (minute % 360 < 90 ? 12 : 0)),
  ];
}

/** A process of whose allocations not all were sampled ever since. */
export function sampledOf(told: Told, sampled: Reach): Told {
  const profile = told.profile && { ...told.profile, sampled, partial: true };
  return { ...told, profile };
}

/** A process after its end, with the file that it left. */
export function dead(told: Told): Told {
  const life = "dead";
  return { ...told, process: { ...told.process, life }, stats: { ...told.stats, life } };
}

/** A process of which little is known. */
export function stranger(pid: number, name: string): Told {
  const size = { pid, name, rss: 24 * MIB, live: null };
  const none = { live_objects: null, live_bytes: null, large_bytes: null, held_bytes: null };
  const free = { hot_bytes: null, spare_bytes: null, thread_cached_bytes: null };
  const counts = { epochs_open: null, epochs_shared: null, epochs_closed_with_survivors: null };
  const totals = { ...none, ...free, ...counts, threads: null, unsettled: false };
  return {
    process: { ...process(size), epochs_open: null, epochs_closed_with_survivors: null },
    stats: {
      ...identity(size),
      rss_bytes: size.rss,
      totals,
      classes: [],
      process: {},
      allocations: null,
      slow_paths: {},
    },
    epochs: { ...identity(size), epochs: [] },
    leaks: { ...identity(size), after_ms: 60_000, leaks: [], default_epoch: outside(null) },
    profile: null,
    history: { kept: false, now_s: 0, moments: [], labels: [], events: [] },
    why: null,
    doctor: {
      ...identity(size),
      over_ms: null,
      findings: [],
      not_checked: [{ cause: "outside", missing: "RSS of a process that runs" }],
    },
  };
}

/** One whose file is of another user. */
export function closed(pid: number): Told {
  const told = stranger(pid, "other-daemon");
  const error = "it cannot be opened: run this command as the user of that process, or root";
  return { ...told, process: { ...told.process, version: null, error, of_other_user: true } };
}

/** A hundred processes that run, and three hundred that have ended. */
export function host(): Told[] {
  const worker = (number: number): Told => stranger(5000 + number, `worker-${number}`);
  const ended = (number: number): Told => {
    const told = stranger(6000 + number, `job-${number}`);
    const last_word_ms = (number + 1) * 60_000;
    const last = { life: "dead", rss_bytes: null, last_word_ms } as const;
    return {
      ...told,
      process: { ...told.process, ...last, live_bytes: 4096 },
      stats: { ...told.stats, ...last, totals: { ...told.stats.totals, live_bytes: 4096 } },
    };
  };
  return [
    server(200),
    ...Array.from({ length: 99 }, (_, number) => worker(number)),
    ...Array.from({ length: 300 }, (_, number) => ended(number)),
  ];
}

const identity = ({ pid, name }: Size): Identity => ({
  pid,
  start_ticks: 777,
  name,
  life: "alive",
  version: "0.1.0",
  last_word_ms: 40,
  full_tables: [],
});

const process = ({ pid, name, rss, live }: Size): Process => ({
  pid,
  path: `/dev/shm/tslab.${pid}.777`,
  name,
  life: "alive",
  version: "0.1.0",
  last_word_ms: 40,
  rss_bytes: rss,
  live_bytes: live,
  epochs_open: 18,
  epochs_closed_with_survivors: 3,
  error: null,
  of_other_user: false,
});

function stats(size: Size, second: number): Stats {
  const live = size.live ?? 0;
  const dirty = Math.round((6 + 3 * Math.sin(second / 11)) * MIB);
  return {
    ...identity(size),
    rss_bytes: size.rss,
    totals: {
      live_objects: Math.round(live / 310),
      live_bytes: live,
      large_bytes: 14 * MIB,
      held_bytes: live + 23 * MIB,
      hot_bytes: 3 * MIB,
      spare_bytes: 20 * MIB,
      thread_cached_bytes: 6 * MIB,
      epochs_open: 18,
      epochs_shared: 0,
      epochs_closed_with_survivors: 3,
      threads: 12,
      unsettled: false,
    },
    classes: classes(second),
    process: {
      open_bytes: live + 58 * MIB,
      free_bytes: 21 * MIB,
      dirty_bytes: dirty,
      cached_bytes: 8 * MIB,
      large_objects: 7,
      large_bytes: 14 * MIB,
      purges: Math.round(second * 3.2),
      purged_bytes: Math.round((second * 4 + Math.sin(second / 7)) * MIB),
      purges_refused: 0,
      limits_refused: Math.max(0, Math.floor((second - 100) / 20)),
      memory_refused: 0,
      helper_wakeups: 17,
    },
    allocations: 52_000_000 + second * 230_000,
    slow_paths: {
      bin_empty: 800_000 + Math.round(second * 3_400),
      slab_opened: 10_000 + Math.round(second * 35 + 100 * Math.sin(second / 9)),
      cell_full: 60_000 + Math.round(second * 900),
      cell_restarted: 5_000 + Math.round(second * 120),
      whole_units: 900 + Math.round(second / 3),
      sampled: 4_000 + Math.round(second * 40),
      bin_full: 300_000 + Math.round(second * 2_100),
      other_thread: 90_000 + Math.round(second * 640),
    },
  };
}

const CLASSES: readonly (readonly [size: number, live: number])[] = [
  [128, 402_133],
  [64, 301_844],
  [512, 61_280],
  [1024, 20_411],
  [4096, 3_307],
];

const classes = (second: number): SizeClass[] =>
  CLASSES.map(([bytes, live]) => ({
    bytes,
    slab_bytes: 64 * KIB,
    capacity: Math.floor((64 * KIB) / bytes),
    live,
    out: live + 512,
    hot: 512,
    slabs: Math.ceil((live * bytes * 1.2) / (64 * KIB)),
    opened: 2_000 + Math.round(second * 7 + 20 * Math.sin(second / 9)),
    allocations: 9_000_000 + second * 41_000,
    refills: 150_000 + second * 680,
    returned: 60_000 + second * 420,
    unsettled: false,
  }));

interface EpochOptions {
  readonly parent?: number;
  readonly depth?: number;
  readonly state?: "open" | "closed" | "released";
  readonly closed?: number;
  readonly limit?: number;
}

export function epoch(
  row: number,
  label: string | null,
  seconds: number,
  held: Figure,
  options: EpochOptions = {},
): Epoch {
  const { parent = null, depth = 0, state = "open", closed = null, limit = null } = options;
  const live = held === null ? null : Math.round(held * 0.72);
  return {
    epoch: row,
    id: row === 0 ? 0 : 2 ** 24 + row,
    parent,
    depth,
    label,
    state,
    age_ms: Math.round(seconds * 1000),
    closed_for_ms: closed === null ? null : closed * 1000,
    live: { objects: live === null ? null : Math.round(live / 140), bytes: live, unsettled: false },
    held_bytes: held,
    own_bytes: held,
    soft_limit_bytes: null,
    hard_limit_bytes: limit,
  };
}

function epochs(second: number): Epoch[] {
  const tenants = [17, 4, 29].flatMap((tenant, index) => family(tenant, index, second));
  return [
    epoch(0, "default", 8_000 + second, 96 * MIB),
    ...tenants,
    epoch(200, "session cache", 7_800 + second, 11 * MIB),
    epoch(201, "etl batch 7", 410 + second, 5 * MIB),
    epoch(7, "GET /upload", 400 + second, 1_480 * KIB, { state: "closed", closed: 340 + second }),
    epoch(8, "GET /upload", 130 + second, 320 * KIB, { state: "closed", closed: 95 + second }),
    epoch(9, "render thumbnails", 90 + second, 128 * KIB, { state: "closed", closed: 70 + second }),
  ];
}

function family(tenant: number, index: number, second: number): Epoch[] {
  const row = 10 + index * 20;
  const held = (44 - 13 * index) * MIB;
  const limit = index === 0 ? { limit: 48 * MIB } : {};
  const child = (number: number): Epoch =>
    epoch(
      row + 1 + number,
      ["GET /upload", "GET /list", "POST /login"][number % 3] ?? null,
      0.4 + ((row * 3 + number * 37 + second) % 90) / 10,
      (64 + ((row * 17 + number * 91 + second * 13) % 700)) * KIB,
      { parent: row, depth: 1 },
    );
  return [
    epoch(row, `tenant ${tenant}`, 5_400 / (index + 1) + second, held, limit),
    ...Array.from({ length: 5 }, (_, number) => child(number)),
  ];
}

const growth = (verdict: Verdict, came: number, went: number): Growth => ({
  verdict,
  flow: { over_ms: 10_000, came, went },
  oldest_ms: 340_000,
  newest_ms: 1_000,
});

/** `calls`: function, file and line of each, the innermost first. */
function stack(class_bytes: number, samples: number, calls: string): Stack {
  return {
    class_bytes,
    samples,
    estimated_objects: samples * 200,
    percent: samples * 5,
    growth: null,
    calls: calls.split(";").map((call) => {
      const [name = "", file = null, line] = call.split(" ");
      return { function: name, file, line: line === undefined ? null : Number(line) };
    }),
  };
}

/** `bytes`: that live outside of epochs, where nothing is sampled. */
const outside = (bytes: Figure): DefaultEpoch => ({
  objects: bytes === null ? null : Math.round(bytes / 310),
  bytes,
  samples: null,
  old_samples: 0,
  old_ms: 60_000,
  stacks: [],
});

/** One that loses objects outside of epochs, and perhaps in a shared one. */
export function losing(told: Told): Told {
  const samples = "session_new src/login.c 40;worker";
  const kept = { ...stack(512, 9, samples), growth: growth("grows", 120, 3) };
  const [first] = told.leaks.leaks;
  const shared = first && {
    ...first,
    id: 5,
    label: "GET /page",
    epochs: 1,
    state: "shared" as const,
    for_ms: 20_000,
    outlived_objects: null,
    growth: null,
    stacks: [],
    younger_stacks: [stack(128, 4, "page_new src/page.c 7;worker")],
  };
  const default_epoch = { ...outside(96 * MIB), samples: 90, old_samples: 60, stacks: [kept] };
  const leaks = shared === undefined ? [] : [shared];
  return { ...told, leaks: { ...told.leaks, leaks, default_epoch } };
}

function leaks(second: number): Leak[] {
  const leak = (
    growth: Growth,
    stacks: Stack[],
    row: number,
    label: string,
    epochs: number,
    seconds: number,
    objects: number[],
  ): Leak => {
    const sizes = [128, 256, 1024];
    const counts = objects.map((count, index) => ({
      class_bytes: sizes[index] ?? 0,
      objects: count,
    }));
    const bytes = counts.reduce((sum, one) => sum + one.class_bytes * one.objects, 0);
    const held = Math.ceil(bytes * 1.6);
    return {
      epoch: row,
      id: 2 ** 24 + row,
      epochs,
      label,
      state: "closed",
      for_ms: (seconds + second) * 1000,
      objects: objects.reduce((sum, count) => sum + count, 0),
      bytes,
      unsettled: false,
      held_bytes: held,
      pinned_pages: Math.ceil(held / 4096),
      classes: counts,
      large_objects: 0,
      outlived_objects: objects.reduce((sum, count) => sum + count, 0),
      growth,
      stacks,
      younger_stacks: [],
    };
  };
  return [
    leak(
      growth("grows", 40, 0),
      [
        stack(128, 12, "copy_name src/http.c 211;parse_header src/http.c 180;worker"),
        stack(128, 3, "log_line src/log.c 20;worker"),
        stack(1024, 5, "thumb_rows src/image.cpp 77;worker"),
      ],
      7,
      "GET /upload",
      2,
      340,
      [3400, 170, 310],
    ),
    leak(growth("turns_over", 7, 8), [], 9, "render thumbnails", 1, 70, [12, 40]),
  ];
}

const STACKS: readonly (readonly [stack: string, epoch: string, size: number, bytes: number])[] = [
  ["read_part;parse_multipart;handle_upload;dispatch;worker;main", "GET /upload", 4096, 620_000],
  [
    "copy_name;parse_header;parse_multipart;handle_upload;dispatch;worker;main",
    "GET /upload",
    128,
    410_000,
  ],
  ["parse_header;parse_multipart;handle_upload;dispatch;worker;main", "GET /upload", 256, 180_000],
  ["thumb_rows;make_thumbnail;handle_upload;dispatch;worker;main", "GET /upload", 1024, 350_000],
  ["json_string;answer;handle_upload;dispatch;worker;main", "GET /upload", 64, 90_000],
  ["log_line;log_request;dispatch;worker;main", "GET /upload", 128, 60_000],
  ["row_new;select_files;handle_list;dispatch;worker;main", "GET /list", 128, 240_000],
  ["session_new;login;dispatch;worker;main", "POST /login", 512, 120_000],
];

const profile = (samples: readonly Sample[]): Profile => ({
  sampled: "all",
  partial: false,
  weight_bytes: 32 * KIB,
  samples_taken: 4_012,
  samples_lost: 0,
  samples,
  lifetimes: [
    lifetime("copy_name;parse_header;handle_upload;main", "GET /upload", 128, [90_000, 89_100, 2], {
      freed: [89_100, 900],
    }),
    lifetime("read_part;handle_upload;main", "GET /upload", 1024, [1_000, 0, 60_000], {
      freed: [0, 0, 0, 250, 750],
      live: [0, 0, 0, 0, 0, 40],
    }),
    lifetime("read_part;handle_upload;main", "GET /upload", 4096, [1_000, 0, 100_000], {
      freed: [0, 0, 0, 250, 750],
      live: [0, 0, 0, 0, 10],
    }),
    lifetime("session_new;login;main", "POST /login", 256, [4_000, 0, 1_400], {
      freed: [0, 0, 1_000, 3_000],
      live: [0, 0, 0, 300, 500, 200],
    }),
  ],
});

interface ByDecade {
  readonly freed?: readonly number[];
  readonly live?: readonly number[];
}

const BOUNDS = [10, 100, 1_000, 10_000, 100_000, 1_000_000, null];

/** Of all decades, where objects of the first are told. */
const decades = (some: readonly number[]): Decade[] =>
  BOUNDS.map((below_ms, index) => ({ below_ms, objects: some[index] ?? 0 }));

/** Freed objects, of them temporaries, and the mean life in ms; then by decade. */
function lifetime(
  stack: string,
  epoch: string,
  class_bytes: number,
  [objects, temporary_objects, mean_lifetime_ms]: readonly [number, number, number],
  { freed, live = [] }: ByDecade,
): Lifetime {
  const living = live.reduce((sum, some) => sum + some, 0);
  return {
    stack: stack.split(";"),
    epoch,
    class_bytes,
    objects,
    bytes: objects * class_bytes,
    temporary_objects,
    temporary_percent: Math.round((100 * temporary_objects) / objects),
    mean_lifetime_ms,
    by_decade: freed === undefined ? null : decades(freed),
    live: {
      objects: living,
      bytes: living * class_bytes,
      mean_age_ms: living === 0 ? null : 61_000,
      by_decade: living === 0 ? null : decades(live),
    },
  };
}

const samples = (): Sample[] =>
  STACKS.map(([stack, label, class_bytes, bytes], index) => ({
    stack: stack.split(";"),
    epoch: label,
    class_bytes,
    age: index % 2 === 0 ? "1-10min" : "0-1s",
    samples: Math.ceil(bytes / (32 * KIB)),
    objects: Math.round(bytes / class_bytes),
    bytes,
    deviation_bytes: Math.round(Math.sqrt(32 * KIB * bytes)),
  }));

/** A process of which more epochs are known than anyone reads. */
export function crowd(epochs: number): Told {
  const told = server(0);
  const rows = Array.from({ length: epochs }, (_, row) =>
    epoch(row, `request ${row % 3}`, row / 10, 4 * KIB, { state: "closed", closed: 1 }),
  );
  return { ...told, epochs: { ...told.epochs, epochs: rows } };
}

/** Labels that a page must show as nothing but text. */
export const HOSTILE: readonly string[] = [
  "<script>window.hacked = 1</script>",
  '"><img src=x onerror="window.hacked = 2">',
  "line one\nline two\ttab",
  "\u202egnp.exe\u202c",
  "مرحبا بالعالم",
  "👩‍💻 🦀 naïve café",
  "",
  "x".repeat(400),
  "&lt;b&gt; ${window.hacked = 3} {{7*7}}",
];

export function hostile(): Told {
  const told = server(0);
  const rows = HOSTILE.map((label, index) => epoch(300 + index, label, 10, (9 - index) * MIB));
  const process = {
    ...told.process,
    pid: 666,
    path: "/dev/shm/tslab.666.1",
    name: HOSTILE[0] ?? "",
  };
  const leak = told.leaks.leaks[0];
  const leaks =
    leak === undefined
      ? []
      : HOSTILE.map((label, id) => ({
          ...leak,
          label,
          id,
          stacks: [
            stack(128, 1, `${label.replaceAll(/[ ;]/g, "_")} ${label.replaceAll(/[ ;]/g, "_")} 1`),
          ],
        }));
  const frames = HOSTILE.filter((label) => label !== "");
  return {
    process,
    stats: { ...told.stats, pid: 666, name: process.name },
    epochs: { ...told.epochs, epochs: rows },
    leaks: { ...told.leaks, leaks },
    history: told.history,
    why: told.why,
    doctor: {
      ...told.doctor,
      findings: HOSTILE.map((text) => ({ cause: text, bytes: null, what: text, advice: text })),
    },
    profile: profile(
      HOSTILE.map((label) => ({
        stack: [...frames],
        epoch: label,
        class_bytes: 64,
        age: "0-1s",
        samples: 1,
        objects: 10,
        bytes: 640,
        deviation_bytes: 640,
      })),
    ),
  };
}
