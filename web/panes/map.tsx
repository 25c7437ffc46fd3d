// The tree of the session as rows, with a minimap of all entries.
import type { JSX } from "preact";

/** MapPane shows the tree of the session as rows, with a minimap of all entries. */
export function MapPane(): JSX.Element {
  return <section aria-label="map" />;
}
