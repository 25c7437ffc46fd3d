// The order in which a page is built: the conversation first, and when it was painted the panes around it.
import { effect, signal, type ReadonlySignal } from "@preact/signals";
import { painted } from "./painted.ts";
import type { OpenSession } from "./session.ts";

/** longest is the maximum time for which the panes wait for the conversation, in ms. */
const longest = 500;

/** panesReady reports whether the page shows the panes around the conversation. Once true, it stays true. */
export const panesReady = signal(false);

/** watchFirstPaint sets panesReady after the conversation was painted, after longest, or if no session is open. It is
 * called once. */
export function watchFirstPaint(opened: ReadonlySignal<OpenSession | null>): void {
  const begin = () => (panesReady.value = true);
  const timer = setTimeout(begin, longest);
  effect(() => {
    const talk = opened.value?.conversation;
    if (panesReady.value) clearTimeout(timer);
    else if (!talk) begin();
    else if (talk.line.value.entries.length > 0 || talk.trouble.value !== "") painted(begin);
  });
}
