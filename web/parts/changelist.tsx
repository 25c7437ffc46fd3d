// Changes of a state as a list: what each value was, and what it is.
import type { JSX } from "preact";
import type { Change, Changes } from "../model/changes.ts";
import { shorten } from "../model/format.ts";

/** What a change is, in a word and as a symbol. */
export const words = { add: "added", replace: "changed", remove: "removed" } as const;
export const symbols = { add: "+", replace: "~", remove: "−" } as const;

/** ChangeList shows the first changes; with onSelect each is a button. */
export function ChangeList({ changed, most, onSelect }: {
  changed: Changes; most: number; onSelect?: (path: string) => void;
}): JSX.Element | null {
  const n = changed.list.length;
  if (n === 0) return null;
  return (
    <ul class="changes" tabIndex={onSelect ? undefined : 0} aria-label="Changed values">
      {changed.list.slice(0, most).map((c) => (
        <li key={c.op + c.path} class={c.op}>
          {onSelect ? <button type="button" title={titleOf(c) + "\nClick for the history of this value"} onClick={() => onSelect(c.path)}>
            <What c={c} />
          </button> : <span title={titleOf(c)}><What c={c} /></span>}
        </li>
      ))}
      {n > most && <li class="quiet">and {n - most}{changed.more && " or more"} others</li>}
    </ul>
  );
}

function What({ c }: { c: Change }): JSX.Element {
  return (
    <>
      <span class="sign" aria-hidden="true">{symbols[c.op]}</span>
      <span class="hidden-text">{words[c.op]} </span>
      <code>{c.path || "(all)"}</code>{" "}
      {c.before !== null && <del>{shorten(c.before, 60)}</del>}
      {c.before !== null && c.after !== null && " → "}
      {c.after !== null && <ins>{shorten(c.after, 60)}</ins>}
    </>
  );
}

/** titleOf returns more of a change than its line has room for. */
function titleOf(c: Change): string {
  return words[c.op] + ": " + [c.before, c.after].filter((v) => v !== null).map((v) => shorten(v, 500)).join(" → ");
}
