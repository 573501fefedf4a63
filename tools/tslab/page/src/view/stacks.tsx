// stacks: who allocated what lives: in the epochs of a label, or in the whole process.
import type { ComponentChildren, JSX } from "preact";

import type { Epoch, Figure, Profile, Sample } from "../api/answers.js";
import type { Model } from "../live/model.js";
import type { Watched } from "../live/watched.js";
import { sum } from "../model/epochs.js";
import { gapText, labelsIn, samplesOf } from "../model/flame.js";
import { number, printable } from "../model/text.js";
import { Flame } from "./flame.js";
import { Empty, Panel, Pick } from "./fragments.js";
import { useKept } from "./kept.js";
import { Lifetimes } from "./lifetimes.js";

interface EpochProps {
  readonly watched: Watched;
  readonly epoch: Epoch;
}

export function EpochStacks({ watched, epoch }: EpochProps): JSX.Element {
  const same = ofLabel(watched, epoch.label);
  const about =
    same.length > 1 ? `Of all ${number(same.length)} epochs with this label.` : undefined;
  return (
    <Panel title="Stacks" about={about} class="stacks">
      <Graph
        watched={watched}
        choose={({ samples }) => samplesOf(samples, epoch.label)}
        live={liveBytes(same)}
        none="No object of this epoch has been sampled."
      />
      <Lifetimes lifetimes={watched.profile?.lifetimes ?? []} label={epoch.label} />
    </Panel>
  );
}

interface ProcessProps {
  readonly model: Model;
  readonly watched: Watched;
}

/** They are asked for when somebody wants them: names of functions take time to find. */
export function ProcessStacks({ model, watched }: ProcessProps): JSX.Element {
  const [label, choose] = useKept<string | null | undefined>("stacks.label", undefined);
  const show = (isChecked: boolean): void => {
    model.showsStacks = isChecked;
    model.changed();
  };
  const isAll = label === undefined;
  const all = watched.stats?.totals.live_bytes ?? null;
  return (
    <Panel
      title="Stacks"
      about="Who allocated what lives, as far as it was sampled."
      class="stacks"
      tools={
        <>
          {model.showsStacks ? (
            <LabelPick profile={watched.profile} chosen={label} choose={choose} />
          ) : null}
          <label class="switch">
            <input
              type="checkbox"
              checked={model.showsStacks}
              onChange={(event) => show(event.currentTarget.checked)}
            />
            show stacks
          </label>
        </>
      }
    >
      {model.showsStacks ? (
        <>
          <Graph
            watched={watched}
            choose={({ samples }) => (isAll ? [...samples] : samplesOf(samples, label))}
            live={isAll ? all : liveBytes(ofLabel(watched, label))}
            none="No object that lives has been sampled."
          />
          <Lifetimes lifetimes={watched.profile?.lifetimes ?? []} label={label} />
        </>
      ) : null}
    </Panel>
  );
}

const ofLabel = ({ epochs }: Watched, label: string | null): Epoch[] =>
  (epochs?.epochs ?? []).filter((epoch) => epoch.label === label);

const liveBytes = (epochs: readonly Epoch[]): Figure => sum(epochs.map(({ live }) => live.bytes));

interface LabelPickProps {
  readonly profile: Profile | null;
  readonly chosen: string | null | undefined;
  readonly choose: (label: string | null | undefined) => void;
}

function LabelPick({ profile, chosen, choose }: LabelPickProps): JSX.Element {
  const labels = labelsIn(profile?.samples ?? []);
  const known = chosen === undefined || labels.includes(chosen) ? labels : [...labels, chosen];
  const text = (label: string | null): string =>
    label === null ? "no label" : label === "" ? "(empty label)" : printable(label);
  return (
    <Pick
      name="Label of epochs"
      values={[["", "all labels"], ...known.map((label) => [keyOf(label), text(label)] as const)]}
      chosen={chosen === undefined ? "" : keyOf(chosen)}
      choose={(key) => choose(known.find((label) => keyOf(label) === key))}
    />
  );
}

const keyOf = (label: string | null): string => JSON.stringify(label);

interface GraphProps {
  readonly watched: Watched;
  readonly choose: (profile: Profile) => Sample[];
  readonly live: Figure;
  readonly none: ComponentChildren;
}

function Graph({ watched, choose, live, none }: GraphProps): JSX.Element {
  const { profile } = watched;
  if (profile === null) return <NoProfile watched={watched} />;
  const samples = choose(profile);
  const isSome = samples.some(({ bytes }) => bytes > 0);
  return (
    <>
      <Gap watched={watched} profile={profile} />
      {isSome ? <Flame profile={profile} samples={samples} live={live} /> : <Empty>{none}</Empty>}
    </>
  );
}

interface GapProps {
  readonly watched: Watched;
  readonly profile: Profile;
}

/** What is missing in samples, and how to have it from now on. */
function Gap({ watched, profile }: GapProps): JSX.Element | null {
  const text = gapText(profile);
  if (text === null) return null;
  const mayHaveMore = watched.runs && profile.sampled !== "all";
  return (
    <p class="note">
      {text}
      {mayHaveMore ? (
        <>
          {" "}
          To sample all from now on: <code>{samplingCommand(watched)}</code>
        </>
      ) : null}
    </p>
  );
}

const samplingCommand = ({ pid }: Watched): string => `tslab profile ${pid} --keep`;

/** What switches sampling on from the start. */
const SAMPLING = "TSLAB_CONF=sample_bytes:512K";

function NoProfile({ watched }: { readonly watched: Watched }): JSX.Element {
  if (!watched.isUnsampled) return <Empty>Nothing is known yet.</Empty>;
  return (
    <Empty>
      This process has not sampled any allocation. To see here which code its memory belongs to,{" "}
      {watched.runs ? (
        <>
          run <code>{samplingCommand(watched)}</code>, or{" "}
        </>
      ) : null}
      start it with <code>{SAMPLING}</code> in its environment.
    </Empty>
  );
}
