// A line of ticks with a cursor that can be dragged: the commits of a session, or the turns of one that was imported.
import { useSignal, useSignalEffect, type ReadonlySignal, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { How } from "../model/nav.ts";
import { moved, seqAt, whole, xOf, zoom, type Span } from "../model/ticks.ts";
import { useResized } from "../parts/resized.ts";
import { useSessionEffect } from "../parts/use-session.ts";
import { drawRail, type Rail } from "./rail.ts";

/** A Scale is what the ticks are. Each has a number, from 0 to that of the newest one. */
export interface Scale {
  label: string;
  newest: ReadonlySignal<number>; // -1 = not known yet
  at: ReadonlySignal<number | null>; // the tick of the cursor; null = not known yet
  seen: ReadonlySignal<number | null>; // the tick of what is in sight of the conversation; null = its end, or not known
  scrubbed: Signal<number | null>; // the tick under the pointer while the cursor is dragged
  /** ticks returns what is drawn. It is called in an effect. */
  ticks: () => Omit<Rail, "span" | "width" | "newest" | "marked">;
  textOf: (n: number) => string; // for screen readers
  hover: (n: number) => JSX.Element;
  moveTo: (n: number, how: How) => Promise<void>;
  compare?: (a: number, b: number) => void; // a stretch that was marked
  want?: (span: Span) => void; // reads what a span that is shown lacks
}

/** follows is how often the conversation follows a cursor that is dragged, in ms. State and timeline follow at once. */
const follows = 200;

/** Axis is the canvas with the cursor. */
export function Axis({ scale }: { scale: Scale }): JSX.Element {
  const zoomed = useSignal<Span | null>(null); // null = everything, also what comes
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useSignal(0);
  const hovered = useSignal<number | null>(null);
  const marked = useSignal<{ from: number; to: number } | null>(null);
  const newest = scale.newest.value;
  const span = zoomed.value ?? whole(Math.max(0, newest));
  const shown = useSignal(span);
  if (shown.peek().from !== span.from || shown.peek().to !== span.to) shown.value = span;
  useDrawing(scale, canvas, box, width, shown, marked);
  const drag = useDrag(scale, box, width, shown, hovered, marked);
  const at = scale.at.value;
  const wheel = (e: WheelEvent) => {
    e.preventDefault();
    const x = e.clientX - box.current!.getBoundingClientRect().left;
    const sideways = Math.abs(e.deltaX) > Math.abs(e.deltaY) || e.shiftKey;
    const next = sideways
      ? moved(span, ((e.deltaX || e.deltaY) / width.peek()) * (span.to - span.from), newest)
      : zoom(span, Math.exp(e.deltaY / 300), x, width.peek(), newest);
    zoomed.value = next.to - next.from >= whole(newest).to ? null : next;
  };
  useEffect(() => {
    const el = box.current!;
    el.addEventListener("wheel", wheel, { passive: false }); // it keeps the page from scrolling
    return () => el.removeEventListener("wheel", wheel);
  });
  return (
    <div class="axis" ref={box} role="slider" tabIndex={0} aria-label={scale.label} aria-valuemin={0} aria-valuemax={Math.max(0, newest)}
      aria-valuenow={at ?? 0} aria-valuetext={at === null ? "not known yet" : scale.textOf(at)}
      title="" {...drag} onKeyDown={(e) => key(e, scale, at, newest)}>
      <canvas ref={canvas} aria-hidden="true" />
      {scale.seen.value !== null && scale.scrubbed.value === null && (
        <span class="in-sight" style={{ left: Math.min(width.value, Math.max(0, xOf(scale.seen.value, span, width.value))) + "px" }} />
      )}
      {at !== null && <Handle x={xOf(at, span, width.value)} width={width.value} />}
      {hovered.value !== null && scale.scrubbed.value === null && (
        <span class="hover" style={{ left: Math.min(Math.max(xOf(hovered.value, span, width.value), 90), Math.max(90, width.value - 90)) + "px" }}>
          {scale.hover(hovered.value)}
        </span>
      )}
    </div>
  );
}

function Handle({ x, width }: { x: number; width: number }): JSX.Element {
  const outside = x < 0 ? " before" : x > width ? " after" : "";
  return <span class={"handle" + outside} style={{ left: Math.min(width, Math.max(0, x)) + "px" }} />;
}

function key(e: KeyboardEvent, scale: Scale, at: number | null, newest: number): void {
  if (at === null || e.ctrlKey || e.metaKey || e.altKey) return;
  const page = Math.max(1, Math.round(newest / 20));
  const to = {
    ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1, PageDown: at - page, PageUp: at + page,
    Home: 0, End: newest,
  }[e.key];
  if (to === undefined) return;
  e.preventDefault();
  e.stopPropagation();
  void scale.moveTo(Math.min(newest, Math.max(0, to)), "step");
}

/** useDrawing draws the canvas when something of it changes, and asks for what it lacks. */
function useDrawing(
  scale: Scale, canvas: { current: HTMLCanvasElement | null }, box: { current: HTMLElement | null }, width: Signal<number>,
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
  useSessionEffect(() => scale.want?.(span.value));
  useSignalEffect(() => {
    void tone.value;
    const newest = scale.newest.value;
    const ticks = scale.ticks();
    const shown = { span: span.value, width: width.value, newest, marked: marked.value };
    if (width.value > 0 && newest >= 0) drawRail(canvas.current!, { ...ticks, ...shown });
  });
}

/** useDrag returns what the pointer does: drag the cursor, or with Shift mark a stretch to compare. */
function useDrag(
  scale: Scale, box: { current: HTMLElement | null }, width: Signal<number>, span: Signal<Span>, hovered: Signal<number | null>,
  marked: Signal<{ from: number; to: number } | null>,
) {
  const { newest, scrubbed } = scale;
  const follow = useMemo(() => new Follow(scale), [scale]);
  useEffect(() => () => follow.end(), [follow]);
  const tickOf = (e: PointerEvent) =>
    seqAt(e.clientX - box.current!.getBoundingClientRect().left, span.peek(), width.peek(), Math.max(0, newest.peek()));
  const end = (e: PointerEvent) => {
    const m = marked.peek();
    if (m) {
      marked.value = null;
      if (m.from !== m.to) scale.compare?.(Math.min(m.from, m.to), Math.max(m.from, m.to));
    } else if (scrubbed.peek() !== null) follow.last(tickOf(e));
  };
  return {
    onPointerDown(e: PointerEvent) {
      if (e.button !== 0 || newest.peek() < 0) return;
      box.current!.setPointerCapture(e.pointerId);
      hovered.value = null;
      const n = tickOf(e);
      if (e.shiftKey && scale.compare) marked.value = { from: n, to: n };
      else follow.to(n);
    },
    onPointerMove(e: PointerEvent) {
      const n = tickOf(e);
      if (!box.current!.hasPointerCapture(e.pointerId)) hovered.value = e.pointerType === "touch" ? null : n;
      else if (marked.peek()) marked.value = { ...marked.peek()!, to: n };
      else if (scrubbed.peek() !== n) follow.to(n);
    },
    onPointerUp: end,
    onPointerCancel: end,
    onPointerLeave() {
      hovered.value = null;
    },
  };
}

/**
 * Follow moves the view after a cursor that is dragged: not more often than the conversation can follow. One pull of the cursor
 * is one step of the browser's history.
 */
class Follow {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private begun = false; // this pull has moved the view

  constructor(private readonly scale: Scale) {}

  to(n: number): void {
    const { scrubbed } = this.scale;
    scrubbed.value = n;
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      if (scrubbed.peek() !== null) void this.move(scrubbed.peek()!);
    }, follows);
  }

  private move(n: number): Promise<void> {
    const moved = this.scale.moveTo(n, this.begun ? "replace" : "push");
    this.begun = true;
    return moved;
  }

  /** last moves the view to where the cursor was left. */
  last(n: number): void {
    this.end();
    void this.move(n).finally(() => (this.scale.scrubbed.value = null));
    this.begun = false;
  }

  end(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}
