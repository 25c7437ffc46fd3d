// The commits of the session as a line in time, with the cursor.
import type { JSX } from "preact";

/** Timeline shows the commits, and moves the cursor. */
export function Timeline(): JSX.Element {
  return <footer class="rail" aria-label="Timeline" />;
}
