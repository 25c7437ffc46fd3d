// What the model saw at the cursor.
import type { JSX } from "preact";

/** ContextPane shows what the model saw at the cursor. */
export function ContextPane(): JSX.Element {
  return <section aria-label="context" />;
}
