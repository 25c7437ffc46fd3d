// The pane "What the model saw": the messages of the context at the cursor, with their sizes and diagnostics.
import { useComputed, useSignal, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { api, textOf, type Entry } from "../api/client.ts";
import { exact } from "../api/exact.ts";
import { entryPage } from "../api/pages.ts";
import { bytes, count } from "../model/format.ts";
import { itemsOf } from "../model/path.ts";
import { go, view } from "../model/nav.ts";
import { Newest } from "../model/newest.ts";
import { pretty } from "../model/pretty.ts";
import {
  beforeOf, differenceOf, inPages, isBeyond, lineOf, mostChars, sharesOf, tokensOf, windowOf, type Difference, type Saw, type Share,
} from "../model/model-context.ts";
import type { OpenSession } from "../model/session.ts";
import { messageOf } from "../model/resource.ts";
import { forms, type Form } from "../model/url.ts";
import { Body } from "../parts/message.tsx";
import { useSession, useSessionEffect } from "../parts/use-session.ts";

const names: Record<Form, string> = {
  "": "As stored", anthropic: "Anthropic request", "openai-chat": "OpenAI chat request",
  "openai-responses": "OpenAI responses request", gemini: "Gemini request",
};

const perAnswer = 500; // maximum number of messages of one answer of the server
const pageSize = 50; // number of messages on a page
const maxOpen = 10; // maximum number of open messages; opening another closes the one opened first
const maxText = 50_000; // maximum number of characters shown of a message as text

/** patience is the number of places that the cursor may move on before a read under way is cancelled. */
const patience = 12;

/** Place is a target (a commit or an entry) and the form in which its context is read. */
interface Place {
  target: string;
  form: Form;
}

/** Read is a context that was read. The optional fields are read after it. */
interface Read extends Place {
  saw: Saw | null; // null = a page of it is too long to show
  path?: number | null; // number of entries on the path to the target; null = not known
  turn?: Difference; // to the context of the turn before
  compacted?: readonly string[]; // messages that the newest compaction removed
}

/** ContextPane shows the context at the cursor. */
export function ContextPane(): JSX.Element {
  const read = useSignal<Read | null>(null);
  const failed = useSignal("");
  useContextAt(useSession(), read, failed);
  const r = read.value;
  return (
    <section class="saw" aria-label="What the model saw">
      <header>
        <label>Form <select value={view.value.form} onChange={(e) => go({ form: e.currentTarget.value as Form })}>
          {forms.map((f) => <option key={f} value={f}>{names[f]}</option>)}
        </select></label>
      </header>
      {failed.value && <p role="alert" class="failed">{failed.value}</p>}
      {!r && !failed.value && <p class="quiet">Reading…</p>}
      {r && !r.saw && <p class="quiet">A message of this context is too long to show here.</p>}
      {r?.saw && <Figures r={r} saw={r.saw} />}
      {r?.compacted && <Removed key={r.target} list={r.compacted} />}
      {r?.saw && <Messages key={r.target + r.form} saw={r.saw} raw={r.form !== ""} added={r.turn?.added} />}
    </section>
  );
}

/** useContextAt sets read to the context at the cursor, also while the cursor is dragged, and failed to an error. */
function useContextAt(s: OpenSession, read: Signal<Read | null>, failed: Signal<string>): void {
  const { id } = s;
  const { scrubbed, settled } = s.cursor;
  const form = useComputed(() => view.value.form);
  const place = useComputed(() => {
    const { seq, at, line } = view.value;
    const entry = at ?? line;
    if (scrubbed.value !== null) return "seq:" + scrubbed.value;
    if (seq === null && entry !== null) return "entry:" + entry; // messages within a turn have different contexts
    return settled.value === null ? null : "seq:" + settled.value;
  });
  useSessionEffect(() => {
    const reader = new Newest((p: Place, abort) => contextAt(id, p, abort), (p, saw) => {
      failed.value = "";
      read.value = { ...p, saw };
      if (scrubbed.peek() !== null || s.head.peek() === null) return; // the cursor moves on
      const also = (more: Partial<Read>) => {
        if (read.peek()?.saw === saw) read.value = { ...read.peek()!, ...more };
      };
      const ignore = () => {}; // the context is shown without the comparison that failed
      void measure(s, p.target).then((path) => also({ path })).catch(ignore);
      if (saw) void compared(s, p, saw).then((turn) => also({ turn })).catch(ignore);
      if (saw?.summary) void compacted(s, saw).then((list) => also({ compacted: list })).catch(ignore);
    }, (_, err) => (failed.value = messageOf(err)), patience);
    const end = place.subscribe((target) => target !== null && reader.ask({ target, form: form.peek() }));
    const endForm = form.subscribe((f) => place.peek() !== null && reader.ask({ target: place.peek()!, form: f }));
    return () => {
      end();
      endForm();
      reader.end();
    };
  });
}

/** contextAt reads a context in pages of perAnswer messages; null = a page is too long to show. */
function contextAt(id: string, { target, form }: Place, abort: AbortSignal): Promise<Saw | null> {
  return inPages((after) => {
    const query = new URLSearchParams({
      at: target, limit: String(perAnswer), ...(form ? { provider: form } : {}), ...(after ? { after } : {}),
    });
    return textOf(`/v1/sessions/${encodeURIComponent(id)}/context?${query}`, mostChars, abort);
  });
}

/** compared returns the difference to the context of the turn before; undefined = there is none, or one of them is
 * cut. */
async function compared(s: OpenSession, { target, form }: Place, saw: Saw): Promise<Difference | undefined> {
  const before = beforeOf(target);
  const other = before && await contextAt(s.id, { target: before, form }, s.ended);
  return other && !other.cut && !saw.cut ? differenceOf(other.messages, saw.messages) : undefined;
}

/** compacted returns the messages that the newest compaction removed from the context; undefined = not known. */
async function compacted(s: OpenSession, saw: Saw): Promise<readonly string[] | undefined> {
  if (!saw.rest.leaf || saw.rest.provider || saw.cut) return undefined;
  const page = await entryPage(s.id, { path: saw.rest.leaf, order: "desc", type: "compaction", limit: 1 }, s.ended);
  const parent = page.entries[0]?.parentId;
  const before = parent && await contextAt(s.id, { target: "entry:" + parent, form: "" }, s.ended);
  return before ? differenceOf(before.messages, saw.messages).removed : undefined;
}

/** measure returns the number of entries on the path to a target; null = not known. */
async function measure({ id }: OpenSession, target: string): Promise<number | null> {
  const { data } = await api.GET("/v1/sessions/{id}/diff", {
    params: { path: { id }, query: { a: "seq:0", b: target, limit: 1 } },
  });
  const m = data!.messages;
  return m.onlyA && m.onlyA.length > 0 ? null : (m.onlyB?.length ?? 0) + (m.moreB ?? 0);
}

/** Figures shows the numbers of a context: messages, tokens, shares, open calls, diagnostics. */
function Figures({ r, saw }: { r: Read; saw: Saw }): JSX.Element {
  const { model, thinkingLevel, openCalls, diagnostics, lost, moreLost } = saw.rest;
  const n = saw.messages.length;
  const shares = useMemo(() => sharesOf(saw.messages), [saw]);
  const [tokens = 0, before = 0] = useMemo(() => tokensOf(saw.messages), [saw]);
  const size = windowOf(model ?? "", tokens);
  return (
    <div class="saw-figures">
      <p>
        <strong>{n === 1 ? "1 message" : count(n) + " messages"}</strong> · {bytes(saw.chars)}
        {tokens > 0 && <> · {count(tokens)} tokens up to the newest answer</>}
        {model && <> · {model}</>}{thinkingLevel && thinkingLevel !== "off" && <> · thinking {thinkingLevel}</>}
      </p>
      {size > 0 && tokens > 0 && (
        <p class="window"><meter min={0} max={size} high={0.8 * size} value={tokens} aria-label="Share of the context window" />{" "}
          {Math.round((100 * tokens) / size)} % of the window of {count(size)} tokens
          {before > 0 && tokens !== before && <>, {tokens > before ? "+" : "−"}{count(Math.abs(tokens - before))} since the answer before</>}</p>
      )}
      {n > 0 && <Shares list={shares} chars={saw.chars} />}
      {saw.rest.omitted && <p class="bound">An agent that resumes does not get{" "}
        {saw.rest.omitted.count === 1 ? "the oldest message" : `the ${count(saw.rest.omitted.count)} oldest messages`}
        {saw.rest.provider ? "" : ", in grey"}: with them the context is longer than its bound.</p>}
      {saw.cut && <p>There are more messages than {bytes(mostChars)}, which are not shown.</p>}
      {r.turn && <p class="turn">{changes(r.turn)}</p>}
      {r.path != null && <p>The path to here has {r.path === 1 ? "1 entry" : count(r.path) + " entries"}.
        {saw.summary ? " A compaction replaced the older ones by the summary, message 1."
          : r.path > n ? " Entries that are no messages, such as labels and settings, are not part of the context." : ""}</p>}
      {openCalls && openCalls.length > 0 && (
        <p class="open-calls">! {openCalls.length === 1 ? "1 tool call has no result" : `${openCalls.length} tool calls have no result`}:{" "}
          {openCalls.slice(0, 8).map((c) => `${c.name} (${c.id})`).join(", ")}</p>
      )}
      <Oddities title="Left out, or odd" list={diagnostics ?? []} more={0} />
      <Oddities title={`Not in the request, or not as it was`} list={lost ?? []} more={moreLost ?? 0} />
    </div>
  );
}

/** changes returns a sentence with the numbers of messages that were added and removed since the turn before. */
function changes({ added, removed }: Difference): string {
  const some = [added.size > 0 ? `${count(added.size)} added` : "", removed.length > 0 ? `${count(removed.length)} removed` : ""];
  return "Since the turn before: " + (some.filter(Boolean).join(", ") || "nothing changed");
}

/** Removed is a fold with the messages that a compaction removed, in pages. It opens at the newest page. */
function Removed({ list }: { list: readonly string[] }): JSX.Element | null {
  const from = useSignal(-1);
  if (list.length === 0) return null;
  const last = Math.max(0, list.length - pageSize);
  return (
    <div class="removed">
      <button aria-expanded={from.value >= 0} onClick={() => (from.value = from.value < 0 ? last : -1)}>
        {from.value < 0 ? "▸" : "▾"} {count(list.length)} {list.length === 1 ? "message" : "messages"} that the compaction removed
      </button>
      {from.value > 0 && <p class="pages"><button onClick={() => (from.value = Math.max(0, from.value - pageSize))}>before</button></p>}
      {from.value >= 0 && <ul>{list.slice(from.value, from.value + pageSize).map((raw, i) => <li key={i}><LineOf raw={raw} n="" /></li>)}</ul>}
      {from.value >= 0 && from.value < last && (
        <p class="pages"><button onClick={() => (from.value = Math.min(last, from.value + pageSize))}>after</button></p>
      )}
    </div>
  );
}

const kinds = { summary: "summary", user: "user", assistant: "answers", tool: "tool results", other: "other" };

/** Shares shows the share of each kind of message in a context, by characters, as a bar. */
function Shares({ list, chars }: { list: readonly Share[]; chars: number }): JSX.Element {
  const part = (s: Share) => Math.round((100 * s.chars) / Math.max(1, chars));
  return (
    <>
      <div class="shares" aria-hidden="true">
        {list.map((s) => <span key={s.kind} class={"share " + s.kind} style={{ flexGrow: Math.max(s.chars, chars / 200) }} />)}
      </div>
      <p class="shares-legend">
        {list.map((s) => <span key={s.kind}><i class={"share " + s.kind} aria-hidden="true" /> {kinds[s.kind]} {part(s)} %</span>)}
      </p>
    </>
  );
}

/** maxResults is the maximum number of messages after a message that are searched for results of its calls. */
const maxResults = 24;

/** maxOdd is the maximum number of diagnostics in a list. */
const maxOdd = 50;

/** Oddity is a diagnostic of the server, such as a message that the context leaves out. */
interface Oddity {
  kind: string;
  detail?: string;
  entry?: string;
}

/** Oddities is a fold with diagnostics; closed, it shows the number of each kind. more are not in list. */
function Oddities({ title, list, more }: { title: string; list: Oddity[]; more: number }): JSX.Element | null {
  const open = useSignal(false);
  if (list.length === 0) return null;
  const kinds = new Map<string, number>();
  for (const d of list) kinds.set(d.kind, (kinds.get(d.kind) ?? 0) + 1);
  return (
    <div class="oddities">
      <button aria-expanded={open.value} onClick={() => (open.value = !open.value)}>
        {open.value ? "▾" : "▸"} {title}: {[...kinds].map(([kind, k]) => `${k} × ${kind}`).join(", ")}
        {more > 0 && `, and ${count(more)} more`}
      </button>
      {open.value && (
        <ul>
          {list.slice(0, maxOdd).map((d, i) => (
            <li key={i}>{d.kind}{d.detail && ": " + d.detail}{d.entry && <> <code>{d.entry.slice(-8)}</code></>}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** Messages shows a page of the messages, one line each, and opens at the newest page. A click opens a message. */
function Messages({ saw, raw, added }: { saw: Saw; raw: boolean; added?: ReadonlySet<number> }): JSX.Element {
  const n = saw.messages.length;
  const from = useSignal(Math.max(0, n - pageSize));
  const open = useSignal<number[]>([]);
  const toggle = (i: number) => {
    const list = open.peek();
    open.value = list.includes(i) ? list.filter((x) => x !== i) : [...list, i].slice(-maxOpen);
  };
  const to = Math.min(n, from.value + pageSize);
  const system = saw.rest.system === undefined ? null : JSON.stringify(saw.rest.system);
  return (
    <>
      {system && from.value === 0 && <details class="system"><summary>system</summary><pre>{system.slice(0, maxText)}</pre></details>}
      {from.value > 0 && (
        <p class="pages">
          <button onClick={() => (from.value = Math.max(0, from.value - pageSize))}>{Math.min(pageSize, from.value)} before</button>
          <button onClick={() => (from.value = 0)}>first</button>
        </p>
      )}
      <ol start={from.value + 1}>
        {saw.messages.slice(from.value, to).map((_, k) => from.value + k).map((i) => (
          <MessageLine key={i} saw={saw} i={i} asText={raw} added={added?.has(i) ?? false} open={open.value.includes(i)}
            onToggle={() => toggle(i)} />
        ))}
      </ol>
      {to < n && (
        <p class="pages"><button onClick={() => (from.value = to)}>{Math.min(pageSize, n - to)} after</button></p>
      )}
      {n === 0 && <p class="quiet">Nothing: the model was not asked anything yet.</p>}
    </>
  );
}

/** LineOf shows number, role, first words and size of a message. n "" = no number. */
function LineOf({ raw, n }: { raw: string; n: number | "" }): JSX.Element {
  const line = useMemo(() => lineOf(raw), [raw]);
  return (
    <>
      <span class="n">{n}</span><span class="role">{line.role}</span><span class="words">{line.words}</span>
      <small>{bytes(raw.length)}</small>
    </>
  );
}

/** MessageLine shows the message i of a context: its line, and the whole message if it is open. */
function MessageLine({ saw, i, asText, added, open, onToggle }: {
  saw: Saw; i: number; asText: boolean; added: boolean; open: boolean; onToggle: () => void;
}): JSX.Element {
  const n = i + 1;
  const raw = saw.messages[i]!;
  return (
    <li class={(added ? "added" : "") + (isBeyond(saw, i) ? " beyond" : "")}>
      <button class="message-line" aria-expanded={open} title={added ? "not in the context of the turn before" : undefined}
        onClick={onToggle}><LineOf raw={raw} n={n} /></button>
      {open && (asText ? <AsText raw={raw} /> : <AsMessage n={n} after={saw.messages.slice(i, i + maxResults)} />)}
    </li>
  );
}

/** AsText shows a message as indented JSON, at most maxText characters of it. */
function AsText({ raw }: { raw: string }): JSX.Element {
  const cut = raw.length > maxText;
  return <pre tabIndex={0} aria-label="Message">{pretty(raw.slice(0, maxText))}{cut && ` … ${bytes(raw.length)}`}</pre>;
}

/** AsMessage shows the message after[0] with the results of its calls, which are in the rest of after. */
function AsMessage({ n, after }: { n: number; after: string[] }): JSX.Element {
  const item = useMemo(() => itemsOf(after.map((raw, i) => entryOf(raw, n + i)))[0]!, [after[0]]);
  return <div class="saw-message"><Body item={item} agents={[]} /></div>;
}

/** entryOf returns an entry that contains a message of a context, for Body. The text of a summary becomes its
 * content. */
function entryOf(raw: string, n: number): Entry {
  const message = exact(raw) as Record<string, unknown>;
  const summary = typeof message.summary === "string" ? { content: message.summary } : {};
  return { type: "message", id: "saw-" + n, parentId: null, message: { ...summary, ...message } };
}
