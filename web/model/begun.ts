// The order in which a page is built: the conversation first, and when it was painted the panes around it.
import { effect, signal } from "@preact/signals";
import { session } from "./nav.ts";
import { painted } from "./painted.ts";
import { line, trouble } from "./talk.ts";

/** longest is how long the panes wait for the conversation, in ms: of a slow server they show what they can. */
const longest = 500;

/** begun reports whether the panes around the conversation are built. Once they are, they stay. */
export const begun = signal(false);

/** mapped reports whether the map was read once. What needs all entries of the session waits for it, if the map is shown. */
export const mapped = signal(false);

/** start waits for the conversation. It is called once. */
export function start(): void {
  const begin = () => (begun.value = true);
  const timer = setTimeout(begin, longest);
  effect(() => {
    if (begun.value) clearTimeout(timer);
    else if (session.value === null) begin();
    else if (line.value.entries.length > 0 || trouble.value !== "") painted(begin);
  });
}
