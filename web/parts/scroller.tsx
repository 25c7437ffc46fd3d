// A list of articles of any heights of which only those in sight are in the page. What is in sight stays where it is,
// whatever is put before it, and however heights turn out; at the end, the end stays in sight.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useReducer, useRef } from "preact/hooks";
import { painted } from "../model/painted.ts";
import { anchorAt, covers, sliceAt, topOf, type Anchor, type Slice } from "../model/slice.ts";
import { useResized } from "./resized.ts";

export interface ScrollerProps {
  keys: readonly string[];
  /** estimate returns the height of an article that was never drawn, in pixels. */
  estimate: (index: number) => number;
  render: (index: number) => JSX.Element;
  /** wanted is where an article has to be; obeyed is called when it is there. */
  wanted: Anchor | "end" | null;
  obeyed: () => void;
  /**
   * onPlace receives what is in sight: the first and last article in the page, and whether the end is. calm = what is in sight
   * was painted, so that there is time to read ahead.
   */
  onPlace: (from: number, to: number, atEnd: boolean, calm: boolean) => void;
  /** last reports whether the last article is the end of the list: then the view follows it. */
  last: boolean;
  place: (f: () => Anchor | null) => void;
  before: ComponentChildren;
  after: ComponentChildren;
  label: string;
}

/**
 * around is what is drawn above and below the view, in pixels; with over mostNodes elements in the page only little. Of a
 * place of which nothing is drawn yet, what is in sight comes first, and the rest when that was painted.
 */
const around = 700;
const little = 60;
const mostNodes = 1200;
/** endSlack is how far from its end the list may be to count as at its end, in pixels. */
const endSlack = 32;

/** Held is what the list knows between renderings. */
interface Held {
  heights: Map<string, number>;
  anchor: Anchor | "end";
  slice: Slice;
  over: number;
  calm: boolean; // what is in sight was painted: now what is around it is drawn too
  rounds: number;
  scrollTop: number; // when it was looked at last
  room: number; // below the end, so that an article can be where it has to be though little is below it
  hidden: boolean; // another pane fills the screen: the list has no size, and waits
}

/** Scroller shows the list. */
export function Scroller(p: ScrollerProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const held = useRef<Held>({
    heights: new Map(), anchor: "end", slice: { from: 0, to: 0, above: 0, below: 0 }, over: around, calm: false, rounds: 0, room: 0,
    scrollTop: 0, hidden: false,
  });
  const [, again] = useReducer((n: number) => n + 1, 0);
  const h = held.current;
  const heights = p.keys.map((key, i) => h.heights.get(key) ?? p.estimate(i));
  if (box.current) catchUp(box.current, list.current!, h);
  if (p.wanted !== null) {
    h.anchor = p.wanted;
    h.room = 0;
  }
  const view = box.current?.clientHeight || 800;
  const top = topFor(h, p.keys, heights, view);
  if (p.wanted !== null && !near(h.slice, heights, top, view)) h.calm = false;
  h.slice = sliceAt(heights, top, view, overOf(h));
  const { from, to, above, below } = h.slice;
  const now = useRef(p);
  now.current = p;

  useLayoutEffect(() => {
    if (p.wanted !== null) p.obeyed();
    if (!isHidden(box.current!, h)) settle(box.current!, list.current!, h, p, again);
  });
  useLayoutEffect(() => { // it ends when the list leaves the page; other effects end after the next painting
    if (!h.calm && !h.hidden && p.keys.length > 0) return painted(() => calmDown(box.current!, h, now.current, again));
  });
  useEffect(() => {
    p.place(() => (h.anchor === "end" ? box.current && anchorIn(box.current, list.current!) : h.anchor));
  }, []);
  useResized([content, box], () => {
    const was = h.hidden;
    if (isHidden(box.current!, h)) return;
    if (was) {
      again(undefined); // the articles of the place first
      return;
    }
    catchUp(box.current!, list.current!, h);
    settle(box.current!, list.current!, h, now.current, again);
  });

  return (
    <div class="scroller" ref={box} tabIndex={-1}
      onScroll={() => box.current && scrolled(box.current, list.current!, h, now.current, again)}>
      <div ref={content}>
        {p.before}
        <div style={{ height: above + "px" }} />
        <div ref={list} role="feed" aria-label={p.label}>
          {p.keys.slice(from, to).map((_, i) => p.render(from + i))}
        </div>
        <div style={{ height: below + "px" }} />
        {p.after}
        <div />
      </div>
    </div>
  );
}

/** overOf returns what is drawn above and below the view, in pixels. */
function overOf(h: Held): number {
  return h.calm ? h.over : 0;
}

/** near reports whether some of what a view shows is drawn. */
function near(s: Slice, heights: readonly number[], top: number, view: number): boolean {
  let bottom = s.above;
  for (let i = s.from; i < s.to; i++) bottom += heights[i] ?? 0;
  return s.above < top + view && bottom > top;
}

/** calmDown draws what is around the view. */
function calmDown(box: HTMLElement, h: Held, p: ScrollerProps, again: (x: void) => void): void {
  h.calm = true;
  redraw(box, h, p, again);
}

/** topFor returns the height of the list's part above the view, for the anchor to hold. */
function topFor(h: Held, keys: readonly string[], heights: readonly number[], view: number): number {
  const whole = heights.reduce((a, b) => a + b, 0);
  if (h.anchor === "end") return Math.max(0, whole - view);
  const top = topOf(keys, heights, h.anchor);
  return Math.max(0, top ?? whole - view);
}

/** anchorIn returns the first article in sight. */
function anchorIn(box: HTMLElement, list: HTMLElement): Anchor | null {
  const edge = box.getBoundingClientRect().top;
  for (const e of list.children) {
    const r = e.getBoundingClientRect();
    if (r.bottom > edge + 1) return { key: (e as HTMLElement).dataset.key!, offset: r.top - edge };
  }
  return null;
}

/**
 * isHidden reports whether the list has no size now. What had to be in sight meanwhile is drawn when it has one again: what
 * was scrolled is then no wish of a person.
 */
function isHidden(box: HTMLElement, h: Held): boolean {
  if (box.clientHeight > 0 && h.hidden) h.scrollTop = box.scrollTop;
  return (h.hidden = box.clientHeight === 0);
}

/** measure keeps the heights of what is drawn. */
function measure(list: HTMLElement, h: Held): void {
  for (const e of list.children) {
    h.heights.set((e as HTMLElement).dataset.key!, e.getBoundingClientRect().height);
  }
}

/** settle measures, puts the anchor where it has to be, and draws more where something is missing. */
function settle(box: HTMLElement, list: HTMLElement, h: Held, p: ScrollerProps, again: (x: void) => void): void {
  measure(list, h);
  setRoom(box, h, h.anchor === "end" ? 0 : h.room);
  if (h.anchor === "end") box.scrollTop = box.scrollHeight;
  else {
    const { key, offset } = h.anchor;
    const e = [...list.children].find((x) => (x as HTMLElement).dataset.key === key);
    if (e) {
      const off = e.getBoundingClientRect().top - box.getBoundingClientRect().top - offset;
      if (Math.abs(off) > 0.5) scrollBy(box, h, off, p.last);
    } else h.anchor = anchorIn(box, list) ?? "end";
  }
  h.scrollTop = box.scrollTop;
  const nodes = list.getElementsByTagName("*").length;
  h.over = nodes > mostNodes ? little : nodes < mostNodes / 3 ? around : h.over;
  redraw(box, h, p, again);
}

/** catchUp takes into account what was scrolled, and not yet told by an event, before what is in the page changes. */
function catchUp(box: HTMLElement, list: HTMLElement, h: Held): void {
  if (h.hidden || box.clientHeight === 0) return;
  const by = box.scrollTop - h.scrollTop;
  const cutOff = box.scrollTop >= box.scrollHeight - box.clientHeight - 1; // by what became shorter, not by a person
  if (Math.abs(by) < 1 || cutOff) return;
  h.scrollTop = box.scrollTop;
  h.anchor = h.anchor === "end" ? anchorIn(box, list) ?? "end" : { ...h.anchor, offset: h.anchor.offset - by };
}

/** scrollBy scrolls, and makes room below the end if there is not enough. A loose anchor is at the end then. */
function scrollBy(box: HTMLElement, h: Held, by: number, last: boolean): void {
  const missing = box.scrollTop + by - (box.scrollHeight - box.clientHeight);
  if (missing > 0.5 && h.anchor !== "end" && h.anchor.loose && last) h.anchor = "end";
  else if (missing > 0.5) setRoom(box, h, h.room + missing);
  box.scrollTop += by;
}

function setRoom(box: HTMLElement, h: Held, room: number): void {
  if (room <= 0 && h.room === 0) return;
  h.room = Math.max(0, room);
  (box.firstElementChild!.lastElementChild as HTMLElement).style.height = h.room + "px";
}

/** mostRounds bounds how often the list is drawn again for one cause. */
const mostRounds = 6;

function redraw(box: HTMLElement, h: Held, p: ScrollerProps, again: (x: void) => void): void {
  const heights = p.keys.map((key, i) => h.heights.get(key) ?? p.estimate(i));
  const view = box.clientHeight;
  if (!covers(h.slice, heights, topFor(h, p.keys, heights, view), view, overOf(h)) && h.rounds < mostRounds) {
    h.rounds++;
    again();
    return;
  }
  h.rounds = 0;
  p.onPlace(h.slice.from, h.slice.to, isAtEnd(box, h, p), h.calm);
}

function isAtEnd(box: HTMLElement, h: Held, p: ScrollerProps): boolean {
  return p.last && box.scrollHeight - h.room - box.scrollTop - box.clientHeight < endSlack;
}

/**
 * scrolled takes the place that a person scrolled to. The event of what settle scrolled arrives later, when the list may
 * have grown already: that is no reason to leave its end.
 */
function scrolled(box: HTMLElement, list: HTMLElement, h: Held, p: ScrollerProps, again: (x: void) => void): void {
  if (h.hidden) return;
  if (Math.abs(box.scrollTop - h.scrollTop) < 1) { // the event of what settle did, and the list may be longer by now
    redraw(box, h, p, again);
    return;
  }
  h.scrollTop = box.scrollTop;
  setRoom(box, h, Math.min(h.room, box.scrollTop + box.clientHeight - (box.scrollHeight - h.room)));
  if (h.room === 0 && isAtEnd(box, h, p)) h.anchor = "end";
  else {
    const seen = anchorIn(box, list);
    const edge = box.getBoundingClientRect();
    const drawn = seen && list.getBoundingClientRect().top < edge.bottom;
    if (!drawn) h.calm = false;
    const heights = p.keys.map((key, i) => h.heights.get(key) ?? p.estimate(i));
    const start = list.getBoundingClientRect().top - edge.top + box.scrollTop - h.slice.above;
    h.anchor = (drawn ? seen : anchorAt(p.keys, heights, box.scrollTop - start)) ?? "end";
  }
  redraw(box, h, p, again);
}
