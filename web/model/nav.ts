// The one cursor: every pane reads `view` and moves it with `go`. Moving it changes the URL, never the head.
import { computed, signal } from "@preact/signals";
import { base } from "../api/base.ts";
import { format, home, parse, type View } from "./url.ts";

/** view is what the page shows. */
export const view = signal<View>(parse(base, location.pathname, location.search));

/** sessionId is the id of the session that the page shows; null = it shows the list of sessions. */
export const sessionId = computed(() => view.value.session);

/** target is the commit or entry that the cursor is at, as the API's `at` takes it. */
export const target = computed(() => targetOf(view.value));

/** targetOf returns the target of a view's cursor. */
export function targetOf(v: View): string {
  if (v.seq !== null) return "seq:" + v.seq;
  const entry = v.at ?? v.line;
  return entry === null ? "head" : "entry:" + entry;
}

/** writeEvery is the shortest time between two steps that replace the address, in ms: browsers refuse 100 in 30 s. */
const writeEvery = 320;

let written = -Infinity; // when, as performance.now
let writing: ReturnType<typeof setTimeout> | undefined;

/** write brings the address of the page up to the view. */
function write(): void {
  clearTimeout(writing);
  writing = undefined;
  written = performance.now();
  const url = format(base, view.peek());
  if (url !== location.pathname + location.search) history.replaceState(null, "", url);
}

/** How a change of the view is in the browser's history: a run of steps, such as by a key that is held, is one entry. */
export type How = "push" | "replace" | "step";

let stepping = false; // the newest entry of the history was made by a step

/**
 * go changes some of the view. What a person would want to undo with "back" makes an entry of the browser's history;
 * scrubbing and what follows from what is read replace it, and the address follows a moment later.
 */
export function go(change: Partial<View>, by: How = "push"): void {
  const next = { ...view.peek(), ...change };
  const url = format(base, next);
  if (url === format(base, view.peek())) return;
  const how = by !== "step" ? by : stepping ? "replace" : "push";
  if (by !== "replace") stepping = by === "step";
  if (how === "push") {
    if (writing) write();
    history.pushState(null, "", url);
  }
  view.value = next;
  if (how === "push" || writing) return;
  writing = setTimeout(write, Math.max(0, written + writeEvery - performance.now()));
}

/** open shows a session, or the list with null. */
export function open(id: string | null, change: Partial<View> = {}): void {
  const { pane, rows, form, events, text } = view.peek();
  go({ ...home(id), pane, rows, form, events, text, ...change });
}

/** href returns the link to a changed view, for anchors that can be copied and opened in a new tab. */
export function href(change: Partial<View>): string {
  return format(base, { ...view.value, ...change });
}

addEventListener("popstate", () => {
  clearTimeout(writing);
  writing = undefined;
  stepping = false;
  view.value = parse(base, location.pathname, location.search);
});
