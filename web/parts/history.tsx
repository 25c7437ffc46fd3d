// The history of one value of the state.
import type { JSX } from "preact";

/** ValueHistory lists the commits that changed a value. */
export function ValueHistory({ path }: { path: string }): JSX.Element {
  return <section class="past" aria-label={"History of " + path} />;
}
