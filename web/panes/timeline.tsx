// The commits of the session as a line in time, with the cursor. Dragging it moves state, context and conversation.
import { computed, useComputed, useSignal, useSignalEffect, untracked, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { readOnly } from "../model/access.ts";
import { useActions } from "../model/actions.ts";
import { mapped } from "../model/begun.ts";
import { commitText } from "../model/commits.ts";
import { arrived, costs, Cursor, isLive, live, log, moveTo, noted, scrubbed, shown, shownCommit, snapshots } from "../model/cursor.ts";
import { costAt } from "../model/costs.ts";
import { clock, cost } from "../model/format.ts";
import { go, view } from "../model/nav.ts";
import { change, connection, generation, head } from "../model/session.ts";
import { meanings, moved, seqAt, whole, xOf, zoom, type Mark, type Span } from "../model/ticks.ts";
import { MoveDialogs, Moves } from "../parts/moves.tsx";
import { say } from "../parts/toast.tsx";
import { rollBackTo } from "../parts/undo.ts";
import { drawRail } from "./rail.ts";
import type { Commit } from "../api/client.ts";
import { useResized } from "../parts/resized.ts";

/** follows is how often the conversation follows a cursor that is dragged, in ms. State and timeline follow at once. */
const follows = 200;

/** headSeq is the seq of the newest commit; -1 = not known yet. */
const headSeq = computed(() => head.value?.seq ?? -1);

/** rollBackFrom asks whether to roll back to the commit that is shown; null = none is yet. */
function rollBackFrom(seq: number | null): void {
  if (seq === headSeq.peek()) say("This is the head: go to an earlier commit first, by , or on the timeline.");
  else if (seq !== null) rollBackTo(seq);
}

/** Timeline shows the commits, and moves the cursor. */
export function Timeline(): JSX.Element {
  const id = view.value.session!;
  useCursor(id);
  const zoomed = useSignal<Span | null>(null); // null = everything, also what comes
  const span = useComputed(() => zoomed.value ?? whole(Math.max(0, headSeq.value)));
  const step = (by: number) => () => {
    const at = shown.peek();
    if (at !== null) void moveTo(Math.max(0, at + by));
  };
  useActions({
    "previous-commit": step(-1), "next-commit": step(1),
    "previous-snapshot": () => toSnapshot(-1), "next-snapshot": () => toSnapshot(1),
    ...(readOnly.value ? {} : { "roll-back": () => rollBackFrom(shown.peek()) }),
  });
  const c = shownCommit.value;
  return (
    <footer class="rail" aria-label="Timeline">
      <div class="rail-at">
        <strong>seq {shown.value ?? "…"}</strong> of {Math.max(0, headSeq.value)}
        {spentAt(shown.value)}
        <span>{c && commitText(c)}</span>
      </div>
      <Axis span={span} zoomed={zoomed} />
      <div class="rail-moves">
        <Moves seq={shown.value} />
        <button class="live" aria-pressed={isLive.value} title="Go to the newest commit, and follow what comes" onClick={() => live()}>
          live
        </button>
      </div>
      <MoveDialogs />
    </footer>
  );
}

/** useCursor keeps the signals of model/cursor.ts for a session while the timeline is shown. */
function useCursor(id: string): void {
  const cursor = useRef<Cursor | null>(null);
  const ready = useComputed(() => head.value !== null);
  useSignalEffect(() => {
    void generation.value;
    if (!ready.value) return;
    const abort = new AbortController();
    cursor.current = new Cursor(id, head.peek()!, abort.signal);
    return () => {
      abort.abort();
      cursor.current = null;
    };
  });
  useSignalEffect(() => {
    const { seq, at, line } = view.value;
    void log.value;
    void connection.value; // what could not be read is read when the server answers again
    cursor.current?.follow(seq, at ?? line, headSeq.value);
  });
  useSignalEffect(() => {
    if (log.value && (mapped.value || view.value.pane !== "map")) void cursor.current?.readCosts();
  });
  useSignalEffect(() => {
    const c = change.value;
    if (c) untracked(() => cursor.current?.add(c));
  });
}

function toSnapshot(by: 1 | -1): void {
  const at = shown.peek();
  if (at === null) return;
  const all = snapshots.peek();
  const next = by > 0 ? all.find((s) => s.seq > at) : all.findLast((s) => s.seq < at);
  if (next) void moveTo(next.seq);
  else say(by > 0 ? "There is no later snapshot." : "There is no earlier snapshot.");
}

/** spentAt says what the session had cost at a commit. */
function spentAt(seq: number | null): JSX.Element | null {
  const sum = seq === null ? 0 : costAt(costs.value, seq);
  return sum > 0 ? <span class="spent" title="what the session had cost here, all branches">{cost(sum)}</span> : null;
}

/** textOf says where the cursor is, for people who hear it. */
function textOf(seq: number, c: Commit | null): string {
  return c ? `seq ${seq}, ${c.reason}, ${clock(c.time, new Date())}, ${c.branch}` : `seq ${seq}`;
}

/** Axis is the canvas with the cursor. */
function Axis({ span, zoomed }: { span: Signal<Span>; zoomed: Signal<Span | null> }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useSignal(0);
  const hovered = useSignal<number | null>(null);
  const marked = useSignal<{ from: number; to: number } | null>(null);
  useDrawing(canvas, box, width, span, marked);
  const drag = useDrag(box, width, span, hovered, marked);
  const newest = headSeq.value;
  const at = shown.value;
  const wheel = (e: WheelEvent) => {
    e.preventDefault();
    const x = e.clientX - box.current!.getBoundingClientRect().left;
    const sideways = Math.abs(e.deltaX) > Math.abs(e.deltaY) || e.shiftKey;
    const next = sideways
      ? moved(span.peek(), ((e.deltaX || e.deltaY) / width.peek()) * (span.peek().to - span.peek().from), newest)
      : zoom(span.peek(), Math.exp(e.deltaY / 300), x, width.peek(), newest);
    zoomed.value = next.to - next.from >= whole(newest).to ? null : next;
  };
  useEffect(() => {
    const el = box.current!;
    el.addEventListener("wheel", wheel, { passive: false }); // it keeps the page from scrolling
    return () => el.removeEventListener("wheel", wheel);
  });
  return (
    <div class="axis" ref={box} role="slider" tabIndex={0} aria-label="Commit" aria-valuemin={0} aria-valuemax={Math.max(0, newest)}
      aria-valuenow={at ?? 0} aria-valuetext={at === null ? "not known yet" : textOf(at, shownCommit.value)}
      title="" {...drag} onKeyDown={(e) => key(e, at, newest)}>
      <canvas ref={canvas} aria-hidden="true" />
      {at !== null && <Handle x={xOf(at, span.value, width.value)} width={width.value} />}
      {hovered.value !== null && scrubbed.value === null &&
        <Hover seq={hovered.value} x={xOf(hovered.value, span.value, width.value)} width={width.value} />}
    </div>
  );
}

function Handle({ x, width }: { x: number; width: number }): JSX.Element {
  const outside = x < 0 ? " before" : x > width ? " after" : "";
  return <span class={"handle" + outside} style={{ left: Math.min(width, Math.max(0, x)) + "px" }} />;
}

/** Hover says which commit is under the pointer. */
function Hover({ seq, x, width }: { seq: number; x: number; width: number }): JSX.Element {
  void arrived.value;
  const c = log.value?.get(seq);
  const marks = snapshots.value.filter((s) => s.seq === seq).map((s) => (s.tag ? `snapshot "${s.tag}"` : "snapshot"));
  const mark = [...(log.value?.marks() ?? [])].find((m) => m.seq === seq)?.mark;
  if (mark) marks.push(meanings.find((m) => m.mark === mark)!.means);
  const entries = c && (c.entries === 1 ? "1 entry" : c.entries + " entries");
  return (
    <span class="hover" style={{ left: Math.min(Math.max(x, 90), Math.max(90, width - 90)) + "px" }}>
      <strong>seq {seq}</strong> {c ? commitText(c) + " · " + entries : "…"}
      {marks.length > 0 && <em> {marks.join(", ")}</em>}
    </span>
  );
}

function key(e: KeyboardEvent, at: number | null, newest: number): void {
  if (at === null || e.ctrlKey || e.metaKey || e.altKey) return;
  const page = Math.max(1, Math.round(newest / 20));
  const to = {
    ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1, PageDown: at - page, PageUp: at + page,
    Home: 0, End: newest,
  }[e.key];
  if (to === undefined) return;
  e.preventDefault();
  e.stopPropagation();
  void moveTo(Math.min(newest, Math.max(0, to)));
}

/** useDrawing draws the canvas when something of it changes, and reads the headers that it lacks. */
function useDrawing(
  canvas: { current: HTMLCanvasElement | null }, box: { current: HTMLElement | null }, width: Signal<number>,
  span: Signal<Span>, marked: Signal<{ from: number; to: number } | null>,
): void {
  const tone = useSignal(0); // grows when the colours change
  useResized([box], () => (width.value = box.current!.clientWidth));
  useEffect(() => {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const repaint = () => tone.value++;
    dark.addEventListener("change", repaint);
    return () => dark.removeEventListener("change", repaint);
  }, []);
  useSignalEffect(() => {
    const commits = log.value;
    const { from, to } = span.value;
    void headSeq.value;
    void connection.value;
    commits?.want(from, to, scrubbed.peek() ?? shown.peek() ?? to);
  });
  useSignalEffect(() => {
    const all: { seq: number; mark: Mark }[] = [...(log.value?.marks() ?? [])];
    for (const s of snapshots.value) all.push({ seq: s.seq, mark: "S" });
    void arrived.value;
    void tone.value;
    if (width.value > 0 && headSeq.value >= 0) {
      drawRail(canvas.current!, {
        span: span.value, width: width.value, newest: headSeq.value, get: (seq) => log.value?.get(seq), marks: all,
        costs: costs.value, noted: noted.value, marked: marked.value, compare: seqOf(view.value.compare),
      });
    }
  });
}

/** seqOf returns the commit that a comparison names; null = it names no commit by its seq. */
function seqOf(compare: string | null): number | null {
  const m = /^seq:(\d{1,15})$/.exec(compare ?? "");
  return m ? Number(m[1]) : null;
}

/** useDrag returns what the pointer does: drag the cursor, or with Shift mark a stretch to compare. */
function useDrag(
  box: { current: HTMLElement | null }, width: Signal<number>, span: Signal<Span>, hovered: Signal<number | null>,
  marked: Signal<{ from: number; to: number } | null>,
) {
  const follow = useMemo(() => new Follow(), []);
  useEffect(() => () => follow.end(), []);
  const seqOfEvent = (e: PointerEvent) =>
    seqAt(e.clientX - box.current!.getBoundingClientRect().left, span.peek(), width.peek(), Math.max(0, headSeq.peek()));
  const end = (e: PointerEvent) => {
    const m = marked.peek();
    if (m) {
      marked.value = null;
      if (m.from !== m.to) compareStretch(Math.min(m.from, m.to), Math.max(m.from, m.to));
    } else if (scrubbed.peek() !== null) follow.last(seqOfEvent(e));
  };
  return {
    onPointerDown(e: PointerEvent) {
      if (e.button !== 0 || headSeq.peek() < 0) return;
      box.current!.setPointerCapture(e.pointerId);
      hovered.value = null;
      const seq = seqOfEvent(e);
      if (e.shiftKey) marked.value = { from: seq, to: seq };
      else follow.to(seq);
    },
    onPointerMove(e: PointerEvent) {
      const seq = seqOfEvent(e);
      if (!box.current!.hasPointerCapture(e.pointerId)) hovered.value = e.pointerType === "touch" ? null : seq;
      else if (marked.peek()) marked.value = { ...marked.peek()!, to: seq };
      else if (scrubbed.peek() !== seq) follow.to(seq);
    },
    onPointerUp: end,
    onPointerCancel: end,
    onPointerLeave() {
      hovered.value = null;
    },
  };
}

function compareStretch(a: number, b: number): void {
  void moveTo(b).then(() => go({ compare: "seq:" + a, pane: "compare" }));
}

/**
 * Follow moves the view after a cursor that is dragged: not more often than the conversation can follow. One pull of the cursor
 * is one step of the browser's history.
 */
class Follow {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private begun = false; // this pull has moved the view

  to(seq: number): void {
    scrubbed.value = seq;
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      if (scrubbed.peek() !== null) void this.move(scrubbed.peek()!);
    }, follows);
  }

  private move(seq: number): Promise<void> {
    const moved = moveTo(seq, this.begun ? "replace" : "push");
    this.begun = true;
    return moved;
  }

  /** last moves the view to where the cursor was left. */
  last(seq: number): void {
    this.end();
    void this.move(seq).finally(() => (scrubbed.value = null));
    this.begun = false;
  }

  end(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}
