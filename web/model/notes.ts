// Entries that are no messages, in words. Pure.
import type { Entry } from "../api/client.ts";
import { said } from "./path.ts";

function str(x: unknown): string {
  return typeof x === "string" ? x : "";
}

/** noteOf returns one line about an entry, and its data as JSON where it has some that the line does not show. */
export function noteOf(e: Entry): { text: string; detail: string } {
  switch (e.type) {
    case "model_change":
      return plain("model: " + ([str(e.provider), str(e.modelId) || str(e.model)].filter(Boolean).join("/") || "not said"));
    case "thinking_level_change":
      return plain("thinking: " + (str(e.thinkingLevel) || "off"));
    case "label":
      return plain(str(e.label) ? "label: " + str(e.label) : "label removed");
    case "session_info": case "title_change":
      return plain(str(e.name) || str(e.title) ? "title: " + (str(e.name) || str(e.title)) : "title removed");
    case "mode_change":
      return plain("mode: " + str(e.mode));
    case "message": case "custom_message":
      return plain("hidden by an amendment");
    case "custom":
      return custom(e);
  }
  return { text: e.type.replaceAll("_", " "), detail: rest(e) };
}

function plain(text: string): { text: string; detail: string } {
  return { text, detail: "" };
}

function custom(e: Entry): { text: string; detail: string } {
  const name = str(e.customType);
  if (name === "coppice.move") return plain("working directory: " + (str((e.data as { cwd?: unknown })?.cwd) || "changed"));
  if (name === "coppice.amend") return plain("an entry was amended");
  return { text: name ? "note of " + name : "note", detail: rest(e) };
}

/** rest returns the fields of an entry that every entry does not have, as JSON; "" = none. */
export function rest(e: Entry): string {
  const { type: _type, id: _id, parentId: _parent, timestamp: _time, customType: _custom, ...others } = e;
  return Object.keys(others).length > 0 ? JSON.stringify(others, null, 2) : "";
}

/**
 * contextAfter returns the tokens of the context that the first answer after a compaction reports; 0 = none that is
 * loaded does.
 */
export function contextAfter(entries: readonly Entry[], compaction: Entry): number {
  const at = entries.indexOf(compaction);
  for (const e of entries.slice(at + 1, at + 50)) {
    if (e.type === "compaction") return 0;
    if (said(e)?.role !== "assistant") continue;
    const usage = ((e.message as { usage?: Record<string, unknown> }).usage ?? {});
    const of = (...names: string[]) => names.reduce((sum, n) => sum + (typeof usage[n] === "number" ? usage[n] : 0), 0);
    const tokens = of("input", "cacheRead", "cacheWrite") || of("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens");
    if (tokens > 0) return tokens;
  }
  return 0;
}
