// What calls of tools are about. Pure.
import type { Entry } from "../api/client.ts";
import { digits } from "../api/exact.ts";

type Json = Record<string, unknown>;

function fields(args: unknown): Json {
  return typeof args === "object" && args !== null && !Array.isArray(args) ? (args as Json) : {};
}

/** telling are the arguments that show what a call is about, the most useful first. */
const telling = ["command", "file_path", "path", "filePath", "pattern", "query", "url", "description", "task", "prompt"];

/** mainArgument returns one line that shows what a call is about; "" = it has no text for arguments. */
export function mainArgument(args: unknown): string {
  if (typeof args === "string") return oneLine(args);
  const f = fields(args);
  const name = telling.find((key) => typeof f[key] === "string" && f[key] !== "");
  const texts = name ? [f[name]] : Object.values(f);
  return oneLine(texts.map((v) => (typeof v === "string" ? v : digits(v))).find(Boolean) ?? "");
}

function oneLine(text: string): string {
  return text.slice(0, 400).replace(/\s+/g, " ").trim();
}

/** An Edit is a text that a tool puts in place of another one. patch = it is a difference already. */
export type Edit = { path: string } & ({ before: string; after: string } | { patch: string });

/** mostEdits bounds the edits of one call. */
const mostEdits = 100;

/** editsOf returns what a call changes in files; none = it is no edit in a form that is known. */
export function editsOf(args: unknown): Edit[] {
  if (typeof args === "string") return /^\*\*\* Begin Patch|^(---|diff --git) /.test(args) ? [{ path: "", patch: args }] : [];
  const f = fields(args);
  const path = text(f.file_path) || text(f.path) || text(f.filePath);
  const patch = text(f.patch) || text(f.diff) || text(f.input);
  if (/^\*\*\* Begin Patch|^(---|diff --git|@@) /m.test(patch)) return [{ path, patch }];
  if (Array.isArray(f.edits)) {
    return f.edits.slice(0, mostEdits).flatMap((e) => editOf(fields(e), path));
  }
  return editOf(f, path);
}

function editOf(f: Json, path: string): Edit[] {
  const before = f.old_string ?? f.oldText ?? f.old_str ?? f.oldString;
  const after = f.new_string ?? f.newText ?? f.new_str ?? f.newString;
  return typeof before === "string" && typeof after === "string" ? [{ path, before, after }] : [];
}

function text(x: unknown): string {
  return typeof x === "string" ? x : "";
}

/** languages are the names of languages by the ends of file names. */
const languages: Record<string, string> = {
  go: "go", ts: "typescript", tsx: "typescript", js: "javascript", mjs: "javascript", jsx: "javascript", py: "python",
  rs: "rust", java: "java", c: "c", h: "c", json: "json", yaml: "yaml", yml: "yaml", html: "xml", xml: "xml",
  sql: "sql", sh: "bash",
};

/** languageOf returns the language of a result, by the file that was read; "" = none is known. */
export function languageOf(args: unknown, result: string): string {
  if (/^(diff --git |--- \S)/.test(result)) return "diff";
  const f = fields(args);
  const path = text(f.file_path) || text(f.path) || text(f.filePath);
  return languages[/\.(\w+)$/.exec(path)?.[1] ?? ""] ?? "";
}

/** secondsOf returns how long a call took by the times of its entries; 0 = it is not known, or no time. */
export function secondsOf(call: Entry, result: Entry | undefined): number {
  if (!result || result === call || !call.timestamp || !result.timestamp) return 0;
  const s = (Date.parse(result.timestamp) - Date.parse(call.timestamp)) / 1000;
  return s >= 0.05 ? s : 0;
}

/** took returns how long a call took by the times of its entries; "" = it is not known, or no time. */
export function took(call: Entry, result: Entry | undefined): string {
  const s = secondsOf(call, result);
  if (s === 0) return "";
  if (s < 60) return s.toFixed(1) + " s";
  return s < 3600 ? `${Math.floor(s / 60)} min ${Math.round(s % 60)} s` : `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
}
