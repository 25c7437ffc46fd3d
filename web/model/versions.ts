// The versions of an entry: which one is read, and which line was read last below each.
import { leafBelow, some } from "../api/lines.ts";
import type { Entry } from "../api/client.ts";
import type { Mark } from "../api/pages.ts";
import { head } from "./session.ts";
import { session, view } from "./nav.ts";
import { turnTo } from "./talk.ts";

/** lines are the ends of the lines that were read last, by version. At most maxLines; the oldest are forgotten. */
const lines = new Map<string, string>();
const maxLines = 500;

/** choose shows another version of an entry, a step away, where the entry is now: offset below the upper edge. */
export async function choose(mark: Mark, step: number, offset: number): Promise<void> {
  const to = mark.versions[mark.versions.indexOf(mark.id) + step];
  if (to !== undefined) await chooseVersion(mark, to, offset);
}

/** chooseVersion shows the line that was read last below a version of an entry, else the newest. The head stays. */
export async function chooseVersion(mark: Mark, to: string, offset: number): Promise<void> {
  const id = session.peek();
  if (id === null || to === mark.id) return;
  const end = view.peek().line ?? head.peek()?.entry;
  if (end) remember(mark.id, end);
  const leaf = await leafBelow(id, lines.get(to) ?? to);
  if (session.peek() === id) await turnTo(leaf, to, { key: to, offset });
}

function remember(version: string, end: string): void {
  lines.delete(version);
  lines.set(version, end);
  if (lines.size > maxLines) lines.delete(lines.keys().next().value!);
}

/** mostPeeked bounds the versions of which the first words are shown. */
const mostPeeked = 8;

/** peek reads the versions next to an entry, itself included. */
export async function peek(mark: Mark, signal: AbortSignal): Promise<readonly Entry[]> {
  const at = mark.versions.indexOf(mark.id);
  const from = Math.max(0, Math.min(at - mostPeeked / 2, mark.versions.length - mostPeeked));
  return (await some(session.peek()!, mark.versions.slice(from, from + mostPeeked), signal)).entries;
}
