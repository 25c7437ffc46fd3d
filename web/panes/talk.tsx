// The conversation: the entries of the line that is read, from the root to its end.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { isPrompt, type Item } from "../model/path.ts";
import { dayOf } from "../model/format.ts";
import { firstWords } from "../model/message.ts";
import { hinted } from "../model/hints.ts";
import { go, view } from "../model/nav.ts";
import { Article, Streaming, type ArticleProps } from "../parts/article.tsx";
import { Breadcrumb } from "../parts/breadcrumb.tsx";
import { Failed } from "../parts/failed.tsx";
import { highlight } from "../parts/highlight.ts";
import { Scroller } from "../parts/scroller.tsx";
import { useSession } from "../parts/use-session.ts";
import { later } from "./on-demand.tsx";
import { useTalkKeys } from "./talk-keys.ts";

const Hints = later("Hints");

/** Talk shows the conversation. */
export function Talk(): JSX.Element {
  const { conversation: talk } = useSession();
  useTalkKeys();
  return (
    <main class="talk" aria-label="Conversation">
      <Breadcrumb />
      {hinted.value && <Hints />}
      <Events />
      <Lost />
      {talk.trouble.value && <p class="failed" role="alert">{talk.trouble.value}</p>}
      <div class="reading">
        <Heading />
        <List />
      </div>
      <Below />
    </main>
  );
}

/** Heading shows the prompt that what is in sight answers, once it is out of sight itself. */
function Heading(): JSX.Element | null {
  const { conversation: talk } = useSession();
  const asked = talk.prompt.value;
  if (!asked) return null;
  return (
    <h2 class="heading">
      <button type="button" title="to this prompt" onClick={() => go({ at: asked.entry.id, seq: null }, "step")}>
        {firstWords(asked.message!, 200)}
      </button>
    </h2>
  );
}

/** Events is the switch of the events of programs, where there are some. */
function Events(): JSX.Element | null {
  const { conversation: talk, failures } = useSession();
  const shown = view.value.events;
  const failed = failures.value.value?.total ?? 0;
  if (!shown && talk.hidden.value === 0) return failed > 0 ? <div class="talk-bar phone-only"><Failed /></div> : null;
  return (
    <div class="talk-bar">
      <span class="phone-only"><Failed /></span>
      <button type="button" aria-pressed={shown} title="v" onClick={() => talk.toggleEvents()}>{shown ? "hide" : "show"} program events</button>
    </div>
  );
}

/** Lost reports that the session is damaged: it ends before commits that were made, or a part of it cannot be read. */
function Lost(): JSX.Element | null {
  const { failures, summary } = useSession();
  const missing = summary.value?.missing;
  const cause = failures.value.value?.cause;
  if (!missing && !cause) return null;
  const what = missing ? `Commits up to seq ${missing} were made, and are lost: this is what is left.` :
    "A part of this session cannot be read: this is what is intact.";
  return (
    <p class="failed" role="alert" title={cause}>{what} Nothing can be written here
      until <code>coppice verify</code> and <code>coppice repair</code> have looked at it.</p>
  );
}

/** prefetch is how many articles before the end of what is loaded more is read. */
const prefetch = 25;

function List(): JSX.Element {
  const { conversation: talk } = useSession();
  const items = talk.items.value;
  const { older, newer } = talk.line.value;
  const at = current(items);
  const drawn = useDrawn();
  const { search } = view.value;
  const marked = useRef("");
  const mark = () => {
    if (view.peek().search || marked.current) highlight(document.querySelector(".talk .scroller")!, marked.current = view.peek().search);
  };
  useEffect(mark, [search]);
  return (
    <Scroller keys={items.map((item) => item.entry.id)} estimate={(i) => estimate(items[i]!)} label="Messages"
      render={(i) => drawn({
        item: items[i]!, at: i === at, place: i + 1, of: older || newer ? -1 : items.length, day: newDay(items, i),
      })}
      wanted={talk.wanted.value} obeyed={() => (talk.wanted.value = null)} place={(f) => (talk.place = f)}
      last={!newer}
      onPlace={(from, to, end, calm) => {
        talk.atEnd.value = end;
        talk.top.value = talk.place()?.key ?? null;
        mark();
        if (talk.below.peek() > 0) talk.below.value = end ? 0 : Math.min(talk.below.peek(), items.length - 1 - lastSeen(items));
        if (!calm) return;
        if (from < prefetch) void talk.readOlder();
        if (to > items.length - prefetch) void talk.readNewer();
      }}
      before={older ? <p class="edge">{talk.loading.value === "older" ? "reading older messages…" : ""}</p> : <Start />}
      after={!newer && <End />} />
  );
}

/** newDay returns the date of an article if it is not that of the article before it; "" = it is. */
function newDay(items: readonly Item[], i: number): string {
  const day = dayOf(items[i]!.entry.timestamp);
  return day === dayOf(items[i - 1]?.entry.timestamp) ? "" : day;
}

/** lastSeen returns the index of the last article of which something is in sight. */
function lastSeen(items: readonly Item[]): number {
  const edge = document.querySelector(".talk .scroller")!.getBoundingClientRect().bottom;
  const seen = [...document.querySelectorAll<HTMLElement>(".talk article[data-key]")].findLast((e) => e.getBoundingClientRect().top < edge);
  return items.findIndex((item) => item.entry.id === seen?.dataset.key);
}

/**
 * useDrawn returns a function that draws articles. One that is drawn with the same properties as before is the same
 * element, at which Preact has nothing to do.
 */
function useDrawn(): (p: ArticleProps) => JSX.Element {
  const before = useRef(new Map<string, [ArticleProps, JSX.Element]>());
  const next = new Map<string, [ArticleProps, JSX.Element]>();
  const last = before.current;
  before.current = next;
  return (p) => {
    const key = p.item.entry.id;
    const old = last.get(key) ?? next.get(key);
    const same = old && (Object.keys(p) as (keyof ArticleProps)[]).every((name) => p[name] === old[0][name]);
    const drawn: [ArticleProps, JSX.Element] = same ? old : [p, <Article key={key} {...p} />];
    next.set(key, drawn);
    return drawn[1];
  };
}

/** current returns the index of the article that the cursor is at; -1 = none that is loaded. */
export function current(items: readonly Item[]): number {
  const { at } = view.value;
  return at === null ? -1 : items.findIndex((item) => item.ids.includes(at));
}

/** estimate returns how high an article will be, in pixels, by the length of its text. */
function estimate(item: Item): number {
  if (!item.message) return 34;
  let height = isPrompt(item.entry) ? 64 : 48;
  for (const p of item.parts) {
    height += p.kind === "text" ? 24 * Math.min(400, Math.ceil(p.text.length / 95)) : p.kind === "image" ? 190 : 34;
  }
  return height;
}

function Start(): JSX.Element {
  const { conversation: talk } = useSession();
  const loading = talk.loading.value === "line";
  const { entries, before } = talk.line.value;
  if (entries.length > 0 && before) return <p class="edge failed" role="alert">What was said before cannot be read. {before}</p>;
  if (entries.length > 0) return <p class="edge">start of the session</p>;
  if (view.value.seq === 0 && view.value.at === null) {
    return (
      <p class="edge">
        At seq 0 the session was made: there was no message yet.{" "}
        <button type="button" class="link" onClick={() => talk.toHead()}>go to the head</button>
      </p>
    );
  }
  if (talk.trouble.value) return <p class="edge" />;
  return <p class="edge" role="status">{loading ? "reading…" : "There is no message yet."}</p>;
}

/** End shows what comes after the last message: what is being written, and where the line ends. */
function End(): JSX.Element | null {
  const { branches, conversation: talk, head, partial } = useSession();
  const p = partial.value;
  const { line, seq } = view.value;
  const { after } = talk.line.value;
  if (after) return <p class="edge failed" role="alert">What was said after this cannot be read. {after}</p>;
  if (line === null && p !== null) return <Streaming message={p} />;
  const leaf = talk.line.value.entries.at(-1)?.id;
  if (line === null || !leaf || leaf === head.value?.entry) return null;
  const onHead = talk.endMark.value?.onHead;
  return (
    <p class="edge">
      {seq === null ? "end of this line. " : `the end at seq ${seq}. `}
      {onHead === undefined ? "" : onHead ? "The session goes on from here: " : "The head of the session is on another line: "}
      <button type="button" class="link" onClick={() => talk.toHead()}>go to the head</button>
      {head.value?.branch ? <> of {branches.titleOf(head.value.branch)}</> : null}
    </p>
  );
}

function Below(): JSX.Element {
  const { conversation: talk } = useSession();
  const n = talk.below.value;
  return (
    <div class="below" role="status">
      {n > 0
        ? <button type="button" onClick={() => void talk.toEnd()}>{n} new below</button>
        : !talk.atEnd.value && <button type="button" aria-label="To the end" onClick={() => void talk.toEnd()}>↓</button>}
    </div>
  );
}
