// The tree of the session as rows, in the order of `coppice tree`, with a minimap of all entries. Only the rows on
// screen are in the page.
import { computed, signal, useSignal, useSignalEffect, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { api, Failure, type Row } from "../api/client.ts";
import { mapped } from "../model/begun.ts";
import { through } from "../model/find.ts";
import { bytes, clock, grouped } from "../model/format.ts";
import { go, href, session, view } from "../model/nav.ts";
import { firstRow, Gone, heightOf, offsetOf, Rows, type Ask, type Stretch } from "../model/rows.ts";
import { change, connection, generation, head } from "../model/session.ts";
import { line } from "../model/talk.ts";
import { filters, type Filter } from "../model/url.ts";
import { Hits } from "../parts/hits.tsx";
import { ForkIcon } from "../parts/icon.tsx";
import { useResized } from "../parts/resized.ts";
import { Minimap, type Bucket } from "./minimap.tsx";

/** Zoom levels: what a row shows, by its height in px. */
const zooms = [
  { name: "outline", height: 12 },
  { name: "lines", height: 24 },
  { name: "details", height: 44 },
] as const;

/** zoom is kept while the page is open. */
const zoom = signal(1);

/** beyond is the number of rows that are drawn above and below what is on screen. */
const beyond = 6;

const maxBuckets = 1024;

/** Drawn is what the pane shows of one drawn tree. */
interface Drawn {
  rows: Rows<Row>;
  buckets: Bucket[];
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
      if (err instanceof Failure && err.status === 410) throw new Gone();
      throw err;
    }
  };
}

async function buckets(id: string, viewName: string, mark: string, signal: AbortSignal): Promise<Bucket[]> {
  const query = { view: viewName, buckets: maxBuckets, ...(mark ? { mark } : {}) };
  const { data } = await api.GET("/v1/sessions/{id}/map", { params: { path: { id }, query }, signal });
  return data!.buckets;
}

/** MapPane shows the tree of the session. */
export function MapPane(): JSX.Element {
  const drawn = useSignal<Drawn | null>(null);
  const failed = useSignal("");
  const first = useSignal(0);
  const shown = useSignal(20);
  const box = useRef<HTMLDivElement>(null);
  useDrawn(drawn, failed, (row) => scrollTo(box.current, drawn.peek(), row));
  useSignalEffect(() => {
    if (connection.value === "live" && failed.peek() !== "") again.value = again.peek() + 1; // the server answers again
  });
  useSize(box, shown);

  const d = drawn.value;
  const total = d?.rows.total ?? 0;
  const height = zooms[zoom.value]!.height;
  const cursor = view.value.at ?? view.value.line;
  const at = d && cursor ? d.rows.indexOf(cursor) : -1;
  const onScroll = () => {
    const el = box.current!;
    first.value = firstRow(el.scrollTop, el.clientHeight, total, height);
    want(drawn, Math.max(0, Math.floor(first.value) - beyond), Math.ceil(shown.value) + 2 * beyond);
  };
  useEffect(onScroll, [height, total]);
  useCursor(drawn, (row) => {
    if (row < first.peek() || row > first.peek() + shown.peek() - 1) scrollTo(box.current, drawn.peek(), Math.max(0, row - shown.peek() / 2));
  });
  return (
    <section class="map" aria-label="Map">
      <Controls total={total} />
      {failed.value && <p role="alert" class="failed">{failed.value}</p>}
      <div class="map-body">
        <div class="map-rows" ref={box} onScroll={onScroll} tabIndex={0} role="tree" aria-label="Entries"
          onKeyDown={(e) => move(e, d, at, (row) => scrollTo(box.current, drawn.peek(), Math.max(0, row - shown.peek() / 2)))}>
          <div class="map-sizer" style={{ height: heightOf(total, height) + "px" }}>
            {d && <Window d={d} first={first.value} shown={shown.value} height={height} cursor={cursor}
              top={box.current?.scrollTop ?? 0} />}
          </div>
        </div>
        {d && <Minimap buckets={d.buckets} total={total} first={first.value} shown={shown.value} cursor={at}
          onSeek={(row) => scrollTo(box.current, drawn.peek(), Math.max(0, row - shown.peek() / 2))} />}
      </div>
    </section>
  );
}

// What a drawing of the tree depends on, so that the cursor of the view does not draw it anew.
const filter = computed(() => view.value.filter);
const search = computed(() => view.value.search);
const known = computed(() => head.value !== null); // where the map begins, unless the view says where

const again = signal(0); // grows when what could not be read is read again

/** useDrawn draws the tree when the session, the filter or the head changes, and keeps the place. */
function useDrawn(drawn: Signal<Drawn | null>, failed: Signal<string>, seek: (row: number) => void): void {
  useSignalEffect(() => {
    void generation.value;
    void change.value;
    void again.value;
    const id = session.value;
    const words = search.value;
    const read = id === null || !known.value ? null : load(id, filter.value);
    if (read === null) return;
    const abort = new AbortController();
    const before = drawn.peek();
    void (async () => {
      const rows = new Rows<Row>(read, abort.signal);
      const cursor = view.peek().at ?? view.peek().line ?? head.peek()?.entry ?? null;
      const at = await rows.start(before ? null : cursor).catch((err: unknown) => {
        if (cursor === null || !(err instanceof Failure) || err.status !== 404) throw err;
        return rows.start(null);
      });
      const list = await buckets(id!, rows.view, words, abort.signal);
      drawn.value = { rows, buckets: list, turn: 0 };
      failed.value = "";
      if (!before) {
        // the sizer has its height after the next frame
        requestAnimationFrame(() => seek(at === null ? rows.total : at - 8));
      } else seek(-1);
    })().catch((err: unknown) => {
      if (!abort.signal.aborted) failed.value = String(err instanceof Failure ? err.message : err);
    }).finally(() => (mapped.value = true));
    return () => abort.abort();
  });
}

/**
 * useCursor calls f with the row of the cursor when the cursor moved, also if the row has to be loaded for that, or the cursor
 * moved before there were rows.
 */
function useCursor(drawn: Signal<Drawn | null>, f: (row: number) => void): void {
  const before = useRef(view.peek().at);
  useSignalEffect(() => {
    const { at } = view.value;
    const rows = drawn.value?.rows;
    if (at === before.current || !rows) return;
    before.current = at;
    if (at === null) return;
    void rows.find(at).then((row) => {
      if (row === null) return;
      requestAnimationFrame(() => { // after the first drawing has sought its place
        if (view.peek().at === at && drawn.peek()?.rows === rows) f(row);
      });
    }).catch(() => {}); // the map stays where it is; it is drawn anew with the next commit
  });
}

/** want loads rows that are not there, and draws the tree anew when the server has forgotten it. */
function want(drawn: Signal<Drawn | null>, from: number, count: number): void {
  const d = drawn.peek();
  if (!d) return;
  void d.rows.ensure(from, count).then((loaded) => {
    if (loaded && drawn.peek()?.rows === d.rows) drawn.value = { ...d, turn: d.turn + 1 };
  }).catch((err: unknown) => {
    if (err instanceof Gone) generation.value++;
  });
}

/** scrollTo brings a row to the upper edge; -1 leaves the place, and reads what is there. */
function scrollTo(el: HTMLElement | null, d: Drawn | null, row: number): void {
  if (!el || !d) return;
  if (row >= 0) el.scrollTop = offsetOf(row, el.clientHeight, d.rows.total, zooms[zoom.peek()]!.height);
  el.dispatchEvent(new Event("scroll"));
}

function useSize(box: { current: HTMLElement | null }, shown: Signal<number>): void {
  const measure = () => {
    shown.value = box.current!.clientHeight / zooms[zoom.peek()]!.height;
  };
  useResized([box], measure);
  useLayoutEffect(() => zoom.subscribe(measure), []);
}

function Controls({ total }: { total: number }): JSX.Element {
  const v = view.value;
  return (
    <div class="map-controls">
      <input class="map-search" type="search" placeholder="mark words" aria-label="Mark words in the map" value={v.search}
        onChange={(e) => go({ search: e.currentTarget.value }, "replace")} />
      <select aria-label="Filter" value={v.filter} onChange={(e) => go({ filter: e.currentTarget.value as Filter })}>
        {filters.map((f) => <option key={f} value={f}>{f}</option>)}
      </select>
      <span class="zoom" role="group" aria-label="Zoom">
        {zooms.map((z, i) => (
          <button key={z.name} aria-pressed={zoom.value === i} title={z.name} onClick={() => (zoom.value = i)}>
            {["·", "≡", "☰"][i]}<span class="hidden-text">{z.name}</span>
          </button>
        ))}
      </span>
      <output>{grouped(total)} rows</output>
    </div>
  );
}

interface WindowProps {
  d: Drawn;
  first: number;
  shown: number;
  height: number;
  cursor: string | null;
  top: number;
}

/** Window is the rows on screen. */
function Window({ d, first, shown, height, cursor, top }: WindowProps): JSX.Element {
  const from = Math.max(0, Math.floor(first) - beyond);
  const to = Math.min(d.rows.total, Math.ceil(first + shown) + beyond);
  const rows: JSX.Element[] = [];
  for (let i = from; i < to; i++) {
    const row = d.rows.at(i);
    const y = top + (i - first) * height;
    rows.push(row
      ? <RowView key={row.id} row={row} position={i} total={d.rows.total} y={y} height={height} at={row.id === cursor} />
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
}

function RowView({ row, position, total, y, height, at }: RowProps): JSX.Element {
  const level = zoom.value;
  const name = [row.onPath && "on-path", at && "at", row.role && "role-" + row.role].filter(Boolean).join(" ");
  return (
    <a class={"row " + name} href={href({ at: row.id, seq: null })} role="treeitem" tabIndex={-1} aria-level={row.indent + 1}
      aria-posinset={position + 1} aria-setsize={total} aria-selected={at} data-id={row.id}
      style={{ top: y + "px", height: height + "px", paddingLeft: 6 + Math.min(row.indent, 12) * 12 + "px" }}
      onClick={(e) => {
        if (e.metaKey || e.ctrlKey || e.shiftKey) return;
        e.preventDefault();
        showRow(row);
      }}>
      <span class="dot" aria-hidden="true">{row.children > 1 && <ForkIcon />}</span>
      {level > 0 && (
        <>
          {row.versions > 1 && <span class="version">{row.version}/{row.versions}</span>}
          {row.label && <span class="label">{row.label}</span>}
          <span class="preview"><Hits text={row.preview || row.type.replaceAll("_", " ")} search={view.value.search} /></span>
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

/** showRow moves the cursor to a row: on the line that is shown if the row is known to be on it, else on the newest one. */
function showRow(row: Row, how: "push" | "replace" = "push"): void {
  const here = view.peek().line === null ? row.onPath : line.peek().entries.some((e) => e.id === row.id);
  if (here) go({ at: row.id, seq: null }, how);
  else void through(session.peek()!, row.id, how);
}

/** move moves the cursor among the rows by the arrow keys. */
function move(e: KeyboardEvent, d: Drawn | null, at: number, seek: (row: number) => void): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
  if (!d || step === undefined) return;
  e.preventDefault();
  const row = d.rows.at(at + step);
  if (!row) return;
  showRow(row, "replace");
  seek(at + step);
}
