// The sessions of the home page: by day, filtered, each with a small drawing of what it started. Pure.
import type { Session } from "../api/client.ts";
import { date } from "./format.ts";
import type { Nested } from "./sessions.ts";

/** The kinds of sessions that the home page can be narrowed to. */
export const shownKinds = ["all", "running", "failed"] as const;
export type Shown = (typeof shownKinds)[number];

/** idle is how long after its newest activity a session that waits for an answer no longer counts as running, in ms. */
const idle = 10 * 60_000;

/** isRunning reports whether a session is at work: something is asked or called, and that is not long ago. */
export function isRunning(s: Pick<Session, "status" | "updated">, now: Date): boolean {
  return /^(asked|calling|working)$/.test(s.status ?? "") && now.getTime() - Date.parse(s.updated) < idle;
}

/** A Day is a date with the sessions whose newest activity was on it. */
export interface Day {
  name: string;
  sessions: Nested[];
}

/** mostListed bounds the sessions of the home page; the list of sessions has all. */
const mostListed = 50;

/** daysOf returns sessions by the day of their newest activity where the reader is, in their order. */
export function daysOf(list: readonly Nested[], now: Date): Day[] {
  const days: Day[] = [];
  const yesterday = new Date(now.getFullYear(), now.getMonth(), now.getDate() - 1);
  for (const n of list.slice(0, mostListed)) {
    const t = new Date(n.session.updated);
    const day = t.toDateString();
    const name = day === now.toDateString() ? "Today" : day === yesterday.toDateString() ? "Yesterday" : date(t);
    const last = days.at(-1);
    if (last?.name === name) last.sessions.push(n);
    else days.push({ name, sessions: [n] });
  }
  return days;
}

/** programOf returns the program that made a session; "" = none is known. */
export function programOf(n: Nested): string {
  return n.session.meta?.program ?? "";
}

/** valuesOf returns what sessions have, such as folders, each once, at most 50. */
export function valuesOf(list: readonly Nested[], of: (n: Nested) => string): string[] {
  return [...new Set(list.map(of).filter(Boolean))].slice(0, 50);
}

/** folderOf returns the last part of a folder. */
export function folderOf(cwd: string): string {
  return cwd.split(/[/\\]/).filter(Boolean).at(-1) ?? cwd;
}

/** The drawing of a session: its size in px, the lines that leave it at most, and what a line is long at least. */
export const drawing = { width: 96, height: 22 };
const mostTwigs = 8;
const shortest = 14;

/** A Twig is a line of the drawing, as the path of an SVG. fork = of a copy, not of an agent. */
export interface Twig {
  d: string;
  fork: boolean;
}

/** twigsOf returns what left a session: a line for each agent and fork, from when it began to its newest activity. */
export function twigsOf({ session, children }: Nested): Twig[] {
  const from = Date.parse(session.created);
  const to = Math.max(from + 1, Date.parse(session.updated));
  const most = drawing.width - shortest;
  const x = (time: string) => Math.round(Math.min(most, Math.max(4, (Date.parse(time) - from) / (to - from) * most)));
  return children.slice(0, mostTwigs).map(({ session: c }, i) => {
    const [begin, base] = [x(c.created), drawing.height - 3];
    const y = base - 6 * (1 + i % 3);
    const end = Math.max(begin + shortest, x(c.updated));
    return { d: `M${begin} ${base}Q${begin + 2} ${y} ${begin + 8} ${y}H${end}`, fork: c.relation === "fork" };
  });
}
