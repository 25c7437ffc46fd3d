// What the conversation shows: which stretch of which line is loaded, and how that follows the cursor and what arrives.
import { batch, computed, effect, signal, untracked } from "@preact/signals";
import { Failure, type Entry } from "../api/client.ts";
import { around, leafBelow, newerThan, newest, olderThan, oldest, some } from "../api/lines.ts";
import type { Change } from "../api/events.ts";
import { asking } from "./asking.ts";
import { continuing, folded, isAside, itemsOf, mostLoaded, nothing, said, turnedTo, withNewer, withOlder } from "./line.ts";
import type { Line } from "./line.ts";
import { go, session, view, type How } from "./nav.ts";
import { isEvent } from "./program.ts";
import { alive } from "./resource.ts";
import { change, generation, head } from "./session.ts";
import type { Anchor } from "./slice.ts";

export const line = signal<Line>(nothing);
/** all has an article for each event, too; items has those that are shown. */
const all = computed(() => itemsOf(line.value.entries));
/** atEvent is the event that the cursor is at; null = it is at none. */
const atEvent = computed(() => {
  const e = line.value.entries.find(({ id }) => id === view.value.at);
  return e && isEvent(e) ? e.id : null;
});
const events = computed(() => view.value.events);
export const items = computed(() => folded(all.value, events.value, atEvent.value));
/** hidden is the number of events that are loaded and not shown. */
export const hidden = computed(() => (events.value ? 0 : line.value.entries.reduce((n, e) => n + Number(isEvent(e)), 0)));
/** endMark is the mark of the last entry that is loaded, where it was read. */
export const endMark = computed(() => line.value.marks.get(line.value.entries.at(-1)?.id ?? ""));

/** toggleEvents shows the events of programs, or hides them. What is in sight stays there. */
export function toggleEvents(): void {
  const at = place();
  go({ events: !view.peek().events }, "replace");
  if (at && !atEnd.peek()) wanted.value = at;
}

/** loading is null when nothing is under way, else what is read. */
export const loading = signal<"line" | "older" | "newer" | null>(null);
export const trouble = signal("");
/** below counts the messages that arrived while the end was not in sight. */
export const below = signal(0);
/** atEnd reports whether the end of the line is in sight: then the view follows it. */
export const atEnd = signal(true);
/** wanted is where an article has to be; the list obeys, and clears it. "end" = the end of the line. */
export const wanted = signal<Anchor | "end" | null>(null);

/** lookAt is how far below the upper edge an entry is shown that was asked for, in pixels. */
export const lookAt = 120;

let abort = new AbortController();
let life = new AbortController(); // ends when the session is no longer shown
let shown = { id: "", path: "", at: "", start: false, generation: -1 };

/**
 * start makes the conversation be that of the session and the cursor of the URL, whichever they are, and follow what is
 * committed. It is called once, before anything is drawn: the first page is under way while the panes are built.
 */
export function start(): void {
  effect(() => {
    void view.value; // whatever the cursor changes, follow says whether it matters here
    const id = session.value;
    const read = generation.value;
    untracked(() => {
      if (id !== shown.id) leave();
      if (id !== null) follow(id, read, place());
    });
  });
  effect(() => {
    void alive.value;
    untracked(() => void retry());
  });
  effect(() => {
    const c = change.value;
    if (c) untracked(() => arrive(c));
  });
}

/** leave forgets everything, for the session is no longer shown. */
function leave(): void {
  abort.abort();
  life.abort();
  life = new AbortController();
  shown = { id: "", path: "", at: "", start: false, generation: -1 };
  place = nowhere;
  batch(() => {
    line.value = nothing;
    loading.value = null;
    trouble.value = "";
    below.value = 0;
    atEnd.value = true;
    wanted.value = null;
  });
}

/** follow shows what the cursor names. place is what to keep in sight if everything is read again. */
function follow(id: string, generation: number, place: Anchor | null): void {
  const v = view.peek();
  const path = v.line ?? "head";
  const before = shown;
  const start = v.seq === 0 && v.at === null; // the session was made: there is no message yet
  shown = { id, path, at: v.at ?? "", start, generation };
  const failed = trouble.peek() !== "" && before.at !== shown.at; // what is looked at now may be there
  if (before.id !== id || before.path !== path || before.start !== start || failed) {
    if (start) showNothing();
    else void open(path, v.at);
  }
  else if (before.generation !== generation) void reread(place);
  else if (before.at !== shown.at && v.at) void lookTo(v.at);
}

/** moveTo moves the cursor to an entry that is in sight: nothing is read and nothing scrolls. */
export function moveTo(entry: string, how: How = "step"): void {
  shown.at = entry;
  go({ at: entry, seq: null }, how);
}

let focusNext = "";

/** focus makes an article get the focus as soon as the cursor is at it and it is in the page. */
export function focus(entry: string): void {
  focusNext = entry;
}

/** takeFocus reports, once, whether one of an article's entries is to have the focus. */
export function takeFocus(ids: readonly string[]): boolean {
  if (!ids.includes(focusNext)) return false;
  focusNext = "";
  return true;
}

/** begin starts a read in place of the one that is under way. */
function begin(what: "line" | "older" | "newer"): AbortSignal {
  abort.abort();
  abort = new AbortController();
  loading.value = what;
  trouble.value = "";
  return abort.signal;
}

/** pause is how long nothing older or newer is read after a read failed, in ms: what is drawn again would ask at once. */
const pause = 3000;
let failedAt = -pause;

/** busy reports whether now is no time to read what is older or newer. */
function busy(): boolean {
  return loading.peek() !== null || performance.now() - failedAt < pause;
}

/** run does a read, and says what went wrong. false = it failed, or another one took its place. */
async function run(what: "line" | "older" | "newer", read: (signal: AbortSignal) => Promise<void>): Promise<boolean> {
  const signal = begin(what);
  try {
    await read(signal);
    return !signal.aborted;
  } catch (err) {
    if (signal.aborted) return false;
    failedAt = performance.now();
    trouble.value = err instanceof Error ? err.message : String(err);
    return false;
  } finally {
    if (!signal.aborted) loading.value = null;
  }
}

/** show puts a line in place of what is loaded, unless the read was given up. */
function show(next: Line, where: Anchor | "end", signal: AbortSignal): void {
  if (signal.aborted) return;
  batch(() => {
    line.value = next;
    wanted.value = where === "end" ? where : { ...where, key: articleOf(where.key) };
    if (!next.newer) below.value = 0;
  });
}

/** articleOf returns the id of the article that shows an entry. */
function articleOf(entry: string): string {
  return items.peek().find((item) => item.ids.includes(entry))?.entry.id ?? entry;
}

function open(path: string, at: string | null): Promise<boolean> {
  const { id } = shown;
  return run("line", async (signal) => {
    if (at !== null && at !== path) {
      try {
        show(turnedTo(line.peek(), await around(id, path, at, signal)), { key: at, offset: lookAt, loose: true }, signal);
      } catch (err) {
        if (!isMissing(err)) throw err;
        await elsewhere(at, signal);
      }
      return;
    }
    await showEnd(path, signal);
  });
}

function isMissing(err: unknown): boolean {
  return err instanceof Failure && err.problem.code === "no-entry";
}

async function showEnd(path: string, signal: AbortSignal): Promise<void> {
  const page = await newest(shown.id, path, signal);
  show(page, "end", signal);
  if (!signal.aborted) void refreshMarks(page.entries.map((e) => e.id));
}

/** elsewhere shows an entry that is on another line, on the newest line through it. */
async function elsewhere(at: string, signal: AbortSignal): Promise<void> {
  const { id } = shown;
  let leaf: string;
  try {
    leaf = await leafBelow(id, at, signal);
  } catch (err) {
    if (!isMissing(err)) throw err;
    shown = { ...shown, path: "head", at: "" };
    go({ line: null, at: null, seq: null }, "replace");
    await showEnd("head", signal);
    throw new Error("The link names a message that this session does not have. This is its newest one.");
  }
  const page = await around(id, leaf, at, signal);
  if (signal.aborted) return;
  const path = leaf === head.peek()?.entry ? null : leaf;
  shown = { ...shown, path: path ?? "head", at };
  show(turnedTo(line.peek(), page), { key: at, offset: lookAt, loose: true }, signal);
  go({ line: path, at }, "replace");
}

/** lookTo brings an entry in sight, wherever it is. */
async function lookTo(at: string): Promise<void> {
  const item = items.peek().find((one) => one.ids.includes(at));
  if (item) wanted.value = { key: item.entry.id, offset: lookAt, loose: true };
  else await open(shown.path, at);
}

/** reread reads the line again around what was in sight. */
export async function reread(place: Anchor | null): Promise<void> {
  const { id, path } = shown;
  if (place === null || atEnd.peek()) {
    await open(path, null);
    return;
  }
  const ok = await run("line", async (signal) => {
    show(await around(id, path, place.key, signal), place, signal);
  });
  if (!ok && trouble.peek()) await open(path, null); // what was in sight is not on the line any more
}

/** retry reads again what could not be read. */
export async function retry(): Promise<void> {
  failedAt = -pause;
  if (trouble.peek() !== "") await reread(place());
}

/** readOlder and readNewer load what is before and after what is loaded. */
export async function readOlder(): Promise<void> {
  const now = line.peek();
  const first = now.entries[0];
  if (!now.older || !first || busy()) return;
  await run("older", async (signal) => {
    const page = await olderThan(shown.id, shown.path, first.id, signal);
    if (!signal.aborted) line.value = withOlder(line.peek(), page);
  });
}

export async function readNewer(): Promise<void> {
  const now = line.peek();
  const last = now.entries.at(-1);
  if (!now.newer || !last || busy()) return;
  await run("newer", async (signal) => {
    const page = await newerThan(shown.id, shown.path, last.id, signal);
    if (!signal.aborted) line.value = withNewer(line.peek(), page);
  });
}

/** showNothing shows the session as it was made, without a message. */
function showNothing(): void {
  abort.abort();
  batch(() => {
    line.value = nothing;
    loading.value = null;
    trouble.value = "";
    below.value = 0;
  });
}

/** openStart shows the start of the line. */
function openStart(): Promise<boolean> {
  return run("line", async (signal) => {
    const page = await oldest(shown.id, shown.path, signal);
    show(page, { key: page.entries[0]?.id ?? "", offset: 0 }, signal);
  });
}

/** toEnd shows the end of the line, toRoot its start. */
export async function toEnd(): Promise<void> {
  shown.at = "";
  go({ at: null, seq: null }, "step");
  if (line.peek().newer) await open(shown.path, null);
  else wanted.value = "end";
}

export async function toRoot(): Promise<void> {
  if (line.peek().older) await openStart();
  const first = line.peek().entries[0];
  if (first) {
    focus(first.id);
    moveTo(first.id);
    wanted.value = { key: first.id, offset: 0 };
  }
}

/** toHead shows the line of the head, and follows it. */
export function toHead(): void {
  if (shown.path === "head") void toEnd();
  go({ line: null, at: null, seq: null });
}

/** mostPages bounds what one search along the line reads, in pages of 500 entries. */
const mostPages = 20;

/**
 * nextThat returns the next entry of the line, from an article on, for which is holds. null: there is none within
 * 10,000 entries.
 */
export async function nextThat(
  from: number, step: 1 | -1, is: (entry: Entry, of: Line) => boolean,
): Promise<string | null> {
  const list = items.peek();
  for (let i = from + step; i >= 0 && i < list.length; i += step) {
    const shown = [list[i]!.entry, ...[...list[i]!.results.values()].map((r) => r.entry)];
    if (shown.some((e) => is(e, line.peek()))) return list[i]!.entry.id;
  }
  const { id, path } = shown;
  let found: string | null = null;
  await run(step > 0 ? "newer" : "older", async (signal) => {
    let page = line.peek();
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
function replaceEntries(page: Line): void {
  const now = line.peek();
  const of = new Map(page.entries.map((e) => [e.id, e]));
  const same = (a: Entry, b: Entry | undefined) => b === undefined || JSON.stringify(a) === JSON.stringify(b);
  const entries = now.entries.map((e) => (same(e, of.get(e.id)) ? e : of.get(e.id)!));
  line.value = { ...now, entries, marks: new Map([...now.marks, ...page.marks]) };
}

/** arrive shows what a commit adds to the line. What it does on other lines changes at most marks. */
function arrive(c: Change): void {
  if (shown.start) return;
  const now = line.peek();
  const last = now.entries.at(-1);
  const stale = staleAfter(c.entries);
  const aside = c.kept !== undefined && c.kept === c.branch; // a turn that lost: the next commit moves the head back
  const following = shown.path === "head" && !aside;
  if (last && shown.path !== "head") stale.push(last.id); // whether the head is still on its line
  if (last && !now.newer && c.head === last.id) {
    if (stale.length > 0) void refreshMarks(stale);
    return;
  }
  const more = last && !now.newer ? continuing(c, last.id) : null;
  if (more) {
    if ((now.marks.get(last!.id)?.children ?? 0) > 0) stale.push(last!.id, more[0]!.id); // another version was there
    append(more);
  }
  else if (following && now.newer && !onLine(c)) below.value += c.entries.filter(isNews).length;
  else if (following && c.head !== last?.id) {
    headMoved(c);
    return;
  }
  if (stale.length > 0) void refreshMarks(stale);
}

/** isNews reports whether an entry is shown as a message of its own: results are shown at their calls. */
function isNews(e: Entry): boolean {
  return said(e)?.parts.some((p) => p.kind !== "result") ?? false;
}

/** onLine reports whether a commit is known to leave the line: its head is an entry that is loaded. */
function onLine(c: Change): boolean {
  return line.peek().entries.some((e) => e.id === c.head);
}

function append(more: Entry[]): void {
  const end = more.at(-1)!.id;
  const now = line.peek();
  batch(() => {
    if (!atEnd.peek()) below.value += more.filter(isNews).length;
    if (!atEnd.peek() && now.entries.length + more.length > mostLoaded) line.value = { ...now, newer: true };
    else line.value = withNewer(now, { entries: more, marks: new Map(), older: true, newer: false });
    if (shown.path === "head") return;
    shown = { ...shown, path: end };
    go({ line: end }, "replace");
  });
}

/**
 * headMoved shows the line of a head that went elsewhere: back, or to another branch. The place stays if it is on it. Where the
 * cursor is at an entry that is not, or a form is open about one, the view stays with it on the line that was left.
 */
function headMoved(c: Change): void {
  const { entries, newer } = line.peek();
  const indexOf = (id: string | null | undefined) => entries.findIndex((e) => e.id === id);
  const kept = indexOf(asking.peek()?.entry ?? view.peek().at);
  const at = indexOf(c.head);
  if (kept > (at >= 0 ? at : indexOf(c.entries[0]?.parentId))) void stayOn(entries[kept]!.id, newer ? null : entries.at(-1)!.id);
  else if (at >= 0) {
    line.value = { ...line.peek(), entries: entries.slice(0, at + 1), newer: false };
    void refreshMarks([c.head!]);
  } else void reread(atEnd.peek() ? null : place());
}

/** stayOn makes the line that is loaded one that does not follow the head. leaf is its end; null = it is not loaded. */
async function stayOn(entry: string, leaf: string | null): Promise<void> {
  const { id, path } = shown;
  const end = leaf ?? await leafBelow(id, entry).catch(() => entry);
  if (shown.id !== id || shown.path !== path) return; // the person is elsewhere by now
  shown = { ...shown, path: end };
  go({ line: end }, "replace");
  void refreshMarks(line.peek().entries.slice(-500).map((e) => e.id));
}

/** place is what is in sight; the list says it while it is in the page. */
export let place: () => Anchor | null = nowhere;

function nowhere(): null {
  return null;
}

/** placeFrom makes f say what is in sight. */
export function placeFrom(f: () => Anchor | null): void {
  place = f;
}

/** staleAfter returns the loaded entries of which new entries change what is said: those they name, fork from or amend. */
function staleAfter(entries: readonly Entry[]): string[] {
  const loaded = line.peek().entries;
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
async function refreshMarks(ids: string[]): Promise<void> {
  const { signal } = life;
  if (ids.length === 0) return;
  try {
    const page = await some(shown.id, ids, signal);
    if (!signal.aborted) replaceEntries(page);
  } catch {
    // the marks stay as they were; the next page that is read has them
  }
}

/** turnTo shows another line around one of its entries, which comes to where `where` says. */
export async function turnTo(leaf: string, at: string, where: Anchor): Promise<void> {
  const { id } = shown;
  await run("line", async (signal) => {
    const page = await around(id, leaf, at, signal);
    if (signal.aborted) return;
    const path = leaf === head.peek()?.entry ? null : leaf;
    shown = { ...shown, path: path ?? "head", at };
    batch(() => {
      show(turnedTo(line.peek(), page), where, signal);
      go({ line: path, at, seq: null });
    });
  });
}
