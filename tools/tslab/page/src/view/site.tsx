// site: who allocated some objects, and whether they become more, in a line each.
import type { JSX } from "preact";

import type { Growth, Stack, StackCall } from "../api/answers.js";
import { growthText, placeOf, topStack } from "../model/survivors.js";
import { count, printable } from "../model/text.js";
import { Name } from "./fragments.js";

interface SiteProps {
  readonly stacks: readonly Stack[];
  readonly before?: string;
}

/** The innermost call may be of a function that all of a program allocates by. */
const SHOWN_CALLS = 2;

/** Who allocated most of them. */
export function Site({ stacks, before }: SiteProps): JSX.Element | null {
  const top = topStack(stacks);
  if (top === undefined || top.calls.length === 0) return null;
  const callers = top.calls.map((one) => `${printable(one.function)} ${placeOf(one)}`.trim());
  const others = stacks.length - 1;
  return (
    <span class="site" title={callers.join("\n← ")}>
      {before === undefined ? null : <span class="about">{before} </span>}
      {top.calls.slice(0, SHOWN_CALLS).map((call, index) => (
        <Call key={index} call={call} isCaller={index > 0} />
      ))}
      {others > 0 ? <span class="about"> and {count(others, "other stack")}</span> : null}
    </span>
  );
}

interface CallProps {
  readonly call: StackCall;
  readonly isCaller: boolean;
}

const Call = ({ call, isCaller }: CallProps): JSX.Element => (
  <>
    {isCaller ? " ← " : null}
    <code>
      <Name>{printable(call.function)}</Name>
    </code>{" "}
    <span class="about">{placeOf(call)}</span>
  </>
);

export function GrowthLine({ growth }: { readonly growth: Growth | null }): JSX.Element | null {
  const text = growthText(growth);
  if (text === "") return null;
  return <span class={`growth ${growth?.verdict ?? ""}`}>{text}</span>;
}
