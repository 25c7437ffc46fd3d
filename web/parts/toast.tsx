// What was done, for a moment, with a way back.
import { signal } from "@preact/signals";
import type { JSX } from "preact";

interface Note {
  text: string;
  action?: { label: string; run: () => void };
}

/** What was done, and what can be undone: the one does not take the place of the other. */
const note = signal<Note | null>(null);
const offer = signal<Note | null>(null);

/** shownFor is how long a note without an action is shown, in ms. One with an action waits for a click. */
const shownFor = 6_000;

let timer: ReturnType<typeof setTimeout> | undefined;

/** say shows a note in place of the previous one; of those with an action the newest one is shown. */
export function say(text: string, action?: Note["action"]): void {
  clearTimeout(timer);
  note.value = null;
  if (action) {
    offer.value = { text, action };
    return;
  }
  note.value = { text };
  timer = setTimeout(() => (note.value = null), shownFor);
}

/** Toast is where notes are shown. */
export function Toast(): JSX.Element {
  const n = offer.value;
  return (
    <div class="toast" role="status">
      {note.value && <p>{note.value.text}</p>}
      {n && <p>{n.text}{" "}
        <button onClick={() => { offer.value = null; n.action!.run(); }}>{n.action!.label}</button>
        <button aria-label="Dismiss" onClick={() => (offer.value = null)}>×</button>
      </p>}
    </div>
  );
}
