// The axis of the timeline: one place per commit, so times in which nothing happened take no room. Pure.
import type { Commit } from "../api/client.ts";

/** A Mark shows what a commit is besides a turn, by a letter and a shape. */
export type Mark = "S" | "C" | "R" | "x" | "F" | "+";

/** meanings are the marks in the order in which they win a place that they share. */
export const meanings: { mark: Mark; means: string }[] = [
  { mark: "x", means: "conflict: the losing turn was kept on a branch" },
  { mark: "R", means: "rollback" },
  { mark: "C", means: "compaction" },
  { mark: "S", means: "snapshot" },
  { mark: "F", means: "fork: another branch" },
  { mark: "+", means: "created" },
];

/** losing reports whether a commit keeps a losing turn on a branch: its state never was the session's. */
export function losing(c: Pick<Commit, "kept" | "branch">): boolean {
  return !!c.kept && c.kept === c.branch;
}

/** markOf returns the mark of a commit; null for a plain one. Snapshots are no commits. */
export function markOf(c: Pick<Commit, "seq" | "reason" | "kept" | "branch">): Mark | null {
  if (losing(c)) return "x"; // the commit after it, with the reason "conflict", returns to the line
  switch (c.reason) {
    case "rollback": return "R";
    case "compaction": return "C";
    case "branch": case "switch": case "edit": case "fork": return "F";
  }
  return c.seq === 0 ? "+" : null;
}

/** A Span is what of the axis is shown: seqs from `from` to before `to`. Both may be fractions. */
export interface Span {
  from: number;
  to: number;
}

/** least is the fewest commits that fill the timeline. */
const least = 8;

/** whole is the span of all commits up to the newest one. */
export function whole(newest: number): Span {
  return { from: 0, to: Math.max(newest + 1, least) };
}

/** xOf returns the middle of a commit's place, in px. */
export function xOf(seq: number, span: Span, width: number): number {
  return ((seq + 0.5 - span.from) / (span.to - span.from)) * width;
}

/** seqAt returns the commit at a place, of those that there are. */
export function seqAt(x: number, span: Span, width: number, newest: number): number {
  const seq = Math.floor(span.from + (x / Math.max(1, width)) * (span.to - span.from));
  return Math.min(newest, Math.max(0, seq));
}

/** zoom returns a span with `factor` times as many commits, where the one at a place stays; at most the whole. */
export function zoom(span: Span, factor: number, x: number, width: number, newest: number): Span {
  const all = whole(newest);
  const size = Math.min(all.to, Math.max(least, (span.to - span.from) * factor));
  const share = x / Math.max(1, width);
  const fixed = span.from + share * (span.to - span.from);
  return moved({ from: fixed - share * size, to: fixed + (1 - share) * size }, 0, newest);
}

/** moved returns a span that is moved by so many commits, within the whole. */
export function moved(span: Span, by: number, newest: number): Span {
  const size = span.to - span.from;
  const from = Math.max(0, Math.min(span.from + by, whole(newest).to - size));
  return { from, to: from + size };
}

/** A Column is what is drawn at one place: the commits that share it. */
export interface Column {
  x: number; // px
  first: number;
  count: number;
  known: boolean; // headers of these commits are there
  entries: number; // of the commit with the most
}

/** A Flag is a mark at a place; count is the number of commits with marks that share it. */
export interface Flag {
  x: number;
  mark: Mark;
  count: number;
}

/**
 * columns returns the ticks of a span: one a commit, or one a pixel where there are more commits than pixels. Where
 * there are more than `sampled` commits a pixel, it looks at so many of each, so the work does not grow with the log.
 */
export function columns(
  span: Span, width: number, newest: number, get: (seq: number) => number | undefined, sampled = 64,
): Column[] {
  const first = Math.max(0, Math.floor(span.from));
  const last = Math.min(newest, Math.ceil(span.to) - 1);
  const list: Column[] = [];
  const per = (span.to - span.from) / Math.max(1, width);
  for (let seq = first; seq <= last;) {
    const x = per <= 1 ? xOf(seq, span, width) : Math.floor((seq - span.from) / per) + 0.5;
    const end = per <= 1 ? seq + 1 : Math.max(seq + 1, Math.ceil(span.from + (Math.floor(x) + 1) * per));
    const stop = Math.min(end, last + 1);
    const column: Column = { x, first: seq, count: stop - seq, known: true, entries: 0 };
    const stride = Math.max(1, Math.ceil(column.count / sampled));
    for (let s = seq; s < stop; s += stride) {
      const entries = get(s);
      if (entries === undefined) column.known = false;
      else column.entries = Math.max(column.entries, entries);
    }
    list.push(column);
    seq = stop;
  }
  return list;
}

/** hasOne reports whether a list in order has one of `count` numbers from `first` on. */
export function hasOne(list: readonly number[], first: number, count: number): boolean {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle]! < first) low = middle + 1;
    else high = middle;
  }
  return low < list.length && list[low]! < first + count;
}

/** room is the width of a mark, in px. */
export const room = 11;

/** flags returns the marks of a span; those closer than `room` are one, at the place of the most telling. all are the commits that have one. */
export function flags(span: Span, width: number, all: Iterable<{ seq: number; mark: Mark }>): Flag[] {
  const rank = (m: Mark) => meanings.findIndex((x) => x.mark === m);
  const list: Flag[] = [];
  let from = 0; // of the commits that share the last one
  for (const { seq, mark } of [...all].sort((a, b) => a.seq - b.seq)) {
    const x = xOf(seq, span, width);
    if (x < 0 || x > width) continue;
    const last = list.at(-1);
    if (!last || x - from >= room) {
      list.push({ x, mark, count: 1 });
      from = x;
    } else {
      last.count++;
      if (rank(mark) < rank(last.mark)) Object.assign(last, { x, mark });
    }
  }
  return list;
}
