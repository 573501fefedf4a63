// processes: how much memory each process has, what it is for, and what the allocator does.
import type { Frame, Row } from "./frame.js";
import { anyIsBad, chart, limited, stacked, stat, steps, table } from "./panels.js";
import { increase, PROCESS, PROCESS_LEGEND, rate, series, sum, top } from "./promql.js";

const resident = series("tslab_resident_bytes");
const live = series("tslab_live_bytes");
const held = series("tslab_held_bytes");

const overview: Row = {
  title: "Overview",
  panels: [
    stat(
      {
        title: "Processes",
        description: "Processes that run on tslab and can be read.",
        unit: "none",
      },
      sum(series("tslab_processes")),
    ),
    stat(
      {
        title: "Resident",
        description: "Memory that the processes have, as the system counts it (RSS).",
        unit: "bytes",
      },
      sum(resident),
    ),
    stat(
      {
        title: "Live",
        description: "Bytes of objects that the programs have not freed.",
        unit: "bytes",
      },
      sum(live),
    ),
    stat(
      {
        title: "Resident per live byte",
        description: "1 would be perfect. Small programs are far above: code counts as resident.",
        unit: "none",
      },
      `${sum(resident)} / ${sum(live)}`,
      steps(2, 3),
    ).decimals(2),
    stat(
      { title: "Allocations", description: "Objects allocated a second.", unit: "ops" },
      sum(rate("tslab_allocations_total")),
    ),
    stat(
      {
        title: "Refused",
        description: "Requests for memory refused by a limit or by the system, in this time range.",
        unit: "short",
      },
      sum(`${increase("tslab_limit_refusals_total")} + ${increase("tslab_memory_refusals_total")}`),
      anyIsBad,
    ),
  ],
};

const memory: Row = {
  title: "Memory",
  panels: [
    chart(
      {
        title: "Resident, held and live",
        description:
          "Held is what slabs, cells, large blocks and caches occupy. Held far above live: few " +
          "objects keep many slabs. Resident far above held: free memory is not given back, or " +
          "the memory is not the allocator's.",
        unit: "bytes",
      },
      { expr: sum(resident), legend: "resident" },
      { expr: sum(held), legend: "held" },
      { expr: sum(live), legend: "live" },
    ),
    chart(
      {
        title: "Resident by process",
        description: "The ten processes with most resident memory.",
        unit: "bytes",
      },
      { expr: top(sum(resident, ...PROCESS)), legend: PROCESS_LEGEND },
    ),
    stacked(
      chart(
        {
          title: "What the memory is made of",
          description:
            "The allocator's memory by part, as `tslab why` says: what is resident, and what of " +
            "it is not.",
          unit: "bytes",
        },
        { expr: sum(series("tslab_why_bytes"), "part"), legend: "{{part}}" },
      ),
    ),
    chart(
      {
        title: "Told, and not resident",
        description:
          "Of these parts: never written to, given back in place, or in swap. The ten processes " +
          "with most.",
        unit: "bytes",
      },
      {
        expr: top(sum(series("tslab_why_not_resident_bytes"), ...PROCESS)),
        legend: PROCESS_LEGEND,
      },
    ),
    chart(
      {
        title: "Findings",
        description: "What `tslab doctor` finds, by cause. Run it for figures and advice.",
        unit: "short",
      },
      { expr: `${sum(series("tslab_findings"), "cause")} > 0`, legend: "{{cause}}" },
    ),
    stacked(
      chart(
        {
          title: "Free memory kept",
          description:
            "Dirty: waits for a purge. Cached: empty units at hand for all threads. Hot: free " +
            "blocks at hand for their thread.",
          unit: "bytes",
        },
        { expr: sum(series("tslab_dirty_bytes")), legend: "dirty" },
        { expr: sum(series("tslab_cached_bytes")), legend: "cached" },
        { expr: sum(series("tslab_hot_bytes")), legend: "hot" },
      ),
    ),
    chart(
      {
        title: "Net slabs",
        description: "Slabs opened and not returned yet. Growth without growth of live is a leak.",
        unit: "short",
      },
      { expr: top(sum(series("tslab_class_slabs"), ...PROCESS)), legend: PROCESS_LEGEND },
    ),
  ],
};

const slowPath: Row = {
  title: "Slow path and purges",
  panels: [
    chart(
      {
        title: "Slow paths by cause",
        description: "Allocations and frees a second that left the fast path, by cause.",
        unit: "ops",
      },
      { expr: sum(rate("tslab_slow_paths_total"), "cause"), legend: "{{cause}}" },
    ),
    chart(
      {
        title: "Slow paths per allocation",
        description:
          "How often the fast path is left: slow paths of allocations and frees, over allocations.",
        unit: "percentunit",
      },
      {
        expr:
          sum(rate("tslab_slow_paths_total"), ...PROCESS) +
          ` / ${sum(rate("tslab_allocations_total"), ...PROCESS)}`,
        legend: PROCESS_LEGEND,
      },
    ),
    chart(
      {
        title: "Units for slabs by source",
        description:
          "Thread and shared: from a cache. Reused: free memory with pages. Fresh: without, so " +
          "that the system has to give them.",
        unit: "ops",
      },
      { expr: sum(rate("tslab_units_taken_total"), "source"), legend: "{{source}}" },
    ),
    limited(
      chart(
        {
          title: "Slabs opened per allocation",
          description: "The share of allocations that had to open a slab. Above 5 % is unusual.",
          unit: "percentunit",
        },
        {
          expr:
            sum(rate("tslab_class_slabs_opened_total"), ...PROCESS) +
            ` / ${sum(rate("tslab_allocations_total"), ...PROCESS)}`,
          legend: PROCESS_LEGEND,
        },
      ),
      0.05,
    ),
    chart(
      {
        title: "Refused requests",
        description: "Requests for memory refused, by cause.",
        unit: "reqps",
      },
      { expr: sum(rate("tslab_limit_refusals_total")), legend: "hard limit of an epoch" },
      { expr: sum(rate("tslab_memory_refusals_total")), legend: "system" },
    ),
    chart(
      {
        title: "Purge throughput",
        description: "Bytes given back to the system a second.",
        unit: "binBps",
      },
      {
        expr: top(sum(rate("tslab_purged_bytes_total"), ...PROCESS)),
        legend: PROCESS_LEGEND,
      },
    ),
    chart(
      {
        title: "Purges and failures",
        description: "Calls that give pages back, and those that the system refused.",
        unit: "ops",
      },
      { expr: sum(rate("tslab_purges_total")), legend: "purges" },
      { expr: sum(rate("tslab_purge_failures_total")), legend: "failures" },
    ),
  ],
};

const byClass = (title: string, description: string, unit: string, expr: string) =>
  chart({ title, description, unit }, { expr: top(sum(expr, "class")), legend: "{{class}} B" });

const classes: Row = {
  title: "Size classes",
  panels: [
    byClass(
      "Classes by live bytes",
      "The ten size classes with most live bytes.",
      "bytes",
      series("tslab_class_live_bytes"),
    ),
    byClass(
      "Classes by slabs",
      "The ten size classes with most open slabs. Many slabs and few live bytes: survivors.",
      "short",
      series("tslab_class_slabs"),
    ),
    byClass(
      "Classes by slabs opened",
      "The ten size classes that open most slabs a second.",
      "ops",
      rate("tslab_class_slabs_opened_total"),
    ),
    byClass(
      "Classes by slow path",
      "The ten size classes of which most allocations and frees in slabs a second are slow.",
      "ops",
      rate("tslab_class_slow_paths_total"),
    ),
    byClass(
      "Classes by allocations",
      "The ten size classes that allocate most objects a second.",
      "ops",
      rate("tslab_class_allocations_total"),
    ),
    byClass(
      "Classes by slabs recycled",
      "The ten size classes that give most slabs back a second.",
      "ops",
      rate("tslab_class_slabs_recycled_total"),
    ),
    byClass(
      "Classes by purged bytes",
      "Pages of open slabs given back to the system a second. Much: slabs stay open, and idle.",
      "binBps",
      rate("tslab_class_purged_bytes_total"),
    ),
    table(
      { title: "All size classes", description: "Over the processes chosen. Classes in bytes." },
      ["class"],
      { name: "live", unit: "bytes", expr: sum(series("tslab_class_live_bytes"), "class") },
      { name: "hot", unit: "bytes", expr: sum(series("tslab_class_hot_bytes"), "class") },
      { name: "slabs", unit: "short", expr: sum(series("tslab_class_slabs"), "class") },
      {
        name: "allocations",
        unit: "ops",
        expr: sum(rate("tslab_class_allocations_total"), "class"),
      },
      {
        name: "slabs opened",
        unit: "ops",
        expr: sum(rate("tslab_class_slabs_opened_total"), "class"),
      },
    ),
  ],
};

const each: Row = {
  title: "Each process",
  panels: [
    table(
      { title: "All processes", description: "What each process has now." },
      PROCESS,
      { name: "resident", unit: "bytes", expr: sum(resident, ...PROCESS) },
      { name: "held", unit: "bytes", expr: sum(held, ...PROCESS) },
      { name: "live", unit: "bytes", expr: sum(live, ...PROCESS) },
      { name: "large", unit: "bytes", expr: sum(series("tslab_large_bytes"), ...PROCESS) },
      { name: "objects", unit: "short", expr: sum(series("tslab_live_objects"), ...PROCESS) },
      { name: "threads", unit: "none", expr: sum(series("tslab_threads"), ...PROCESS) },
    ),
    chart(
      {
        title: "Time to read all processes",
        description: "What the exporter itself needs for a scrape.",
        unit: "s",
      },
      { expr: series("tslab_scrape_duration_seconds"), legend: "{{instance}}" },
    ),
    chart(
      {
        title: "Files not read",
        description:
          "Unreadable: damaged, foreign or forbidden; the exporter's standard error says why. " +
          "Abandoned: their processes have ended; `tslab gc` removes them.",
        unit: "short",
      },
      { expr: sum(series("tslab_unreadable_files")), legend: "unreadable" },
      { expr: sum(series("tslab_abandoned_files")), legend: "abandoned" },
    ),
    chart(
      {
        title: "Exporters by version",
        description: "Versions that answer; two for long: an upgrade that stopped half-way.",
        unit: "none",
      },
      { expr: sum(series("tslab_build_info"), "version"), legend: "{{version}}" },
    ),
  ],
};

export const processes: Frame = {
  uid: "tslab-processes",
  title: "tslab: processes",
  description: "Memory of the processes that run on tslab: how much, what for, what is refused.",
  variables: [
    ["process", 'label_values(tslab_live_bytes{job=~"$job", instance=~"$instance"}, process)'],
  ],
  rows: [overview, memory, slowPath, classes, each],
};
