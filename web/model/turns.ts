// The turns of a session that was imported: an import is a commit or a few, so its timeline is by the messages of the user.
import { computed, signal } from "@preact/signals";
import { api, type Row } from "../api/client.ts";
import type { Failure } from "./failures.ts";
import { view } from "./nav.ts";
import type { Resource } from "./resource.ts";
import type { OpenSession } from "./session.ts";

/** A Turn is a message of the user. */
export interface Turn {
  entry: string;
  time: string;
  words: string;
  onPath: boolean; // it is on the line of the head
}

/** Bounds: of the rows that are read at once, and of all. */
const pageSize = 500;
const mostTurns = 2000;

/** byImport are the reasons of commits that import files. */
const byImport = new Set(["create", "import", "roll"]);

/** isImported reports whether commits are of imports alone. Pure. */
export function isImported(reasons: readonly (string | undefined)[]): boolean {
  return reasons.includes("import") && reasons.every((r) => r !== undefined && byImport.has(r));
}

/** mostLooked bounds the commits that are looked at: of a session with more, commits are ticks. */
const mostLooked = 500;

/** turnsOf returns the turns among rows, oldest first. Pure. */
export function turnsOf(rows: readonly Row[]): Turn[] {
  return rows.filter((r) => r.role === "user" && !Number.isNaN(Date.parse(r.time)))
    .map((r) => ({ entry: r.id, time: r.time, words: r.preview, onPath: r.onPath }))
    .sort((a, b) => Date.parse(a.time) - Date.parse(b.time));
}

/** turnAt returns the number of the last turn that is not after a time; 0 = that is before all. Pure. */
export function turnAt(turns: readonly Turn[], time: string): number {
  const t = Date.parse(time);
  let at = 0;
  for (let i = 0; i < turns.length; i++) if (Date.parse(turns[i]!.time) <= t) at = i;
  return at;
}

/** failedTurns returns the numbers of the turns in which something failed, each once, in order. Pure. */
export function failedTurns(turns: readonly Turn[], failures: readonly Failure[]): number[] {
  return [...new Set(failures.map((f) => turnAt(turns, f.time)))].sort((a, b) => a - b);
}

/** Turns are those of one session, if it was imported. */
export class Turns {
  readonly list: Resource<Turn[]>;
  /** scrubbed is the turn under the pointer while the timeline is dragged; null = it is not dragged. */
  readonly scrubbed = signal<number | null>(null);

  constructor(private readonly s: OpenSession) {
    this.list = s.resource(() => (this.imported.value ? `${s.head.value?.seq}\n${s.generation.value}` : null),
      (_, signal) => read(s.id, signal), true);
  }

  /** imported reports whether the session was imported, and nothing else; null = it is not known yet. */
  readonly imported = computed<boolean | null>(() => {
    const { arrived, log } = this.s.cursor;
    void arrived.value;
    const commits = log.value;
    const newest = this.s.head.value?.seq;
    if (!commits || newest === undefined) return null;
    if (newest >= mostLooked) return false;
    const reasons = Array.from({ length: newest + 1 }, (_, seq) => commits.get(seq)?.reason);
    return reasons.includes(undefined) ? null : isImported(reasons);
  });

  /** shown is the turn of the cursor; null = it is not known. At the head it is the last one of its line. */
  readonly shown = computed<number | null>(() => {
    const list = this.list.value.value;
    if (!list || list.length === 0) return null;
    const { at, line } = view.value;
    const { entries } = this.s.conversation.line.value;
    if (at === null) {
      const last = list.findLastIndex((t) => entries.some((e) => e.id === t.entry) || (line === null && t.onPath));
      return last < 0 ? list.length - 1 : last;
    }
    return this.of(at);
  });

  /** of returns the turn of an entry of the line that is loaded; null = it is not known. */
  of(at: string | null): number | null {
    const list = this.list.value.value;
    if (!list || at === null) return null;
    const { entries } = this.s.conversation.line.value;
    const exact = list.findIndex((t) => t.entry === at);
    if (exact >= 0) return exact;
    const place = entries.findIndex((e) => e.id === at);
    for (let i = place; i >= 0; i--) {
      const turn = list.findIndex((t) => t.entry === entries[i]!.id);
      if (turn >= 0) return turn;
    }
    const time = entries[place]?.timestamp;
    return time ? turnAt(list, time) : null;
  }
}

async function read(id: string, signal: AbortSignal): Promise<Turn[]> {
  const rows: Row[] = [];
  for (let from = 0; from < mostTurns; from += pageSize) {
    const { data } = await api.GET("/v1/sessions/{id}/rows", {
      params: { path: { id }, query: { filter: "user-only", from, count: pageSize } }, signal,
    });
    rows.push(...data!.rows);
    if (rows.length >= data!.total) break;
  }
  return turnsOf(rows);
}
