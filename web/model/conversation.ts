// What the conversation shows: which stretch of which line is loaded, and how that follows the cursor and what arrives.
import { batch, computed, signal, untracked } from "@preact/signals";
import { isAway } from "../api/away.ts";
import { Failure, type Entry } from "../api/client.ts";
import type { Change } from "../api/events.ts";
import { around, leafBelow, newerThan, newest, olderThan, oldest, some } from "./lines.ts";
import { go, view, type How } from "./nav.ts";
import { continuing, folded, isAside, isPrompt, itemsOf, mostLoaded, nothing, said, turnedTo, withNewer, withOlder } from "./path.ts";
import type { Line } from "./path.ts";
import { isEvent } from "./program.ts";
import { alive, messageOf } from "./resource.ts";
import type { OpenSession } from "./session.ts";
import type { Anchor } from "./slice.ts";

/** lookAt is how far below the upper edge an entry is shown that was asked for, in pixels. */
export const lookAt = 120;

/** retryPause is the time after a failed read during which scrolling reads nothing, in ms. */
const retryPause = 3000;

/** mostPages bounds what one search along the line reads, in pages of 500 entries. */
const mostPages = 20;

function isMissing(err: unknown): boolean {
  return err instanceof Failure && err.problem.code === "no-entry";
}

/** isNews reports whether an entry is shown as a message of its own: results are shown at their calls. */
function isNews(e: Entry): boolean {
  return said(e)?.parts.some((p) => p.kind !== "result") ?? false;
}

function nowhere(): null {
  return null;
}

/** A Conversation is the part of a session's lines that is loaded, and where in it the person is. */
export class Conversation {
  readonly line = signal<Line>(nothing);
  /** all has an article for each event, too; items has those that are shown. */
  private readonly all = computed(() => itemsOf(this.line.value.entries));
  /** atEvent is the event that the cursor is at; null = it is at none. */
  private readonly atEvent = computed(() => {
    const e = this.line.value.entries.find(({ id }) => id === view.value.at);
    return e && isEvent(e) ? e.id : null;
  });
  private readonly events = computed(() => view.value.events);
  readonly items = computed(() => folded(this.all.value, this.events.value, this.atEvent.value));
  /** hidden is the number of events that are loaded and not shown. */
  readonly hidden = computed(() => (this.events.value ? 0 : this.line.value.entries.reduce((n, e) => n + Number(isEvent(e)), 0)));
  /** endMark is the mark of the last entry that is loaded, where it was read. */
  readonly endMark = computed(() => this.line.value.marks.get(this.line.value.entries.at(-1)?.id ?? ""));

  /** toggleEvents shows the events of programs, or hides them. What is in sight stays there. */
  toggleEvents(): void {
    const at = this.place();
    go({ events: !view.peek().events }, "replace");
    if (at && !this.atEnd.peek()) this.wanted.value = at;
  }

  /** loading is null when nothing is under way, else what is read. */
  readonly loading = signal<"line" | "older" | "newer" | null>(null);
  readonly trouble = signal("");
  /** below counts the messages that arrived while the end was not in sight. */
  readonly below = signal(0);
  /** atEnd reports whether the end of the line is in sight: then the view follows it. */
  readonly atEnd = signal(true);
  /** top is the article at the upper edge of what is in sight. sight is the same; null = the end of the line is in sight. */
  readonly top = signal<string | null>(null);
  readonly sight = computed(() => (this.atEnd.value ? null : this.top.value));
  /** prompt is what was asked above what is in sight: what is in sight answers it. null = it is in sight, or not loaded. */
  readonly prompt = computed(() => {
    const list = this.items.value;
    const at = list.findIndex((item) => item.entry.id === this.top.value);
    const asked = list.findLastIndex((item, i) => i <= at && isPrompt(item.entry));
    return asked >= 0 && asked < at ? list[asked]! : null;
  });
  /** wanted is where an article has to be; the list obeys, and clears it. "end" = the end of the line. */
  readonly wanted = signal<Anchor | "end" | null>(null);
  /** place is what is in sight; the list sets it while it is in the page. */
  place: () => Anchor | null = nowhere;

  private read = new AbortController(); // of the line
  private shown = { path: "", at: "", start: false, generation: -1 };
  private focusNext = "";
  private failedAt = -retryPause;
  private failed: "line" | "older" | "newer" | null = null; // the read that trouble is about; null = it is about a link
  private away = false; // the last read failed because the server was away

  constructor(private readonly s: OpenSession) {
    s.ended.addEventListener("abort", () => this.read.abort());
    s.effect(() => {
      void view.value; // on any change of the view: showView decides what to do
      const read = s.generation.value;
      untracked(() => this.showView(read, this.place()));
    });
    s.effect(() => {
      void alive.value;
      untracked(() => void this.retry());
    });
    s.effect(() => {
      const c = s.change.value;
      if (c) untracked(() => this.arrive(c));
    });
  }

  /** showView reads and shows what the view names. place is what stays in sight if everything is read again. */
  private showView(generation: number, place: Anchor | null): void {
    const v = view.peek();
    const path = v.line ?? "head";
    const before = this.shown;
    const start = v.seq === 0 && v.at === null; // the session was made: there is no message yet
    this.shown = { path, at: v.at ?? "", start, generation };
    const moved = before.at !== this.shown.at;
    const failed = moved && this.failed === "line"; // what is looked at now may be there
    if (moved && v.at && !this.failed) this.trouble.value = ""; // it was about another link
    if (before.path !== path || before.start !== start || failed) {
      if (start) this.showNothing();
      else void this.open(path, v.at);
    }
    else if (before.generation !== generation) void this.reread(place);
    else if (before.at !== this.shown.at && v.at) void this.lookTo(v.at);
  }

  /** moveTo moves the cursor to an entry that is in sight: nothing is read and nothing scrolls. */
  moveTo(entry: string, how: How = "step"): void {
    this.shown.at = entry;
    go({ at: entry, seq: null }, how);
  }

  /** focus makes an article get the focus as soon as the cursor is at it and it is in the page. */
  focus(entry: string): void {
    this.focusNext = entry;
  }

  /** takeFocus reports, once, whether one of an article's entries is to have the focus. */
  takeFocus(ids: readonly string[]): boolean {
    if (!ids.includes(this.focusNext)) return false;
    this.focusNext = "";
    return true;
  }

  /** begin starts a read in place of the one that is under way. */
  private begin(what: "line" | "older" | "newer"): AbortSignal {
    this.read.abort();
    this.read = new AbortController();
    this.loading.value = what;
    if (what === "line" || this.failed === "older" || this.failed === "newer") this.trouble.value = ""; // else of a link
    this.failed = null;
    this.away = false;
    return this.read.signal;
  }

  /** busy reports whether now is no time to read what is older or newer. */
  private busy(): boolean {
    return this.loading.peek() !== null || performance.now() - this.failedAt < retryPause;
  }

  /** run does a read, and shows what went wrong. false = it failed, or another one took its place. */
  private async run(what: "line" | "older" | "newer", read: (signal: AbortSignal) => Promise<void>): Promise<boolean> {
    const signal = this.begin(what);
    try {
      await read(signal);
      return !signal.aborted;
    } catch (err) {
      if (signal.aborted) return false;
      this.failedAt = performance.now();
      this.away = isAway(err);
      this.trouble.value = messageOf(err);
      this.failed = what;
      return false;
    } finally {
      if (!signal.aborted) this.loading.value = null;
    }
  }

  /** show puts a line in place of what is loaded, unless the read was given up. */
  private show(next: Line, where: Anchor | "end", signal: AbortSignal): void {
    if (signal.aborted) return;
    batch(() => {
      this.line.value = next;
      this.wanted.value = where === "end" ? where : { ...where, key: this.articleOf(where.key) };
      if (!next.newer) this.below.value = 0;
    });
  }

  /** articleOf returns the id of the article that shows an entry. */
  private articleOf(entry: string): string {
    return this.items.peek().find((item) => item.ids.includes(entry))?.entry.id ?? entry;
  }

  private open(path: string, at: string | null): Promise<boolean> {
    const { id } = this.s;
    return this.run("line", async (signal) => {
      if (at !== null && at !== path) {
        try {
          this.show(turnedTo(this.line.peek(), await around(id, path, at, signal)), { key: at, offset: lookAt, loose: true }, signal);
        } catch (err) {
          if (!isMissing(err)) throw err;
          await this.elsewhere(at, signal);
        }
        return;
      }
      await this.showEnd(path, signal);
    });
  }

  private async showEnd(path: string, signal: AbortSignal): Promise<void> {
    const page = await newest(this.s.id, path, signal);
    this.show(page, "end", signal);
    if (!signal.aborted) void this.refreshMarks(page.entries.map((e) => e.id));
  }

  /** elsewhere shows an entry that is on another line, on the newest line through it. */
  private async elsewhere(at: string, signal: AbortSignal): Promise<void> {
    const { id } = this.s;
    let leaf: string;
    try {
      leaf = await leafBelow(id, at, signal);
    } catch (err) {
      if (!isMissing(err)) throw err;
      this.shown = { ...this.shown, path: "head", at: "" };
      go({ line: null, at: null, seq: null }, "replace");
      await this.showEnd("head", signal);
      throw new Error("The link names a message that this session does not have. This is its newest one.");
    }
    const page = await around(id, leaf, at, signal);
    if (signal.aborted) return;
    const path = leaf === this.s.head.peek()?.entry ? null : leaf;
    this.shown = { ...this.shown, path: path ?? "head", at };
    this.show(turnedTo(this.line.peek(), page), { key: at, offset: lookAt, loose: true }, signal);
    go({ line: path, at }, "replace");
  }

  /** lookTo brings an entry in sight, wherever it is. */
  private async lookTo(at: string): Promise<void> {
    const item = this.items.peek().find((one) => one.ids.includes(at));
    if (item) this.wanted.value = { key: item.entry.id, offset: lookAt, loose: true };
    else await this.open(this.shown.path, at);
  }

  /** reread reads the line again around what was in sight. */
  async reread(place: Anchor | null): Promise<void> {
    const { id } = this.s;
    const { path } = this.shown;
    if (place === null || this.atEnd.peek()) {
      await this.open(path, null);
      return;
    }
    const ok = await this.run("line", async (signal) => {
      this.show(await around(id, path, place.key, signal), place, signal);
    });
    if (!ok && this.trouble.peek()) await this.open(path, null); // what was in sight is not on the line any more
  }

  /** retry reads again what could not be read while the server was away. */
  private async retry(): Promise<void> {
    this.failedAt = -retryPause;
    if (this.away) await this.reread(this.place());
  }

  /** readOlder and readNewer load what is before and after what is loaded. */
  async readOlder(): Promise<void> {
    const now = this.line.peek();
    const first = now.entries[0];
    if (!now.older || !first || this.busy()) return;
    await this.run("older", async (signal) => {
      const page = await olderThan(this.s.id, this.shown.path, first.id, signal);
      if (!signal.aborted) this.line.value = withOlder(this.line.peek(), page);
    });
  }

  async readNewer(): Promise<void> {
    const now = this.line.peek();
    const last = now.entries.at(-1);
    if (!now.newer || !last || this.busy()) return;
    await this.run("newer", async (signal) => {
      const page = await newerThan(this.s.id, this.shown.path, last.id, signal);
      if (!signal.aborted) this.line.value = withNewer(this.line.peek(), page);
    });
  }

  /** showNothing shows the session as it was made, without a message. */
  private showNothing(): void {
    this.read.abort();
    batch(() => {
      this.line.value = nothing;
      this.loading.value = null;
      this.trouble.value = "";
      this.failed = null;
      this.below.value = 0;
    });
  }

  /** openStart shows the start of the line. */
  private openStart(): Promise<boolean> {
    return this.run("line", async (signal) => {
      const page = await oldest(this.s.id, this.shown.path, signal);
      this.show(page, { key: page.entries[0]?.id ?? "", offset: 0 }, signal);
    });
  }

  /** toEnd shows the end of the line, toRoot its start. */
  async toEnd(): Promise<void> {
    this.shown.at = "";
    go({ at: null, seq: null }, "step");
    if (this.line.peek().newer) await this.open(this.shown.path, null);
    else this.wanted.value = "end";
  }

  async toRoot(): Promise<void> {
    if (this.line.peek().older) await this.openStart();
    const first = this.line.peek().entries[0];
    if (first) {
      this.focus(first.id);
      this.moveTo(first.id);
      this.wanted.value = { key: first.id, offset: 0 };
    }
  }

  /** toHead shows the line of the head, and follows it. */
  toHead(): void {
    if (this.shown.path === "head") void this.toEnd();
    go({ line: null, at: null, seq: null });
  }

  /**
   * nextThat returns the next entry of the line, from an article on, for which is holds. null: there is none within
   * 10,000 entries.
   */
  async nextThat(
    from: number, step: 1 | -1, is: (entry: Entry, of: Line) => boolean,
  ): Promise<string | null> {
    const list = this.items.peek();
    for (let i = from + step; i >= 0 && i < list.length; i += step) {
      const parts = [list[i]!.entry, ...[...list[i]!.results.values()].map((r) => r.entry)];
      if (parts.some((e) => is(e, this.line.peek()))) return list[i]!.entry.id;
    }
    const { id } = this.s;
    const { path } = this.shown;
    let found: string | null = null;
    await this.run(step > 0 ? "newer" : "older", async (signal) => {
      let page = this.line.peek();
      for (let n = 0; n < mostPages && (step > 0 ? page.newer : page.older); n++) {
        const edge = page.entries.at(step > 0 ? -1 : 0)!.id;
        page = await (step > 0 ? newerThan : olderThan)(id, path, edge, signal, 500);
        const hit = (step > 0 ? page.entries : page.entries.toReversed()).find((e) => e.id !== edge && is(e, page));
        if (hit && !signal.aborted) {
          found = hit.id;
          return;
        }
      }
    });
    return found;
  }

  /** replaceEntries puts entries, and their marks, in place of those with the same ids. */
  private replaceEntries(page: Line): void {
    const now = this.line.peek();
    const of = new Map(page.entries.map((e) => [e.id, e]));
    const same = (a: Entry, b: Entry | undefined) => b === undefined || JSON.stringify(a) === JSON.stringify(b);
    const entries = now.entries.map((e) => (same(e, of.get(e.id)) ? e : of.get(e.id)!));
    this.line.value = { ...now, entries, marks: new Map([...now.marks, ...page.marks]) };
  }

  /** arrive shows what a commit adds to the line. What it does on other lines changes at most marks. */
  private arrive(c: Change): void {
    if (this.shown.start) return;
    const now = this.line.peek();
    const last = now.entries.at(-1);
    const stale = this.staleAfter(c.entries);
    const aside = c.kept !== undefined && c.kept === c.branch; // a turn that lost: the next commit moves the head back
    const following = this.shown.path === "head" && !aside;
    if (last && this.shown.path !== "head") stale.push(last.id); // whether the head is still on its line
    if (last && !now.newer && c.head === last.id) {
      if (stale.length > 0) void this.refreshMarks(stale);
      return;
    }
    const more = last && !now.newer ? continuing(c, last.id) : null;
    if (more) {
      if ((now.marks.get(last!.id)?.children ?? 0) > 0) stale.push(last!.id, more[0]!.id); // another version was there
      this.append(more);
    }
    else if (following && now.newer && !this.onLine(c)) this.below.value += c.entries.filter(isNews).length;
    else if (following && c.head !== last?.id) {
      this.headMoved(c);
      return;
    }
    if (stale.length > 0) void this.refreshMarks(stale);
  }

  /** onLine reports whether a commit is known to leave the line: its head is an entry that is loaded. */
  private onLine(c: Change): boolean {
    return this.line.peek().entries.some((e) => e.id === c.head);
  }

  private append(more: Entry[]): void {
    const end = more.at(-1)!.id;
    const now = this.line.peek();
    batch(() => {
      if (!this.atEnd.peek()) this.below.value += more.filter(isNews).length;
      if (!this.atEnd.peek() && now.entries.length + more.length > mostLoaded) this.line.value = { ...now, newer: true };
      else this.line.value = withNewer(now, { entries: more, marks: new Map(), older: true, newer: false });
      if (this.shown.path === "head") return;
      this.shown = { ...this.shown, path: end };
      go({ line: end }, "replace");
    });
  }

  /**
   * headMoved shows the line of a head that went elsewhere: back, or to another branch. The place stays if it is on it. Where the
   * cursor is at an entry that is not, or a form is open about one, the view stays with it on the line that was left.
   */
  private headMoved(c: Change): void {
    const { entries, newer } = this.line.peek();
    const indexOf = (id: string | null | undefined) => entries.findIndex((e) => e.id === id);
    const kept = indexOf(this.s.asking.peek()?.entry ?? view.peek().at);
    const at = indexOf(c.head);
    if (kept > (at >= 0 ? at : indexOf(c.entries[0]?.parentId))) void this.stayOn(entries[kept]!.id, newer ? null : entries.at(-1)!.id);
    else if (at >= 0) {
      this.line.value = { ...this.line.peek(), entries: entries.slice(0, at + 1), newer: false };
      void this.refreshMarks([c.head!]);
    } else void this.reread(this.atEnd.peek() ? null : this.place());
  }

  /** stayOn makes the line that is loaded one that does not follow the head. leaf is its end; null = it is not loaded. */
  private async stayOn(entry: string, leaf: string | null): Promise<void> {
    const { id } = this.s;
    const { path } = this.shown;
    const end = leaf ?? await leafBelow(id, entry).catch(() => entry);
    if (this.s.ended.aborted || this.shown.path !== path) return; // the person is elsewhere by now
    this.shown = { ...this.shown, path: end };
    go({ line: end }, "replace");
    void this.refreshMarks(this.line.peek().entries.slice(-500).map((e) => e.id));
  }

  /** staleAfter returns the loaded entries that new entries change: those they name, fork from or amend. */
  private staleAfter(entries: readonly Entry[]): string[] {
    const loaded = this.line.peek().entries;
    const at = new Map(loaded.map((e, i) => [e.id, i]));
    const ids = new Set<string>();
    for (const e of entries) {
      const i = at.get(e.parentId ?? "");
      if (i !== undefined && !isAside(e) && i < loaded.length - 1) {
        ids.add(loaded[i]!.id);
        ids.add(loaded[i + 1]!.id);
      }
      if (isAside(e) && typeof e.targetId === "string" && at.has(e.targetId)) ids.add(e.targetId);
    }
    return [...ids].slice(0, 500);
  }

  /** refreshMarks reads entries and their marks again. */
  private async refreshMarks(ids: string[]): Promise<void> {
    const signal = this.s.ended;
    if (ids.length === 0) return;
    try {
      const page = await some(this.s.id, ids, signal);
      if (!signal.aborted) this.replaceEntries(page);
    } catch {
      // the marks stay as they were; the next page that is read has them
    }
  }

  /** turnTo shows another line around one of its entries, which comes to `where`. */
  async turnTo(leaf: string, at: string, where: Anchor): Promise<void> {
    const { id } = this.s;
    await this.run("line", async (signal) => {
      const page = await around(id, leaf, at, signal);
      if (signal.aborted) return;
      const path = leaf === this.s.head.peek()?.entry ? null : leaf;
      this.shown = { ...this.shown, path: path ?? "head", at };
      batch(() => {
        this.show(turnedTo(this.line.peek(), page), where, signal);
        go({ line: path, at, seq: null });
      });
    });
  }
}
