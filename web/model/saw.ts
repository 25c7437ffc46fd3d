// What the model saw: the context at a point, as the API returns it, with messages as they are stored. Pure.
import type { Schemas } from "../api/client.ts";
import { at, members } from "./json.ts";

/** A Saw is a context. Messages are texts of JSON. */
export interface Saw {
  messages: string[];
  chars: number; // of all messages
  rest: Omit<Schemas["Context"], "messages">;
  summary: boolean; // it begins with the summary of a compaction
}

/** sawOf returns the context that an answer of the API has. */
export function sawOf(text: string): Saw {
  const list = at(text, "/messages");
  const messages = list ? members(text, list).map((m) => text.slice(m.start, m.end)) : [];
  const rest = list ? text.slice(0, list.start) + "null" + text.slice(list.end) : text; // a context may be many MB
  return {
    messages, chars: messages.reduce((n, m) => n + m.length, 0), rest: JSON.parse(rest) as Saw["rest"],
    summary: /^\{"role":"compactionSummary"/.test(messages[0] ?? ""),
  };
}

/** A Line is what one line says of a message. */
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
