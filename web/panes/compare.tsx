// Two points side by side.
import type { JSX } from "preact";

/** ComparePane shows two points side by side. */
export function ComparePane(): JSX.Element {
  return <section aria-label="compare" />;
}
