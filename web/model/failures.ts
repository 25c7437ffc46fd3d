// The failures of the session that is open: answers that ended in an error, and calls whose result is one.
import { api, type Entry, type Schemas } from "../api/client.ts";
import { said } from "./path.ts";
import { go, view } from "./nav.ts";
import type { Resource } from "./resource.ts";
import type { OpenSession } from "./session.ts";
import { panesReady } from "./startup.ts";

/** A Failure is an entry that failed. */
export type Failure = Schemas["Failure"];

/** Failures are the newest ones of all branches, in the order of appending, and the number of all. */
export interface Failures {
  list: readonly Failure[];
  total: number;
  cause?: string | undefined; // why what is drawn of the session is only what is intact
}

/** hasFailed reports whether an entry is an answer that failed, or has the result of a call that did. */
export function hasFailed(e: Entry): boolean {
  const m = said(e);
  return m !== null && (m.failed !== "" || m.parts.some((p) => p.kind === "result" && p.failed));
}

/** maxKept bounds the failures that are kept: as many as the server lists. */
const maxKept = 1000;

/** withFailed returns failures with those of a commit. Pure. */
export function withFailed(known: Failures, c: { seq: number; time: string; entries: readonly Entry[] }): Failures {
  const more = c.entries.filter(hasFailed).map((e) => ({ entry: e.id, seq: c.seq, time: e.timestamp ?? c.time }));
  return more.length === 0 ? known : { ...known, list: [...known.list, ...more].slice(-maxKept), total: known.total + more.length };
}

/**
 * nextFailure returns the failure after an entry: of one that failed the next, else the first that is later. After the last
 * one comes the first. Pure.
 */
export function nextFailure(list: readonly Failure[], entry: string | null, time: string | undefined): Failure | undefined {
  const at = list.findIndex((f) => f.entry === entry);
  if (at >= 0) return list[(at + 1) % list.length];
  const t = Date.parse(time ?? "");
  return list.find((f) => Date.parse(f.time) >= t) ?? list[0];
}

/** failuresOf reads the failures of a session when the panes that need the whole tree were, and keeps them up to date. */
export function failuresOf(s: OpenSession): Resource<Failures> {
  const failures = s.resource(
    () => (panesReady.value && s.head.value !== null && (s.mapped.value || view.value.pane !== "map") ? s.generation.value : null),
    async (_, signal): Promise<Failures> => {
      const params = { path: { id: s.id }, query: { buckets: 1, failures: true } };
      const { data } = await api.GET("/v1/sessions/{id}/map", { params, signal });
      return { list: data!.failures ?? [], total: data!.buckets.reduce((n, b) => n + (b.failed ?? 0), 0), cause: data!.cause };
    });
  s.effect(() => {
    const c = s.change.value;
    if (c) failures.change((known) => (known.list.some((f) => f.seq === c.seq) ? known : withFailed(known, c)));
  });
  return failures;
}

/** toNextFailure moves the cursor to the next failure, and returns its number and that of all; null = there is none. */
export function toNextFailure(s: OpenSession): { n: number; of: number } | null {
  const list = s.failures.value.peek()?.list ?? [];
  const { at } = view.peek();
  const entry = s.conversation.line.peek().entries.find((e) => e.id === at);
  const next = nextFailure(list, at, entry?.timestamp);
  if (!next) return null;
  go({ at: next.entry, seq: null }, "step");
  return { n: list.indexOf(next) + 1, of: list.length };
}
