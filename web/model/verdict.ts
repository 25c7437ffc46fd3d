// One line about how two points differ. Pure.
import type { Entry } from "../api/client.ts";
import { messageOf } from "./message.ts";

/** Side is what only one of two points has. */
export interface Side {
  messages: number;
  tokens: number;
  cost: number;
}

/** sideOf sums the entries that only one side has. Several may be of one response of a provider, which counts once. */
export function sideOf(entries: Entry[]): Side {
  const s = { messages: 0, tokens: 0, cost: 0 };
  const counted = new Map<string, { tokens: number; cost: number }>();
  for (const e of entries) {
    const m = messageOf(e);
    if (!m) continue;
    s.messages++;
    const response = (e.message as { responseId?: unknown } | undefined)?.responseId;
    const id = typeof response === "string" && response.length >= 20 ? response : e.id; // shorter ones may repeat
    const before = counted.get(id) ?? { tokens: 0, cost: 0 };
    if (m.tokens < before.tokens) continue;
    s.tokens += m.tokens - before.tokens;
    s.cost += m.cost - before.cost;
    counted.set(id, m);
  }
  return s;
}

/**
 * verdict returns the line: "B: 12 messages more, $0.40 dearer, 3 values differ". values < 0 = unknown. lines: a and b are of
 * whole lines, and messages are their entries.
 */
export function verdict(a: Side, b: Side, values: number, lines = false): string {
  const said: string[] = [];
  const n = b.messages - a.messages;
  if (n !== 0) said.push(`${count(Math.abs(n), lines ? ["entry", "entries"] : ["message", "messages"])} ${n > 0 ? "more" : "fewer"}`);
  else if (lines) said.push("as many entries");
  else said.push(a.messages === 0 ? "the same messages" : count(b.messages, ["other message", "other messages"]));
  const c = b.cost - a.cost;
  if (Math.abs(c) >= 0.00005) said.push(`$${Math.abs(c).toFixed(Math.abs(c) < 0.01 ? 4 : 2)} ${c > 0 ? "dearer" : "cheaper"}`);
  if (values >= 0) said.push(values === 0 ? "the same state" : values === 1 ? "1 value differs" : `${values} values differ`);
  return "B: " + said.join(", ");
}

function count(n: number, [one, many]: [string, string]): string {
  return `${n} ${n === 1 ? one : many}`;
}
