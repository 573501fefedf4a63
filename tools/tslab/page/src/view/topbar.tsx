// topbar: whether the figures are of now, and what concerns the whole page.
import type { JSX } from "preact";

import type { Model } from "../live/model.js";
import type { Choice } from "../live/theme.js";
import { LIST } from "../model/route.js";
import { clock, printable } from "../model/text.js";

interface TopBarProps {
  readonly model: Model;
  readonly isPaused: boolean;
  readonly pause: () => void;
  readonly theme: Choice;
  readonly nextTheme: () => void;
  readonly help: () => void;
}

export function TopBar(props: TopBarProps): JSX.Element {
  const { model, isPaused, theme } = props;
  return (
    <header class="topbar">
      <a class="brand" href={LIST} aria-label="tslab">
        <Logo /> <span class="wide">tslab</span>
      </a>
      <LinkState model={model} isPaused={isPaused} />
      <span class="tools">
        <button type="button" aria-pressed={isPaused} onClick={props.pause}>
          {isPaused ? "Go on" : "Pause"}
        </button>
        <button type="button" onClick={props.nextTheme} aria-label={`Theme: ${theme}`}>
          {THEME_SIGNS[theme]} <span class="wide">{theme}</span>
        </button>
        <button type="button" onClick={props.help} aria-label="Help">
          ?
        </button>
      </span>
    </header>
  );
}

const THEME_SIGNS: Record<Choice, string> = { auto: "◐", light: "○", dark: "●" };

const Logo = (): JSX.Element => (
  <svg viewBox="0 0 20 18" aria-hidden="true">
    <rect width="20" height="4" rx="1" />
    <rect y="7" width="14" height="4" rx="1" class="live" />
    <rect y="14" width="8" height="4" rx="1" class="hot" />
  </svg>
);

interface LinkStateProps {
  readonly model: Model;
  readonly isPaused: boolean;
}

function LinkState({ model, isPaused }: LinkStateProps): JSX.Element {
  const { link, told } = model;
  const at = told === null ? "" : ` ${clock(told)}`;
  const [kind, text] =
    isPaused && link.kind === "live" ? ["paused", `paused at${at}`] : stateOf(link.kind, at);
  return <span class={`link ${kind}`}>{text}</span>;
}

const stateOf = (kind: Model["link"]["kind"], at: string): [string, string] => {
  switch (kind) {
    case "waiting":
      return ["waiting", "connecting"];
    case "live":
      return ["live", `live${at}`];
    case "lost":
      return ["lost", at === "" ? "no agent" : `stale since${at}`];
    case "locked":
      return ["lost", "locked"];
  }
};

/** Stands above all as long as the agent does not answer. */
export function Banner({ model }: { readonly model: Model }): JSX.Element {
  const { link, told } = model;
  return (
    <div role="alert">
      {link.kind === "lost" ? (
        <p class="banner">
          <b>The agent has not answered</b> since {clock(link.since)}: {printable(link.why)}.{" "}
          {told === null
            ? "Is tslab serve running?"
            : `What is shown is stale, from ${clock(told)}. The page keeps trying.`}
        </p>
      ) : null}
    </div>
  );
}
