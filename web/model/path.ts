// The part of a line that is loaded: entries from somewhere on the path to somewhere further down. Pure.
import type { Entry } from "../api/client.ts";
import type { Mark } from "../api/pages.ts";
import { messageOf, type Message, type Part } from "./message.ts";
import { isEvent, messageAsides, noticeOf, type Aside } from "./program.ts";

/** mostLoaded bounds the entries of a Line. Events count an eighth: they are hidden, and there may be many more of them. */
export const mostLoaded = 1000;
const eventWeight = 1 / 8;

/** A Line is a stretch of a path, in its order. */
export interface Line {
  entries: readonly Entry[];
  marks: ReadonlyMap<string, Mark>; // of its entries, where they were read
  older: boolean; // there are entries before it
  newer: boolean; // there are entries after it
  before?: string; // why those before it cannot be read
  after?: string; // why those after it cannot be read
}

export const nothing: Line = { entries: [], marks: new Map(), older: false, newer: false };

/** lineOf returns a line of a page. */
export function lineOf(entries: readonly Entry[], marks: readonly Mark[], older: boolean, newer: boolean): Line {
  return { entries, marks: new Map(marks.map((m) => [m.id, m])), older, newer };
}

/** within returns how many of these entries a Line holds, from the first one on. */
function within(entries: readonly Entry[]): number {
  let weight = 0;
  for (let i = 0; i < entries.length; i++) {
    weight += isEvent(entries[i]!) ? eventWeight : 1;
    if (weight > mostLoaded) return i;
  }
  return entries.length;
}

/** head and tail return as many entries as a Line holds, from the first on or up to the last. */
function head(entries: readonly Entry[]): readonly Entry[] {
  return entries.slice(0, within(entries));
}

function tail(entries: readonly Entry[]): readonly Entry[] {
  return entries.slice(entries.length - within(entries.toReversed()));
}

/** withOlder returns a line with entries before it. Entries at its end are dropped where it is too long. */
export function withOlder(line: Line, page: Line): Line {
  const known = new Set(line.entries.map((e) => e.id));
  const all = [...page.entries.filter((e) => !known.has(e.id)), ...line.entries];
  const entries = head(all);
  return {
    ...marked(entries, line, page, page.older, line.newer || all.length > entries.length),
    before: page.before, after: line.after,
  };
}

/** withNewer returns a line with entries after it. Entries at its start are dropped where it is too long. */
export function withNewer(line: Line, page: Line): Line {
  const known = new Set(line.entries.map((e) => e.id));
  const all = [...line.entries, ...page.entries.filter((e) => !known.has(e.id))];
  const entries = tail(all);
  return {
    ...marked(entries, line, page, line.older || all.length > entries.length, page.newer),
    before: line.before, after: page.after,
  };
}

/** turnedTo returns another line around the same place: what both share above the page stays loaded. */
export function turnedTo(line: Line, page: Line): Line {
  const first = page.entries[0]?.id;
  const at = line.entries.findIndex((e) => e.id === first);
  if (at < 0) return page;
  const all = [...line.entries.slice(0, at), ...page.entries];
  const entries = tail(all);
  const older = all.length > entries.length || (at > 0 ? line.older : page.older);
  return { ...marked(entries, line, page, older, page.newer), before: at > 0 ? line.before : page.before, after: page.after };
}

function marked(entries: readonly Entry[], a: Line, b: Line, older: boolean, newer: boolean): Line {
  const marks = new Map<string, Mark>();
  for (const { id } of entries) {
    const m = b.marks.get(id) ?? a.marks.get(id);
    if (m) marks.set(id, m);
  }
  return { entries, marks, older, newer };
}

/** isAside reports whether an entry is about others: the head does not move to it, and nothing grows on it. */
export function isAside(e: Entry): boolean {
  return e.type === "label" || (e.type === "custom" && String(e.customType ?? "").startsWith("coppice."));
}

/**
 * continuing returns those entries of a commit that continue a path after its last entry, in order. null: the commit
 * does not continue this path, or not without entries that it does not have.
 */
export function continuing(
  commit: { entries: readonly Entry[]; head: string | null }, last: string | null,
): Entry[] | null {
  const of = new Map(commit.entries.map((e) => [e.id, e]));
  for (const end of [commit.head, commit.entries.findLast((e) => !isAside(e))?.id ?? null]) {
    const chain: Entry[] = [];
    let id = end;
    while (id !== null && id !== last && chain.length <= commit.entries.length) {
      const e = of.get(id);
      if (!e) break;
      chain.push(e);
      id = e.parentId;
    }
    if (id === last && chain.length > 0) return chain.reverse();
  }
  return null;
}

/** A Result is what came back of a call, and its entry. */
export interface Result {
  part: Extract<Part, { kind: "result" }>;
  entry: Entry;
}

/** An Item is what is shown as one article: an entry, with the results of its calls, which are entries of their own. */
export interface Item {
  entry: Entry;
  message: Message | null;
  parts: Part[]; // without the results that are shown at their call
  results: Map<string, Result>; // by the id of the call
  ids: string[]; // of all entries that it shows
  asides?: Aside[]; // what a program wrote, in place of the message
  run?: Entry[]; // the events of which this is one line
}

const messages = new WeakMap<Entry, Message | null>();

/** said returns the message of an entry, read once. */
export function said(e: Entry): Message | null {
  let m = messages.get(e);
  if (m === undefined) messages.set(e, (m = messageOf(e)));
  return m;
}

/** itemsOf returns the articles of a stretch of entries. A result whose call is not among them is an article of its own. */
export function itemsOf(entries: readonly Entry[]): Item[] {
  const items: Item[] = [];
  const calls = new Map<string, Item>();
  for (const entry of entries) {
    const message = said(entry);
    const item: Item = { entry, message, parts: [], results: new Map(), ids: [entry.id] };
    const asides = message ? messageAsides(entry, message) : noticeOf(entry);
    if (asides) item.asides = [asides].flat();
    const owners = new Set<Item>();
    for (const part of message?.parts ?? []) {
      if (part.kind === "call") calls.set(part.id, item);
      const owner = part.kind === "result" ? calls.get(part.id) : undefined;
      if (owner && part.kind === "result" && !owner.results.has(part.id)) {
        owner.results.set(part.id, { part, entry });
        owners.add(owner);
      } else item.parts.push(part);
    }
    calls.delete(""); // without an id only a result of the same message belongs to a call
    if (owners.size > 0 && item.parts.length === 0) owners.forEach((o) => o.ids.push(entry.id));
    else items.push(item);
  }
  return items;
}

/**
 * folded returns the articles with each run of events as one. Runs are left out unless all are wanted, but for the one
 * that has the entry `at`.
 */
export function folded(items: readonly Item[], all: boolean, at: string | null): Item[] {
  const out: Item[] = [];
  let run: Item[] = [];
  const end = () => {
    const ids = run.flatMap((item) => item.ids);
    if (run.length > 0 && (all || (at !== null && ids.includes(at)))) {
      out.push({ ...run[0]!, message: null, parts: [], ids, run: run.map((item) => item.entry) });
    }
    run = [];
  };
  for (const item of items) {
    if (isEvent(item.entry)) run.push(item);
    else {
      end();
      out.push(item);
    }
  }
  end();
  return out;
}

/** isPrompt reports whether a person wrote it. */
export function isPrompt(e: Entry): boolean {
  const m = said(e);
  return m?.role === "user" && m.parts.some((p) => p.kind !== "result");
}

/** isFork reports whether an entry has other versions: a line parts from this one before it. */
export function isFork(m: Mark | undefined): boolean {
  return m !== undefined && m.of > 1;
}
