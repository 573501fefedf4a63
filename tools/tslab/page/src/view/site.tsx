// site: who allocated some objects, and whether they become more, in a line each.
import type { JSX } from "preact";

import type { Growth, Stack } from "../api/answers.js";
import { growthText, placeOf, topStack } from "../model/survivors.js";
import { count, printable } from "../model/text.js";
import { Name } from "./fragments.js";

interface SiteProps {
  readonly stacks: readonly Stack[];
  readonly before?: string;
}

/** Who allocated most of them. */
export function Site({ stacks, before }: SiteProps): JSX.Element | null {
  const top = topStack(stacks);
  const call = top?.calls[0];
  if (top === undefined || call === undefined) return null;
  const callers = top.calls.map((one) => `${printable(one.function)} ${placeOf(one)}`.trim());
  const others = stacks.length - 1;
  return (
    <span class="site" title={callers.join("\n← ")}>
      {before === undefined ? null : <span class="about">{before} </span>}
      <code>
        <Name>{printable(call.function)}</Name>
      </code>{" "}
      <span class="about">
        {placeOf(call)}
        {others > 0 ? ` and ${count(others, "other stack")}` : null}
      </span>
    </span>
  );
}

export function GrowthLine({ growth }: { readonly growth: Growth | null }): JSX.Element | null {
  const text = growthText(growth);
  if (text === "") return null;
  return <span class={`growth ${growth?.verdict ?? ""}`}>{text}</span>;
}
