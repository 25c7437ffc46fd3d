// What the messages of a line show of an agent that stored no state: model, mode, task list, files, tokens. Pure.
import type { Entry } from "../api/client.ts";
import { said } from "./path.ts";
import { editsOf } from "./tools.ts";

type Json = Record<string, unknown>;

/** A Task is an item of a task list. */
export interface Task {
  text: string;
  status: "open" | "active" | "done";
  id?: string; // that its program gave it
}

/** A Fact is what one entry changes. Fields that are absent change nothing. */
export interface Fact {
  id: string;
  model?: string;
  thinking?: string;
  mode?: string;
  tasks?: Task[]; // the whole list
  added?: Task[]; // at the end of the list
  named?: string[]; // the ids of tasks that were added
  changed?: { id: string; status: Task["status"] | "gone" }[];
  read?: string[]; // files
  written?: string[];
  tokens?: number; // of an answer
  context?: number; // tokens that an answer was made on
  cost?: number;
  failed?: number;
}

/** Files are the names of files, each with the last entry that used it. */
export type Files = ReadonlyMap<string, string>;

/** A Derived is what facts add up to. */
export interface Derived {
  model: string;
  thinking: string;
  mode: string;
  tasks: Task[];
  read: Files; // without those that were written
  written: Files;
  tokens: number;
  context: number;
  cost: number;
  answers: number;
  failed: number;
}

function object(x: unknown): Json {
  return typeof x === "object" && x !== null && !Array.isArray(x) ? (x as Json) : {};
}

function str(x: unknown): string {
  return typeof x === "string" ? x : "";
}

function num(x: unknown): number {
  return typeof x === "number" ? x : 0;
}

const readers = /^(read|view|open|cat|read_?file|view_?file|notebook_?read)$/i;
const writers = /^(write|edit|multi_?edit|create|write_?file|create_?file|edit_?file|str_replace\w*|insert|notebook_?edit|apply_?patch)$/i;
const patched = /^\*\*\* (?:Add|Update|Delete|Move to)(?: File)?: (.+)$/gm;

/** maxTasks bounds the items of a task list. */
const maxTasks = 200;

/** factOf returns what an entry changes; null = nothing. */
export function factOf(e: Entry): Fact | null {
  const f: Fact = { id: e.id };
  switch (e.type) {
    case "model_change": f.model = [str(e.provider), str(e.modelId) || str(e.model)].filter(Boolean).join("/"); break;
    case "thinking_level_change": f.thinking = str(e.thinkingLevel) || "off"; break;
    case "mode_change": f.mode = str(e.mode); break;
    case "custom": noted(f, e); break;
    default: spoken(f, e);
  }
  return Object.keys(f).length > 1 ? f : null;
}

/** noted takes what programs note for themselves. */
function noted(f: Fact, e: Entry): void {
  const data = object(e.data);
  const payload = object(data.payload);
  switch (e.customType) {
    case "claude-code.permission-mode": f.mode = str(data.permissionMode); break;
    case "codex.turn_context":
      f.mode = [str(payload.approval_policy), str(object(payload.sandbox_policy).type) || str(object(payload.sandbox_policy).mode)].filter(Boolean).join(", ");
      break;
    case "codex.patch_apply_end": f.written = Object.keys(object(payload.changes)); break;
  }
}

function spoken(f: Fact, e: Entry): void {
  const m = said(e);
  if (!m) return;
  if (m.failed || m.parts.some((p) => p.kind === "result" && p.failed)) f.failed = 1;
  const created = m.parts.flatMap((p) => (p.kind === "result" ? [/^Task #(\d+) created/.exec(p.text)?.[1] ?? ""] : [])).filter(Boolean);
  if (created.length > 0) f.named = created;
  if (m.speaker !== "assistant") return;
  if (m.model) f.model = m.model;
  f.tokens = m.tokens;
  f.cost = m.cost;
  const usage = object(object(e.message).usage);
  const context = ["input", "cacheRead", "cacheWrite", "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"]
    .reduce((sum, name) => sum + num(usage[name]), 0);
  if (context > 0) f.context = context;
  for (const p of m.parts) if (p.kind === "call") called(f, p.name, p.args);
}

function called(f: Fact, name: string, args: unknown): void {
  const a = object(args);
  const path = str(a.file_path) || str(a.path) || str(a.filePath) || str(a.notebook_path);
  if (readers.test(name) && path) (f.read ??= []).push(path);
  if (writers.test(name)) {
    const patch = typeof args === "string" ? args : str(a.patch) || str(a.input);
    (f.written ??= []).push(...(path ? [path] : [...editsOf(args).map((x) => x.path), ...[...patch.matchAll(patched)].map((x) => x[1]!)].filter(Boolean)));
  }
  if (/^task_?create$/i.test(name) && str(a.subject)) (f.added ??= []).push({ text: str(a.subject), status: "open" });
  else if (/^task_?update$/i.test(name) && str(a.status)) {
    (f.changed ??= []).push({ id: str(a.taskId) || String(num(a.taskId)), status: a.status === "deleted" ? "gone" : statusOf(a) });
  }
  else if (/todo|plan/i.test(name)) {
    const list = [a.todos, a.plan, a.items, a.tasks].find(Array.isArray) as unknown[] | undefined;
    if (list) f.tasks = list.slice(0, maxTasks).map(object).map((x) => ({ text: textOf(x), status: statusOf(x) })).filter((t) => t.text !== "");
  }
}

function textOf(x: Json): string {
  return [x.content, x.step, x.text, x.title, x.subject, x.description].map(str).find(Boolean) ?? "";
}

function statusOf(x: Json): Task["status"] {
  const status = str(x.status) || (x.done === true || x.completed === true ? "done" : "");
  if (/^(completed?|done)$/i.test(status)) return "done";
  return /progress|active|doing/i.test(status) ? "active" : "open";
}

/** derive adds up facts, in the order of their entries. */
export function derive(facts: readonly Fact[]): Derived {
  const d: Derived = {
    model: "", thinking: "", mode: "", tasks: [], read: new Map(), written: new Map(), tokens: 0, context: 0, cost: 0, answers: 0, failed: 0,
  };
  const read = new Map<string, string>();
  const written = new Map<string, string>();
  for (const f of facts) {
    d.model = f.model ?? d.model;
    d.thinking = f.thinking ?? d.thinking;
    d.mode = f.mode || d.mode;
    d.context = f.context ?? d.context;
    d.tokens += f.tokens ?? 0;
    d.cost += f.cost ?? 0;
    d.answers += f.tokens === undefined ? 0 : 1;
    d.failed += f.failed ?? 0;
    if (f.tasks) d.tasks = f.tasks;
    if (f.added) d.tasks = [...d.tasks, ...f.added].slice(0, maxTasks);
    for (const id of f.named ?? []) d.tasks = first(d.tasks, (t) => t.id === undefined, (t) => ({ ...t, id }));
    for (const { id, status } of f.changed ?? []) {
      d.tasks = first(d.tasks, (t) => t.id === id, (t) => (status === "gone" ? null : { ...t, status }));
    }
    for (const path of f.read ?? []) read.set(path, f.id);
    for (const path of f.written ?? []) written.set(path, f.id);
  }
  for (const path of written.keys()) read.delete(path);
  return { ...d, read, written };
}

/** first returns a list of tasks after a change of the first one for which is holds; null = it is taken out. */
function first(list: Task[], is: (t: Task) => boolean, change: (t: Task) => Task | null): Task[] {
  const at = list.findIndex(is);
  const next = at < 0 ? null : change(list[at]!);
  return at < 0 ? list : next === null ? list.toSpliced(at, 1) : list.with(at, next);
}

/** upTo returns the facts of the entries up to and with one; all, if it is not among the entries. ids are those of all entries. */
export function upTo(facts: readonly Fact[], ids: readonly string[], entry: string | null): readonly Fact[] {
  const at = entry === null ? -1 : ids.indexOf(entry);
  if (at < 0) return facts;
  const before = new Set(ids.slice(0, at + 1));
  return facts.filter((f) => before.has(f.id));
}
