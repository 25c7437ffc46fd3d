// The order in which a page is built: the conversation first, and when it was painted the panes around it.
import { effect, signal, type ReadonlySignal } from "@preact/signals";
import { painted } from "./painted.ts";
import type { OpenSession } from "./session.ts";

/** longest is how long the panes wait for the conversation, in ms: of a slow server they show what they can. */
const longest = 500;

/** begun reports whether the panes around the conversation are built. Once they are, they stay. */
export const begun = signal(false);

/** start waits for the conversation of the session that is open, if there is one. It is called once. */
export function start(opened: ReadonlySignal<OpenSession | null>): void {
  const begin = () => (begun.value = true);
  const timer = setTimeout(begin, longest);
  effect(() => {
    const talk = opened.value?.conversation;
    if (begun.value) clearTimeout(timer);
    else if (!talk) begin();
    else if (talk.line.value.entries.length > 0 || talk.trouble.value !== "") painted(begin);
  });
}
