// A Session of the OpenAI Agents SDK on a coppice service: each item is an entry, and what is taken away stays as a
// branch. Types are structural, so that the package needs no version of the SDK.
import {
  Conflict, CoppiceError, OutcomeUnknown, Store, type CommitOptions, type Receipt, type StoreOptions,
} from "coppice-client";
import { absent, hash } from "../../shared/index.js";
import { itemOf, shown, type Entry } from "./items.js";

/** How a session keeps items. */
export interface CoppiceSessionOptions extends StoreOptions {
  /** Identifies the session on every host; default a random one. */
  sessionId?: string;
  /** Keeps sessions apart from those of other scopes of the same service. */
  scope?: string;
}
/** A change of the history. A repeat with the same operationId, from any host, changes nothing. Items have the SDK's form. */
export type HistoryTransaction =
  | { type: "append_items"; items: any[] }
  | { type: "replace_suffix"; expectedSuffix: any[]; replacement: any[] };
/** A call whose arguments a person has changed. */
export interface HistoryMutation { type: "replace_function_call"; callId: string; replacement: any }

/** Items of a page. */
const maxPage = 500;
/** Times that a change is made again because another writer was first. */
const maxRaces = 100;
/** Commits among which one is looked for by its key: the service remembers so many keys. */
const maxKeys = 1024;

/** An item, and the entry before it; "" = there is none. */
interface Stored { parent: string; item: any }
interface Newest { list: Stored[]; base: string | undefined }
const nothing: Newest = { list: [], base: undefined };

export class CoppiceSession {
  private readonly store: Store;
  private readonly name: string;
  private readonly scope: string;
  private pending: { batch: string; key: string } | undefined; // of items whose outcome is unknown

  constructor(service: string | Store, o: CoppiceSessionOptions = {}) {
    const { sessionId = crypto.randomUUID(), scope = "", ...options } = o;
    this.store = typeof service === "string" ? new Store(service, options) : service;
    [this.name, this.scope] = [sessionId, scope];
  }

  async getSessionId(): Promise<string> { return this.name; }

  /** The session of the service: ids of the SDK have any characters, those of the service do not. */
  async id(): Promise<string> { return `openai-${(await hash([this.scope, this.name])).slice(0, 40)}`; }

  /** Returns all items, or the newest ones, in their order. */
  async getItems(limit?: number): Promise<any[]> {
    if (limit !== undefined && limit <= 0) return [];
    return (await this.newest(limit)).list.map(({ item }) => item as unknown);
  }

  /** Stores items behind those of all hosts, in one commit. */
  async addItems(items: any[]): Promise<void> {
    if (items.length === 0) return;
    const batch = await hash(items), key = this.pending?.batch === batch ? this.pending.key : crypto.randomUUID();
    this.pending = undefined;
    try {
      await this.commit(items, { key });
    } catch (e) {
      if (e instanceof OutcomeUnknown) this.pending = { batch, key };
      throw e;
    }
  }

  /** Takes the newest item away, and returns it. Of several callers each gets another one. */
  async popItem(): Promise<any> {
    return this.onNewest(1, async ([last], on) => {
      if (last) await this.commit([], { ...on, from: last.parent, reason: "pop" });
      return last?.item as unknown;
    });
  }

  /** Takes all items away. They stay as a branch. */
  async clearSession(): Promise<void> {
    await this.store.session(await this.id()).commit([], { base: "*", from: "", reason: "clear" }).catch(absent);
  }

  /** Puts items in place of all. */
  async replaceHistoryWithCompaction(items: any[]): Promise<void> {
    await this.commit(items, { from: "", reason: "compaction" });
  }

  /** Puts calls that a person has changed in place of those that the model made. */
  async applyHistoryMutations({ mutations }: { mutations: HistoryMutation[] }): Promise<void> {
    if (mutations.length === 0) return;
    await this.onNewest(undefined, async (list, on) => {
      let items = list.map(({ item }) => item as Call);
      for (const { callId, replacement } of mutations) {
        const at = items.findIndex((item) => calls(item, callId));
        items = items.filter((item, i) => i <= at || !calls(item, callId));
        if (at >= 0) items[at] = replacement as Call;
      }
      const same = items.findIndex((item, i) => plain(item) !== plain(list[i]!.item));
      const first = same < 0 ? items.length : same;
      if (first === list.length) return;
      await this.commit(items.slice(first), { ...on, from: list[first]!.parent, reason: "rewrite" });
    });
  }

  /** Makes a change of the history once: again with the same operationId it changes nothing. Throws if the operationId
   * was of another change, or if the last items are not the expected ones: then nothing is changed. */
  async applyHistoryTransaction(change: { operationId: string; transaction: HistoryTransaction }): Promise<void> {
    const { operationId, transaction: t } = change;
    if (!operationId.trim()) throw new TypeError("operationId is empty: nothing was changed");
    const [suffix, items] = t.type === "append_items" ? [[], t.items] : [t.expectedSuffix, t.replacement];
    const expected = plain(suffix), mark = `${t.type.split("_")[0]}-${(await hash(plain(t))).slice(0, 16)}`;
    const key = `openai ${await hash(operationId)}`;
    await this.onNewest(suffix.length, async (last, on) => {
      if (plain(last.map(({ item }) => item as unknown)) === expected) {
        const from = last[0] && { from: last[0].parent };
        const made = await this.commit(items, { ...on, key, reason: mark, ...from }).catch(unlessReused);
        if (made) return;
      }
      const made = await this.madeBy(key);
      if (made === undefined) throw new Error("the last items are not the expected ones: nothing was changed");
      if (made !== mark) throw new Error(`operation ${operationId} was another change: nothing was changed`);
    });
  }

  private async commit(items: any[], o: CommitOptions): Promise<Receipt> {
    plain(items); // refuses bytes
    const entries = items.map((item) => ({ message: shown(item), original: item as unknown }));
    const title = Array.from(this.name).slice(0, 200).join(""), store = this.scope ? `openai/${this.scope}` : "openai";
    const create = { again: true, title, meta: { store, session: title } };
    return this.store.session(await this.id()).commit(entries, { ...(!o.base && { base: "*", create }), ...o });
  }

  /** Does something with the newest items, on the commit that has them (none, if there is no session); again if another
   * writer was first. */
  private async onNewest<T>(
    n: number | undefined, change: (list: Stored[], on: { base?: string }) => Promise<T>,
  ): Promise<T> {
    for (let races = 0; ; races++) {
      const { list, base } = n === 0 ? nothing : await this.newest(n, true);
      try {
        return await change(list, base === undefined ? {} : { base });
      } catch (e) {
        if (!(e instanceof Conflict) || races >= maxRaces) throw e;
      }
    }
  }

  /** Reads the newest items; undefined = all. base is the commit that has them, if it is read in pages. */
  private async newest(n: number | undefined, pages = n !== undefined): Promise<Newest> {
    const list: Stored[] = [], session = this.store.session(await this.id());
    const limit = pages ? Math.min(n ?? maxPage, maxPage) : "all", order = pages ? "desc" : "asc";
    let base: string | undefined;
    try {
      for await (const { text } of session.entries({ type: "message", order, limit })) {
        base ??= session.seen;
        const entry = JSON.parse(text) as Entry, item = itemOf(entry);
        if (item !== undefined) list.push({ parent: entry.parentId ?? "", item });
        if (list.length === n) break;
      }
    } catch (e) {
      absent(e);
    }
    return { list: pages ? list.reverse() : list, base: base ?? session.seen };
  }

  /** The reason of the commit that has a key; undefined = there is none. */
  private async madeBy(key: string): Promise<string | undefined> {
    let n = 0;
    try {
      for await (const c of this.store.session(await this.id()).commits({ limit: maxPage })) {
        if (c.key === key) return c.reason;
        if (c.key !== undefined && ++n === maxKeys) break;
      }
    } catch (e) {
      absent(e);
    }
    return undefined;
  }
}

interface Call { type?: string; callId?: string }
function calls(item: Call, callId: string): boolean { return item.type === "function_call" && item.callId === callId; }

/** The text of a value as JSON with members in the order of their names. */
function plain(value: unknown): string {
  return JSON.stringify(value, (_, v: unknown) => {
    if (ArrayBuffer.isView(v)) throw new TypeError("bytes are no JSON: pass base64; nothing was stored");
    if (typeof v !== "object" || v === null || Array.isArray(v)) return v;
    return Object.fromEntries(Object.entries(v).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

function unlessReused(e: unknown): undefined {
  if (!(e instanceof CoppiceError) || e.code !== "key-reused") throw e;
}
