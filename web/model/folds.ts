// What is open in the conversation: folded is what takes no room, and what is folded is not in the page.
import { signal } from "@preact/signals";

export type Kind = "tool" | "thinking" | "summary" | "agent" | "aside";

/** all has for each kind whether it is open unless it was turned: a wish for whichever session is shown. */
const all = signal<Record<Kind, boolean>>({ tool: false, thinking: false, summary: false, agent: false, aside: false });

const maxTurned = 2000;

/** Folds are those of one session. */
export class Folds {
  /** turned are the keys of those that are the other way. At most maxTurned; the oldest are forgotten. */
  private readonly turned = signal<ReadonlySet<string>>(new Set());

  /** isOpen reports whether something is open. */
  isOpen(kind: Kind, key: string): boolean {
    return this.turned.value.has(kind + key) !== all.value[kind];
  }

  /** turn opens what is folded, and folds what is open. */
  turn(kind: Kind, key: string): void {
    const next = new Set(this.turned.peek());
    if (!next.delete(kind + key)) next.add(kind + key);
    this.turned.value = next.size <= maxTurned ? next : new Set([...next].slice(-maxTurned));
  }

  /** turnAll opens or folds all of a kind. */
  turnAll(kind: Kind): void {
    this.turned.value = new Set([...this.turned.peek()].filter((key) => !key.startsWith(kind)));
    all.value = { ...all.peek(), [kind]: !all.peek()[kind] };
  }
}
