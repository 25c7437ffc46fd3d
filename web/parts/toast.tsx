// What was done, for a moment, with a way back.
import { signal } from "@preact/signals";
import type { JSX } from "preact";

interface Note {
  text: string;
  action?: { label: string; run: () => void };
}

const note = signal<Note | null>(null);

/** shownFor is how long a note without an action is shown, in ms. One with an action waits for a click. */
const shownFor = 6_000;

let timer: ReturnType<typeof setTimeout> | undefined;

/** say shows a note in place of the one before. */
export function say(text: string, action?: Note["action"]): void {
  clearTimeout(timer);
  note.value = { text, action };
  if (!action) timer = setTimeout(() => (note.value = null), shownFor);
}

/** Toast is where notes are shown. */
export function Toast(): JSX.Element {
  const n = note.value;
  return (
    <div class="toast" role="status">
      {n && <p>{n.text}{" "}
        {n.action && <button onClick={() => { note.value = null; n.action!.run(); }}>{n.action.label}</button>}
        {n.action && <button aria-label="Dismiss" onClick={() => (note.value = null)}>×</button>}
      </p>}
    </div>
  );
}
