// The buttons that change the session: roll back, and snapshot. They are not there where the server refuses writes.
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { readOnly } from "../model/nav.ts";
import { head } from "../model/session.ts";

/** asked is the commit to which a person wants to roll back; null = the dialog is closed. */
export const asked = signal<number | null>(null);

/** rollBackTo opens the dialog. */
export function rollBackTo(seq: number): void {
  asked.value = seq;
}

/** Moves shows the buttons for a commit. */
export function Moves({ seq }: { seq: number | null; snapshot?: () => void }): JSX.Element | null {
  if (readOnly) return null;
  return (
    <button disabled={seq === null || seq === head.value?.seq} onClick={() => seq !== null && rollBackTo(seq)}>Roll back…</button>
  );
}
