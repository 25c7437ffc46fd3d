// What is shown is in the URL, and nothing else: a link shows another person the same. Looking never moves the head.

/** The panes next to the conversation. "none" closes the column. */
export const panes = ["map", "state", "context", "compare", "usage", "none"] as const;
export type Pane = (typeof panes)[number];

/** The filters of a drawn tree, as the API names them. */
export const filters = ["default", "no-tools", "user-only", "labeled-only", "all"] as const;
export type Filter = (typeof filters)[number];

/** The sizes of the map's rows, by what they show, and the forms of a context: as stored, and the requests of APIs. */
export const zooms = ["outline", "lines", "details"] as const;
export const forms = ["", "anthropic", "openai-chat", "openai-responses", "gemini"] as const;
export type Form = (typeof forms)[number];

/** What fills a phone's screen. */
export const tabs = ["talk", "sessions", "side"] as const;
export type Tab = (typeof tabs)[number];

/**
 * A View is what a URL shows. line is the entry at the end of the path that is read; null = the head, which it follows.
 * at is the entry that is looked at; null = the end of the line. seq is the commit whose state and context are shown;
 * null = that of at. compare is a second target, as the API takes it ("seq:4", "snap:ID", an entry), or
 * "session-id/target".
 */
export interface View {
  session: string | null;
  line: string | null;
  at: string | null;
  seq: number | null;
  pane: Pane;
  compare: string | null;
  path: string | null; // JSON pointer of the value whose history is shown
  filter: Filter;
  search: string;
  rows: (typeof zooms)[number];
  form: Form; // of what the model saw
  events: boolean; // the conversation shows what programs noted for themselves
  text: boolean; // the state is shown as text
  tab: Tab | null; // on a phone; null = what tabOf returns
}

/** home returns the view of the list of sessions, or of a session at its head. */
export function home(session: string | null = null): View {
  return {
    session, line: null, at: null, seq: null, pane: "map", compare: null, path: null, filter: "default", search: "",
    rows: "lines", form: "", events: false, text: false, tab: null,
  };
}

/** tabOf returns what fills a phone's screen: the conversation, unless the view names or needs another one. */
export function tabOf(v: View): Tab {
  return v.tab ?? (v.session === null ? "sessions" : v.pane === "map" || v.pane === "none" ? "talk" : "side");
}

/** parse returns the view that a URL names, below a base path such as "/coppice". What it does not know is left out. */
export function parse(base: string, pathname: string, query: string): View {
  const rest = pathname.startsWith(base) ? pathname.slice(base.length) : pathname;
  const m = /^\/s\/([^/]+)\/?$/.exec(rest);
  const v = home(m ? decode(m[1]!) : null);
  const q = new URLSearchParams(query);
  v.line = q.get("line");
  v.at = q.get("at");
  const seq = q.get("seq");
  if (seq !== null && /^\d{1,15}$/.test(seq)) v.seq = Number(seq);
  v.pane = oneOf(panes, q.get("pane")) ?? "map";
  v.compare = q.get("with");
  v.path = q.get("path");
  v.filter = oneOf(filters, q.get("filter")) ?? "default";
  v.search = q.get("q") ?? "";
  v.rows = oneOf(zooms, q.get("rows")) ?? v.rows;
  v.form = oneOf(forms, q.get("form")) ?? v.form;
  v.events = q.get("events") === "all";
  v.text = q.get("as") === "text";
  v.tab = oneOf(tabs, q.get("tab")) ?? null;
  return v;
}

/** format returns the path and query of a view: parse(base, ...format(base, v)) is v. */
export function format(base: string, v: View): string {
  const q = new URLSearchParams();
  const set = (name: string, value: string | null) => {
    if (value !== null && value !== "") q.set(name, value);
  };
  set("line", v.line);
  set("at", v.at);
  set("seq", v.seq === null ? null : String(v.seq));
  set("pane", v.pane === "map" ? null : v.pane);
  set("with", v.compare);
  if (v.path !== null && v.pane === "state") q.set("path", v.path); // "" is the whole document
  set("filter", v.filter === "default" ? null : v.filter);
  set("q", v.search);
  set("rows", v.rows === "lines" ? null : v.rows);
  set("form", v.form);
  set("events", v.events ? "all" : null);
  set("as", v.text ? "text" : null);
  set("tab", v.tab);
  const text = q.toString();
  return base + (v.session === null ? "/" : "/s/" + encodeURIComponent(v.session)) + (text ? "?" + text : "");
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function oneOf<T extends string>(all: readonly T[], text: string | null): T | undefined {
  return all.find((x) => x === text);
}
