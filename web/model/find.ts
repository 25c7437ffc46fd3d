// Search across everything, for the palette: what the page can do, sessions, prompts and messages.
import { api, nameOf } from "../api/client.ts";
import { sessionPage } from "../api/pages.ts";
import { leafBelow } from "./lines.ts";
import { act, can } from "./actions.ts";
import { keys } from "./keys.ts";
import { go, open, sessionId, view, type How } from "./nav.ts";

/** A Found is a line of the palette. */
export interface Found {
  group: "Do" | "Sessions" | "Prompts" | "Messages";
  title: string;
  detail: string;
  go: () => void;
}

/** maxFound bounds the lines of a group. */
const maxFound = 8;

/** offered are the commands that are offered before anything is entered: those that a phone has no button for. */
const offered = ["copy-link", "export", "roll-back", "help"];

/** commands returns what the page can do now, whose help contains all words. */
export function commands(text: string): Found[] {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  return keys.filter((k) => wanted.every((w) => k.help.includes(w)) && !["palette", "out"].includes(k.action) && can(k.action))
    .filter((k) => wanted.length > 0 || offered.includes(k.action)).slice(0, maxFound)
    .map((k) => ({ group: "Do", title: k.help, detail: k.keys[0]!, go: () => void act(k.action) }));
}

/** at opens a session at an entry, on the newest line that goes through it. */
function at(id: string, entry: string, onHead: boolean): () => void {
  return () => (onHead ? open(id, { at: entry }) : void through(id, entry));
}

/** through shows an entry of a session on the newest line that goes through it. head is the end of the line that is followed. */
export async function through(id: string, entry: string, how: How = "push", head: string | null = null): Promise<void> {
  const before = view.peek();
  const leaf = await leafBelow(id, entry).catch(() => entry);
  if (view.peek() !== before) return; // the person is elsewhere by now
  if (id === sessionId.peek()) go({ line: leaf === head ? null : leaf, at: entry, seq: null }, how);
  else open(id, { line: leaf, at: entry });
}

/** where returns the line and the session of a hit. */
function where(m: { onHead: boolean; branches: string[]; title: string }): string {
  return (m.onHead ? "" : "on " + (m.branches[0] ?? "another branch") + " · ") + m.title;
}

/** Results are what was found for a text. indexing is how much of the store was searched, from 0 to 1; null = all. */
export interface Results {
  list: Found[];
  indexing: number | null;
}

/** find returns sessions, prompts and messages that contain the words, here first. */
export async function find(text: string, signal: AbortSignal): Promise<Results> {
  const q = text.trim();
  const [sessions, prompts, matches] = await Promise.all([
    sessionPage({ limit: maxFound, ...(q ? { q } : {}) }, signal),
    q ? api.GET("/v1/prompts", { params: { query: { q, limit: maxFound } }, signal }) : null,
    q ? api.GET("/v1/search", { params: { query: { q, limit: 3 * maxFound } }, signal }) : null,
  ]);
  const here = sessionId.peek();
  const found = (matches?.data?.matches ?? []).toSorted((a, b) => Number(b.session === here) - Number(a.session === here));
  const indexing = [prompts?.data?.indexing, matches?.data?.indexing].filter((part) => part !== undefined);
  const list = [
    ...sessions.sessions.map((s): Found => ({
      group: "Sessions", title: nameOf(s), detail: s.cwd, go: () => open(s.id),
    })),
    ...(prompts?.data?.prompts ?? []).map((p): Found => ({
      group: "Prompts", title: p.text.slice(0, 200), detail: where(p), go: at(p.session, p.entry, p.onHead),
    })),
    ...found.slice(0, 2 * maxFound).map((m): Found => ({
      group: "Messages", title: m.snippet, detail: where(m), go: at(m.session, m.entry, m.onHead),
    })),
  ];
  return { list, indexing: indexing.length > 0 ? Math.min(...indexing) : null };
}
