// Where the cursor is among the commits, and moving it there. The timeline, the state and what the model saw read these
// signals; the conversation follows the view.
import { computed, signal } from "@preact/signals";
import { api, type Commit, type Schemas } from "../api/client.ts";
import { commitPage } from "../api/pages.ts";
import { Commits } from "./commits.ts";
import { grown, type CostAt } from "./costs.ts";
import { said } from "./line.ts";
import { go, target, view, type How } from "./nav.ts";
import { Newest } from "./newest.ts";
import { head, type Head } from "./session.ts";
import { trouble } from "./talk.ts";
import { losing } from "./ticks.ts";
import type { Change } from "../api/events.ts";

export type Snapshot = Schemas["Snapshot"];

/** log has the headers of the commits of the session that is open. */
export const log = signal<Commits | null>(null);
/** arrived grows when headers arrive. */
export const arrived = signal(0);
/** snapshots are those of the session, oldest first. */
export const snapshots = signal<Snapshot[]>([]);
/** costs is how the cost of the session grew; empty = it is not known, or nothing cost anything. */
export const costs = signal<readonly CostAt[]>([]);
/** scrubbed is the commit under the pointer while the timeline is dragged; the view follows. null = it is not dragged. */
export const scrubbed = signal<number | null>(null);
/** settled is the commit of the view's cursor; null = it is not known yet. */
export const settled = signal<number | null>(null);
/** noted are commits that a pane points at, such as those that changed one value. The timeline shows them. */
export const noted = signal<number[]>([]);

/** shown is the commit whose state is shown. */
export const shown = computed(() => scrubbed.value ?? settled.value);

/** shownCommit is its header; null = it is not there yet. */
export const shownCommit = computed<Commit | null>(() => {
  void arrived.value;
  return shown.value === null ? null : log.value?.get(shown.value) ?? null;
});

/** isLive reports whether the view follows the head. */
export const isLive = computed(() => view.value.seq === null && view.value.at === null && view.value.line === null);

/** place is what of a view says where its cursor is. */
interface Place {
  session: string;
  seq: number | null;
  entry: string | null;
}

let current: Cursor | null = null;

/** readSnapshots reads the snapshots anew: taking one is no commit, so followers are not told. */
export function readSnapshots(): void {
  void current?.readSnapshots();
}

/** maxPlaces bounds the entries whose commit is remembered. */
const maxPlaces = 1000;

/** Cursor keeps the signals for one session until its signal is aborted. */
export class Cursor {
  private readonly places = new Map<string, number>(); // the commit in force at an entry
  private readonly resolve: Newest<Place, number>;
  private asked = false; // how the cost grew

  constructor(private readonly id: string, newest: Head, private readonly signal: AbortSignal) {
    const read = async (seq: number, limit: number, s: AbortSignal) =>
      (await commitPage(id, { at: "seq:" + seq, limit }, s)).commits;
    log.value = new Commits(newest.seq, read, signal, () => arrived.value++);
    settled.value = scrubbed.value = null;
    snapshots.value = [];
    noted.value = [];
    costs.value = [];
    this.resolve = new Newest((p, s) => this.commitOf(p, s), (p, seq) => {
      if (p.entry !== null && p.seq === null) this.remember(p.entry, seq);
      settled.value = seq;
    }, () => (settled.value = null), 4);
    current = this;
    signal.addEventListener("abort", () => {
      this.resolve.end();
      if (current !== this) return;
      current = null;
      log.value = null; // nothing of this session is shown with another one
      settled.value = scrubbed.value = null;
      snapshots.value = [];
      noted.value = [];
      costs.value = [];
    });
    void this.readSnapshots();
  }

  /** follow brings the cursor to the place of the view. */
  follow(seq: number | null, entry: string | null, newest: number): void {
    if (seq !== null && seq > newest) {
      trouble.value = `The link names commit ${seq}, which this session does not have. This is its newest one.`;
      live("replace");
      return;
    }
    if (seq !== null && entry === null && seq < newest) void moveTo(seq, "replace", this.signal); // a link that names a commit alone
    const known = seq ?? (entry === null ? newest : this.places.get(entry));
    if (known === undefined) {
      this.resolve.ask({ session: this.id, seq, entry });
      return;
    }
    this.resolve.end();
    settled.value = Math.min(known, newest);
  }

  /** add keeps a commit that arrived. */
  add(c: Change): void {
    const { entries, state: _, ...rest } = c;
    log.peek()!.add({ ...rest, entries: entries.length });
    if (c.head !== null && entries.length === 0) this.places.delete(c.head); // another state is in force there
    if (c.snapshot) void this.readSnapshots();
    costs.value = grown(costs.peek(), c.seq, entries.reduce((sum, e) => sum + (said(e)?.cost ?? 0), 0));
    arrived.value++;
  }

  /** readSnapshots reads the list anew. */
  async readSnapshots(): Promise<void> {
    try {
      const { data } = await api.GET("/v1/sessions/{id}/snapshots", { params: { path: { id: this.id } }, signal: this.signal });
      snapshots.value = data!.snapshots.toReversed().sort((a, b) => a.seq - b.seq);
    } catch {
      // the timeline is there without them
    }
  }

  /**
   * readCosts reads how the cost grew, once. What arrives meanwhile is in the answer, or comes after it. The server reads every
   * entry for that, unless it remembers.
   */
  async readCosts(): Promise<void> {
    if (this.asked) return;
    this.asked = true;
    try {
      const { data } = await api.GET("/v1/sessions/{id}/usage", {
        params: { path: { id: this.id }, query: { points: true } }, signal: this.signal,
      });
      const points: CostAt[] = data!.points ?? [];
      const since = costs.peek().at(-1);
      if (!since || since.seq <= (points.at(-1)?.seq ?? 0)) costs.value = points;
    } catch {
      // the timeline is there without them
    }
  }

  private async commitOf(p: Place, s: AbortSignal): Promise<number> {
    const page = await commitPage(this.id, { at: "entry:" + p.entry, limit: 1 }, s);
    return page.commits[0]!.seq;
  }

  private remember(entry: string, seq: number): void {
    if (this.places.size >= maxPlaces) this.places.delete(this.places.keys().next().value!);
    this.places.set(entry, seq);
  }
}

/** live returns the view to the head, which it then follows. */
export function live(how: How = "push"): void {
  go({ seq: null, line: null, at: null }, how);
}

/** moveTo shows a commit: its state, and the conversation that ended at its head. The newest one is shown live. */
export async function moveTo(seq: number, how: How = "step", signal?: AbortSignal): Promise<void> {
  const commits = log.peek();
  if (!commits || !head.peek()) return;
  if (seq >= head.peek()!.seq) {
    live(how);
    return;
  }
  const known = commits.get(seq);
  if (!known) go({ seq }, how);
  const c = known ?? await commits.one(seq, signal ?? new AbortController().signal).catch(() => undefined);
  if (c && (known || view.peek().seq === seq)) go({ seq, line: c.head, at: c.head }, known ? how : "replace");
}

/** marked returns the target of the cursor as a comparison names it: of the head, the commit that it is now. */
export function marked(): string {
  return target.peek() === "head" && head.peek() ? "seq:" + head.peek()!.seq : target.peek();
}

/** earlier returns the seq of the commit whose state was in force before a commit; -1 = none was. null = it is not known yet. */
export function earlier(commits: Commits, seq: number): number | null {
  for (let before = seq - 1; before >= 0; before--) {
    const c = commits.get(before);
    if (!c) return null;
    if (!losing(c)) return before;
  }
  return -1;
}

/** readEarlier returns the same, and reads what it has to. */
export async function readEarlier(commits: Commits, seq: number, signal: AbortSignal): Promise<number> {
  for (let before = seq - 1; before >= 0; before--) {
    const c = await commits.one(before, signal);
    if (!c || !losing(c)) return before;
  }
  return -1;
}
