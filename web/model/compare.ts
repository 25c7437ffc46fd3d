// Two points side by side: of one session, or of two. Each read is bounded.
import { textOf, type Entry } from "../api/client.ts";

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

/** Difference is what two points do not share. more = there is more than was read. */
export interface Difference {
  base: string | null;
  onlyA: Entry[];
  onlyB: Entry[];
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
  if (raw === null) return { base: null, onlyA: [], onlyB: [], values: -1, stateA, stateB, more: true };
  const d = JSON.parse(raw) as { base: string | null; messages: { onlyA: Entry[]; onlyB: Entry[] }; state: unknown };
  return {
    base: d.base, onlyA: d.messages.onlyA, onlyB: d.messages.onlyB,
    values: Array.isArray(d.state) ? d.state.length : stateA === stateB ? 0 : 1, stateA, stateB, more: false,
  };
}

/** across compares what the model saw at points of two sessions: messages that are equal at the start are shared. */
async function across(a: Point, b: Point, signal: AbortSignal): Promise<Omit<Difference, "stateA" | "stateB">> {
  const read = async (p: Point): Promise<{ message: unknown }[] | null> => {
    const raw = await text(`${sessionPath(p.session)}/context?at=${encodeURIComponent(p.target)}`, signal);
    return raw === null ? null : (JSON.parse(raw) as { messages: unknown[] }).messages.map((message) => ({ message }));
  };
  const [x, y] = await Promise.all([read(a), read(b)]);
  if (!x || !y) return { base: null, onlyA: [], onlyB: [], values: -1, more: true };
  const shared = commonStart(x, y);
  const entries = (list: { message: unknown }[], side: string) => list.slice(shared).map((m, i): Entry => (
    { type: "message", id: side + i, parentId: null, ...m }));
  return { base: shared > 0 ? "" : null, onlyA: entries(x, "a"), onlyB: entries(y, "b"), values: -1, more: false };
}

/** commonStart returns how many elements at the start of two lists are equal as JSON. Pure. */
export function commonStart(x: unknown[], y: unknown[]): number {
  let n = 0;
  while (n < x.length && n < y.length && JSON.stringify(x[n]) === JSON.stringify(y[n])) n++;
  return n;
}
