// dialogs: what asks for the token, and what explains the keys.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

interface DialogProps {
  readonly title: string;
  readonly close: () => void;
  readonly children: ComponentChildren;
}

/** Open as long as it is there. */
function Dialog({ title, close, children }: DialogProps): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-label={title} onClose={close}>
      <h2>{title}</h2>
      {children}
    </dialog>
  );
}

interface TokenProps {
  /** The token at hand did not do. */
  readonly isRefused: boolean;
  readonly use: (token: string) => void;
  readonly close: () => void;
}

export function TokenDialog({ isRefused, use, close }: TokenProps): JSX.Element {
  const [token, setToken] = useState("");
  const submit = (event: Event): void => {
    event.preventDefault();
    if (token.trim() !== "") use(token.trim());
  };
  return (
    <Dialog title="The agent asks for a token" close={close}>
      <form onSubmit={submit}>
        <p>
          <code>tslab serve</code> was started with a token. The token stays in this tab until it is
          closed.
        </p>
        <label>
          Token
          <input
            type="password"
            autocomplete="off"
            value={token}
            onInput={(event) => setToken(event.currentTarget.value)}
            autofocus
          />
        </label>
        <p role="alert" class="note" hidden={!isRefused}>
          The agent refused this token.
        </p>
        <button type="submit">Use it</button>
      </form>
    </Dialog>
  );
}

const KEYS: readonly (readonly [string, string])[] = [
  ["/", "to the filter"],
  ["↑ ↓", "along a list or table; in the flame graph to the caller, the callee"],
  ["← →", "in the flame graph to the neighbours"],
  ["Home End", "to the first, the last of a list"],
  ["Enter", "open; in the flame graph widen a frame"],
  ["Esc", "back: from a filter, a frame, an epoch"],
  ["p", "pause, go on"],
  ["t", "theme: as the system has it, light, dark"],
  ["?", "this help"],
];

export function HelpDialog({ close }: { readonly close: () => void }): JSX.Element {
  return (
    <Dialog title="Help" close={close}>
      <dl class="keys">
        {KEYS.map(([key, meaning]) => (
          <div key={key}>
            <dt>
              {key.split(" ").map((one) => (
                <kbd key={one}>{one}</kbd>
              ))}
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
      <dl class="words">
        <dt>epoch</dt>
        <dd>a lifetime that the program declares: a request, a frame, a batch, a tenant</dd>
        <dt>live</dt>
        <dd>bytes of objects that the program has not freed</dd>
        <dt>held</dt>
        <dd>memory that is there for an epoch, whether objects fill it or not</dd>
        <dt>survivors</dt>
        <dd>objects that live on although their epoch was closed; they keep its memory</dd>
        <dt>–</dt>
        <dd>not known; it does not mean 0</dd>
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </Dialog>
  );
}
