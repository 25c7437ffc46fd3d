// A network of the test's own, and every operation of the client.
import { Session, Store, type ReadOptions, type StoreOptions } from "coppice-client";

/** The result of a request: an answer; "broken" = the connection breaks; or a function that answers. */
export type Reply = Response | "broken" | ((init: RequestInit) => Promise<Response>);

/** A store on a network that answers with replies, the last one for ever. It records requests and waits. */
export function network(replies: Reply[], more: StoreOptions = {}) {
  const sent: { url: string; method: string; headers: Headers; body: unknown; redirect: unknown }[] = [], waits: number[] = [];
  let time = 0;
  const fetch = async (url: unknown, init: RequestInit): Promise<Response> => {
    sent.push({ url: String(url), method: init.method!, headers: new Headers(init.headers), body: init.body, redirect: init.redirect });
    const reply = replies.length > 1 ? replies.shift()! : replies[0]!;
    if (reply === "broken") throw new TypeError("fetch failed", { cause: new Error("read ECONNRESET") });
    return typeof reply === "function" ? reply(init) : reply.clone();
  };
  const sleep = async (ms: number) => void (waits.push(ms), (time += ms));
  const store = new Store("http://service/", { fetch: fetch as typeof globalThis.fetch, sleep, now: () => time, random: () => 1, ...more });
  const session = store.session("s");
  session.base = "c0";
  return { session, store, sent, waits };
}

export const json = (doc: unknown, init: ResponseInit & { etag?: string } = {}): Response =>
  new Response(JSON.stringify(doc), { ...init, headers: { "Content-Type": "application/json", ...(init.etag && { ETag: `"${init.etag}"` }) } });
export const problem = (status: number, code: string, more: object = {}, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify({ type: "about:blank", title: "", status, code, detail: code, ...more }),
    { status, headers: { "Content-Type": "application/problem+json", ...headers } });
export const stored = (more: object = {}): Response => json({ entries: ["e"], seq: 1, commit: "c1", head: "e", branch: "main", io: {}, ...more }, { etag: "c1" });

type Operation = (s: Session, o: ReadOptions, store: Store) => Promise<unknown>;
const first = (items: AsyncIterator<unknown>): Promise<unknown> => items.next();

/** Every read, by the name of its method. */
export const reads: Record<string, Operation> = {
  resume: (s, o) => s.resume(o), info: (s, o) => s.info(o), blame: (s, o) => first(s.blame({}, o)), blob: (s, o) => s.blob("ab", o),
  branches: (s, o) => s.branches(o), commits: (s, o) => first(s.commits({}, o)), commitAt: (s, o) => s.commitAt("1", o),
  contextAt: (s, o) => s.contextAt({}, o), diff: (s, o) => s.diff({ a: "seq:1" }, o), entries: (s, o) => first(s.entries({}, o)),
  docs: (s, o) => s.docs({}, o), doc: (s, o) => s.doc("d", {}, o), entry: (s, o) => s.entry("e", {}, o), export: (s, o) => s.export({}, o), labels: (s, o) => s.labels(o), map: (s, o) => s.map({}, o),
  original: (s, o) => s.original(o), rows: (s, o) => s.rows({}, o), secrets: (s, o) => first(s.secrets({}, o)), snapshots: (s, o) => s.snapshots(o), stateAt: (s, o) => s.stateAt({}, o),
  usage: (s, o) => s.usage({}, o), versions: (s, o) => s.versions("e", o), turn: (s, o) => s.turn(async () => undefined, o),
  access: (_, o, store) => store.access(o), getRetention: (_, o, store) => store.getRetention(o), health: (_, o, store) => store.health(o), prompts: (_, o, store) => first(store.prompts({}, o)),
  search: (_, o, store) => first(store.search({ q: "x" }, o)), sessions: (_, o, store) => first(store.sessions({}, o)),
  "Store.entries": (_, o, store) => first(store.entries({}, o)), usages: (_, o, store) => first(store.usages({}, o)),
};
/** Every write that returns a receipt; and those that have a key. */
export const writes: Record<string, Operation> = {
  commit: (s, o) => s.commit([], o), branch: (s, o) => s.branch({ entry: "e" }, o), edit: (s, o) => s.edit({ entry: "e", message: {} }, o),
  rollback: (s, o) => s.rollback({ to: "seq:0" }, o), switch: (s, o) => s.switch({ to: "b" }, o), create: (_, o, store) => store.create("new", o),
  delete: (s, o) => s.delete(o), setInfo: (s, o) => s.setInfo({ title: "t" }, o), claim: (s, o) => s.claim(o),
  compact: (s, o) => s.compact({ summary: "s" }, o), label: (s, o) => s.label({ entry: "e", label: "l" }, o),
  amend: (s, o) => s.amend({ entry: "e", message: {} }, o), hide: (s, o) => s.hide({ entry: "e" }, o),
  erase: (s, o) => s.erase({ entries: ["e"] }, o), hold: (s, o) => s.hold({ reason: "r" }, o), release: (s, o) => s.release(o),
  renameBranch: (s, o) => s.renameBranch({ branch: "b", name: "c" }, o), snapshot: (s, o) => s.snapshot({}, o), fork: (s, o) => s.fork({ id: "new" }, o), importFile: (_, o, store) => store.importFile("{}", o),
  verify: (s, o) => s.verify({}, o), issueToken: (_, o, store) => store.issueToken({ session: "s" }, o),
};
export const keyed = new Set(["commit", "branch", "edit", "rollback", "switch", "create", "label", "claim", "setInfo", "amend", "hide", "renameBranch", "hold", "release"]);
