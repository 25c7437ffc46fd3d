// What can be done about a message. In read-only mode: nothing but links.
import type { JSX } from "preact";
import { readOnly } from "../model/access.ts";
import type { Question } from "../model/asking.ts";
import { isPrompt, type Item } from "../model/path.ts";
import { href } from "../model/nav.ts";
import { copy } from "./copy.ts";
import { useSession } from "./use-session.ts";

/** Actions shows the buttons of an article. */
export function Actions({ item }: { item: Item }): JSX.Element {
  const { asking } = useSession();
  const id = item.entry.id;
  const words = item.parts.flatMap((p) => (p.kind === "text" && !p.inserted ? [p.text] : [])).join("\n\n");
  const ask = (what: Question["what"], title: string, text = title) => (
    <button type="button" title={title} onClick={() => (asking.value = { what, entry: id })}>{text}</button>
  );
  return (
    <div class="actions">
      <button type="button" title="copy the link to this message"
        onClick={() => copy(location.origin + href({ at: id, seq: null }), "The link")}>link</button>
      {words && (
        <button type="button" title="copy the words of this message"
          onClick={() => copy(words, "The message")}>copy</button>
      )}
      {!readOnly.value && isPrompt(item.entry) && ask("edit", "edit: a new version, this one stays", "edit")}
      {!readOnly.value && ask("label", "label")}
      {!readOnly.value && item.message && ask("continue", "continue from here", "continue")}
    </div>
  );
}
