// Two points side by side: of one session, or of two. Each read is bounded.
import { api, textOf, type Entry } from "../api/client.ts";
import { exact } from "../api/exact.ts";
import { sideOf, type Side } from "./verdict.ts";

/** A Point is a target in a session. */
export interface Point {
  session: string;
  target: string;
}

/** pointOf returns the point that a view's `compare` names: "TARGET" of this session, or "SESSION/TARGET". Pure. */
export function pointOf(session: string, text: string): Point {
  const cut = text.indexOf("/");
  return cut < 0 ? { session, target: text } : { session: text.slice(0, cut), target: text.slice(cut + 1) || "head" };
}

/**
 * Difference is what two points do not share. more = there is more than was read. a and b are the figures of what only one of
 * them has; of points of two sessions those of the whole lines, which are compared by what the models saw.
 */
export interface Difference {
  onlyA: Entry[];
  onlyB: Entry[];
  a: Side;
  b: Side;
  lines: boolean; // a and b are of whole lines
  values: number; // of the state that differ; -1 = unknown
  stateA: string; // JSON text, digits as they were stored
  stateB: string;
  more: boolean;
}

/** maxRead bounds the bytes of one answer, and maxEntries what is shown of a side. */
const maxRead = 16 << 20;
export const maxEntries = 200;

function text(path: string, signal: AbortSignal): Promise<string | null> {
  return textOf(path, maxRead, signal);
}

function sessionPath(id: string): string {
  return "/v1/sessions/" + encodeURIComponent(id);
}

/** state returns the state at a point as JSON text. */
export async function state(p: Point, signal: AbortSignal): Promise<string> {
  const path = `${sessionPath(p.session)}/state?at=${encodeURIComponent(p.target)}`;
  return (await text(path, signal))?.trim() ?? '"the state is too large to be compared here"';
}

/** compare returns how B differs from A. */
export async function compare(a: Point, b: Point, signal: AbortSignal): Promise<Difference> {
  const [stateA, stateB] = await Promise.all([state(a, signal), state(b, signal)]);
  if (a.session !== b.session) return { ...(await across(a, b, signal)), stateA, stateB };
  const path = `${sessionPath(a.session)}/diff?a=${encodeURIComponent(a.target)}&b=${encodeURIComponent(b.target)}`;
  const raw = await text(path, signal);
  const nothing = { onlyA: [], onlyB: [] };
  const d = raw === null ? null : exact(raw) as { messages: typeof nothing; state: unknown };
  const { onlyA, onlyB } = d?.messages ?? nothing;
  const values = d === null ? -1 : Array.isArray(d.state) ? d.state.length : stateA === stateB ? 0 : 1;
  return { onlyA, onlyB, a: sideOf(onlyA), b: sideOf(onlyB), lines: false, values, stateA, stateB, more: d === null };
}

/** across compares points of two sessions: messages that are equal at the start of what the models saw are shared. */
async function across(a: Point, b: Point, signal: AbortSignal): Promise<Omit<Difference, "stateA" | "stateB">> {
  const read = async (p: Point): Promise<{ message: unknown }[] | null> => {
    const raw = await text(`${sessionPath(p.session)}/context?at=${encodeURIComponent(p.target)}`, signal);
    return raw === null ? null : (exact(raw) as { messages: unknown[] }).messages.map((message) => ({ message }));
  };
  const [x, y, lineA, lineB] = await Promise.all([read(a), read(b), lineOf(a, signal), lineOf(b, signal)]);
  const figures = { a: lineA, b: lineB, lines: true, values: -1 };
  if (!x || !y) return { onlyA: [], onlyB: [], ...figures, more: true };
  const shared = commonStart(x, y);
  const entries = (list: { message: unknown }[], side: string) => list.slice(shared).map((m, i): Entry => (
    { type: "message", id: side + i, parentId: null, ...m }));
  return { onlyA: entries(x, "a"), onlyB: entries(y, "b"), ...figures, more: false };
}

/** lineOf returns the figures of the whole line that ends at a point: with what was compacted away, and copied. */
async function lineOf(p: Point, signal: AbortSignal): Promise<Side> {
  const { data } = await api.GET("/v1/sessions/{id}/usage", {
    params: { path: { id: p.session }, query: { at: p.target } }, signal,
  });
  const { entries, usage, inherited } = data!;
  return { messages: entries, tokens: usage.total + (inherited?.total ?? 0), cost: usage.cost + (inherited?.cost ?? 0) };
}

/** commonStart returns how many elements at the start of two lists are equal as JSON. Pure. */
export function commonStart(x: unknown[], y: unknown[]): number {
  let n = 0;
  while (n < x.length && n < y.length && JSON.stringify(x[n]) === JSON.stringify(y[n])) n++;
  return n;
}
