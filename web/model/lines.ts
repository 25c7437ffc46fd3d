// Stretches of a line, from any of its entries on.
import { lineOf, nothing, turnedTo, type Line } from "./path.ts";
import { entryPage, type EntryPage } from "../api/pages.ts";

/** firstPage is how many entries are read before anything is shown, nextPage how many at a time after that. */
const firstPage = 50;
const nextPage = 100;

/** backwards returns the line of a page that was read towards the root. */
function backwards(page: EntryPage, newer: boolean): Line {
  const marks = (page.marks ?? []).toReversed();
  return { ...lineOf(page.entries.toReversed(), marks, page.next !== undefined, newer), before: page.broken };
}

/** onwards returns the line of a page that was read away from the root. */
function onwards(page: EntryPage, older: boolean): Line {
  return { ...lineOf(page.entries, page.marks ?? [], older, page.next !== undefined), after: page.broken };
}

/** newest returns the end of a path, without marks: they need the whole tree, and the first page does not wait for it. */
export async function newest(id: string, path: string, signal?: AbortSignal): Promise<Line> {
  const page = await entryPage(id, { path, order: "desc", limit: firstPage }, signal);
  return backwards(page, false);
}

/** oldest returns the start of a path. */
export async function oldest(id: string, path: string, signal?: AbortSignal): Promise<Line> {
  const page = await entryPage(id, { path, limit: firstPage, marks: true }, signal);
  return onwards(page, false);
}

/** around returns what is before and after an entry of a path. */
export async function around(id: string, path: string, entry: string, signal?: AbortSignal): Promise<Line> {
  const [before, after] = await Promise.all([olderThan(id, path, entry, signal, firstPage / 2),
    newerThan(id, path, entry, signal, firstPage)]);
  return { ...turnedTo(before, after), newer: after.newer, after: after.after };
}

/** olderThan returns the entries that lead to an entry of a path, with that entry. */
export async function olderThan(
  id: string, path: string, entry: string, signal?: AbortSignal, limit = nextPage,
): Promise<Line> {
  const page = await entryPage(id, { path, from: entry, order: "desc", limit, marks: true }, signal);
  return backwards(page, true);
}

/** newerThan returns an entry of a path, and those that follow it. */
export async function newerThan(
  id: string, path: string, entry: string, signal?: AbortSignal, limit = nextPage,
): Promise<Line> {
  const page = await entryPage(id, { path, from: entry, limit, marks: true }, signal);
  return onwards(page, true);
}

/** some returns entries by their ids, with their marks. At most 500. */
export async function some(id: string, ids: string[], signal?: AbortSignal): Promise<Line> {
  const named = ids.filter((one) => !one.includes(",")); // the list has no way to write the others
  if (named.length === 0) return nothing;
  const page = await entryPage(id, { ids: named.join(","), limit: 500, marks: true }, signal);
  return lineOf(page.entries, page.marks ?? [], true, true);
}

/** leafBelow returns the end of the line that goes through an entry to the newest leaf below it. */
export async function leafBelow(id: string, entry: string, signal?: AbortSignal): Promise<string> {
  const page = await entryPage(id, { path: entry, below: true, order: "desc", limit: 1 }, signal);
  return page.entries[0]?.id ?? entry;
}
