// Tokens and cost.
import type { JSX } from "preact";

/** UsagePane shows tokens and cost. */
export function UsagePane(): JSX.Element {
  return <section aria-label="usage" />;
}
