// The state at the cursor, and what its commit changed.
import type { JSX } from "preact";

/** StatePane shows the state at the cursor, and what its commit changed. */
export function StatePane(): JSX.Element {
  return <section aria-label="state" />;
}
