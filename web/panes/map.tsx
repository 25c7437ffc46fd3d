// The tree of the session as rows, in the order of `coppice tree`, with a minimap of all entries. Only the rows on
// screen are in the page.
import { useSignal, type ReadonlySignal, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { api, Failure, type Row } from "../api/client.ts";
import { useActions } from "../model/actions.ts";
import { through } from "../model/find.ts";
import { bytes, clock, grouped } from "../model/format.ts";
import { go, href, view, type How } from "../model/nav.ts";
import { messageOf, type Resource } from "../model/resource.ts";
import { edges, foldedBetween, kindOf, laneX, type Kind } from "../model/lanes.ts";
import { firstRow, Gone, heightOf, offsetOf, Rows, type Ask, type Stretch } from "../model/rows.ts";
import type { OpenSession } from "../model/session.ts";
import { filters, zooms, type Filter, type View } from "../model/url.ts";
import { Hits } from "../parts/hits.tsx";
import { plain } from "../parts/link.tsx";
import { useResized } from "../parts/resized.ts";
import { say } from "../parts/toast.tsx";
import { useSession, useSessionEffect } from "../parts/use-session.ts";
import { Minimap, type Bucket } from "./minimap.tsx";

/** heights are those of the rows, in px, by what they show. */
const onPhone = matchMedia("(max-width: 720px)").matches; // where a finger has to hit them
const heights = onPhone ? { outline: 24, lines: 44, details: 60 } : { outline: 12, lines: 24, details: 44 };
const signs = { outline: "·", lines: "≡", details: "☰" };

/** rowHeight is that of the rows that are shown. */
function rowHeight(): number {
  return heights[view.peek().rows];
}

/** beyond is the number of rows that are drawn above and below what is on screen. */
const beyond = 6;

const maxBuckets = 1024;

/** Drawn is what the pane shows of one drawn tree. */
interface Drawn {
  rows: Rows<Row>;
  buckets: Bucket[];
  filter: Filter;
  head: string | null; // when it was drawn
  turn: number; // grows when rows arrived
}

function load(id: string, filter: Filter): (ask: Ask, signal: AbortSignal) => Promise<Stretch<Row>> {
  return async (ask, signal) => {
    try {
      const { data } = await api.GET("/v1/sessions/{id}/rows", {
        params: { path: { id }, query: ask.view ? ask : { ...ask, filter } }, signal,
      });
      return data as Stretch<Row>;
    } catch (err) {
      if (isGone(err)) throw new Gone();
      throw err;
    }
  };
}

/** isGone reports whether the server no longer has a view. */
function isGone(err: unknown): boolean {
  return err instanceof Gone || (err instanceof Failure && err.problem.code === "gone");
}

async function buckets(id: string, viewName: string, mark: string, signal: AbortSignal): Promise<Bucket[]> {
  const query = { view: viewName, buckets: maxBuckets, ...(mark ? { mark } : {}) };
  const { data } = await api.GET("/v1/sessions/{id}/map", { params: { path: { id }, query }, signal });
  return data!.buckets;
}

/** hit returns the row with words of a search that is next to another one; undefined = none has them. */
async function hit(id: string, rows: Rows<Row>, words: string, near: number, step: 1 | -1): Promise<Row | undefined> {
  const query = { view: rows.view, mark: words, near: Math.min(near, rows.total), buckets: 1 };
  const { data } = await api.GET("/v1/sessions/{id}/map", { params: { path: { id }, query } });
  const to = step > 0 ? data!.nextHit : data!.previousHit;
  if (to === undefined) return undefined;
  await rows.ensure(to, 1);
  return rows.at(to);
}

/** MapPane shows the tree of the session. */
export function MapPane(): JSX.Element {
  const s = useSession();
  const first = useSignal(0);
  const shown = useSignal(20);
  const box = useRef<HTMLDivElement>(null);
  const drawn: Resource<Drawn> = useMemo(() => s.resource(
    () => (s.head.value ? `${s.generation.value} ${s.change.value?.seq} ${view.value.filter} ${view.value.search}` : null),
    async (_, signal) => {
      await null; // drawn and place are there
      return draw(s, drawn, place, signal).catch((err: unknown) => {
        if (isGone(err)) return draw(s, drawn, place, signal); // commits came in between
        throw err;
      });
    }, true), []);
  useEffect(() => drawn.end, []);
  const place = usePlace(s, box, drawn, first, shown);

  const d = drawn.value.value;
  const total = d?.rows.total ?? 0;
  const height = heights[view.value.rows];
  const cursor = view.value.at ?? view.value.line;
  const near = useSignal<{ of: string; row: number } | null>(null); // where the cursor is, if its own entry has no row
  const own = d && cursor ? d.rows.indexOf(cursor) : -1;
  const seen = useSeen(s, d, place);
  const at = own >= 0 ? own : near.value?.of === cursor ? near.value!.row : -1;
  const onScroll = () => {
    const el = box.current;
    if (!el) return; // an event of what was scrolled before the pane was left
    first.value = firstRow(el.scrollTop, el.clientHeight, total, height);
    want(s, drawn, Math.max(0, Math.floor(first.value) - beyond), Math.ceil(shown.value) + 2 * beyond);
  };
  useLayoutEffect(() => { // before the next frame, in which the place is sought
    shown.value = (box.current?.clientHeight ?? 0) / height;
    onScroll();
  }, [height, total]);
  useActions({ "next-hit": () => toHit(view.peek().search, 1), "previous-hit": () => toHit(view.peek().search, -1) });
  useCursor(drawn.value, (row) => {
    place.show(row);
    near.value = view.peek().at === null ? null : { of: view.peek().at!, row };
  });
  useEffect(() => { // an entry that the filter hides selects its nearest ancestor that is shown
    if (!d || cursor === null || own >= 0 || near.peek()?.of === cursor) return;
    void d.rows.find(cursor).then((row) => row !== null && (near.value = { of: cursor, row })).catch(() => {});
  }, [d?.rows, cursor, own]);
  const toHit = (words: string, step: 1 | -1) => {
    const near = at >= 0 ? at : Math.max(0, Math.floor(first.peek()) - step);
    if (words === "") say("Nothing is looked for. / is for that.");
    else if (d) void hit(s.id, d.rows, words, near, step).then((row) => (row ? showRow(s, row, "step") : say("No entry has these words.")))
      .catch((err: unknown) => say(messageOf(err)));
  };
  return (
    <section class="map" aria-label="Map">
      <Controls d={d} onZoom={place.zoomTo} onHit={toHit} />
      {drawn.error.value && <p role="alert" class="failed">{drawn.error.value}</p>}
      <div class="map-body">
        <div class="map-rows" ref={box} onScroll={onScroll} tabIndex={0} role="tree" aria-label="Entries"
          aria-activedescendant={at >= 0 ? "row-" + at : undefined}
          onKeyDown={(e) => move(s, e, d, at >= 0 ? at : d && d.head ? d.rows.indexOf(d.head) : -1, shown.peek(), place.centre)}>
          <div class="map-sizer" style={{ height: heightOf(total, height) + "px" }}>
            {d && <Window d={d} first={first.value} shown={shown.value} height={height} at={at} seen={seen}
              top={box.current?.scrollTop ?? 0} />}
          </div>
        </div>
        {d && <Minimap buckets={d.buckets} total={total} first={first.value} shown={shown.value} cursor={at} seen={seen}
          onSeek={place.centre} />}
      </div>
    </section>
  );
}

/** draw reads the tree, keeps the place of the drawing before, and brings it in sight when the sizer has its height. */
async function draw(s: OpenSession, drawn: Resource<Drawn>, place: Place, signal: AbortSignal): Promise<Drawn> {
  const { filter, search } = view.peek();
  try {
    const rows = new Rows<Row>(load(s.id, filter), signal);
    const before = drawn.value.peek();
    const to = before ? place.wish(before, filter) : view.peek().at ?? view.peek().line ?? s.head.peek()?.entry ?? null;
    const at = await rows.start(to).catch((err: unknown) => {
      if (to === null || !(err instanceof Failure) || err.problem.code !== "no-entry") throw err;
      return rows.start(null);
    });
    const list = await buckets(s.id, rows.view, search, signal);
    requestAnimationFrame(() => {
      if (signal.aborted) return;
      if (!before || before.filter !== filter) place.centre(at ?? rows.total, to);
      else if (at !== null) place.show(at);
      else place.stay();
    });
    return { rows, buckets: list, filter, head: s.head.peek()?.entry ?? null, turn: 0 };
  } finally {
    s.mapped.value = true;
  }
}

/** useCursor calls f with the row of the cursor when the cursor moved, also if the row has to be loaded for that, or
 * the cursor moved before there were rows. */
function useCursor(drawn: ReadonlySignal<Drawn | null>, f: (row: number) => void): void {
  const before = useRef(view.peek().at);
  useSessionEffect(() => {
    const { at } = view.value;
    const rows = drawn.value?.rows;
    if (at === before.current || !rows) return;
    if (at === null) {
      before.current = at;
      return;
    }
    void rows.find(at).then((row) => {
      if (row === null) return;
      requestAnimationFrame(() => { // after the first drawing has sought its place
        if (view.peek().at !== at || drawn.peek()?.rows !== rows) return; // a tree that is drawn again is asked again
        before.current = at;
        f(row);
      });
    }).catch(() => {}); // the map stays where it is; it is drawn again with the next commit
  });
}

/** want loads rows that are not there, and draws the tree again when the server has forgotten it. */
function want(s: OpenSession, drawn: Resource<Drawn>, from: number, count: number): void {
  const d = drawn.value.peek();
  if (!d) return;
  void d.rows.ensure(from, count).then((loaded) => {
    if (loaded) drawn.change((now) => (now.rows === d.rows ? { ...now, turn: now.turn + 1 } : now));
  }).catch((err: unknown) => {
    if (err instanceof Gone) s.generation.value++;
  });
}

/** Place is what of the tree is in sight. */
interface Place {
  centre: (row: number, of?: string | null) => void; // brings the row of an entry, or of its nearest ancestor, to the middle
  show: (row: number) => void; // brings a row in sight that is not, a row below by no more than it has to
  stay: () => void; // reads what is in sight
  zoomTo: (rows: View["rows"]) => void; // keeps what is in sight
  wish: (before: Drawn, filter: Filter) => string | null; // the entry that has to be in sight when the tree is drawn again
}

/** usePlace scrolls the rows. While another pane fills the screen nothing can be scrolled: the wish waits. */
function usePlace(
  s: OpenSession, box: { current: HTMLElement | null }, drawn: Resource<Drawn>, first: Signal<number>, shown: Signal<number>,
): Place {
  const waiting = useRef<number | null>(null);
  const pinned = useRef<{ id: string; first: number } | null>(null); // the entry that another filter was drawn around
  const due = useRef<number | null>(null); // the first row when the head was last due in sight: it is shown a frame later
  const unmoved = (row: number) => Math.abs(row - first.peek()) < 1; // not scrolled since
  const within = (row: number) => row >= 0 && row >= first.peek() && row <= first.peek() + shown.peek() - 1;
  const rowOf = (d: Drawn, entry: string | null) => (entry === null ? -1 : d.rows.indexOf(entry));
  const cursorRow = (d: Drawn) => rowOf(d, view.peek().at ?? view.peek().line ?? d.head);
  const pivot = (d: Drawn) => {
    const at = cursorRow(d);
    return within(at) ? at : Math.min(d.rows.total, Math.floor(first.peek() + shown.peek() / 2));
  };
  const scroll = (top: number) => {
    const el = box.current;
    const d = drawn.value.peek();
    if (!el || !d) return;
    el.scrollTop = offsetOf(Math.max(0, top), el.clientHeight, d.rows.total, rowHeight());
    el.dispatchEvent(new Event("scroll"));
  };
  const centre = (row: number, of: string | null = null) => {
    if (!box.current?.clientHeight) waiting.current = row;
    else scroll(row - shown.peek() / 2);
    pinned.current = of === null ? null : { id: of, first: first.peek() };
  };
  useResized([box], () => {
    shown.value = box.current!.clientHeight / rowHeight();
    if (shown.peek() === 0 || waiting.current === null) return;
    const row = waiting.current;
    waiting.current = null;
    centre(row);
  });
  return {
    centre,
    show(row) {
      const below = row - (first.peek() + shown.peek() - 1);
      if (shown.peek() > 0 && within(row)) return;
      if (below > 0 && below < shown.peek() / 2) scroll(first.peek() + below);
      else centre(row);
    },
    stay: () => box.current?.dispatchEvent(new Event("scroll")),
    zoomTo(rows) {
      const row = drawn.value.peek() && pivot(drawn.value.peek()!);
      go({ rows }, "replace");
      if (row !== null) requestAnimationFrame(() => centre(row)); // the sizer has its height then
    },
    wish(before, filtered) {
      const shows = within(rowOf(before, before.head)) || due.current !== null && unmoved(due.current);
      const follows = view.peek().at === null && view.peek().line === null && shows;
      due.current = follows ? first.peek() : null;
      if (follows) return s.head.peek()?.entry ?? null;
      if (before.filter === filtered) return null;
      const pin = pinned.current && unmoved(pinned.current.first) ? pinned.current.id : null;
      return pin ?? before.rows.at(pivot(before))?.id ?? null;
    },
  };
}

/** searchDelay is the time after the last key before a search begins, in ms: the server reads the whole session for
 * it. */
const searchDelay = 400;

function Controls({ d, onZoom, onHit }: {
  d: Drawn | null; onZoom: Place["zoomTo"]; onHit: (words: string, step: 1 | -1) => void;
}): JSX.Element {
  const v = view.value;
  const [text, setText] = useState(v.search);
  const sent = useRef(v.search); // what was typed after it is not undone by it
  const look = (words: string) => {
    sent.current = words;
    go({ search: words }, "replace");
  };
  useEffect(() => {
    if (v.search !== sent.current) setText(sent.current = v.search);
  }, [v.search]);
  useEffect(() => {
    if (text === sent.current) return;
    const timer = setTimeout(() => look(text), searchDelay);
    return () => clearTimeout(timer);
  }, [text]);
  const hits = v.search ? d?.buckets.reduce((n, b) => n + (b.hits ?? 0), 0) ?? 0 : -1;
  return (
    <div class="map-controls">
      <input class="map-search" type="search" placeholder="find" aria-label="Find words in the map" value={text}
        title="Enter: next, Shift+Enter: previous" onInput={(e) => setText(e.currentTarget.value)}
        onChange={(e) => look(e.currentTarget.value)}
        onKeyDown={(e) => e.key === "Enter" && onHit(e.currentTarget.value, e.shiftKey ? -1 : 1)} />
      <select aria-label="Filter" value={v.filter} onChange={(e) => go({ filter: e.currentTarget.value as Filter })}>
        {filters.map((f) => <option key={f} value={f}>{f}</option>)}
      </select>
      <span class="zoom" role="group" aria-label="Zoom">
        {zooms.map((z) => (
          <button key={z} aria-pressed={v.rows === z} title={z} onClick={() => onZoom(z)}>
            {signs[z]}<span class="hidden-text">{z}</span>
          </button>
        ))}
      </span>
      <output>{hits >= 0 && `${grouped(hits)} of `}{grouped(d?.rows.total ?? 0)} rows</output>
    </div>
  );
}

interface WindowProps {
  d: Drawn;
  first: number;
  shown: number;
  height: number;
  at: number; // the row of the cursor; -1 = none
  seen: number; // the row of what is in sight of the conversation; -1 = none
  top: number;
}

/** Window is the rows on screen. */
function Window({ d, first, shown, height, at, seen, top }: WindowProps): JSX.Element {
  const from = Math.max(0, Math.floor(first) - beyond);
  const to = Math.min(d.rows.total, Math.ceil(first + shown) + beyond);
  const rows: JSX.Element[] = [];
  const head = d.head === null ? -1 : d.rows.indexOf(d.head);
  for (let i = from; i < to; i++) {
    const row = d.rows.at(i);
    const y = top + (i - first) * height;
    rows.push(row
      ? <RowView key={row.id} row={row} position={i} total={d.rows.total} y={y} height={height} at={i === at} seen={i === seen}
        edges={edges(row, d.rows.at(i - 1), height)} passed={row.indent > 0 && !(head >= 0 && i > head)} folded={foldedBetween(row, d.rows.at(i + 1))} />
      : <div key={"empty" + i} class="row empty" style={{ top: y + "px", height: height + "px" }} />);
  }
  return <>{rows}</>;
}

interface RowProps {
  row: Row;
  position: number;
  total: number;
  y: number;
  height: number;
  at: boolean;
  seen: boolean;
  edges: string;
  passed: boolean; // the line of the head continues next to it
  folded: number;
}

/** Icon is the sign of a kind of entry, in the middle of its lane. */
function Icon({ kind, x, y, fork }: { kind: Kind; x: number; y: number; fork: boolean }): JSX.Element {
  const ring = fork && <circle cx={x} cy={y} r="5.5" class="fork" />;
  switch (kind) {
    case "prompt": return <>{ring}<circle cx={x} cy={y} r="4" /></>;
    case "answer": return <>{ring}<circle cx={x} cy={y} r="2.5" /></>;
    case "tool": return <>{ring}<rect x={x - 2.5} y={y - 2.5} width="5" height="5" class="hollow" /></>;
    case "other": return <>{ring}<path d={`M${x} ${y - 3.5}l3.5 3.5-3.5 3.5-3.5-3.5z`} class="hollow" /></>;
  }
}

function RowView({ row, position, total, y, height, at, seen, edges, passed, folded }: RowProps): JSX.Element {
  const s = useSession();
  const level = zooms.indexOf(view.value.rows);
  const name = [row.onPath && "on-path", at && "at", seen && "seen", row.role && "role-" + row.role, row.failed && "failed"].filter(Boolean).join(" ");
  return (
    <a id={"row-" + position} class={"row " + name} href={href({ at: row.id, seq: null })} role="treeitem" tabIndex={-1} aria-level={row.indent + 1}
      aria-posinset={position + 1} aria-setsize={total} aria-selected={at} data-id={row.id}
      style={{ top: y + "px", height: height + "px", paddingLeft: laneX(row.indent) + 10 + "px" }}
      onClick={plain(() => showRow(s, row))}>
      <svg class="lanes" width={laneX(row.indent) + 7} height={height} aria-hidden="true">
        <path d={edges} />{passed && <path class="head-line" d={`M${laneX(0)} 0V${height}`} />}<Icon kind={kindOf(row)} x={laneX(row.indent)} y={height / 2} fork={row.children > 1} />
      </svg>
      {row.failed && <span class="hidden-text">failed</span>}
      {level > 0 && (
        <>
          {row.versions > 1 && <span class="version">{row.version}/{row.versions}</span>}
          {row.label && <span class="label">{row.label}</span>}
          <span class="preview"><Hits text={row.preview || row.type.replaceAll("_", " ")} search={view.value.search} /></span>
          {folded > 0 && <span class="folded-rows" title="entries that the filter leaves out">{grouped(folded)} more</span>}
        </>
      )}
      {level > 1 && (
        <span class="detail">{[row.role || row.type.replaceAll("_", " "), clock(row.time, new Date()), bytes(row.size)]
          .filter(Boolean).join(" · ")}</span>
      )}
      {level === 0 && row.label && <span class="label">{row.label}</span>}
    </a>
  );
}

/** showRow moves the cursor to a row: on the line that is shown if the row is known to be on it, else on the newest
 * one. */
function showRow(s: OpenSession, row: Row, how: How = "push"): void {
  const here = view.peek().line === null ? row.onPath : s.conversation.line.peek().entries.some((e) => e.id === row.id);
  if (here) go({ at: row.id, seq: null }, how);
  else void through(s.id, row.id, how, s.head.peek()?.entry);
}

/** move moves the cursor among the rows by the keys of a tree. */
function move(s: OpenSession, e: KeyboardEvent, d: Drawn | null, at: number, page: number, seek: (row: number) => void): void {
  if (!d || e.ctrlKey || e.metaKey || e.altKey) return;
  const far = Math.max(1, Math.floor(page) - 1);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + far, PageUp: at - far, Home: 0, End: d.rows.total - 1 }[e.key];
  if (to === undefined) return;
  e.preventDefault();
  const row = Math.max(0, Math.min(d.rows.total - 1, to));
  void d.rows.ensure(row, 1).then(() => {
    const found = d.rows.at(row);
    if (!found) return;
    showRow(s, found, "step");
    seek(row);
  }).catch(() => {}); // the tree is drawn again then
}

/** useSeen returns the row of what is in sight of the conversation, and keeps it in sight; -1 = it is at its end, or
 * not loaded. */
function useSeen(s: OpenSession, d: Drawn | null, place: Place): number {
  const { line, sight } = s.conversation;
  const entries = line.value.entries;
  let row = -1;
  if (d && sight.value !== null) { // an entry without a row is at that of its nearest ancestor
    for (let i = entries.findIndex((e) => e.id === sight.value); i >= 0 && row < 0; i--) row = d.rows.indexOf(entries[i]!.id);
  }
  useEffect(() => {
    if (row >= 0) place.show(row);
  }, [row]);
  return row;
}
