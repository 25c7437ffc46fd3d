// The dialogs that are opened by a key wherever one is: search, help, export. Each is loaded when it is first opened.
import type { JSX } from "preact";
import { useActions } from "../model/actions.ts";
import { dialog, openExport, openHelp, openPalette } from "../model/dialogs.ts";
import { later } from "./on-demand.tsx";

const shows = {
  palette: later("Palette", "section", "hidden-text"), help: later("Help", "section", "hidden-text"),
  export: later("Export", "section", "hidden-text"),
};

/** Dialogs shows the one that is open. */
export function Dialogs(): JSX.Element | null {
  useActions({ palette: openPalette, help: openHelp, export: openExport });
  const Shown = dialog.value && shows[dialog.value];
  return Shown && <Shown />;
}
