// What a message says, in the shapes of pi, Anthropic, OpenAI and Gemini. What is not known stays JSON. Pure.
import type { Entry } from "../api/client.ts";
import { digits, exact } from "./exact.ts";

/** A Result is what came back of a call. agent is the session that the call started; "" = it does not say so. */
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
  | { kind: "text"; text: string }
  | { kind: "thinking"; text: string }
  | { kind: "call"; id: string; name: string; args: unknown }
  | Result
  | { kind: "image"; type: string; data: string }
  | { kind: "other"; value: unknown };

export interface Message {
  role: string;
  parts: Part[];
  model: string;
  tokens: number; // that the answer took, with what the model read and caches, 0 = not said
  cost: number;
  failed: string; // the error that the message reports, "" = none
}

type Json = Record<string, unknown>;

function isObject(x: unknown): x is Json {
  return typeof x === "object" && x !== null && !Array.isArray(x);
}

function str(x: unknown): string {
  return typeof x === "string" ? x : "";
}

/** messageOf returns the message of an entry; null for an entry that has none. */
export function messageOf(e: Entry): Message | null {
  if (e.type === "custom_message") {
    return { ...none, role: str(e.customType) || "custom", parts: partsOf(e.content) };
  }
  return e.type === "message" && isObject(e.message) ? read(e.message) : null;
}

const none = { model: "", tokens: 0, cost: 0, failed: "" };

/** read returns what a provider's message object says. */
export function read(m: Json): Message {
  const usage = isObject(m.usage) ? m.usage : {};
  const price = isObject(usage.cost) ? usage.cost : {};
  const role = str(m.role) || "message";
  let parts = partsOf(m.content ?? m.parts ?? m.output);
  if (Array.isArray(m.tool_calls)) parts = parts.concat(m.tool_calls.map(call));
  if (role === "toolResult" || role === "tool") {
    parts = [{
      kind: "result", id: str(m.toolCallId) || str(m.tool_call_id), name: str(m.toolName) || str(m.name),
      text: textOf(parts), failed: m.isError === true, exit: exitOf(m.details),
      agent: agentOf(m.details), parts: parts.filter((p) => p.kind === "image"),
    }];
  }
  if (role === "bashExecution") {
    const failed = typeof m.exitCode === "number" && m.exitCode !== 0;
    parts = [{ kind: "call", id: "", name: "bash", args: { command: m.command } },
      { kind: "result", id: "", name: "bash", text: str(m.output), failed, exit: exitOf(m), agent: "", parts: [] }];
  }
  return {
    role, parts, model: str(m.model), tokens: tokensOf(usage),
    cost: num(price.total), failed: m.stopReason === "error" ? str(m.errorMessage) || "failed" : "",
  };
}

/** parts of a usage that make its total where it says none, in the names of pi and Anthropic, and of OpenAI. */
const partsOfTotal = ["input", "output", "cacheRead", "cacheWrite", "input_tokens", "output_tokens",
  "cache_read_input_tokens", "cache_creation_input_tokens", "prompt_tokens", "completion_tokens"];

function tokensOf(usage: Json): number {
  return num(usage.totalTokens) || num(usage.total_tokens) || partsOfTotal.reduce((sum, name) => sum + num(usage[name]), 0);
}

/** exitOf returns the exit code that a tool reports beside its text; null = none. */
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

/** textOf returns what parts say and think, without calls and results. */
export function textOf(parts: readonly Part[]): string {
  return parts.map((p) => (p.kind === "text" || p.kind === "thinking" ? p.text : "")).filter(Boolean).join("\n");
}

function partsOf(content: unknown): Part[] {
  if (typeof content === "string") return content ? [{ kind: "text", text: content }] : [];
  return Array.isArray(content) ? content.map(part) : content == null ? [] : [{ kind: "other", value: content }];
}

function part(x: unknown): Part {
  if (typeof x === "string") return { kind: "text", text: x };
  if (!isObject(x)) return { kind: "other", value: x };
  switch (x.type) {
    case "text": case "input_text": case "output_text":
      return { kind: "text", text: str(x.text) };
    case "thinking": case "reasoning":
      return { kind: "thinking", text: str(x.thinking) || str(x.text) };
    case "toolCall": case "tool_use": case "function_call": case "function":
      return call(x);
    case "tool_result": case "function_call_output":
      return result(x);
    case "image": case "image_url": case "input_image":
      return image(x);
  }
  if (typeof x.text === "string") return { kind: x.thought === true ? "thinking" : "text", text: x.text };
  if (isObject(x.functionCall)) return call(x.functionCall);
  if (isObject(x.functionResponse)) return result(x.functionResponse);
  if (isObject(x.inlineData)) return { kind: "image", type: str(x.inlineData.mimeType), data: str(x.inlineData.data) };
  return { kind: "other", value: x };
}

function call(x: unknown): Part {
  if (!isObject(x)) return { kind: "other", value: x };
  const f = isObject(x.function) ? x.function : x;
  let args: unknown = f.arguments ?? f.input ?? f.args ?? {};
  if (typeof args === "string") {
    try {
      args = exact(args);
    } catch {
      // shown as the text it is
    }
  }
  return { kind: "call", id: str(x.id) || str(x.call_id), name: str(f.name), args };
}

function result(x: Json): Part {
  const inner = partsOf(x.content ?? x.output ?? x.response);
  return {
    kind: "result", id: str(x.tool_use_id) || str(x.call_id) || str(x.id), name: str(x.name),
    text: textOf(inner) || inner.filter((p) => p.kind === "other").map((p) => JSON.stringify(p.value)).join("\n"),
    failed: x.is_error === true, exit: null, agent: "", parts: inner.filter((p) => p.kind === "image"),
  };
}

/** image returns an image by its base64 data, or by its reference "coppice-blob:sha256:HEX:BYTES". */
function image(x: Json): Part {
  const source = isObject(x.source) ? x.source : {};
  const url = isObject(x.image_url) ? str(x.image_url.url) : str(x.image_url);
  const inline = /^data:([^;,]*);base64,(.*)$/s.exec(url);
  if (inline) return { kind: "image", type: inline[1]!, data: inline[2]! };
  if (url.startsWith("coppice-blob:")) return { kind: "image", type: "", data: url };
  return { kind: "image", type: str(x.mimeType) || str(source.media_type), data: str(x.data) || str(source.data) };
}

/** firstWords returns one line of what a message says, at most so many characters. */
export function firstWords(m: Message, most = 80): string {
  for (const p of m.parts) {
    if (p.kind === "text" && p.text.trim()) {
      const line = p.text.trim().split("\n")[0]!;
      return line.length > most ? line.slice(0, most - 1) + "…" : line;
    }
    if (p.kind === "call") return p.name;
  }
  return m.role;
}
