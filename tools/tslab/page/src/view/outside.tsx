// outside: what lives outside of epochs, and which call stacks keep more and more of it.
import type { JSX } from "preact";

import type { Leaks, Stack } from "../api/answers.js";
import type { Watched } from "../live/watched.js";
import { alarmText, quietText } from "../model/outside.js";
import { bytes, number } from "../model/text.js";
import { GrowthLine, Site } from "./site.js";

interface Props {
  readonly watched: Watched;
  readonly leaks: Leaks;
}

export function Outside({ watched, leaks }: Props): JSX.Element | null {
  const { default_epoch: outside } = leaks;
  if (outside.stacks.length > 0) {
    return (
      <>
        <p class="verdict alarm">{alarmText(outside)}</p>
        <ul class="outside" aria-label="Outside of epochs">
          {outside.stacks.map((stack, index) => (
            <li key={index}>
              <Kept stack={stack} />
            </li>
          ))}
        </ul>
      </>
    );
  }
  const text = quietText(outside);
  if (text === "") return null;
  const mayBegin = outside.samples === null && watched.runs;
  return (
    <p class="note">
      {text}
      {mayBegin ? (
        <>
          {" "}
          To take them from now on: <code>tslab profile {watched.pid} --keep</code>
        </>
      ) : null}
    </p>
  );
}

function Kept({ stack }: { readonly stack: Stack }): JSX.Element {
  const size = stack.class_bytes === null ? "large" : bytes(stack.class_bytes);
  return (
    <>
      <span class="about">
        about {number(stack.estimated_objects)} × {size}
      </span>
      <Site stacks={[stack]} />
      <GrowthLine growth={stack.growth} />
    </>
  );
}
