// The headers of a session's commits, read in pages where they are wanted. The axis needs none of them: the newest
// commit's seq is the number of commits. Pure.
import type { Commit } from "../api/client.ts";
import { clock } from "./format.ts";
import { markOf, type Mark } from "./ticks.ts";

/** pageSize is the number of commits that are read at once, as many as the API returns. */
export const pageSize = 500;

/** maxPages bounds the pages that are kept, and those that one call of want reads. */
const maxPages = 40;

/** reasons are words for the reasons that a store has for its own commits. */
const reasons: Record<string, string> = { roll: "upkeep", create: "created", import: "imported" };

/** commitText returns one line about a commit: reason, time, what its branch is called. */
export function commitText(
  c: Pick<Commit, "reason" | "time" | "branch">, branches: { titleOf(name: string): string },
): string {
  return [reasons[c.reason] ?? c.reason, clock(c.time, new Date()), branches.titleOf(c.branch)].join(" · ");
}

/** Read returns at most so many commits, newest first, from a seq on. */
export type Read = (seq: number, limit: number, signal: AbortSignal) => Promise<Commit[]>;

/** Commits are the headers of one session. */
export class Commits {
  private readonly pages = new Map<number, (Commit | undefined)[]>();
  private readonly marked = new Map<number, Mark>();
  private wanted: number[] = []; // pages to read, the nearest first
  private reading = -1; // the page that is being read; -1 = none

  /** newest is the seq of the newest commit. changed is called when headers came. */
  constructor(
    public newest: number, private readonly read: Read, private readonly signal: AbortSignal,
    private readonly changed: () => void,
  ) {}

  /** get returns a commit; undefined = it is not there. */
  get(seq: number): Commit | undefined {
    return this.pages.get(Math.floor(seq / pageSize))?.[seq % pageSize];
  }

  /** marks yields the commits that are there and have a mark. */
  *marks(): Iterable<{ seq: number; mark: Mark }> {
    for (const [seq, mark] of this.marked) yield { seq, mark };
  }

  /** add keeps a commit. */
  add(c: Commit): void {
    const n = Math.floor(c.seq / pageSize);
    let page = this.pages.get(n);
    if (!page) this.pages.set(n, (page = []));
    page[c.seq % pageSize] = c;
    const mark = markOf(c);
    if (mark) this.marked.set(c.seq, mark);
    this.newest = Math.max(this.newest, c.seq);
  }

  /** want reads what is missing between two seqs, one page at a time: at most the 40 nearest to a third one. */
  want(from: number, to: number, near: number): void {
    const first = Math.max(0, Math.floor(from / pageSize));
    const last = Math.floor(Math.min(to, this.newest) / pageSize);
    const at = Math.max(first, Math.min(last, Math.floor(near / pageSize)));
    const list: number[] = [];
    for (let n = Math.max(first, at - maxPages); n <= Math.min(last, at + maxPages); n++) list.push(n);
    list.sort((a, b) => Math.abs(a - at) - Math.abs(b - at));
    this.wanted = list.slice(0, maxPages).filter((n) => n !== this.reading && !this.whole(n));
    this.drop(at);
    void this.run();
  }

  /** one returns a commit, which it reads unless it is there. */
  async one(seq: number, signal: AbortSignal): Promise<Commit | undefined> {
    const had = this.get(seq);
    if (had) return had;
    const [c] = await this.read(seq, 1, signal);
    return c;
  }

  private whole(n: number): boolean {
    const page = this.pages.get(n);
    const size = Math.min(pageSize, this.newest + 1 - n * pageSize);
    if (!page) return false;
    for (let i = 0; i < size; i++) if (!page[i]) return false;
    return true;
  }

  /** drop forgets the pages that are farthest from a place. */
  private drop(at: number): void {
    const far = [...this.pages.keys()].sort((a, b) => Math.abs(a - at) - Math.abs(b - at)).slice(maxPages);
    for (const n of far) {
      this.pages.delete(n);
      for (let seq = n * pageSize; seq < (n + 1) * pageSize; seq++) this.marked.delete(seq);
    }
  }

  private async run(): Promise<void> {
    if (this.reading !== -1) return;
    try {
      for (let n = this.wanted.shift(); n !== undefined && !this.signal.aborted; n = this.wanted.shift()) {
        this.reading = n;
        const last = Math.min(this.newest, (n + 1) * pageSize - 1);
        const list = await this.read(last, last - n * pageSize + 1, this.signal);
        if (this.signal.aborted) return;
        for (const c of list) this.add(c);
        this.changed();
      }
    } catch {
      this.wanted = []; // the next call asks again
    } finally {
      this.reading = -1;
    }
  }
}
