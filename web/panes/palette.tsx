// Search across everything: sessions, prompts, entries, labels and what the page can do.
import type { JSX } from "preact";

/** Palette shows the search while it is open. */
export function Palette(): JSX.Element | null {
  return null;
}
