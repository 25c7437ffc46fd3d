// What a person can try first in the demo, which opens where a prompt has two versions.
import type { JSX } from "preact";
import { dismissHints } from "../model/hints.ts";

/** Hints shows three things to try. */
export function Hints(): JSX.Element {
  return (
    <aside class="hints" aria-label="Hints">
      <ol>
        <li><b>‹ 1/2 ›</b> at the message below shows the other version of it, with all that followed. Both are kept.</li>
        <li><b>Drag the timeline</b> at the lower edge: conversation and state go back to how they were then.</li>
        <li><b>State</b> at the right has what the agent knew at this point. Choose a value to see what changed it.</li>
      </ol>
      <button type="button" onClick={dismissHints}>Got it</button>
    </aside>
  );
}
