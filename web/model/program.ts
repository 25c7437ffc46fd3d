// What programs write between the messages of people and models: events, commands, reminders and notices. Pure.
import { stretches } from "./ansi.ts";
import type { Entry } from "../api/client.ts";
import type { Message } from "./message.ts";

/** How a text of a program is shown. Each is one line until it is opened. */
export type Look = "command" | "output" | "reminder" | "notice" | "failure";

/** An Aside is a text of a program. title is its line; text is what opens below it, "" = nothing. */
export interface Aside {
  look: Look;
  title: string;
  text: string;
}

type Json = Record<string, unknown>;

function object(x: unknown): Json {
  return typeof x === "object" && x !== null && !Array.isArray(x) ? (x as Json) : {};
}

function str(x: unknown): string {
  return typeof x === "string" ? x : "";
}

/** replaced are messages that a program stored for its own use after a compaction. */
const replaced = "codex.replacement";

/**
 * isEvent reports whether an entry is a note that a program keeps for itself. Such notes are hidden unless they are asked
 * for: in a session of a coding agent there are more of them than messages.
 */
export function isEvent(e: Entry): boolean {
  let is = known.get(e);
  if (is === undefined) known.set(e, (is = lookAt(e)));
  return is;
}

const known = new WeakMap<Entry, boolean>();

function lookAt(e: Entry): boolean {
  switch (e.type) {
    case "custom": return !str(e.customType).startsWith("coppice.") && noticeOf(e) === null;
    case "custom_message": return e.customType === replaced;
    case "usage": return true;
  }
  return false;
}

/** eventName returns what kind of event an entry is, in words: "progress", "token count". */
export function eventName(e: Entry): string {
  if (e.type !== "custom" && e.type !== "custom_message") return e.type.replaceAll("_", " ");
  const data = object(e.data);
  const name = str(e.customType);
  const kind = str(data.subtype) || str(object(data.attachment).type) || name.slice(name.lastIndexOf(".") + 1) || "note";
  return kind.replace(/[_-]+/g, " ");
}

/** mostNamed bounds the kinds of events that are named in the line of a run. */
const mostNamed = 3;

/** runText returns one line about a run of events: "37 progress events". */
export function runText(run: readonly Entry[]): string {
  const kinds = new Map<string, number>();
  for (const e of run) kinds.set(eventName(e), (kinds.get(eventName(e)) ?? 0) + 1);
  const [first] = kinds.keys();
  if (kinds.size === 1) return run.length === 1 ? `1 ${first} event` : `${run.length} ${first} events`;
  const list = [...kinds].sort((a, b) => b[1] - a[1]);
  const named = list.slice(0, mostNamed).map(([kind, n]) => (n === 1 ? kind : `${n} ${kind}`));
  return `${run.length} program events: ${named.join(", ")}${list.length > mostNamed ? ", …" : ""}`;
}

/** eventWords returns what an event is about, in one line; "" = it has no text. */
export function eventWords(e: Entry): string {
  const data = object(e.data);
  const inner = [object(data.payload), object(data.attachment), object(data.data), data];
  const names = ["message", "text", "content", "hookName", "operation", "permissionMode", "mode", "lastPrompt", "query"];
  for (const x of inner) {
    const found = names.map((name) => str(x[name])).find(Boolean);
    if (found) return line(found);
  }
  return "";
}

const longest = 140;

/** line returns the start of a text as one line. */
function line(text: string): string {
  const start = stretches(text.slice(0, 4 * longest)).map((s) => s.text).join("");
  const one = start.replace(/\s+/g, " ").trim();
  return one.length > longest ? one.slice(0, longest - 1) + "…" : one;
}

/** noticeOf returns what an entry means to a person that is no message; null = it is an event, or has a form of its own. */
export function noticeOf(e: Entry): Aside | null {
  const data = object(e.data);
  switch (e.type === "custom" ? str(e.customType) : "") {
    case "claude-code.system": return systemNotice(data);
    case "claude-code.attachment": {
      const a = object(data.attachment);
      if (a.type !== "hook_blocking_error") return null;
      return { look: "failure", title: "blocked by the hook " + str(a.hookName), text: str(object(a.blockingError).blockingError) };
    }
    case "codex.turn_aborted": return { look: "notice", title: "turn aborted: " + (str(object(data.payload).reason) || "no reason"), text: "" };
    case "codex.error": case "codex.stream_error":
      return { look: "failure", title: line(str(object(data.payload).message)) || "error", text: "" };
  }
  return null;
}

function systemNotice(data: Json): Aside | null {
  const content = str(data.content);
  switch (data.subtype) {
    case "local_command": return asidesOf(content)[0] ?? null;
    case "away_summary": return { look: "notice", title: "while you were away: " + line(content), text: content };
    case "scheduled_task_fire": return { look: "notice", title: line(content), text: "" };
    case "api_error": {
      const error = object(data.error);
      const what = str(error.message) || (typeof error.status === "number" ? "status " + error.status : "");
      const again = typeof data.retryAttempt === "number" ? `, attempt ${data.retryAttempt} of ${String(data.maxRetries)}` : "";
      return { look: "failure", title: line("the provider did not answer" + (what ? ": " + what : "")) + again, text: "" };
    }
  }
  return null;
}

/** titles are what elements that programs insert are called. Others are called by the words of their tag. */
const titles: Record<string, string> = {
  "system-reminder": "reminder", "local-command-caveat": "note about commands", ide_selection: "selection in the editor",
  ide_opened_file: "file open in the editor", ide_diagnostics: "diagnostics of the editor", INSTRUCTIONS: "instructions",
  "local-command-stdout": "output", "bash-stdout": "output", "local-command-stderr": "error output", "bash-stderr": "error output",
};

/** spoken are the elements in which other agents and programs speak to this one. */
const spoken = new Set(["teammate-message", "peer-message", "cross-session-message", "channel", "subagent_notification",
  "agent_message_board_notification", "task-notification", "turn_aborted"]);

const element = /<([A-Za-z][\w-]*(?: instructions)?)(?: [^>]*)?>([^]*?)<\/\1>/g;

/** asidesOf returns what a text consists of that a program wrote. */
export function asidesOf(text: string): Aside[] {
  const list: Aside[] = [];
  let end = 0;
  const between = (to: number) => {
    const rest = text.slice(end, to).trim();
    if (rest) list.push(loose(rest));
  };
  for (const m of text.matchAll(element)) {
    between(m.index);
    end = m.index + m[0].length;
    addElement(list, m[1]!, m[2]!.trim());
  }
  between(text.length);
  return list;
}

/** addElement adds an element. The parts of a command are three. */
function addElement(list: Aside[], tag: string, body: string): void {
  const last = list.at(-1);
  switch (tag) {
    case "command-message": return;
    case "command-name":
      list.push({ look: "command", title: line(body), text: "" });
      return;
    case "command-args":
      if (last?.look !== "command") list.push(last ?? { look: "command", title: line(body), text: "" });
      else if (body) Object.assign(last, { title: line(`${last.title} ${body}`), text: body.length > longest || body.includes("\n") ? body : "" });
      return;
    case "bash-input": case "user_shell_command":
      list.push({ look: "command", title: "! " + line(body), text: body.includes("\n") ? body : "" });
      return;
  }
  const name = titles[tag] ?? tag.replace(/[_-]+/g, " ");
  const output = /-std(out|err)$/.test(tag);
  if (output && body === "") return;
  const words = line(/<summary>([^]*?)<\/summary>/.exec(body)?.[1] ?? body);
  list.push({ look: output ? "output" : spoken.has(tag) ? "notice" : "reminder", title: words ? `${name}: ${words}` : name, text: body });
}

/** loose returns a text that is in no element. */
function loose(text: string): Aside {
  if (/^\[Request interrupted by user[^\]]*\]$/.test(text)) return { look: "notice", title: "interrupted by the user", text: "" };
  if (text.startsWith("# AGENTS.md instructions")) return { look: "reminder", title: "instructions of AGENTS.md", text };
  return { look: "reminder", title: line(text), text };
}

/** names are what messages of programs are called that no person saw. */
const names: Record<string, string> = { "codex.developer": "instructions", "codex.context": "context" };

/** messageAsides returns what a message of a program consists of; null = it is shown as the message that it is. */
export function messageAsides(e: Entry, m: Message): Aside[] | null {
  if (m.speaker !== "program") return null;
  const shown = e.type === "custom_message" && e.display !== false && !str(e.customType).startsWith("claude-code.");
  const texts = m.parts.map((p) => (p.kind === "text" ? p.text : null));
  if (texts.includes(null)) return null; // an image, or what is not known
  const all = texts.join("\n");
  if (e.customType === "codex.agent_message") {
    const from = /^Sender: (.+)$/m.exec(all)?.[1];
    return [{ look: "notice", title: "message of " + (from ?? "an agent"), text: all }];
  }
  const name = names[str(e.customType)];
  if (name) return [{ look: "reminder", title: `${name}: ${line(all.slice(0, 8 * longest).replace(/<\/?[\w -]+>/g, " "))}`, text: all }];
  return shown ? null : asidesOf(all);
}
