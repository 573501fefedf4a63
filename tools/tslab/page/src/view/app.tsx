// app: the page as a whole.
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import type { Model } from "../live/model.js";
import type { Poller } from "../live/poller.js";
import * as theme from "../live/theme.js";
import { hashOfEpoch, hashOfProcess, type Route } from "../model/route.js";
import { HelpDialog, TokenDialog } from "./dialogs.js";
import { EpochView } from "./epoch.js";
import { Empty } from "./fragments.js";
import { ProcessView } from "./process.js";
import { ProcessList } from "./processes.js";
import { Banner, TopBar } from "./topbar.js";

interface AppProps {
  readonly model: Model;
  readonly poller: Poller;
  readonly useToken: (token: string) => void;
}

export function App({ model, poller, useToken }: AppProps): JSX.Element {
  const [, redraw] = useState(0);
  const [isHelping, help] = useState(false);
  const [asked, askAgain] = useState(0);
  useLayoutEffect(() => model.subscribe(() => redraw((times) => times + 1)), []);
  const nextTheme = (): void => {
    theme.choose(theme.next(theme.chosen()));
    model.changed();
  };
  const pause = (): void => {
    poller.pause(!poller.isPaused);
    model.changed();
  };
  useKeys({ "?": () => help(true), t: nextTheme, p: pause, Escape: () => goBack(model) });
  useFocus(model.route);
  const { link } = model;
  const isStale = link.kind === "lost" || link.kind === "locked";
  return (
    <div class={`app ${model.route.handle === null ? "list" : ""} ${isStale ? "stale" : ""}`}>
      <TopBar
        model={model}
        isPaused={poller.isPaused}
        pause={pause}
        theme={theme.chosen()}
        nextTheme={nextTheme}
        help={() => help(true)}
      />
      <Banner model={model} />
      <ProcessList model={model} />
      <main>
        <Content model={model} />
      </main>
      {isHelping ? <HelpDialog close={() => help(false)} /> : null}
      {link.kind === "locked" ? (
        <TokenDialog
          key={asked}
          isRefused={link.refused}
          use={useToken}
          close={() => askAgain(asked + 1)}
        />
      ) : null}
    </div>
  );
}

function Content({ model }: { readonly model: Model }): JSX.Element {
  const { watched } = model;
  const inForce = theme.inForce();
  if (watched === null) return <Empty>Choose a process.</Empty>;
  if (watched.process === null && watched.stats === null) {
    return <Empty>{unknownText(model)}</Empty>;
  }
  const { epoch } = watched;
  return epoch === null ? (
    <ProcessView key={watched.handle} model={model} watched={watched} theme={inForce} />
  ) : (
    <EpochView key={epoch.id} model={model} watched={watched} epoch={epoch} theme={inForce} />
  );
}

const unknownText = ({ told, handle }: Model): string =>
  told === null ? "Nothing is known yet." : `No process ${handle} runs on tslab here.`;

function goBack({ route }: Model): void {
  if (route.epoch !== null && route.handle !== null) location.hash = hashOfProcess(route.handle);
}

/** Into another view, and out of it to where it was opened. */
function useFocus(route: Route): void {
  const before = useRef(route);
  useEffect(() => {
    const left = before.current;
    before.current = route;
    if (left.epoch === route.epoch && (left.handle === route.handle || isListBeside())) return;
    (openerOf(left, route) ?? document.querySelector<HTMLElement>("main h1"))?.focus();
  }, [route]);
}

/** A narrow screen shows either the list or a process. */
const isListBeside = (): boolean => ["nav", "main"].every(isShown);

const isShown = (selector: string): boolean =>
  document.querySelector<HTMLElement>(selector)?.offsetParent != null;

/** The link to what was left, for the process of an epoch or for the list. */
function openerOf(left: Route, { handle, epoch }: Route): HTMLElement | null {
  if (handle === null) return rowOf(hashOfProcess(left.handle ?? ""));
  return left.epoch === null || epoch !== null ? null : rowOf(hashOfEpoch(handle, left.epoch));
}

const rowOf = (hash: string): HTMLElement | null =>
  document.querySelector(`a[data-row][href="${hash}"]`);

type Keys = Readonly<Record<string, () => void>>;

/** Keys that work wherever the focus is, but in a text that is being typed. */
function useKeys(keys: Keys): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      if (document.querySelector("dialog[open]") !== null) return;
      const target = event.target instanceof HTMLElement ? event.target : null;
      if (target?.matches("[data-filter]") === true) leaveFilter(event, target);
      else if (event.key === "/") goToFilter(event);
      else keys[event.key]?.();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  });
}

function goToFilter(event: KeyboardEvent): void {
  const filter = shownFilter("main [data-filter]") ?? shownFilter("nav [data-filter]");
  if (filter === undefined) return;
  event.preventDefault();
  filter.focus();
  filter.select();
}

/** A narrow screen does not show all. */
const shownFilter = (selector: string): HTMLInputElement | undefined =>
  [...document.querySelectorAll<HTMLInputElement>(selector)].find(
    ({ offsetParent }) => offsetParent !== null,
  );

/** Down to the first of what was found. */
function leaveFilter(event: KeyboardEvent, filter: HTMLElement): void {
  if (event.key === "Escape") filter.blur();
  if (event.key !== "ArrowDown" && event.key !== "Enter") return;
  const panel = filter.closest(".panel, nav");
  panel?.querySelector<HTMLElement>('[data-row], .frame[tabindex="0"]')?.focus();
  event.preventDefault();
}
