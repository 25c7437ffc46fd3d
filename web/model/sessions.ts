// The sessions of the list, and what they cost. Nothing polls: the list is read when the page is opened or looked at
// again, and when a session that is open changes.
import { computed, effect, signal } from "@preact/signals";
import { api, type Session } from "../api/client.ts";
import { sessionPage } from "../api/pages.ts";
import { hasFailed } from "./failures.ts";
import { said } from "./line.ts";
import { session } from "./nav.ts";
import { change, head, summary } from "./session.ts";
import { isNew, markSeen, readSeen, writeSeen } from "./seen.ts";
import { byDay, rollUp, spend, type Spent } from "./spend.ts";

export const sessions = signal<Session[]>([]);
export const more = signal<string | null>(null);
export const loading = signal(true);
export const wanted = signal(""); // words that a session has to contain
const spent = signal<Spent[]>([]);
const seen = signal(readSeen());

/** sums are the costs by session, as far as they were read. */
export const sums = computed(() => rollUp(spent.value));

/** overTime is what they cost by day. */
export const overTime = computed(() => byDay(spent.value));

/** maxSpent bounds the sessions whose cost is read for the list. */
const maxSpent = 500;
const pageSize = 50;

/** settles is how long after a commit its session is read again for the list, and fresh how long a list is not read again, in ms. */
const settles = 1500;
const fresh = 10_000;

let pending: ReturnType<typeof setTimeout> | undefined;
let readAt = 0; // when the list was read, as performance.now

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
  return s.id !== session.value && isNew(seen.value, s.id, s.seq);
}

/** read loads the first page of the list, or the one after it. */
export async function read(next: boolean, signal?: AbortSignal): Promise<void> {
  const after = next ? more.peek() : null;
  const query = { limit: pageSize, ...(wanted.peek() ? { q: wanted.peek() } : {}), ...(after ? { after } : {}) };
  loading.value = true;
  readAt = performance.now();
  try {
    const page = await sessionPage(query, signal);
    sessions.value = next ? [...sessions.peek(), ...page.sessions] : page.sessions;
    more.value = page.next ?? null;
  } finally {
    loading.value = false;
  }
}

/** readSpent loads what the sessions cost: the server reads those that changed. */
export async function readSpent(signal?: AbortSignal): Promise<void> {
  const list: Spent[] = [];
  for (let after: string | undefined; list.length < maxSpent;) {
    const { data } = await api.GET("/v1/usage", { params: { query: { limit: 100, ...(after ? { after } : {}) } }, signal });
    const page = data as unknown as { sessions: Spent[]; next?: string };
    list.push(...page.sessions);
    spent.value = list;
    if (!page.next) break;
    after = page.next;
  }
}

/** readAgain reads what the list says of one session. */
async function readAgain(id: string): Promise<void> {
  const { data } = await api.GET("/v1/sessions/{id}", { params: { path: { id } } }).catch(() => ({ data: undefined }));
  if (!data) return;
  sessions.value = sessions.peek().map((s) => (s.id === id ? data : s));
  if (session.peek() === id) summary.value = data;
}

/** touched reads the list anew when somebody does something and it is no longer fresh, unless more than a page is shown. */
function touched(): void {
  if (performance.now() - readAt > fresh && sessions.peek().length <= pageSize && !loading.peek()) void read(false).catch(() => {});
}

/** start keeps the list up to date, and remembers what was shown. It is called once. */
export function start(): void {
  effect(() => {
    const id = session.value;
    const seq = head.value?.seq;
    if (id !== null && seq !== undefined) {
      const table = markSeen(seen.peek(), id, seq);
      seen.value = table;
      writeSeen(table);
    }
  });
  effect(() => {
    const c = change.value;
    const id = session.peek();
    if (!c || id === null) return;
    sessions.value = sessions.peek().map((s) => (s.id === id ? { ...s, seq: c.seq, updated: c.time } : s));
    pending ??= setTimeout(() => {
      pending = undefined;
      void readAgain(id);
    }, settles);
    const answers = c.entries.map((e) => ({ time: e.timestamp, cost: said(e)?.cost ?? 0 })).filter((a) => a.cost > 0);
    const failed = c.entries.filter(hasFailed).length;
    if (answers.length > 0 || failed > 0) spent.value = spend(spent.peek(), id, answers, failed);
  });
  document.addEventListener("pointerdown", touched, { passive: true });
  document.addEventListener("keydown", touched, { passive: true });
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") void read(false).catch(() => {});
  });
}
