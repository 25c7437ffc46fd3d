// What can be done about a message. In read-only mode: nothing but links.
import type { JSX } from "preact";
import { readOnly } from "../model/access.ts";
import type { Question } from "../model/asking.ts";
import { isPrompt, type Item } from "../model/path.ts";
import { href } from "../model/nav.ts";
import { copy } from "./copy.ts";
import { Icon } from "./icon.tsx";
import { useSession } from "./use-session.ts";

/** Actions shows the buttons of an article. */
export function Actions({ item }: { item: Item }): JSX.Element {
  const { asking } = useSession();
  const id = item.entry.id;
  const words = item.parts.flatMap((p) => (p.kind === "text" && !p.inserted ? [p.text] : [])).join("\n\n");
  const button = (name: Parameters<typeof Icon>[0]["name"], title: string, act: () => void) => (
    <button type="button" title={title} onClick={act}><Icon name={name} /><span class="hidden-text">{name}</span></button>
  );
  const ask = (what: Question["what"], title: string) => button(what, title, () => (asking.value = { what, entry: id }));
  return (
    <div class="actions">
      {button("link", "copy the link to this message",
        () => copy(location.origin + href({ at: id, seq: null }), "The link"))}
      {words && button("copy", "copy the words of this message", () => copy(words, "The message"))}
      {!readOnly.value && isPrompt(item.entry) && ask("edit", "edit: a new version, this one stays")}
      {!readOnly.value && ask("label", "label this message")}
      {!readOnly.value && item.message && ask("continue", "continue from here")}
    </div>
  );
}
