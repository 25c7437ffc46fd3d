// The keyboard, as the table in model/keys.ts has it, and the words that the page uses.
import type { JSX } from "preact";
import { readOnly } from "../model/access.ts";
import { closeDialog } from "../model/dialogs.ts";
import { keys } from "../model/keys.ts";
import { Dialog } from "../parts/dialog.tsx";

const words: [string, string][] = [
  ["looking", "Choosing a version, a commit or a branch here changes what you see, never where the agent continues."],
  ["head", "Where the next message will be appended. Only “Continue from here”, “Edit” and “Roll back” move it, and they ask."],
  ["commit", "One durable step: messages and the agent's state together. Each has a number, its seq."],
  ["state", "The agent's own data, as it was after a commit. A rollback brings it back exactly."],
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
      <dl>{words.map(([w, text]) => <><dt><strong>{w}</strong></dt><dd>{text}</dd></>)}</dl>
    </Dialog>
  );
}
