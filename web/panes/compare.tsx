// Two points side by side: A is marked, B is the cursor.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { Failure, nameOf, type Commit, type Entry } from "../api/client.ts";
import { commitPage } from "../api/pages.ts";
import type { Branches } from "../model/branches.ts";
import { commitText } from "../model/commits.ts";
import { compare, maxEntries, pointOf, type Difference } from "../model/compare.ts";
import { clock, cost, count } from "../model/format.ts";
import { editor } from "../model/lazy.ts";
import { go, target, view } from "../model/nav.ts";
import { sessions } from "../model/sessions.ts";
import { pretty } from "../model/pretty.ts";
import { verdict, type Side } from "../model/verdict.ts";
import { align, keyOf } from "../model/align.ts";
import { itemsOf } from "../model/path.ts";
import { ItemView } from "../parts/message.tsx";
import { useResource } from "../parts/use-resource.ts";
import { useSession } from "../parts/use-session.ts";

/** ComparePane shows how the cursor differs from the point that is marked. */
export function ComparePane(): JSX.Element {
  const { id } = useSession();
  const { compare: a } = view.value;
  const b = target.value;
  const { value, error } = useResource(a && `${a} ${b}`, (_, signal) => (
    compare(pointOf(id, a!), { session: id, target: b }, signal).catch((err: unknown) => {
      const missing = err instanceof Failure && ["not-found", "no-entry", "deleted"].includes(err.problem.code ?? "");
      throw missing ? new Error(`There is no ${a} to compare with.`) : err;
    })));
  const d = value.value;
  return (
    <section class="compare" aria-label="Compare">
      <Choose />
      {error.value && <p role="alert" class="failed">{error.value}</p>}
      {a !== null && !d && !error.value && <p class="quiet">Comparing…</p>}
      {d && <Result d={d} />}
    </section>
  );
}

function textOf(c: Commit, branches: Branches): string {
  return `seq ${c.seq} · ${commitText(c, branches)}`;
}

/** Choose names A, and offers what it can be. */
function Choose(): JSX.Element {
  const { id, branches, cursor } = useSession();
  const snapshots = cursor.snapshots.value.toReversed().slice(0, 50);
  const a = view.value.compare;
  const c = cursor.commit.value;
  // What a point is that is no branch and no snapshot.
  const named = useResource(a?.includes("/") ? null : a, async (at, signal) => (await commitPage(id, { at, limit: 1 }, signal)).commits[0]).value.value;
  const known = new Set<string>();
  const option = (value: string, label: string) => (known.add(value), <option key={value} value={value}>{label}</option>);
  const groups = (
    <>
      <optgroup label="Branches">{branches.ends.value.map((e) => option("entry:" + e.entry, e.name))}</optgroup>
      <optgroup label="Snapshots">
        {snapshots.map((s) => option("snap:" + s.id, `${s.tag || "snapshot"} · seq ${s.seq}`))}
      </optgroup>
      <optgroup label="Sessions">
        {sessions.value.filter((s) => s.id !== id).slice(0, 50).map((s) => (
          option(s.id + "/head", `${nameOf(s)} · ${clock(s.updated, new Date())}`)))}
      </optgroup>
    </>
  );
  return (
    <div class="compare-choose">
      <label>A <select value={a ?? ""} onChange={(e) => go({ compare: e.currentTarget.value || null })}>
        <option value="">choose a point</option>
        {groups}
        {a !== null && !known.has(a) && <option value={a} title={a}>{named ? textOf(named, branches) : a}</option>}
      </select></label>
      <button onClick={() => go({ compare: cursor.marked() })}>Mark the cursor as A</button>
      <p title={target.value}>B is the cursor{c && ": " + textOf(c, branches)}</p>
    </div>
  );
}

function Result({ d }: { d: Difference }): JSX.Element {
  const same = d.stateA === d.stateB;
  const values = same && d.stateA === "null" ? -1 : d.values >= 0 || d.more ? d.values : same ? 0 : -1;
  return (
    <>
      <p class="verdict">{d.more ? "They differ by more than can be shown here." : verdict(d.a, d.b, values, d.lines)}</p>
      {!same && <Merge a={d.stateA} b={d.stateB} />}
      <Sides d={d} />
    </>
  );
}

/** Sides shows what only A and only B have, side by side: calls of the same tool with the same arguments in one row. */
function Sides({ d }: { d: Difference }): JSX.Element {
  const shown = useSignal(20);
  const now = new Date();
  const rows = useMemo(
    () => align(itemsOf(d.onlyA.slice(0, maxEntries)), itemsOf(d.onlyB.slice(0, maxEntries)), keyOf), [d]);
  const more = rows.length - shown.value;
  const cut = Math.max(d.onlyA.length, d.onlyB.length) - maxEntries;
  return (
    <>
      <div class="compare-sides">
        <Heading name="A" entries={d.onlyA} side={d.a} lines={d.lines} />
        <Heading name="B" entries={d.onlyB} side={d.b} lines={d.lines} />
        {rows.slice(0, shown.value).map((row, k) => row.map((item, side) => (
          <div key={`${k} ${side}`} class={row[0] && row[1] ? "both" : undefined}>
            {item && <article class="entry small"><ItemView item={item} now={now} /></article>}
          </div>
        )))}
      </div>
      {more > 0 ? <button onClick={() => (shown.value += 20)}>{more} more</button>
        : cut > 0 && <p class="quiet">Of each side the first {maxEntries} entries are shown.</p>}
    </>
  );
}

function Heading({ name, entries, side, lines }: {
  name: string; entries: Entry[]; side: Side; lines: boolean;
}): JSX.Element {
  return (
    <h3>{lines ? `What the model saw only in ${name}` : `Only ${name}`}
      <span class="figures"> {lines
        ? `${entries.length} messages · the whole line: ${count(side.messages)} entries`
        : `${entries.length} entries`} · {count(side.tokens)} tok {cost(side.cost)}</span></h3>
  );
}

/** Merge shows two states side by side, in an editor that is loaded for it. */
function Merge({ a, b }: { a: string; b: string }): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let end = () => {};
    let gone = false;
    void editor().then((m) => {
      if (!gone && host.current) end = m.showMerge(host.current, pretty(a), pretty(b));
    });
    return () => {
      gone = true;
      end();
    };
  }, [a, b]);
  return <div ref={host} class="merge" role="group" aria-label="States side by side: A left, B right" />;
}
