// What a message holds, in the shapes of pi, Anthropic, OpenAI, Gemini and Bedrock: the table of internal/message, with
// which web/test/message.test.ts compares it. What is not in the table stays JSON. Pure.
import type { Entry } from "../api/client.ts";
import { digits, exact } from "../api/exact.ts";
import { apart } from "./inserted.ts";

/** A Result is what came back of a call. agent is the session that the call started; "" = it is not known. */
interface Result {
  kind: "result";
  id: string;
  name: string;
  text: string;
  failed: boolean;
  exit: number | null;
  agent: string;
  parts: Part[];
}

export type Part =
  | { kind: "text"; text: string; inserted?: boolean } // of a user's message: a program wrote it
  | { kind: "thinking"; text: string }
  | { kind: "call"; id: string; name: string; args: unknown }
  | Result
  | { kind: "image"; type: string; data: string }
  | { kind: "other"; value: unknown };

export interface Message {
  role: string;
  speaker: Speaker;
  parts: Part[];
  model: string;
  tokens: number; // that the answer took, with what the model read and caches, 0 = not known
  cost: number;
  failed: string; // why the answer failed, "" = it did not
}

/** A Speaker is who a message is of, whatever its provider calls the role. */
type Speaker = "user" | "assistant" | "tool" | "system" | "program" | "summary" | "other";

type Json = Record<string, unknown>;

function isObject(x: unknown): x is Json {
  return typeof x === "object" && x !== null && !Array.isArray(x);
}

function str(x: unknown): string {
  return typeof x === "string" ? x : "";
}

/** field returns the first of these fields that is a string with something in it. */
function field(x: Json, ...names: string[]): string {
  return names.map((name) => str(x[name])).find(Boolean) ?? "";
}

/** object returns the first of these fields that is an object. */
function object(x: Json, ...names: string[]): Json | undefined {
  return names.map((name) => x[name]).find(isObject);
}

/** messageOf returns the message of an entry; null for an entry that has none. */
export function messageOf(e: Entry): Message | null {
  if (e.type === "custom_message") {
    const sent = e.attribution === "user"; // a skill of omp, which the user called
    return {
      role: sent ? "user" : str(e.customType) || "custom", speaker: sent ? "user" : "program", parts: partsOf(e.content), model: "", tokens: 0, cost: 0, failed: "",
    };
  }
  return e.type === "message" && isObject(e.message) ? read(e.message) : null;
}

const speakers: Record<string, Speaker> = {
  user: "user", human: "user", bashExecution: "user", pythonExecution: "user",
  assistant: "assistant", model: "assistant", ai: "assistant",
  toolResult: "tool", tool: "tool", function: "tool", system: "system", developer: "system",
  custom: "program", hookMessage: "program", compactionSummary: "summary", branchSummary: "summary",
};

/** read returns a provider's message object. */
export function read(m: Json): Message {
  const content = [m.content, m.parts, m.contents].find(holdsBlocks) ?? (typeof m.text === "string" ? m.text : undefined);
  const item = isItem(m, content);
  const speaker = item ? itemSpeaker(str(m.type)) : m.role === "function" && m.parts ? "user" : speakers[str(m.role)] ?? "other";
  const parts = item ? [part(m)] : speaker === "tool" ? results(m, content) : isCommand(m) ? command(m) : said(m, speaker, content);
  if (speaker === "user") return asked(m, parts);
  const usage = object(m, "usage", "usageMetadata", "usage_metadata") ?? {};
  const price = isObject(usage.cost) ? usage.cost : {};
  const of: Record<string, string> = { call: "assistant", result: "tool" };
  return {
    role: str(m.role) || (item && of[parts[0]!.kind]) || "message", speaker, parts, model: str(m.model), tokens: tokensOf(usage),
    cost: num(price.total), failed: speaker === "assistant" ? failureOf(m) : "",
  };
}

/** asked returns a message of the user's, or one that a program wrote in the user's name. */
function asked(m: Json, parts: Part[]): Message {
  const pieces = parts.flatMap((p) => (p.kind === "text" ? piecesOf(p.text) : [p]));
  const inserted = pieces.length > 0 && pieces.every((p) => p.kind === "text" && p.inserted);
  const rest = { model: str(m.model), tokens: 0, cost: 0, failed: "" };
  if (inserted || m.synthetic === true) return { role: "custom", speaker: "program", parts, ...rest };
  return { role: str(m.role) || "message", speaker: "user", parts: pieces, ...rest };
}

/** piecesOf returns what a person wrote of a text, and what programs put to it. */
function piecesOf(all: string): Part[] {
  return apart(all).map((text, i): Part => ({ kind: "text", text, inserted: i !== 1 })).filter((p) => p.kind === "text" && p.text);
}

function holdsBlocks(x: unknown): boolean {
  return typeof x === "string" || Array.isArray(x);
}

/** isItem reports whether a message is one of OpenAI's items that are one block. They have a type in place of a role. */
function isItem(m: Json, content: unknown): boolean {
  const type = str(m.type);
  return !str(m.role) && type !== "" && type !== "message" && (content === undefined || kindOf(type) !== "other");
}

function itemSpeaker(type: string): Speaker {
  const kind = kindOf(type);
  if (kind === "result") return "tool";
  return kind === "media" || (kind === "text" && type !== "output_text" && type !== "refusal") ? "user" : "assistant";
}

/** said returns the parts of a message that is more than a result. */
function said(m: Json, speaker: Speaker, content: unknown): Part[] {
  const thought = speaker === "assistant" ? field(m, "reasoning_content", "reasoning", "reasoning_text") : "";
  return [
    ...(thought ? [{ kind: "thinking", text: thought } as const] : []),
    ...partsOf(content),
    ...(speaker === "summary" ? partsOf(m.summary) : []),
    ...partsOf(str(m.refusal)),
    ...(Array.isArray(m.tool_calls) ? partsOf(m.tool_calls) : []),
    ...(isObject(m.function_call) ? [part(m.function_call, "function_call")] : []),
  ];
}

/** results returns the result that a message is as a whole, and those in its content. */
function results(m: Json, content: unknown): Part[] {
  const inner = partsOf(content ?? m.output);
  const others = inner.filter((p) => p.kind === "result");
  const own: Result = {
    ...resultOf(inner.filter((p) => p.kind !== "result")),
    id: field(m, "toolCallId", "tool_call_id", "call_id"), name: field(m, "toolName", "tool_name", "name"),
    failed: m.isError === true, exit: exitOf(m.details), agent: agentOf(m.details),
  };
  const named = !own.id || others.some((p) => p.id === own.id);
  if (!own.id) own.id = own.name;
  return others.length > 0 && others.length === inner.length && named ? others : [own, ...others];
}

function isCommand(m: Json): boolean {
  return m.role === "bashExecution" || m.role === "pythonExecution";
}

/** command returns what the user ran as a call with its result. */
function command(m: Json): Part[] {
  const name = str(m.role).replace("Execution", "");
  const failed = num(m.exitCode) !== 0;
  return [{ kind: "call", id: "", name, args: { command: m.command ?? m.code } },
    { ...resultOf([]), name, text: str(m.output), failed, exit: exitOf(m) }];
}

/** failures are the words of providers for an answer that failed, was held back, or was aborted, in lower case. */
const failures = new Set([
  "error", "malformed_function_call", "unexpected_tool_call", "too_many_tool_calls", "missing_thought_signature",
  "malformed_response", "malformed_model_output", "malformed_tool_use", "other", "aborted",
  "refusal", "content_filter", "content_filtered", "guardrail_intervened", "sensitive", "safety", "recitation", "blocklist",
  "prohibited_content", "spii", "language", "image_safety", "image_prohibited_content", "image_recitation",
]);

function failureOf(m: Json): string {
  const stop = field(m, "stopReason", "stop_reason", "finish_reason", "finishReason");
  if (!failures.has(stop.toLowerCase()) && m.isError !== true) return "";
  return str(m.errorMessage) || (failures.has(stop.toLowerCase()) ? stop : "error");
}

/** partsOfTotal are the counts of a usage that make its total where it has none: of pi, Anthropic, OpenAI, Bedrock, Gemini. */
const partsOfTotal = ["input", "output", "cacheRead", "cacheWrite", "input_tokens", "output_tokens",
  "cache_read_input_tokens", "cache_creation_input_tokens", "prompt_tokens", "completion_tokens",
  "inputTokens", "outputTokens", "cacheReadInputTokens", "cacheWriteInputTokens",
  "promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount"];

function tokensOf(usage: Json): number {
  return num(usage.totalTokens) || num(usage.total_tokens) || num(usage.totalTokenCount) || num(usage.total_token_count) ||
    partsOfTotal.reduce((sum, name) => sum + num(usage[name]), 0);
}

/** exitOf returns the exit code that a tool reports besides its text; null = none. */
function exitOf(details: unknown): number | null {
  const code = isObject(details) ? details.exitCode ?? details.exit_code : null;
  return typeof code === "number" ? code : null;
}

/** agentOf returns the id of the session that a call started: as details have it, or as Claude Code's agents are imported. */
function agentOf(details: unknown): string {
  if (!isObject(details)) return "";
  return str(details.session) || (str(details.agentId) && "agent-" + str(details.agentId));
}

function num(x: unknown): number {
  const n = Number(digits(x));
  return Number.isFinite(n) ? n : 0;
}

/** textOf returns the text and the thinking of parts, without calls and results. */
export function textOf(parts: readonly Part[]): string {
  return parts.map((p) => (p.kind === "text" || p.kind === "thinking" ? p.text : "")).filter(Boolean).join("\n");
}

function partsOf(content: unknown): Part[] {
  if (typeof content === "string") return content ? [{ kind: "text", text: content }] : [];
  if (Array.isArray(content)) return content.map((x) => part(x)).filter((p) => p.kind !== "text" || p.text !== "");
  return content == null ? [] : [{ kind: "other", value: content }];
}

type Kind = Part["kind"] | "media";

const kinds: Record<string, Kind> = {
  text: "text", input_text: "text", output_text: "text", refusal: "text",
  thinking: "thinking", reasoning: "thinking", redactedThinking: "thinking", redacted_thinking: "thinking",
  toolCall: "call", function: "call",
  image: "media", image_url: "media", input_image: "media", document: "media", file: "media", input_file: "media",
};

/** kindOf returns the kind of the blocks of a type. Of blocks without a type the fields decide. */
function kindOf(type: string): Kind {
  return kinds[type] ?? (/tool_use$|_call$/.test(type) ? "call" : /tool_result$|_output$|_response$/.test(type) ? "result" : "other");
}

/** part returns a block. type is its type if it does not name one. */
function part(x: unknown, type = ""): Part {
  if (typeof x === "string") return { kind: "text", text: x };
  if (!isObject(x)) return { kind: "other", value: x };
  if ("type" in x) type = str(x.type);
  const kind = kindOf(type);
  if (kind === "thinking" || isObject(x.reasoningContent)) return { kind: "thinking", text: thought(x) };
  const called = object(x, "function", "custom", "functionCall", "function_call", "toolUse");
  if (called) return call(x, called);
  const answered = object(x, "functionResponse", "function_response", "toolResult");
  if (answered) return result(answered);
  if (!type && x.thought === true) return { kind: "thinking", text: str(x.text) };
  if (kind === "text" || !type) {
    const text = [field(x, "text", "refusal"), x.text, x.content].find((t) => typeof t === "string" && (t || t === x.text));
    if (typeof text === "string") return { kind: "text", text };
    if (!type && x.json !== undefined) return { kind: "text", text: JSON.stringify(x.json) };
  }
  if (kind === "call" && (!type.endsWith("_call") || x.call_id || callTypes.has(type))) return call(x, x, type);
  if (kind === "result") return result(x);
  return image(x) ?? { kind: "other", value: x };
}

/** callTypes are the types of calls that may have no call_id. Others without one are of tools that the provider runs. */
const callTypes = new Set(["tool_call", "function_call", "custom_tool_call"]);

function thought(x: Json): string {
  if (x.type === "reasoning") return texts(x.summary, "\n\n") || texts(x.content, "\n\n") || field(x, "thinking", "text");
  if (x.type === "thinking") return texts(x.thinking, "");
  return str(object(object(x, "reasoningContent") ?? {}, "reasoningText")?.text);
}

function texts(x: unknown, separator: string): string {
  return Array.isArray(x) ? x.map((b) => (isObject(b) ? str(b.text) : "")).filter(Boolean).join(separator) : str(x);
}

/** call returns a call. Its id may be in the block, or in the object within it. */
function call(outer: Json, inner: Json, type = ""): Part {
  let args: unknown = inner.arguments ?? inner.input ?? inner.args ?? inner.action ?? inner.operation ?? {};
  if (typeof args === "string") {
    try {
      args = exact(args);
    } catch {
      // shown as the text it is
    }
  }
  const own = type.endsWith("_call") && !callTypes.has(type) ? type.slice(0, -"_call".length) : "";
  const name = str(inner.name) || own;
  const id = field(outer, "call_id", "id", "toolUseId") || field(inner, "call_id", "id", "toolUseId");
  return { kind: "call", id: id || name, name, args };
}

function result(x: Json): Part {
  let content = x.content ?? x.output ?? x.response;
  let failed = x.is_error === true || x.isError === true || x.status === "error";
  if (isObject(content)) {
    const [only, ...more] = Object.keys(content);
    if (more.length === 0 && only === "error") failed = true;
    const inner = more.length === 0 && /^(output|result|error)$/.test(only ?? "") ? content[only!] : content;
    content = typeof inner === "string" ? inner : JSON.stringify(inner);
  }
  const name = field(x, "name", "toolName");
  const id = field(x, "tool_use_id", "toolCallId", "tool_call_id", "call_id", "id", "toolUseId") || name;
  return { ...resultOf([...partsOf(content), ...(Array.isArray(x.parts) ? partsOf(x.parts) : [])]), id, name, failed };
}

/** resultOf returns a result with this content. What is not in the table is part of its text. */
function resultOf(content: readonly Part[]): Result {
  const text = textOf(content) || content.filter((p) => p.kind === "other").map((p) => JSON.stringify(p.value)).join("\n");
  return {
    kind: "result", id: "", name: "", text, failed: false, exit: null, agent: "", parts: content.filter((p) => p.kind === "image"),
  };
}

/** image returns an image by its base64 data, or by its reference "coppice-blob:sha256:HEX:BYTES"; null = it is none. */
function image(x: Json): Part | null {
  const inline = object(x, "inlineData", "inline_data") ?? object(x, "source") ?? x;
  const bedrock = object(x, "image");
  const url = isObject(x.image_url) ? str(x.image_url.url) : str(x.image_url) || str(x.url);
  const coded = /^data:([^;,]*);base64,(.*)$/s.exec(url);
  let type = field(inline, "mimeType", "mime_type", "media_type", "mediaType");
  let data = str(inline.data);
  if (bedrock) [type, data] = ["image/" + str(bedrock.format), str(object(bedrock, "source")?.bytes)];
  if (coded) [type, data] = [coded[1]!, coded[2]!];
  if (url.startsWith("coppice-blob:")) return { kind: "image", type: "", data: url };
  return data && type.startsWith("image/") ? { kind: "image", type, data } : null;
}

/** firstWords returns one line of a message's text, at most so many characters. */
export function firstWords(m: Message, most = 80): string {
  for (const p of m.parts) {
    if (p.kind === "text" && p.text.trim() && !p.inserted) {
      const line = p.text.trim().split("\n")[0]!;
      return line.length > most ? line.slice(0, most - 1) + "…" : line;
    }
    if (p.kind === "call") return p.name;
  }
  return m.role;
}
