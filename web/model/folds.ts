// What is open in the conversation: folded is what takes no room, and what is folded is not in the page.
import { signal } from "@preact/signals";

export type Kind = "tool" | "thinking" | "summary" | "agent" | "aside";

/** all says of each kind whether it is open where nobody turned it. */
const all = signal<Record<Kind, boolean>>({ tool: false, thinking: false, summary: false, agent: false, aside: false });

/** turned are the keys of those that are the other way. At most maxTurned; the oldest are forgotten. */
const turned = signal<ReadonlySet<string>>(new Set());
const maxTurned = 2000;

/** isOpen reports whether something is open. */
export function isOpen(kind: Kind, key: string): boolean {
  return turned.value.has(kind + key) !== all.value[kind];
}

/** turn opens what is folded, and folds what is open. */
export function turn(kind: Kind, key: string): void {
  const next = new Set(turned.peek());
  if (!next.delete(kind + key)) next.add(kind + key);
  turned.value = next.size <= maxTurned ? next : new Set([...next].slice(-maxTurned));
}

/** turnAll opens or folds all of a kind. */
export function turnAll(kind: Kind): void {
  turned.value = new Set([...turned.peek()].filter((key) => !key.startsWith(kind)));
  all.value = { ...all.peek(), [kind]: !all.peek()[kind] };
}
