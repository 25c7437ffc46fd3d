// The keys of the conversation.
import { readOnly } from "../model/access.ts";
import { useActions } from "../model/actions.ts";
import { toNextFailure } from "../model/failures.ts";
import { isFork, isPrompt } from "../model/path.ts";
import { go, view } from "../model/nav.ts";
import { lookAt, type Conversation } from "../model/conversation.ts";
import type { OpenSession } from "../model/session.ts";
import { say } from "../parts/toast.tsx";
import { turnItem } from "../parts/article.tsx";
import { useSession } from "../parts/use-session.ts";

/** here returns the index of the article that keys start from: that of the cursor, else the first in sight. */
function here(talk: Conversation): number {
  const list = talk.items.peek();
  const { at } = view.peek();
  const i = at === null ? -1 : list.findIndex((item) => item.ids.includes(at));
  if (i >= 0) return i;
  if (talk.atEnd.peek()) return list.length; // below the last one: k goes to it
  const key = talk.place()?.key;
  return list.findIndex((item) => item.entry.id === key);
}

/** step moves the cursor by an article. */
function step(talk: Conversation, by: 1 | -1): void {
  const list = talk.items.peek();
  const i = Math.max(0, Math.min(list.length - 1, here(talk) + by));
  if (list[i]) reach(talk, list[i]!.entry.id);
}

/** margin is what is between an article that keys went to and the edge of the view, in pixels: the heading, and a little. */
const margin = 40;

/** reach moves the cursor to an article that is loaded, brings it in sight and focuses it. */
function reach(talk: Conversation, id: string): void {
  talk.focus(id);
  talk.moveTo(id);
  const view = document.querySelector(".scroller")?.getBoundingClientRect();
  const shown = document.getElementById("e-" + id)?.getBoundingClientRect();
  if (!view || !shown) talk.wanted.value = { key: id, offset: lookAt };
  else if (shown.top < view.top + margin) talk.wanted.value = { key: id, offset: margin };
  else if (shown.bottom > view.bottom - margin) {
    talk.wanted.value = { key: id, offset: Math.max(margin, view.height - shown.height - margin) };
  }
}

/** seek moves the cursor to the next article that is something, reading on where it has to. */
function seek(talk: Conversation, by: 1 | -1, is: Parameters<Conversation["nextThat"]>[2], what: string): void {
  void talk.nextThat(here(talk), by, is).then((id) => {
    if (id === null) say(`No ${what} ${by > 0 ? "below" : "above"} on this line.`);
    else if (talk.items.peek().some((item) => item.entry.id === id)) reach(talk, id);
    else {
      talk.focus(id);
      go({ at: id, seq: null }, "step");
    }
  });
}

/** showFailure goes to the next failure, and shows its number. */
export function showFailure(s: OpenSession): void {
  const next = toNextFailure(s);
  say(next ? `failure ${next.n} of ${next.of}` : "Nothing failed in this session.");
}

function turnVersion({ conversation: talk, versions }: OpenSession, by: 1 | -1): void {
  const item = talk.items.peek()[here(talk)];
  const mark = item && talk.line.peek().marks.get(item.entry.id);
  if (!mark || mark.of < 2) return;
  const top = document.getElementById("e-" + mark.id)?.getBoundingClientRect().top ?? 0;
  void versions.choose(mark, by, top - (document.querySelector(".scroller")?.getBoundingClientRect().top ?? 0));
}

/** useTalkKeys registers what the keys of the conversation do. */
export function useTalkKeys(): void {
  const s = useSession();
  const { conversation: talk, folds } = s;
  const item = () => talk.items.peek()[here(talk)];
  const ask = (what: "label" | "edit") => () => {
    const i = item();
    if (i && (what === "label" || isPrompt(i.entry))) s.asking.value = { what, entry: i.entry.id };
  };
  useActions({
    "next": () => step(talk, 1),
    "previous": () => step(talk, -1),
    "next-prompt": () => seek(talk, 1, isPrompt, "prompt"),
    "previous-prompt": () => seek(talk, -1, isPrompt, "prompt"),
    "next-fork": () => seek(talk, 1, (e, line) => isFork(line.marks.get(e.id)), "fork"),
    "previous-fork": () => seek(talk, -1, (e, line) => isFork(line.marks.get(e.id)), "fork"),
    "root": () => void talk.toRoot(),
    "end": () => void talk.toEnd(),
    "follow": () => talk.toHead(),
    "toggle": () => {
      const i = item();
      if (i) turnItem(folds, i);
    },
    "toggle-tools": () => folds.turnAll("tool"),
    "toggle-thinking": () => folds.turnAll("thinking"),
    "next-failure": () => showFailure(s),
    "toggle-events": () => talk.toggleEvents(),
    "older-version": () => turnVersion(s, -1),
    "newer-version": () => turnVersion(s, 1),
    ...(readOnly.value ? {} : { "label": ask("label"), "edit": ask("edit") }),
  });
}
