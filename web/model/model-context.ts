// What the model saw: the context at a point, as the API returns it, with messages as they are stored. Pure.
import type { Schemas } from "../api/client.ts";
import { at, members } from "./json.ts";

/** A Saw is a context. Messages are texts of JSON. */
export interface Saw {
  messages: string[];
  chars: number; // of all messages
  rest: Omit<Schemas["Context"], "messages">;
  summary: boolean; // it begins with the summary of a compaction
  cut: boolean; // there are more messages than are kept here
}

/** mostChars bounds the messages of a context that are kept, in characters. */
export const mostChars = 32 << 20;

/**
 * inPages reads a context a page at a time, up to mostChars. read gets `next` of the page before, "" = none, and returns
 * null if the page is too long.
 */
export async function inPages(read: (after: string) => Promise<string | null>): Promise<Saw | null> {
  const first = await read("");
  if (first === null) return null;
  const all = sawOf(first);
  let next = all.rest.next;
  while (next && all.chars < mostChars) {
    const text = await read(next);
    if (text === null) break;
    const page = sawOf(text);
    all.messages.push(...page.messages);
    all.chars += page.chars;
    next = page.rest.next;
  }
  return { ...all, cut: Boolean(next) };
}

/** A Difference is what a context has that another one does not have, as indices, and the messages that it lacks. */
export interface Difference {
  added: ReadonlySet<number>;
  removed: readonly string[];
}

/** differenceOf compares a context with one before it. Messages are equal if their texts are. */
export function differenceOf(before: readonly string[], now: readonly string[]): Difference {
  const left = new Map<string, number>();
  for (const m of before) left.set(m, (left.get(m) ?? 0) + 1);
  const added = new Set<number>();
  now.forEach((m, i) => {
    const n = left.get(m) ?? 0;
    if (n > 0) left.set(m, n - 1);
    else added.add(i);
  });
  const removed = before.toReversed().filter((m) => {
    const n = left.get(m) ?? 0;
    if (n > 0) left.set(m, n - 1);
    return n > 0;
  });
  return { added, removed: removed.reverse() };
}

/** beforeOf returns the target of the turn before one; null = there is none, or the target is within a turn. */
export function beforeOf(target: string): string | null {
  const seq = Number(/^seq:(\d+)$/.exec(target)?.[1] ?? 0);
  return seq > 1 ? "seq:" + (seq - 1) : null;
}

/** sawOf returns the context that an answer of the API has. */
export function sawOf(text: string): Saw {
  const list = at(text, "/messages");
  const messages = list ? members(text, list).map((m) => text.slice(m.start, m.end)) : [];
  const rest = list ? text.slice(0, list.start) + "null" + text.slice(list.end) : text; // a context may be many MB
  return {
    messages, chars: messages.reduce((n, m) => n + m.length, 0), rest: JSON.parse(rest) as Saw["rest"],
    summary: /^\{"role":"compactionSummary"/.test(messages[0] ?? ""), cut: false,
  };
}

/** isBeyond reports whether the bound of the context leaves the message i out. Summaries stay. */
export function isBeyond({ messages, rest }: Saw, i: number): boolean {
  const { omitted, provider } = rest;
  const among = omitted !== undefined && !provider && i >= omitted.from && i < omitted.to;
  return among && !/^\{"role":"(compaction|branch)Summary"/.test(messages[i]!);
}

/** A Share is how much of a context the messages of one kind are. */
export interface Share {
  kind: "summary" | "user" | "assistant" | "tool" | "other";
  chars: number;
  messages: number;
}

const kinds: Record<string, Share["kind"]> = {
  compactionSummary: "summary", branchSummary: "summary", user: "user", assistant: "assistant", model: "assistant",
  toolResult: "tool", tool: "tool", function: "tool", function_call_output: "tool",
};

/** sharesOf returns what kinds of messages a context consists of, those with most characters first. */
export function sharesOf(messages: readonly string[]): Share[] {
  const shares = new Map<Share["kind"], Share>();
  for (const raw of messages) {
    const word = /^\{[^[{]*?"(?:role|type)":"(\w+)"/.exec(raw.slice(0, 400))?.[1] ?? "";
    const kind = kinds[word] ?? "other";
    const s = shares.get(kind) ?? { kind, chars: 0, messages: 0 };
    shares.set(kind, { kind, chars: s.chars + raw.length, messages: s.messages + 1 });
  }
  return [...shares.values()].sort((a, b) => b.chars - a.chars);
}

/** mostLooked bounds the messages among which the newest answer with a usage is looked for. */
const mostLooked = 50;

/** tokensOf returns the tokens of the context that the newest answers in it report, the newest first; at most two. */
export function tokensOf(messages: readonly string[]): number[] {
  const found: number[] = [];
  for (const raw of messages.slice(-mostLooked).reverse()) {
    if (!raw.includes('"usage"')) continue;
    const { usage } = JSON.parse(raw) as { usage?: Record<string, unknown> };
    const names = ["input", "cacheRead", "cacheWrite", "output", "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"];
    const sum = names.reduce((n, name) => n + (typeof usage?.[name] === "number" ? usage[name] : 0), 0);
    if (sum > 0 && found.push(sum) === 2) break;
  }
  return found;
}

/** windows are the context windows of families of models, in tokens, as their providers name them; the first match counts. */
const windows: [RegExp, number][] = [
  [/\[1m\]|gemini/i, 1_000_000], [/claude/i, 200_000], [/gpt-4\.1/i, 1_000_000], [/gpt-4o/i, 128_000], [/gpt-5|codex/i, 400_000],
];

/** windowOf returns the context window of a model, in tokens; 0 = it is not known, or this one is larger. */
export function windowOf(model: string, tokens: number): number {
  const size = windows.find(([name]) => name.test(model))?.[1] ?? 0;
  return tokens > size ? 0 : size;
}

/** A Line is one line about a message. */
export interface Line {
  role: string;
  words: string;
}

/** maxWords bounds the words of a line, in characters. */
const maxWords = 120;

/** lineOf returns one line of a message of any provider. */
export function lineOf(raw: string): Line {
  const m = JSON.parse(raw) as Record<string, unknown>;
  const role = typeof m.role === "string" ? m.role : typeof m.type === "string" ? m.type : "message";
  return { role, words: wordsOf(m.summary ?? m.content ?? m.parts ?? m.output ?? m.tool_calls ?? m, 0).trim().slice(0, maxWords) };
}

/** wordsOf returns the first words of a content, or the names of what is called. */
function wordsOf(x: unknown, depth: number): string {
  if (typeof x === "string") return x.slice(0, 4 * maxWords).replace(/\s+/g, " ");
  if (Array.isArray(x)) return x.slice(0, 8).map((y) => wordsOf(y, depth + 1)).filter(Boolean).join(" · ");
  if (typeof x !== "object" || x === null || depth > 3) return "";
  const o = x as Record<string, unknown>;
  const f = typeof o.function === "object" && o.function !== null ? o.function as Record<string, unknown> : o;
  if (typeof f.name === "string") return `calls ${f.name}`;
  return wordsOf(o.text ?? o.thinking ?? o.content ?? o.functionCall ?? (typeof o.type === "string" ? `[${o.type}]` : ""), depth + 1);
}
