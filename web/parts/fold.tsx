// What is folded until it is opened. Folded, it is not in the page.
import type { ComponentChildren, JSX } from "preact";
import type { Kind } from "../model/folds.ts";
import { useSession } from "./use-session.ts";

export interface FoldProps {
  kind: Kind;
  id: string;
  head: ComponentChildren;
  body: () => JSX.Element | null;
  class?: string;
}

/** Fold shows its head, and its body while it is open. */
export function Fold({ kind, id, head, body, class: name }: FoldProps): JSX.Element {
  const { folds } = useSession();
  const open = folds.isOpen(kind, id);
  return (
    <div class={`fold ${kind} ${name ?? ""}`}>
      <button type="button" aria-expanded={open} onClick={() => folds.turn(kind, id)}>
        <span class="tick" aria-hidden="true">{open ? "▾" : "▸"}</span>{head}
      </button>
      {open && <div class="folded">{body()}</div>}
    </div>
  );
}
