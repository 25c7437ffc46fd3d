// What the messages up to the cursor show of an agent that stored no state.
import { useComputed } from "@preact/signals";
import type { JSX } from "preact";
import { entryPage } from "../api/pages.ts";
import { derive, factOf, upTo, type Fact, type Files, type Task } from "../model/derived.ts";
import { cost, count, grouped } from "../model/format.ts";
import { go, view } from "../model/nav.ts";
import { useResource } from "./use-resource.ts";
import { useSession } from "./use-session.ts";

/** Bounds: of the entries of a page, and of the newest pages of a line that are read. */
const pageSize = 500;
const mostPages = 10;

/** A Reading is the facts of the newest entries of a line. */
interface Reading {
  facts: Fact[];
  ids: string[];
  whole: boolean; // these are all entries of the line
}

async function read(id: string, path: string, signal: AbortSignal): Promise<Reading> {
  const ids: string[] = [];
  const facts: Fact[] = [];
  let after: string | undefined;
  for (let n = 0; n < mostPages; n++) {
    const page = await entryPage(id, { path, order: "desc", limit: pageSize, ...(after ? { after } : {}) }, signal);
    for (const e of page.entries) {
      ids.push(e.id);
      const f = factOf(e);
      if (f) facts.push(f);
    }
    after = page.next;
    if (!after) break;
  }
  return { facts: facts.reverse(), ids: ids.reverse(), whole: !after };
}

/** DerivedState shows what can be derived from the messages up to the cursor. */
export function DerivedState(): JSX.Element | null {
  const { id, head } = useSession();
  const path = view.value.line ?? "head";
  const reading = useResource(head.value && `${path} ${head.value.seq}`, (_, signal) => read(id, path, signal), true);
  const derived = useComputed(() => {
    const r = reading.value.value;
    return r && derive(upTo(r.facts, r.ids, view.value.at));
  });
  const d = derived.value;
  if (reading.error.value) return <p role="alert" class="failed">{reading.error.value}</p>;
  if (!d) return <p class="quiet" role="status">Reading the messages…</p>;
  const used = [`${count(d.tokens)} tokens in ${d.answers === 1 ? "1 answer" : grouped(d.answers) + " answers"}`, cost(d.cost)].filter(Boolean).join(", ");
  return (
    <div class="derived">
      <p class="quiet">From the messages up to {view.value.at === null ? "the end of this line" : "the cursor"}{reading.value.value?.whole ? "" :
        `, of the newest ${grouped(pageSize * mostPages)} entries`}:</p>
      <dl>
        {d.model && <><dt>model</dt><dd>{d.model}{d.thinking && d.thinking !== "off" && `, thinking ${d.thinking}`}</dd></>}
        {d.mode && <><dt>mode</dt><dd>{d.mode}</dd></>}
        {d.answers > 0 && <><dt>used</dt><dd>{used}</dd></>}
        {d.context > 0 && <><dt>context</dt><dd>{count(d.context)} tokens at the newest answer</dd></>}
        {d.failed > 0 && <><dt>failed</dt><dd class="failed">{d.failed === 1 ? "1 call or answer" : `${grouped(d.failed)} calls and answers`}</dd></>}
      </dl>
      {d.tasks.length > 0 && <Tasks list={d.tasks} />}
      <FileList title="Files written" files={d.written} />
      <FileList title="Files read" files={d.read} />
    </div>
  );
}

const boxes = { open: "☐", active: "▶", done: "☑" };
const names = { open: "open", active: "in progress", done: "done" };

function Tasks({ list }: { list: readonly Task[] }): JSX.Element {
  const done = list.filter((t) => t.status === "done").length;
  return (
    <section aria-label="Task list">
      <h3>Task list <small>{done} of {list.length} done</small></h3>
      <ul class="tasks">
        {list.map((t, i) => (
          <li key={i} class={t.status}><span aria-hidden="true">{boxes[t.status]}</span> <span class="hidden-text">{names[t.status]}: </span>{t.text}</li>
        ))}
      </ul>
    </section>
  );
}

/** short returns the end of a path. */
function short(path: string): string {
  const parts = path.split(/[/\\]/);
  return parts.length > 4 ? "…/" + parts.slice(-3).join("/") : path;
}

/** mostFiles bounds the files that are listed, the ones used last first. */
const mostFiles = 100;

function FileList({ title, files }: { title: string; files: Files }): JSX.Element | null {
  if (files.size === 0) return null;
  return (
    <section aria-label={title}>
      <h3>{title} <small>{files.size}</small></h3>
      <ul class="files">
        {[...files].slice(-mostFiles).reverse().map(([path, entry]) => (
          <li key={path}><button type="button" title={path + "\nGo to its last use"} onClick={() => go({ at: entry, seq: null })}>{short(path)}</button></li>
        ))}
      </ul>
    </section>
  );
}
