// Where the cursor is among the commits, and moving it there. The timeline, the state and what the model saw read these
// signals; the conversation follows the view.
import { computed, signal, untracked } from "@preact/signals";
import { api, type Commit, type Schemas } from "../api/client.ts";
import type { Change } from "../api/events.ts";
import { commitPage } from "../api/pages.ts";
import { Commits } from "./commits.ts";
import { grown, type CostAt } from "./costs.ts";
import { go, target, view, type How } from "./nav.ts";
import { Newest } from "./newest.ts";
import { said } from "./path.ts";
import { alive, type Resource } from "./resource.ts";
import type { OpenSession } from "./session.ts";
import { panesReady } from "./startup.ts";
import { losing } from "./ticks.ts";

export type Snapshot = Schemas["Snapshot"];

/** place is the part of a view that has the place of its cursor. */
interface Place {
  seq: number | null;
  entry: string | null;
}

/** maxPlaces bounds the entries whose commit is remembered. */
const maxPlaces = 1000;

/** isLive reports whether the view follows the head. */
export const isLive = computed(() => view.value.seq === null && view.value.at === null && view.value.line === null);

/** live returns the view to the head, which it then follows. */
export function live(how: How = "push"): void {
  go({ seq: null, line: null, at: null }, how);
}

/** Cursor is where a session is looked at, among its commits. */
export class Cursor {
  /** log has the headers of the commits; null = the panes that need them are not there yet. */
  readonly log = signal<Commits | null>(null);
  /** arrived grows when headers arrive. */
  readonly arrived = signal(0);
  /** snapshots are those of the session, oldest first. */
  readonly snapshots = signal<Snapshot[]>([]);
  /** costs is how the cost of the session grew; empty = it is not known, or nothing cost anything. */
  readonly costs = signal<readonly CostAt[]>([]);
  /** scrubbed is the commit under the pointer while the timeline is dragged; the view follows. null = it is not dragged. */
  readonly scrubbed = signal<number | null>(null);
  /** settled is the commit of the view's cursor; null = it is not known yet. */
  readonly settled = signal<number | null>(null);
  /** noted are commits that a pane points at, such as those that changed one value. The timeline shows them. */
  readonly noted = signal<number[]>([]);
  /** shown is the commit whose state is shown. */
  readonly shown = computed(() => this.scrubbed.value ?? this.settled.value);
  /** commit is its header; null = it is not there yet. */
  readonly commit = computed<Commit | null>(() => {
    void this.arrived.value;
    return this.shown.value === null ? null : this.log.value?.get(this.shown.value) ?? null;
  });

  private readonly places = new Map<string, number>(); // the commit in force at an entry
  private readonly resolve: Newest<Place, number>;
  private readonly points: Resource<readonly CostAt[]>; // how the cost grew

  constructor(private readonly s: OpenSession) {
    this.resolve = new Newest((p, signal) => this.commitOf(p, signal), (p, seq) => {
      if (p.entry !== null && p.seq === null) this.remember(p.entry, seq);
      this.settled.value = seq;
    }, () => (this.settled.value = null), 4);
    s.ended.addEventListener("abort", () => this.resolve.end());
    const ready = computed(() => panesReady.value && s.head.value !== null);
    s.effect(() => {
      void s.generation.value;
      if (ready.value) untracked(() => this.begin());
    });
    s.effect(() => {
      const { seq, at, line } = view.value;
      const newest = s.head.value?.seq;
      void alive.value; // what could not be read is read when the server answers again
      if (this.log.value && newest !== undefined) untracked(() => this.showView(seq, at ?? line, newest));
    });
    s.effect(() => {
      const c = s.change.value;
      if (c && this.log.peek()) untracked(() => this.add(c));
    });
    // What arrives while this is read is in the answer, or comes after it. The server reads every entry, unless it remembers.
    this.points = s.resource(() => (this.log.value && (s.mapped.value || view.value.pane !== "map") ? s.generation.value : null),
      async (_, signal): Promise<readonly CostAt[]> => {
        const { data } = await api.GET("/v1/sessions/{id}/usage", { params: { path: { id: s.id }, query: { points: true } }, signal });
        return data!.points ?? [];
      });
    s.effect(() => {
      const points = this.points.value.value;
      const since = this.costs.peek().at(-1);
      if (points && (!since || since.seq <= (points.at(-1)?.seq ?? 0))) this.costs.value = points;
    });
  }

  /** begin reads the commits from the newest one on. */
  private begin(): void {
    const read = async (seq: number, limit: number, signal: AbortSignal) =>
      (await commitPage(this.s.id, { at: "seq:" + seq, limit }, signal)).commits;
    this.log.value = new Commits(this.s.head.peek()!.seq, read, this.s.ended, () => this.arrived.value++);
    this.places.clear();
    this.settled.value = this.scrubbed.value = null;
    this.snapshots.value = [];
    this.noted.value = [];
    this.costs.value = [];
    void this.readSnapshots();
  }

  /** showView moves the cursor to the place that the view names. */
  private showView(seq: number | null, entry: string | null, newest: number): void {
    if (seq !== null && seq > newest) {
      this.s.conversation.trouble.value = `The link names commit ${seq}, which this session does not have. This is its newest one.`;
      live("replace");
      return;
    }
    if (seq !== null && entry === null && seq < newest) void this.moveTo(seq, "replace"); // a link that names a commit alone
    const known = seq ?? (entry === null ? newest : this.places.get(entry));
    if (known === undefined) {
      this.resolve.ask({ seq, entry });
      return;
    }
    this.resolve.end();
    this.settled.value = Math.min(known, newest);
  }

  /** moveTo shows a commit: its state, and the conversation that ended at its head. The newest one is shown live. */
  async moveTo(seq: number, how: How = "step"): Promise<void> {
    const commits = this.log.peek();
    const head = this.s.head.peek();
    if (!commits || !head) return;
    if (seq >= head.seq) {
      live(how);
      return;
    }
    const known = commits.get(seq);
    if (!known) go({ seq }, how);
    const c = known ?? await commits.one(seq, this.s.ended).catch(() => undefined);
    if (c && (known || view.peek().seq === seq)) go({ seq, line: c.head, at: c.head }, known ? how : "replace");
  }

  /** seenAt returns the commit that stored an entry of the line that is loaded, by its time; null = it is not known. */
  seenAt(entry: string | null): number | null {
    void this.arrived.value;
    const log = this.log.value;
    const time = Date.parse(this.s.conversation.line.value.entries.find((e) => e.id === entry)?.timestamp ?? "");
    if (Number.isNaN(time)) return null;
    let [low, high] = [0, this.s.head.value?.seq ?? 0];
    while (low < high) { // the first that is not before the entry
      const middle = (low + high) >> 1;
      const c = log?.get(middle);
      if (!c) return null;
      if (Date.parse(c.time) < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** marked returns the target of the cursor as a comparison names it: of the head, the commit that it is now. */
  marked(): string {
    const head = this.s.head.peek();
    return target.peek() === "head" && head ? "seq:" + head.seq : target.peek();
  }

  /** add keeps a commit that arrived. */
  private add(c: Change): void {
    const { entries, state: _, ...rest } = c;
    this.log.peek()!.add({ ...rest, entries: entries.length });
    if (c.head !== null && entries.length === 0) this.places.delete(c.head); // another state is in force there
    if (c.snapshot) void this.readSnapshots();
    this.costs.value = grown(this.costs.peek(), c.seq, entries.reduce((sum, e) => sum + (said(e)?.cost ?? 0), 0));
    this.arrived.value++;
  }

  /** readSnapshots reads the snapshots: taking one is no commit, so followers are not told. */
  async readSnapshots(): Promise<void> {
    try {
      const { data } = await api.GET("/v1/sessions/{id}/snapshots", { params: { path: { id: this.s.id } }, signal: this.s.ended });
      this.snapshots.value = data!.snapshots.toReversed().sort((a, b) => a.seq - b.seq);
    } catch {
      // the timeline is there without them
    }
  }

  private async commitOf(p: Place, signal: AbortSignal): Promise<number> {
    const page = await commitPage(this.s.id, { at: "entry:" + p.entry, limit: 1 }, signal);
    return page.commits[0]!.seq;
  }

  private remember(entry: string, seq: number): void {
    if (this.places.size >= maxPlaces) this.places.delete(this.places.keys().next().value!);
    this.places.set(entry, seq);
  }
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
