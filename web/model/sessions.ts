// The sessions of the list, and what they cost. Nothing polls: the list is read when the page is opened or looked at
// again, and when a session that is open changes.
import { computed, signal } from "@preact/signals";
import { api, type Session } from "../api/client.ts";
import { sessionPage } from "../api/pages.ts";
import { hasFailed } from "./failures.ts";
import { sessionId } from "./nav.ts";
import { said } from "./path.ts";
import { resource } from "./resource.ts";
import { isNew, markSeen, readSeen, writeSeen } from "./seen.ts";
import type { OpenSession } from "./session.ts";
import { byDay, rollUp, spend, type Spent } from "./spend.ts";
import { panesReady } from "./startup.ts";

/** Bounds: of the sessions of a page, and of those whose cost is read. */
const pageSize = 50;
const maxSpent = 500;

/** settles is how long after a commit its session is read again for the list, and fresh how long a list is not read again, in ms. */
const settles = 1500;
const fresh = 10_000;

let readAt = 0; // when the list was read, as performance.now

/** wanted are the words that a session has to contain. */
export const wanted = signal("");

/** list is what is shown of the list: next is the cursor of its next page. */
export const list = resource(() => (panesReady.value ? wanted.value : null), page, true);
export const sessions = computed(() => list.value.value?.sessions ?? []);

const spent = resource(() => (list.value.value ? "all" : null), readSpent);
const seen = signal(readSeen());

/** sums are the costs by session, as far as they were read. */
export const sums = computed(() => rollUp(spent.value.value ?? []));

/** overTime is what they cost by day. */
export const overTime = computed(() => byDay(spent.value.value ?? []));

/** A Nested is a session of the list, with those that it started. */
export interface Nested {
  session: Session;
  children: Nested[];
}

/** nest returns sessions as a tree, each below its parent if that is in the list. The order stays. Pure. */
export function nest(list: Session[]): Nested[] {
  const all = new Map(list.map((s) => [s.id, { session: s, children: [] as Nested[] }]));
  const top: Nested[] = [];
  for (const n of all.values()) {
    const parent = n.session.parent ? all.get(n.session.parent) : undefined;
    if (parent && !above(all, n)) parent.children.push(n);
    else top.push(n);
  }
  return top;
}

/** above reports whether a session is among its own ancestors. */
function above(all: Map<string, Nested>, n: Nested): boolean {
  const seenHere = new Set<string>();
  for (let at: Nested | undefined = n; at?.session.parent; at = all.get(at.session.parent)) {
    if (at.session.parent === n.session.id) return true;
    if (seenHere.has(at.session.id)) return true;
    seenHere.add(at.session.id);
  }
  return false;
}

/** unread reports whether a session has commits since this browser showed it. */
export function unread(s: Session): boolean {
  return s.id !== sessionId.value && isNew(seen.value, s.id, s.seq);
}

async function page(words: string, signal: AbortSignal, after?: string): Promise<{ sessions: Session[]; next: string | undefined }> {
  readAt = performance.now();
  const { sessions, next } = await sessionPage({ limit: pageSize, ...(words ? { q: words } : {}), ...(after ? { after } : {}) }, signal);
  return { sessions, next };
}

/** readMore adds the next page to the list. */
export async function readMore(signal: AbortSignal): Promise<void> {
  const before = list.value.peek();
  if (!before?.next) return;
  const { sessions, next } = await page(wanted.peek(), signal, before.next);
  if (list.value.peek() === before) list.change(() => ({ sessions: [...before.sessions, ...sessions], next }));
}

/** readSpent reads what the sessions cost: the server reads those that changed. */
async function readSpent(_: string, signal: AbortSignal): Promise<Spent[]> {
  const all: Spent[] = [];
  for (let after: string | undefined; all.length < maxSpent;) {
    const { data } = await api.GET("/v1/usage", { params: { query: { limit: 100, ...(after ? { after } : {}) } }, signal });
    const page = data as unknown as { sessions: Spent[]; next?: string };
    all.push(...page.sessions);
    if (!page.next) break;
    after = page.next;
  }
  return all;
}

function replace(id: string, by: (s: Session) => Session): void {
  list.change((l) => ({ ...l, sessions: l.sessions.map((s) => (s.id === id ? by(s) : s)) }));
}

/** readAgain reads what the list has of the session that is open. */
async function readAgain(s: OpenSession): Promise<void> {
  const { data } = await api.GET("/v1/sessions/{id}", { params: { path: { id: s.id } } }).catch(() => ({ data: undefined }));
  if (!data) return;
  replace(s.id, () => data);
  s.summary.value = data;
}

/** listed keeps the list up to date with a session that is open, and remembers what was shown of it. */
export function listed(s: OpenSession): void {
  let pending: ReturnType<typeof setTimeout> | undefined;
  s.effect(() => {
    const seq = s.head.value?.seq;
    if (seq === undefined) return;
    const table = markSeen(seen.peek(), s.id, seq);
    seen.value = table;
    writeSeen(table);
  });
  s.effect(() => {
    const c = s.change.value;
    if (!c) return;
    replace(s.id, (old) => ({ ...old, seq: c.seq, updated: c.time }));
    pending ??= setTimeout(() => {
      pending = undefined;
      void readAgain(s);
    }, settles);
    const answers = c.entries.map((e) => ({ time: e.timestamp, cost: said(e)?.cost ?? 0 })).filter((a) => a.cost > 0);
    const failed = c.entries.filter(hasFailed).length;
    if (answers.length > 0 || failed > 0) spent.change((all) => spend(all, s.id, answers, failed));
  });
}

/** touched reads the list again on an action of the person if it is no longer fresh, unless more than a page is shown. */
function touched(): void {
  if (performance.now() - readAt > fresh && sessions.peek().length <= pageSize && !list.busy.peek()) list.retry();
}

/** start reads the list again when the page is looked at again. It is called once. */
export function start(): void {
  document.addEventListener("pointerdown", touched, { passive: true });
  document.addEventListener("keydown", touched, { passive: true });
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") list.retry();
  });
}
