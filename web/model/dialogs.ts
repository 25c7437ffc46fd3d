// The dialog over the page that is open.
import { signal } from "@preact/signals";
import { session } from "./nav.ts";

/** dialog is what is open; null = none. The dialogs of a pane, such as that of a rollback, are the pane's own. */
export const dialog = signal<"palette" | "help" | "export" | null>(null);

/** openPalette, openHelp and openExport open a dialog. */
export function openPalette(): void {
  dialog.value = "palette";
}

export function openHelp(): void {
  dialog.value = "help";
}

export function openExport(): void {
  if (session.peek() !== null) dialog.value = "export";
}

/** closeDialog closes what is open. */
export function closeDialog(): void {
  dialog.value = null;
}
