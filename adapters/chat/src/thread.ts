// Stores a chat of a user interface as a session. Each message of the user interface becomes an entry with the same id,
// which contains a message of coppice and, as its original, the message of the user interface. A message with an id
// that is stored already replaces (amends) the stored one.
import { Conflict, CoppiceError, Deleted, NotFound, Store, type Schemas, type StoreOptions } from "coppice-client";
import { absent, Queues, Recent } from "../../shared/index.js";
import { shown } from "./shown.js";

/** Options of Threads. */
export interface ChatOptions extends StoreOptions {
  /** Metadata for the sessions that Threads creates, such as { user }. */
  meta?: Record<string, string>;
}
/** A message of a chat. value is the message of the user interface, any JSON. message is the object with role and
 * content; default value. */
export interface Item { id: string; parentId: string | null; value: unknown; message?: unknown }
/** A message of a list. One without an id is identified by its JSON. */
export interface Listed { id?: string | undefined; value: unknown }

/** A cached chat: its newest known commit (base), its head (null = none), and the messages on the path to it, as
 * JSON. */
interface Known { base: string; head: string | null; path: { id: string; text: string }[] }

/** Maximum number of cached chats; the one set longest ago is dropped. */
const maxChats = 100;
/** Maximum number of attempts to save a list after other writers were first. */
const maxRaces = 100;

export class Threads {
  readonly store: Store;
  readonly meta: Record<string, string>;
  private readonly known = new Recent<Known>(maxChats);
  private readonly queues = new Queues(); // writes to one chat run one after the other

  constructor(service: string | Store, o: ChatOptions = {}) {
    const { meta = {}, ...options } = o;
    this.store = typeof service === "string" ? new Store(service, options) : service;
    this.meta = { store: "chat", ...meta };
  }

  /** Returns all messages of a chat and the id of the head, or undefined if the chat does not exist. The parentId of a
   * message is its nearest ancestor that is a message of the user interface and not deleted. */
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

  /** Stores a message as a child of its parent and makes it the head. If its id is stored already, it replaces that
   * message. */
  async put(id: string, { id: entry, parentId, value, message }: Item): Promise<void> {
    const root = parentId === null && { from: "" };
    await this.queues.run(id, async () => {
      this.known.delete(id);
      const o = { base: "*", onKnownId: "amend", create: this.creation(), ...root } as const;
      await this.store.session(id).commit([draft(entry, parentId, value, message)], o);
    });
  }

  /** Replaces a message and leaves the head where it is. If its id is not stored, it is put. */
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

  /** Hides messages. An id that is not stored is ignored. */
  async hide(id: string, messages: string[]): Promise<void> {
    this.known.delete(id);
    for (const entry of messages) {
      await this.store.session(id).hide({ entry }, { base: "*" }).catch((e: unknown) => {
        if (!(e instanceof CoppiceError) || e.code !== "no-entry") absent(e);
      });
    }
  }

  /** Moves the head to a message (null = before the first one): the next message becomes its child. */
  async show(id: string, entry: string | null): Promise<void> {
    this.known.delete(id);
    await this.store.session(id).branch({ entry: entry ?? "" }, { base: "*" });
  }

  /** Makes list the path to the head. It stores new and changed messages in one commit. Messages of the earlier path
   * that are not in list stay on another branch. o.state, if given, becomes the state of the session. */
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
        if (now.head !== last) { // the list is shorter, or its end is on another branch
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

  /** Returns the messages on the path to the head, and the state, or undefined if the chat does not exist. */
  async path(id: string): Promise<{ values: unknown[]; state: unknown } | undefined> {
    try {
      const state: unknown = JSON.parse((await this.store.session(id).stateAt()).text), known = await this.read(id, false);
      this.known.set(id, known);
      return { values: known.path.map(({ text }) => JSON.parse(text) as unknown), state };
    } catch (e) {
      return absent(e);
    }
  }

  /** Deletes a chat and its child sessions: runs and interrupts. */
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

/** Returns the entries to store so that the path becomes list (texts has its messages as JSON), and the resulting path.
 * root reports whether the first message of the list is not that of the path. */
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
