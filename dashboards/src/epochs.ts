// epochs: which lifetimes hold memory, for how long, and what outlives them.
import type { Frame, Row } from "./frame.js";
import { anyIsBad, chart, heatmap, limited, stacked, stat, steps, table } from "./panels.js";
import { increase, ofAllEpochs, PROCESS, PROCESS_LEGEND, rate, series, sum, top } from "./promql.js";

const open = series("tslab_epochs", 'state="open"');
const closed = series("tslab_epochs", 'state="closed"');
const survivorBytes = series("tslab_epoch_survivor_bytes");
const survivorObjects = series("tslab_epoch_survivor_objects");
const oldest = series("tslab_epoch_oldest_seconds");
const ages = sum(series("tslab_epoch_age_seconds_bucket"), "le");
const age = (quantile: number): string => `histogram_quantile(${quantile}, ${ages})`;

const by = (label: string, title: string, description: string, unit: string, expr: string) =>
  chart({ title, description, unit }, { expr: top(sum(expr, label)), legend: `{{${label}}}` });

const byLabel = (title: string, description: string, unit: string, expr: string) =>
  by("epoch", title, description, unit, expr);

const overview: Row = {
  title: "Overview",
  panels: [
    stat(
      {
        title: "Open",
        description: "Epochs in which objects may be allocated, without the default epoch.",
        unit: "short",
      },
      sum(open),
    ),
    stat(
      {
        title: "Closed with survivors",
        description: "Epochs that are closed and still hold objects.",
        unit: "short",
      },
      sum(closed),
    ),
    stat(
      {
        title: "Survivors",
        description: "Bytes of objects that live in closed epochs.",
        unit: "bytes",
      },
      sum(survivorBytes),
    ),
    stat(
      {
        title: "Oldest open epoch",
        description: "An epoch that stands for a request should not be a minute old.",
        unit: "s",
      },
      `max(${oldest})`,
      steps(60, 600),
    ),
    stat(
      {
        title: "Held by epochs",
        description:
          "Slabs, cells and large blocks. Without the default epoch.",
        unit: "bytes",
      },
      sum(series("tslab_epoch_held_bytes", 'epoch!="default"')),
    ),
    stat(
      {
        title: "New leak candidates",
        description: "Objects found to outlive their closed epoch, in this time range.",
        unit: "short",
      },
      sum(increase("tslab_objects_leaked_total")),
      anyIsBad,
    ),
  ],
};

const lifetimes: Row = {
  title: "Lifetimes",
  panels: [
    stacked(
      chart(
        {
          title: "Epochs open and closed",
          description: "Closed ones are those that survivors keep; they should not pile up.",
          unit: "short",
        },
        { expr: sum(open), legend: "open" },
        { expr: sum(closed), legend: "closed with survivors" },
      ),
    ),
    byLabel(
      "Epochs by label",
      "The ten labels with most epochs.",
      "short",
      series("tslab_label_epochs"),
    ),
    chart(
      {
        title: "Age of open epochs",
        description: "Half, nine tenths and 99 % of the open epochs are younger.",
        unit: "s",
      },
      { expr: age(0.5), legend: "p50" },
      { expr: age(0.9), legend: "p90" },
      { expr: age(0.99), legend: "p99" },
    ),
    heatmap(
      {
        title: "Ages over time",
        description: "Open epochs by age. A band that climbs: epochs that nobody closes.",
        unit: "s",
      },
      ages,
    ),
    limited(
      chart(
        {
          title: "Oldest open epoch by label",
          description: "The ten labels with the oldest open epoch. A steady rise: never closed.",
          unit: "s",
        },
        { expr: top(`max by (epoch) (${oldest})`), legend: "{{epoch}}" },
      ),
      60,
    ),
    chart(
      {
        title: "Held against the hard limit",
        description: "At 100 % the epoch's allocations fail. Labels with limits only.",
        unit: "percentunit",
      },
      {
        expr:
          sum(series("tslab_epoch_limited_bytes"), "epoch") +
          ` / (${sum(series("tslab_epoch_hard_limit_bytes"), "epoch")} > 0)`,
        legend: "{{epoch}}",
      },
    ),
  ],
};

const ends: Row = {
  title: "Ends",
  panels: [
    chart(
      {
        title: "Ends of epochs",
        description:
          "Epochs closed and released a second, and the threads' parts of epochs that ended.",
        unit: "ops",
      },
      { expr: sum(rate("tslab_closes_total")), legend: "closed" },
      { expr: sum(rate("tslab_releases_total")), legend: "released" },
      { expr: sum(rate("tslab_ended_parts_total")), legend: "parts" },
    ),
    chart(
      {
        title: "Yield of ends",
        description:
          "The share of what parts held as they ended that was given back at once. The rest has " +
          "survivors. Held memory need not be resident.",
        unit: "percentunit",
      },
      {
        expr:
          sum(rate("tslab_ended_recycled_bytes_total"), ...PROCESS) +
          ` / ${sum(rate("tslab_ended_bytes_total"), ...PROCESS)}`,
        legend: PROCESS_LEGEND,
      },
    ),
    chart(
      {
        title: "Scopes open in epochs that have ended",
        description: "Their threads' parts of these epochs end as the threads leave.",
        unit: "short",
      },
      { expr: top(sum(series("tslab_closing_scopes"), ...PROCESS)), legend: PROCESS_LEGEND },
    ),
    chart(
      {
        title: "Cells and slabs at ends",
        description: "Looked at as parts ended, and given back at once.",
        unit: "ops",
      },
      { expr: sum(rate("tslab_ended_pieces_total")), legend: "looked at" },
      { expr: sum(rate("tslab_ended_pieces_recycled_total")), legend: "given back" },
    ),
    chart(
      {
        title: "Time of long ends",
        description: "Mean time that the end of a part of at least 64 cells and slabs takes.",
        unit: "s",
      },
      {
        expr:
          sum(rate("tslab_timed_ends_seconds_total"), ...PROCESS) +
          ` / ${sum(rate("tslab_timed_ends_total"), ...PROCESS)}`,
        legend: PROCESS_LEGEND,
      },
    ),
  ],
};

const perEnd = (metric: string): string =>
  `${sum(series(metric), "epoch")} / ${sum(series("tslab_label_ended_epochs"), "epoch")}`;

const shareOfEnd = (metric: string): string =>
  `${sum(series(metric), "epoch")} / ${sum(series("tslab_label_ended_bytes"), "epoch")}`;

const history: Row = {
  title: "Labels of late",
  panels: [
    chart(
      {
        title: "Held at the end",
        description:
          "What an epoch of the label held as it was closed, on average over the last ones that " +
          "had memory of their own.",
        unit: "bytes",
      },
      { expr: top(perEnd("tslab_label_ended_bytes")), legend: "{{epoch}}" },
    ),
    chart(
      {
        title: "Survived the end",
        description: "The share of it that lived on. Above a quarter, epochs do not share memory for being small.",
        unit: "percentunit",
      },
      { expr: top(shareOfEnd("tslab_label_ended_survivor_bytes")), legend: "{{epoch}}" },
    ),
    chart(
      {
        title: "Pinned at the end",
        description:
          "The share of it in cells and slabs in which objects lived on. Far above what survived: few " +
          "objects keep much.",
        unit: "percentunit",
      },
      { expr: top(shareOfEnd("tslab_label_ended_pinned_bytes")), legend: "{{epoch}}" },
    ),
    chart(
      {
        title: "Open for",
        description: "How long an epoch of the label was open, on average over the same epochs.",
        unit: "s",
      },
      { expr: top(perEnd("tslab_label_ended_open_seconds")), legend: "{{epoch}}" },
    ),
    byLabel(
      "Labels that share memory",
      "1: the next epochs of the label share memory. Over several processes: how many do.",
      "none",
      series("tslab_label_shares"),
    ),
    chart(
      {
        title: "Refused by label",
        description: "Requests for memory refused: by limits of the label's epochs, by the system.",
        unit: "reqps",
      },
      {
        expr: top(sum(rate("tslab_epoch_limit_refusals_total"), "epoch")),
        legend: "{{epoch}}, limit",
      },
      {
        expr: top(sum(rate("tslab_epoch_memory_refusals_total"), "epoch")),
        legend: "{{epoch}}, system",
      },
    ),
  ],
};

const memory: Row = {
  title: "Memory by label",
  panels: [
    byLabel(
      "Labels by live bytes",
      "The ten labels with most live bytes.",
      "bytes",
      series("tslab_epoch_live_bytes"),
    ),
    byLabel(
      "Labels by estimated resident memory",
      "The ten labels whose epochs cost most memory. Far above live: few objects keep much.",
      "bytes",
      series("tslab_epoch_estimated_rss_bytes"),
    ),
    table(
      { title: "All labels", description: "Over the processes chosen." },
      ["epoch"],
      {
        name: "resident (estimated)",
        unit: "bytes",
        expr: sum(series("tslab_epoch_estimated_rss_bytes"), "epoch"),
      },
      { name: "held", unit: "bytes", expr: sum(series("tslab_epoch_held_bytes"), "epoch") },
      { name: "live", unit: "bytes", expr: sum(series("tslab_epoch_live_bytes"), "epoch") },
      { name: "objects", unit: "short", expr: sum(series("tslab_epoch_live_objects"), "epoch") },
      { name: "epochs", unit: "short", expr: sum(series("tslab_label_epochs"), "epoch") },
      { name: "oldest", unit: "s", expr: `max by (epoch) (${oldest})` },
    ),
  ],
};

const siteBytes = series("tslab_site_live_bytes");

const sites: Row = {
  title: "Call sites",
  panels: [
    by(
      "site",
      "Call sites by live bytes",
      "Who allocated what lives, as samples estimate it: the ten sites with most.",
      "bytes",
      siteBytes,
    ),
    chart(
      {
        title: "Told by samples, all labels",
        description:
          "The share of a process's live bytes for which samples stand, whichever label is chosen: other has " +
          "not the same labels in both. Far below 100 %: sampled are only labels whose objects outlive " +
          "them (watched), or it began late, or ended.",
        unit: "percentunit",
      },
      {
        expr: top(
          `${sum(ofAllEpochs("tslab_site_live_bytes"), ...PROCESS)} / ` +
            sum(ofAllEpochs("tslab_epoch_live_bytes"), ...PROCESS),
        ),
        legend: PROCESS_LEGEND,
      },
    ),
    table(
      { title: "All call sites", description: "Over the processes chosen; the rest is in other." },
      ["site", "epoch", "sampled"],
      { name: "live", unit: "bytes", expr: sum(siteBytes, "site", "epoch", "sampled") },
    ),
  ],
};

const leaks: Row = {
  title: "Leak candidates",
  panels: [
    byLabel(
      "Survivors by label",
      "Bytes of objects that live in closed epochs, the ten labels with most. Should fall to 0.",
      "bytes",
      survivorBytes,
    ),
    chart(
      {
        title: "New leak candidates by handler and class",
        description: "Objects a second found to outlive their closed epoch.",
        unit: "cps",
      },
      {
        expr: top(sum(rate("tslab_objects_leaked_total"), "handler", "class")),
        legend: "{{handler}}, {{class}} B",
      },
    ),
    table(
      {
        title: "Survivors by process",
        description: "Where objects live in closed epochs now.",
      },
      ["epoch", ...PROCESS],
      { name: "bytes", unit: "bytes", expr: `${sum(survivorBytes, "epoch", ...PROCESS)} > 0` },
      { name: "objects", unit: "short", expr: `${sum(survivorObjects, "epoch", ...PROCESS)} > 0` },
    ),
  ],
};

export const epochs: Frame = {
  uid: "tslab-epochs",
  title: "tslab: epochs",
  description: "Lifetimes: which epochs hold memory, for how long, and what outlives them.",
  variables: [
    ["process", 'label_values(tslab_live_bytes{job=~"$job", instance=~"$instance"}, process)'],
    [
      "epoch",
      "label_values(tslab_label_epochs" +
        '{job=~"$job", instance=~"$instance", process=~"$process"}, epoch)',
    ],
  ],
  rows: [overview, lifetimes, ends, history, memory, sites, leaks],
};
