// The history of one value of the state: every commit that changed it, with the value before and after.
import { useSignal, useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { call } from "../api/client.ts";
import { pageOf, type Page, type Past } from "../model/blame.ts";
import { isLive } from "../model/cursor.ts";
import { changes, type Changes } from "../model/changes.ts";
import { commitText } from "../model/commits.ts";
import { bytes, shorten } from "../model/format.ts";
import { at } from "../model/json.ts";
import { go } from "../model/nav.ts";
import { ChangeList } from "./changelist.tsx";
import { say } from "./toast.tsx";
import { useResource } from "./use-resource.ts";
import { useSession } from "./use-session.ts";

const pageSize = 50;

/** maxValue is how much of the value at the cursor is shown, in characters. */
const maxValue = 20_000;

/** Step is a page and the cursors that led to it: the way back to newer ones. */
interface Step {
  page: Page;
  cursors: string[];
  newest: number; // the newest commit when it was read
}

/** ValueHistory lists the commits that changed the value to which a pointer leads. text is the state at the cursor. */
export function ValueHistory({ path, text }: { path: string; text: string }): JSX.Element {
  const session = useSession();
  const { head } = session;
  const { noted, shown } = session.cursor;
  const cursors = useSignal<string[]>([]);
  const from = useSignal(isLive.peek() ? null : shown.peek()); // the newest commit of interest; null = the head
  const step = useResource(JSON.stringify([cursors.value, from.value]), async (_, signal): Promise<Step> => {
    const page = await read(session.id, path, cursors.value.at(-1) ?? null, from.value, signal);
    return { page, cursors: cursors.value, newest: from.peek() ?? head.peek()?.seq ?? 0 };
  }, true);
  useSignalEffect(() => {
    noted.value = step.value.value?.page.list.map((p) => p.commit.seq) ?? [];
    return () => (noted.value = []);
  });
  const s = step.value.value;
  const here = s?.page.list.find((p) => p.commit.seq <= (shown.value ?? 0))?.commit.seq;
  return (
    <section class="past-list" aria-label={"History of " + (path || "the whole state")}>
      <header>
        <h3>History of <code>{path || "the whole state"}</code></h3>
        <button onClick={() => void navigator.clipboard.writeText(path).then(() => say("The path was copied."))}>Copy path</button>
        <button aria-label="Close the history" onClick={() => go({ path: null }, "replace")}>×</button>
      </header>
      <Now text={text} path={path} />
      {step.error.value && <p role="alert" class="failed">{step.error.value}</p>}
      {!s && !step.error.value && <p class="quiet">Reading the commits…</p>}
      {s && s.page.list.length === 0 && <p class="quiet">{s.page.next ? "No change in the newest commits." : "No commit set this value."}</p>}
      {s && (
        <ol>
          {s.page.list.map((p) => <Line key={p.commit.seq} past={p} here={p.commit.seq === here} />)}
        </ol>
      )}
      <p class="pages">
        {s && (head.value?.seq ?? 0) > s.newest && s.cursors.length === 0 &&
          <button onClick={() => { from.value === null ? step.retry() : (from.value = null); }}>Later commits too</button>}
        {s && s.cursors.length > 0 && <button onClick={() => (cursors.value = s.cursors.slice(0, -1))}>Newer</button>}
        {s?.page.next && <button onClick={() => (cursors.value = [...s.cursors, s.page.next!])}>Older</button>}
      </p>
    </section>
  );
}

async function read(id: string, path: string, after: string | null, from: number | null, signal: AbortSignal): Promise<Page> {
  const query = new URLSearchParams({ path, limit: String(pageSize) });
  if (after !== null) query.set("after", after);
  else if (from !== null) query.set("at", "seq:" + from);
  return pageOf(await (await call(`/v1/sessions/${encodeURIComponent(id)}/blame?${query}`, { signal })).text());
}

/** Now shows the value at the cursor, longer than its row does. */
function Now({ text, path }: { text: string; path: string }): JSX.Element {
  const v = at(text, path);
  if (!v) return <p class="quiet">No such value at this commit.</p>;
  const value = text.slice(v.start, Math.min(v.end, v.start + maxValue));
  const size = v.end - v.start;
  return (
    <pre class="now" tabIndex={0} aria-label="Value at this commit">{value}{size > maxValue && ` … ${bytes(size)}`}</pre>
  );
}

/** maxParts bounds the values within one that are listed for a commit, maxCompared the texts in which they are looked for. */
const maxParts = 4;
const maxCompared = 1 << 20;

/** partsOf returns what changed within an object or a list; null = the value is no such thing, or was replaced as a whole. */
function partsOf(before: string | null | undefined, value: string | null): Changes | null {
  if (!before || !value || before[0] !== value[0] || !"{[".includes(value[0]!) || before.length + value.length > maxCompared) return null;
  return changes(before, value, 50);
}

function Line({ past, here }: { past: Past; here: boolean }): JSX.Element {
  const { branches, cursor } = useSession();
  const { commit: c, value, before } = past;
  const parts = useMemo(() => partsOf(before, value), [before, value]);
  return (
    <li>
      <button aria-current={here ? "true" : undefined} title={here ? "In force at the cursor" : "Go to this commit"}
        onClick={() => void cursor.moveTo(c.seq, "push")}>
        <span>seq {c.seq} · {commitText(c, branches)}</span>
        {parts ? null : <code>
          {before === undefined ? "…" : before === null ? <i>none</i> : <del>{shorten(before, 200)}</del>}
          {" → "}
          {value === null ? <i>none</i> : <ins>{shorten(value, 200)}</ins>}
        </code>}
      </button>
      {parts && <ChangeList changed={parts} most={maxParts} />}
    </li>
  );
}
