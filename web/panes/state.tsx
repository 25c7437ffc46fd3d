// The state at the cursor, and what its commit changed. Values are shown as they are stored, digit by digit.
import { useSignal, type ReadonlySignal } from "@preact/signals";
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { call } from "../api/client.ts";
import { changes, type Changes } from "../model/changes.ts";
import { earlier, readEarlier } from "../model/cursor.ts";
import { bytes, clock } from "../model/format.ts";
import { pretty } from "../model/pretty.ts";
import { editor } from "../model/lazy.ts";
import { go, view } from "../model/nav.ts";
import { Newest } from "../model/newest.ts";
import { messageOf } from "../model/resource.ts";
import type { OpenSession } from "../model/session.ts";
import { States } from "../model/states.ts";
import { losing } from "../model/ticks.ts";
import { DerivedState } from "../parts/derived.tsx";
import { Editor } from "../parts/editor.tsx";
import { ChangeList } from "../parts/changelist.tsx";
import { JSONTree } from "../parts/jsontree.tsx";
import { Moves } from "../parts/moves.tsx";
import { ValueHistory } from "../parts/history.tsx";
import { say } from "../parts/toast.tsx";
import { useSession, useSessionEffect } from "../parts/use-session.ts";

/** Bounds: of changes that are marked, of those that are listed, of a text that is compared, of one that is shown whole. */
const maxMarked = 500;
const maxListed = 6;
const maxCompared = 8 << 20;
const maxRaw = 4 << 20;

/** patience is the number of commits that the cursor passes before a read that is under way is given up. */
const patience = 12;

/** Read is the state of a commit, and what it changed. */
interface Read {
  seq: number;
  text: string;
  changed: Changes;
  unknown: boolean; // what it changed: the state before cannot be read
}

/** StatePane shows the state at the cursor, and what its commit changed. */
export function StatePane(): JSX.Element {
  const failed = useSignal("");
  const s = useSession();
  const { shown } = s.cursor;
  const read = useRead(s, failed);
  const r = read.value;
  const behind = r !== null && shown.value !== null && r.seq !== shown.value;
  return (
    <section class={behind ? "state behind" : "state"} aria-label="State" aria-busy={behind}>
      <Header />
      {failed.value && <p role="alert" class="failed">{failed.value}</p>}
      {r && r.text === "null" && r.changed.list.length === 0 && (
        <>
          <p class="quiet">No state is stored at this commit. A state is any JSON that an agent commits with a turn, such as a plan or a
            list of files. {s.turns.imported.value ? "An import has messages alone." : ""}</p>
          <DerivedState />
        </>
      )}
      {r && (r.text !== "null" || r.changed.list.length > 0) && <Shown read={r} behind={behind} />}
    </section>
  );
}

/** useRead reads the state of the commit that is shown, whatever the cursor passes meanwhile. */
function useRead({ id, cursor, head }: OpenSession, failed: { value: string }): ReadonlySignal<Read | null> {
  const { log, shown } = cursor;
  const read = useSignal<Read | null>(null);
  const states = useMemo(() => new States(async (seq, signal) => {
    const path = `/v1/sessions/${encodeURIComponent(id)}/state?at=seq:${seq}`;
    return (await (await call(path, { signal })).text()).trim();
  }), [id]);
  useSessionEffect(() => {
    const reader = new Newest(async (seq: number, signal) => {
      const was = readEarlier(log.peek()!, seq, signal).then((at) => states.load(at, signal)).catch(() => null);
      const [text, before] = await Promise.all([states.load(seq, signal), was]);
      return readOf(seq, before, text);
    }, (seq, value) => {
      read.value = value;
      failed.value = "";
      void states.prefetch(seq, head.peek()?.seq ?? seq);
    }, (_, err) => (failed.value = messageOf(err)), patience);
    const end = shown.subscribe((seq) => {
      if (seq === null || !log.peek()) return;
      const text = states.get(seq);
      const at = earlier(log.peek()!, seq);
      const before = at === null ? undefined : states.get(at);
      if (text === undefined || before === undefined) reader.ask(seq);
      else {
        reader.end();
        read.value = readOf(seq, before, text);
        void states.prefetch(seq, head.peek()?.seq ?? seq);
      }
    });
    return () => {
      end();
      reader.end();
      states.end();
    };
  });
  return read;
}

function readOf(seq: number, before: string | null, text: string): Read {
  return { seq, text, changed: before === null ? { list: [], more: false } : compared(before, text), unknown: before === null };
}

function compared(before: string, text: string): Changes {
  if (before.length + text.length > maxCompared) return { list: [], more: before !== text };
  return changes(before, text, maxMarked);
}

/** Header shows which commit this is. */
function Header(): JSX.Element {
  const { branches, cursor, turns } = useSession();
  const { shown } = cursor;
  const c = cursor.commit.value;
  return (
    <header class="state-head">
      {turns.imported.value && c ? <p><strong>Imported session</strong> · <time dateTime={c.time}>{clock(c.time, new Date())}</time></p> : <p><strong>seq {shown.value ?? "…"}</strong>
        {c && <> · {c.reason} · <time dateTime={c.time}>{clock(c.time, new Date())}</time></>}
        {c && <> · {branches.titleOf(c.branch)} · <span title="writer">{c.writer}</span></>}
      </p>}
      {c && losing(c) && <p class="note">A losing turn, kept on this branch: this never was the session's state.</p>}
      <Moves seq={shown.value} />
    </header>
  );
}

function amountOf({ list, more }: Changes): string {
  const n = list.length;
  if (more) return n === 0 ? "a large state, which is not compared" : `more than ${n} values`;
  return n === 0 ? "no value" : n === 1 ? "1 value" : `${n} values`;
}

/** Shown shows a state: what changed, then all of it, as a tree or as text. */
function Shown({ read, behind }: { read: Read; behind: boolean }): JSX.Element {
  const { text, changed } = read;
  const raw = view.value.text;
  const what = behind ? `Still the state of seq ${read.seq}: reading`
    : read.unknown ? "The state before this commit cannot be read." : "This commit changed " + amountOf(changed);
  return (
    <>
      <p class="state-changed">{what}</p>
      <ChangeList changed={changed} most={maxListed} onSelect={(path) => go({ path }, "replace")} />
      <div class="state-tabs" role="group" aria-label="Form">
        <button aria-pressed={!raw} onClick={() => go({ text: false })}>Tree</button>
        <button aria-pressed={raw} onClick={() => go({ text: true })}>Text</button>
        <span class="quiet">{bytes(text.length)}</span>
        <button onClick={() => void navigator.clipboard.writeText(text).then(() => say("The state was copied, as it is stored."))}>
          Copy
        </button>
      </div>
      {raw ? <Text text={text} />
        : <JSONTree text={text} changed={changed} selected={view.value.path} onSelect={(path) => go({ path }, "replace")} />}
      {view.value.path !== null && <ValueHistory key={view.value.path} path={view.value.path} text={text} />}
    </>
  );
}

/** Text shows a state as text, with line breaks for reading. */
function Text({ text }: { text: string }): JSX.Element {
  const shownText = useMemo(() => (text.length > maxRaw ? "" : pretty(text)), [text]);
  if (text.length > maxRaw) return <p class="quiet">Too long to show ({bytes(text.length)}). Copy has all of it.</p>;
  return <Editor text={shownText} load={editor} />;
}
