// The conversation: the entries of the line that is read, from the root to its end.
import { signal, useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import type { Entry } from "../api/client.ts";
import { entryPage } from "../api/pages.ts";
import { go, view } from "../model/nav.ts";
import { change, generation, head } from "../model/session.ts";
import { EntryView } from "../parts/message.tsx";

const entries = signal<Entry[]>([]);
const older = signal<string | null>(null);

async function load(id: string, line: string, after: string | null, signal: AbortSignal): Promise<void> {
  const data = await entryPage(id, { path: line, order: "desc", limit: 50, ...(after ? { after } : {}) }, signal);
  const page = data.entries.toReversed();
  entries.value = after ? [...page, ...entries.peek()] : page;
  older.value = data.next ?? null;
}

/** Talk shows the conversation. */
export function Talk(): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const line = view.value.line ?? "head";
  const id = view.value.session!;
  useSignalEffect(() => {
    void generation.value;
    const abort = new AbortController();
    void load(view.value.session!, view.value.line ?? "head", null, abort.signal)
      .then(() => box.current?.scrollTo(0, box.current.scrollHeight)).catch(() => {});
    return () => abort.abort();
  });
  useSignalEffect(() => {
    const c = change.value;
    if (!c || view.peek().line !== null) return;
    const have = new Set(entries.peek().map((e) => e.id));
    if (head.peek()?.entry && c.entries.length > 0 && c.entries.every((e) => !have.has(e.id))) {
      entries.value = [...entries.peek(), ...c.entries];
    }
  });
  const now = new Date();
  return (
    <main class="talk" ref={box} aria-label="Conversation">
      {older.value && (
        <button onClick={() => void load(id, line, older.value, new AbortController().signal)}>older messages</button>
      )}
      {entries.value.map((e) => (
        <article key={e.id} id={"e-" + e.id} class={view.value.at === e.id ? "entry at" : "entry"}
          onClick={() => go({ at: e.id, seq: null }, "replace")}>
          <EntryView entry={e} now={now} />
        </article>
      ))}
    </main>
  );
}
