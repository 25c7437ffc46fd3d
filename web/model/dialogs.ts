// The dialog over the page that is open.
import { signal } from "@preact/signals";
import { readOnly } from "./access.ts";
import { sessionId } from "./nav.ts";

/** dialog is what is open; null = none. */
export const dialog = signal<Name | null>(null);

type Name = "palette" | "help" | "export";

/** openPalette, openHelp and openExport open a dialog. */
export function openPalette(): void {
  dialog.value = "palette";
}

export function openHelp(): void {
  dialog.value = "help";
}

export function openExport(): void {
  if (sessionId.peek() !== null) dialog.value = "export";
}

/** closeDialog closes a dialog, unless another one took its place: the event of its end arrives later. */
export function closeDialog(name: Name): void {
  if (dialog.peek() === name) dialog.value = null;
}

/** A Move is what a person wants to do with a session: roll back to a commit, or take a snapshot. */
export interface Move {
  session: string;
  to: number | "snapshot";
}

/** asked is the move whose dialog is open; null = none. */
export const asked = signal<Move | null>(null);

/** askRollBack asks whether to roll a session back to a commit. */
export function askRollBack(id: string, to: number): void {
  if (!readOnly.value) asked.value = { session: id, to };
}
