// A Storage of Strands Agents on a coppice service. The latest snapshot of an agent is stored as a session: its
// messages are entries and the rest is the state, so that a write sends and stores only new messages. Every other key
// is stored as a session whose state is the value. The types are structural, so the package does not depend on a
// version of the SDK.
import { Conflict, CoppiceError, Deleted, NotFound, Store, type Schemas, type StoreOptions } from "coppice-client";
import { absent, base64, hash, Queues, Recent, unbase64 } from "../../shared/index.js";
import { isMessage, shown, type MessageData } from "./messages.js";

/** Options of CoppiceStorage. */
export interface CoppiceStorageOptions extends StoreOptions {
  /** What happens if another host has written a newer snapshot. "branch" (the default): the messages of this host are
   * stored as a branch from the last common message, and its snapshot becomes the latest one. "error": the write
   * throws Conflict, and nothing is stored. */
  onConflict?: "branch" | "error";
  /** A name that separates the keys of this storage from those of others on the same service. Default "". */
  scope?: string;
}

/** A snapshot without its messages. */
interface Snapshot { data: Record<string, unknown>; [member: string]: unknown }
/** The messages of a snapshot: those on the path to the entry leaf (null = none), without the first drop ones. */
interface Range { leaf: string | null; drop: number }
/** The state of a session: a snapshot or another value. The messages of an immutable snapshot are in the session
 * `of`. */
type State = ({ snapshot: Snapshot; of?: string } & Range) | { text: string } | { base64: string };
/** A cached session of a latest snapshot: the newest known commit (base), the state there, the path to the last message
 * that this process wrote or read, and the head (undefined = not known). */
interface Known {
  base: string;
  state: State | null;
  path: { id: string; text: string }[];
  drop: number;
  head?: string | null;
}

/** Maximum number of cached sessions; the one set longest ago is dropped. */
const maxSessions = 20;
/** Maximum number of attempts to write a snapshot after other writers were first. */
const maxRaces = 100;
/** Maximum number of leading folders of a key that are stored in metadata; list filters sessions by the deepest of
 * them. */
const maxFolders = 4;
const maxKey = 1000; // maximum length of a key, in UTF-16 code units
const snapshotKey = /^(.+\/snapshots)\/(?:snapshot_latest|immutable_history\/snapshot_[\w-]+)\.json$/;

export class CoppiceStorage {
  private readonly store: Store;
  private readonly scope: string;
  private readonly onConflict: "branch" | "error";
  private readonly known = new Recent<Known>(maxSessions);
  private readonly queues = new Queues(); // writes to one session run one after the other

  constructor(service: string | Store, o: CoppiceStorageOptions = {}) {
    const { onConflict = "branch", scope = "", ...options } = o;
    this.store = typeof service === "string" ? new Store(service, options) : service;
    this.scope = scope;
    this.onConflict = onConflict;
  }

  /** Stores a value under a key, and replaces an earlier value. */
  async write(name: string, data: Uint8Array): Promise<void> {
    const key = normal(name), text = utf8(data), snapshot = text === undefined ? undefined : snapshotOf(key, text);
    const sid = await this.id(key), main = await this.id(latestOf(key));
    await this.queues.run(main, async () => {
      if (snapshot && sid === main) return this.commit(main, key, snapshot.messages, snapshot.rest);
      if (!snapshot) this.known.delete(sid);
      const range = snapshot && (await this.commit(main, latestOf(key), snapshot.messages));
      const value = text === undefined ? { base64: base64(data) } : { text };
      const state: State = range ? { snapshot: snapshot.rest, of: main, ...range } : value;
      const create = { ...this.describe(key), ...(range && { parent: main, relation: "snapshot" }) };
      await this.store.session(sid).commit([], { base: "*", state, docs: { stored: true }, create });
    });
  }

  /** Returns the value of a key, or null if none is stored. */
  async read(name: string): Promise<Uint8Array | null> {
    const sid = await this.id(normal(name)), found = await this.stateOf(sid);
    if (!found) return null;
    const { state, base } = found;
    if ("text" in state) return new TextEncoder().encode(state.text);
    if ("base64" in state) return unbase64(state.base64);
    const path = await this.pathTo(state.of ?? sid, state.leaf);
    if (!state.of) this.known.set(sid, { base, state, path, drop: state.drop });
    const messages = path.slice(state.drop).map(({ text }) => JSON.parse(text) as unknown);
    return new TextEncoder().encode(JSON.stringify({ ...state.snapshot, data: { ...state.snapshot.data, messages } }));
  }

  /** Deletes a key. The messages of a latest snapshot stay stored while an immutable snapshot refers to them. */
  async delete(name: string): Promise<void> {
    const key = normal(name), sid = await this.id(key), latest = latestOf(key), main = await this.id(latest);
    await this.queues.run(main, async () => {
      if (sid !== main) {
        await this.store.session(sid).delete({ base: "*" }).catch(absent);
        if (await this.stateOf(main)) return;
      }
      this.known.delete(main);
      const session = this.store.session(main);
      if (snapshotKey.test(key) && (await this.hasSnapshots(main))) {
        await session.commit([], { base: "*", state: null, docs: { stored: null } }).catch(absent);
      } else await session.delete({ base: "*" }).catch(absent);
    });
  }

  /** Returns the keys that begin with a prefix, in their order. */
  async list(prefix: string): Promise<string[]> {
    const start = prefix.replace(/\/{2,}/g, "/").replace(/^\//, ""), keys: string[] = [];
    refuse(start);
    const folders = foldersOf(start), deepest = folders.length ? { [`meta.in${folders.length}`]: folders.at(-1)! } : {};
    const query = { "meta.store": this.label(), ...deepest, docs: "stored", order: "id", limit: 500 } as const;
    for await (const s of this.store.sessions(query)) {
      const key = s.meta?.["key"];
      if (s.docs?.["stored"] && key?.startsWith(start)) keys.push(key);
    }
    return keys.sort();
  }

  /** The session of a key: keys have any characters, ids do not. */
  async id(key: string): Promise<string> {
    return `strands-${(await hash([this.scope, key])).slice(0, 40)}`;
  }

  /** Stores the messages of a snapshot that the session does not have, with the rest of it if it is the newest one. */
  private async commit(sid: string, key: string, messages: MessageData[], rest?: Snapshot): Promise<Range> {
    const texts = messages.map((m) => JSON.stringify(m));
    for (let races = 0; ; races++) {
      try {
        const known = this.known.get(sid) ?? (await this.newest(sid, key));
        const { keep, drop } = align(known.path.map((m) => m.text), texts, known.drop);
        const path = known.path.slice(0, keep), entries: object[] = [];
        for (let i = keep - drop; i < texts.length; i++) {
          const list = shown(messages[i]!).map((message) => ({ message, id: crypto.randomUUID() as string }));
          const last = list.at(-1)!;
          entries.push(...list.slice(0, -1), { ...last, original: messages[i] });
          path.push({ id: last.id, text: texts[i]! });
        }
        const parent = known.path[keep - 1]?.id ?? null, leaf = path.at(-1)?.id ?? null;
        if (!rest && !entries.length) return { leaf, drop };
        const state: State | null = rest ? { snapshot: rest, leaf, drop } : known.state;
        const receipt = await this.store.session(sid).commit(entries, {
          base: known.base, state, docs: { stored: state ? true : null }, // set always: a branch begins with older documents
          ...(known.head !== parent && { from: parent ?? "" }),
        });
        this.known.set(sid, { base: receipt.commit, state, path, drop, head: receipt.head });
        return { leaf, drop };
      } catch (e) {
        this.known.delete(sid);
        if (e instanceof Conflict && this.onConflict === "error") throw e;
        if (!(e instanceof Conflict || e instanceof NotFound || e instanceof Deleted) || races >= maxRaces) throw e;
      }
    }
  }

  /** Reads the newest state of a session, which the next write is based on. It creates the session if it does not
   * exist. */
  private async newest(sid: string, key: string): Promise<Known> {
    const session = this.store.session(sid);
    try {
      const state = JSON.parse((await session.stateAt()).text) as State | null, base = session.seen!;
      if (!state || !("snapshot" in state)) return { base, state, path: [], drop: 0 };
      return { base, state, path: await this.pathTo(sid, state.leaf), drop: state.drop };
    } catch (e) {
      absent(e);
    }
    try {
      const made = await this.store.create(sid, this.describe(key));
      return { base: made.base!, state: null, path: [], drop: 0, head: null };
    } catch (e) {
      if (!(e instanceof CoppiceError) || e.code !== "exists") throw e;
      return this.newest(sid, key);
    }
  }

  private async stateOf(sid: string): Promise<{ state: State; base: string } | undefined> {
    const session = this.store.session(sid), raw = await session.stateAt().catch(absent);
    const state = raw && (JSON.parse(raw.text) as State | null);
    return state ? { state, base: session.seen! } : undefined;
  }

  /** Returns the messages on the path to the entry leaf, as JSON; none if leaf is null. */
  private async pathTo(sid: string, leaf: string | null): Promise<Known["path"]> {
    const path: Known["path"] = [];
    if (leaf === null) return path;
    for await (const { text } of this.store.session(sid).entries({ path: leaf, limit: "all" })) {
      const { id, original } = JSON.parse(text) as { id: string; original?: unknown };
      if (original !== undefined) path.push({ id, text: JSON.stringify(original) });
    }
    return path;
  }

  private async hasSnapshots(main: string): Promise<boolean> {
    const { items } = await this.store.sessions({ parent: main, limit: 1 }).page();
    return items.length > 0;
  }

  private label(): string { return `strands${this.scope && `/${this.scope}`}`; }
  private describe(key: string): Schemas["NewSession"] {
    const [, session = key, agent] = /([^/]+)\/scopes\/[^/]+\/([^/]+)\/snapshots\//.exec(key) ?? [];
    const meta: Record<string, string> = { store: this.label(), key };
    for (const [i, folder] of foldersOf(key).entries()) meta[`in${i + 1}`] = folder;
    return { again: true, title: Array.from(agent ? `${session} ${agent}` : session).slice(0, 200).join(""), meta };
  }

}

/** Compares the messages of the next snapshot with those on a path, as JSON. keep is the number of messages of the path
 * that the next ones continue; drop is the number of its first messages that the next ones leave out. If the next
 * messages continue the path after its first messages were dropped (a sliding window), keep is path.length. Else keep
 * ends at the last equal message, from which the rest branches. */
export function align(path: string[], next: string[], drop: number): { keep: number; drop: number } {
  const fits = (from: number) => path.length - from <= next.length && path.slice(from).every((text, i) => text === next[i]);
  if (drop < path.length && fits(drop)) return { keep: path.length, drop };
  for (let from = drop; from < path.length; from++) {
    if (path[from] === next[0] && fits(from)) return { keep: path.length, drop: from };
  }
  let same = 0;
  while (drop + same < path.length && path[drop + same] === next[same]) same++;
  return same ? { keep: drop + same, drop } : { keep: 0, drop: 0 };
}

/** Splits a snapshot into its messages and the rest; undefined if the key or the value is not that of a snapshot. */
function snapshotOf(key: string, text: string): { rest: Snapshot; messages: MessageData[] } | undefined {
  if (!snapshotKey.test(key)) return undefined;
  try {
    const { data, ...rest } = JSON.parse(text) as Snapshot;
    const { messages, ...others } = data;
    if (!Array.isArray(messages) || !messages.every(isMessage)) return undefined;
    return { rest: { ...rest, data: others }, messages };
  } catch {
    return undefined;
  }
}

/** Returns the key whose session contains the messages: for a snapshot, that of the latest snapshot; else key itself. */
function latestOf(key: string): string {
  const [, folder] = snapshotKey.exec(key) ?? [];
  return folder === undefined ? key : `${folder}/snapshot_latest.json`;
}

function foldersOf(key: string): string[] {
  const parts = key.split("/").slice(0, -1).slice(0, maxFolders);
  return parts.map((_, i) => parts.slice(0, i + 1).join("/"));
}

/** Returns a key in the form of the SDK's storages: without empty parts. It throws for "..", and for a length out of
 * range. */
function normal(name: string): string {
  const key = name.replace(/\/{2,}/g, "/").replace(/^\/|\/$/g, "");
  refuse(key);
  if (key === "" || key.length > maxKey) throw new Error(`the key has ${key.length} characters: 1 to ${maxKey} can be stored`);
  return key;
}
function refuse(key: string): void {
  if (key.split("/").includes("..")) throw new Error(`the key ${key} has a part ".."`);
}

function utf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
