// The keyboard, as the table in model/keys.ts has it, and the words that the page uses.
import type { JSX } from "preact";
import { readOnly } from "../model/access.ts";
import { closeDialog } from "../model/dialogs.ts";
import { keys } from "../model/keys.ts";
import { meanings } from "../model/ticks.ts";
import { Dialog } from "../parts/dialog.tsx";

const words: [string, string][] = [
  ["looking", "Choosing a version, a commit or a branch here changes what you see, never where the agent continues."],
  ["head", "Where the next message will be appended. Only “Continue from here”, “Edit” and “Roll back” move it, and they ask."],
  ["commit", "One durable step: messages and the agent's state together. Each has a number, its seq."],
  ["state", "The agent's own data, as it was after a commit. A rollback brings it back exactly."],
];

/** legend is of what the timeline has besides the marks of commits. */
const legend: [string, string][] = [
  ["tick", "a commit, the taller the more entries it added; of an imported session a message of the user. Red: a call or an answer failed."],
  ["area", "what the session had cost up to there, all branches"],
  ["grey bar", "what is in sight of the conversation"],
];

/** Help shows the help. */
export function Help(): JSX.Element {
  const groups = [...new Set(keys.map((k) => k.group))];
  return (
    <Dialog title="Keyboard and words" class="help" onClose={() => closeDialog("help")}>
      <div class="help-keys">
        {groups.map((g) => (
          <div key={g}>
            <h3>{g}</h3>
            <dl>{keys.filter((k) => k.group === g && !(k.writes && readOnly.value)).map((k) => (
              <><dt>{k.keys.map((x) => <kbd key={x}>{x.replace("Mod", "Ctrl")}</kbd>)}</dt><dd>{k.help}</dd></>
            ))}</dl>
          </div>
        ))}
      </div>
      <h3 id="timeline-legend">The timeline</h3>
      <dl>{meanings.map((m) => <><dt><strong>{m.mark}</strong></dt><dd>{m.means}</dd></>)}{legend.map(([sign, text]) => (
        <><dt>{sign}</dt><dd>{text}</dd></>))}</dl>
      <h3>Words</h3>
      <dl>{words.map(([w, text]) => <><dt><strong>{w}</strong></dt><dd>{text}</dd></>)}</dl>
    </Dialog>
  );
}
