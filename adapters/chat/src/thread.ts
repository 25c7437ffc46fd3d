// A chat as a session: each message of the user interface is a message of it, with that one as its original. Messages are
// known by the ids of the user interface; one that comes again replaces the one before.
import { Conflict, CoppiceError, Deleted, NotFound, Store, type Schemas, type StoreOptions } from "coppice-client";
import { absent, Queues, Recent } from "../../shared/index.js";
import { shown } from "./shown.js";

/** How chats are kept. */
export interface ChatOptions extends StoreOptions {
  /** Metadata of the sessions that are created, such as { user }. */
  meta?: Record<string, string>;
}
/** A message of a chat. value is what the user interface has of it, any JSON; message is what has role and content. */
export interface Item { id: string; parentId: string | null; value: unknown; message?: unknown }
/** A message of a list. Those without an id are known by what they are. */
export interface Listed { id?: string | undefined; value: unknown }

/** What the process knows of the path to the head of a chat. */
interface Known { base: string; head: string | null; path: { id: string; text: string }[] }

/** Chats whose path is kept in memory; the oldest goes. */
const maxChats = 100;
/** Times that a list is saved again because another writer was first. */
const maxRaces = 100;

export class Threads {
  readonly store: Store;
  readonly meta: Record<string, string>;
  private readonly known = new Recent<Known>(maxChats);
  private readonly queues = new Queues(); // of saves to a chat

  constructor(service: string | Store, o: ChatOptions = {}) {
    const { meta = {}, ...options } = o;
    this.store = typeof service === "string" ? new Store(service, options) : service;
    this.meta = { store: "chat", ...meta };
  }

  /** Returns all messages of a chat, and the one that is shown last. A message whose parent was deleted is below the next
   * one that is there. undefined = there is no chat. */
  async all(id: string): Promise<{ head: string | null; items: Item[] } | undefined> {
    const session = this.store.session(id), items: Item[] = [];
    const parents = new Map<string, string | null>(), there = new Set<string>();
    try {
      const { head } = await session.info();
      for await (const raw of session.entries({ path: "all", limit: "all" })) {
        const e = JSON.parse(raw.text) as { id: string; parentId: string | null; original?: unknown };
        parents.set(e.id, e.parentId);
        if (e.original === undefined) continue;
        there.add(e.id);
        items.push({ id: e.id, parentId: e.parentId, value: e.original });
      }
      const above = (at: string | null): string | null => {
        while (at !== null && !there.has(at)) at = parents.get(at) ?? null;
        return at;
      };
      return { head: above(head), items: items.map((i) => ({ ...i, parentId: above(i.parentId) })) };
    } catch (e) {
      return absent(e);
    }
  }

  /** Stores a message below its parent and makes it the head; or replaces it if the chat has it. */
  async put(id: string, { id: entry, parentId, value, message }: Item): Promise<void> {
    const root = parentId === null && { from: "" };
    await this.queues.run(id, async () => {
      this.known.delete(id);
      const o = { base: "*", onKnownId: "amend", create: this.creation(), ...root } as const;
      await this.store.session(id).commit([draft(entry, parentId, value, message)], o);
    });
  }

  /** Replaces a message, wherever the head is; or stores it if the chat does not have it. */
  async replace(id: string, item: Item): Promise<void> {
    if (item.parentId !== null) return this.put(id, item); // only a root is stored by a move
    this.known.delete(id);
    const message = draft(item.id, null, item.value, item.message);
    try {
      await this.store.session(id).amend({ entry: item.id, message }, { base: "*" });
    } catch (e) {
      if (!(e instanceof CoppiceError) || e.code !== "no-entry") absent(e);
      await this.put(id, item);
    }
  }

  /** Leaves messages out. One that is not there is no error. */
  async hide(id: string, messages: string[]): Promise<void> {
    this.known.delete(id);
    for (const entry of messages) {
      await this.store.session(id).hide({ entry }, { base: "*" }).catch((e: unknown) => {
        if (!(e instanceof CoppiceError) || e.code !== "no-entry") absent(e);
      });
    }
  }

  /** Makes a message the one that is shown last: the next one is below it. */
  async show(id: string, entry: string | null): Promise<void> {
    this.known.delete(id);
    await this.store.session(id).branch({ entry: entry ?? "" }, { base: "*" });
  }

  /** Makes the path to the head a list: stores what is new or changed, in one commit. What the list does not have stays as a
   * branch. state, if it is given, is the state of the session. */
  save(id: string, list: Listed[], o: { state?: unknown } = {}): Promise<void> {
    return this.queues.run(id, () => this.saveNow(id, list, o));
  }

  private async saveNow(id: string, list: Listed[], o: { state?: unknown }): Promise<void> {
    const texts = list.map(({ value }) => JSON.stringify(value));
    for (let races = 0; ; races++) {
      try {
        const known = this.known.get(id) ?? (await this.read(id));
        const { entries, path, root } = diff(known.path, list, texts);
        const session = this.store.session(id), last = path.at(-1)?.id ?? null;
        const now: Known = { base: known.base, head: known.head, path };
        if (entries.length || o.state !== undefined) {
          const receipt = await session.commit(entries, {
            base: known.base, onKnownId: "amend", ...(root && known.head !== null && { from: "" }), ...o,
          });
          Object.assign(now, { base: receipt.commit, head: receipt.head });
        }
        if (now.head !== last) { // a shorter list, or messages that are on another branch
          now.head = (await session.branch({ entry: last ?? "" }, { base: now.base })).head;
          now.base = session.base!;
          if (o.state !== undefined) now.base = (await session.commit([], { base: now.base, ...o })).commit;
        }
        return void this.known.set(id, now);
      } catch (e) {
        this.known.delete(id);
        if (!(e instanceof Conflict || e instanceof NotFound || e instanceof Deleted) || races >= maxRaces) throw e;
      }
    }
  }

  /** Returns the path to the head, and the state; undefined = there is no chat. */
  async path(id: string): Promise<{ values: unknown[]; state: unknown } | undefined> {
    try {
      const state: unknown = JSON.parse((await this.store.session(id).stateAt()).text), known = await this.read(id, false);
      this.known.set(id, known);
      return { values: known.path.map(({ text }) => JSON.parse(text) as unknown), state };
    } catch (e) {
      return absent(e);
    }
  }

  /** Deletes a chat with its runs and interrupts. */
  async remove(id: string): Promise<void> {
    this.known.delete(id);
    await this.store.session(id).delete({ base: "*", children: true }).catch(absent);
  }

  creation(): Schemas["NewSession"] { return { again: true, meta: this.meta }; }

  private async read(id: string, create = true): Promise<Known> {
    const session = this.store.session(id), path: Known["path"] = [];
    try {
      const { head } = await session.info(), base = session.seen!;
      if (head === null) return { base, head, path };
      for await (const raw of session.entries({ path: head, limit: "all" })) {
        const e = JSON.parse(raw.text) as { id: string; original?: unknown };
        if (e.original !== undefined) path.push({ id: e.id, text: JSON.stringify(e.original) });
      }
      return { base, head, path };
    } catch (e) {
      if (!create) throw e;
      absent(e);
    }
    try {
      return { base: (await this.store.create(id, this.creation())).base!, head: null, path };
    } catch (e) {
      if (!(e instanceof CoppiceError) || e.code !== "exists") throw e;
      return this.read(id);
    }
  }

}

/** Returns what has to be stored so that a path becomes a list: entries that are new or changed, and the path that results.
 * root: the first message is another one. */
export function diff(
  path: Known["path"], list: Listed[], texts: string[],
): { entries: object[]; path: Known["path"]; root: boolean } {
  const entries: object[] = [], out: Known["path"] = [];
  let same = true; // up to here list and path have the same messages
  for (const [i, { id, value }] of list.entries()) {
    const old: Known["path"][number] | undefined = same ? path[i] : undefined;
    const text = texts[i]!, parent = out.at(-1)?.id ?? null;
    same = old !== undefined && (id === undefined ? old.text === text : old.id === id);
    const at = same ? old!.id : (id ?? crypto.randomUUID());
    if (!same || old!.text !== text) entries.push(draft(at, parent, value));
    out.push({ id: at, text });
  }
  return { entries, path: out, root: out.length > 0 && out[0]!.id !== path[0]?.id };
}

function draft(id: string, parentId: string | null, value: unknown, message = value): object {
  return { id, parentId, timestamp: new Date().toISOString(), message: shown(message), original: value };
}
