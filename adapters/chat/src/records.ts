// What TanStack AI stores of a chat on a server: messages, runs, interrupts and metadata. A run and an interrupt is a session
// that the chat has started, and its record a document, so that a list is one request.
import { Conflict, CoppiceError, Deleted, NotFound, type Schemas, type Store } from "coppice-client";
import { absent, hash } from "../../shared/index.js";
import { Threads, type ChatOptions } from "./thread.js";

// Records are those of the caller: the package needs no version of TanStack AI.
interface Run { runId: string; threadId: string; status?: any; startedAt: number; [member: string]: any }
interface Interrupt { interruptId: string; runId: string; threadId: string; requestedAt: number; [member: string]: any }
/** Of what a new record is a part. */
interface Of { thread?: string; run?: string }

/** Times that a record is changed again because another writer was first. */
const maxRaces = 100;

/** The stores of a chat for defineAIPersistence of TanStack AI: messages, runs, interrupts and metadata. */
export function coppiceStores(service: string | Store, o: ChatOptions = {}) {
  const threads = new Threads(service, o);
  return { messages: messagesOf(threads), runs: runsOf(threads), interrupts: interruptsOf(threads), metadata: metadataOf(threads) };
}

function messagesOf(threads: Threads) {
  return {
    loadThread: async (threadId: string): Promise<any[]> => (await threads.path(threadId))?.values ?? [],
    saveThread: (threadId: string, messages: readonly any[]): Promise<void> =>
      threads.save(threadId, messages.map((value) => ({ value }))), // they have no ids
  };
}

function runsOf(threads: Threads) {
  const runs = new Records<Run>(threads, "run");
  const all = (of: Of) => runs.list(of, (r) => r.startedAt);
  return {
    createOrResume: async ({ runId, threadId, status = "running", startedAt }: Run): Promise<any> =>
      runs.change(runId, (old) => old ?? { runId, threadId, status, startedAt }, { thread: threadId }),
    update: async (runId: string, patch: object): Promise<void> => {
      await runs.change(runId, (old) => old && { ...old, ...patch });
    },
    get: async (runId: string): Promise<any> => runs.get(runId),
    findActiveRun: async (thread: string): Promise<any> =>
      (await all({ thread })).findLast((r) => r.status === "running") ?? null,
    listByThread: async (thread: string): Promise<any[]> => all({ thread }),
    listReclaimable: async ({ now, ttlMs }: { now: number; ttlMs: number }): Promise<any[]> =>
      (await all({})).filter((r) => r.status === "running" && r["detachedSince"] <= now - ttlMs),
  };
}

function interruptsOf(threads: Threads) {
  const interrupts = new Records<Interrupt>(threads, "interrupt");
  const all = (of: Of) => interrupts.list(of, (i) => i.requestedAt);
  const pending = async (of: Of) => (await all(of)).filter((i) => i["status"] === "pending");
  const end = async (id: string, more: object): Promise<void> => {
    await interrupts.change(id, (old) => old && { ...old, ...more, resolvedAt: Date.now() });
  };
  return {
    create: async (record: Interrupt): Promise<void> => {
      const of = { thread: record.threadId, run: record.runId };
      await interrupts.change(record.interruptId, (old) => old ?? { ...record, status: "pending" }, of);
    },
    resolve: (id: string, response?: unknown): Promise<void> => end(id, { status: "resolved", response }),
    cancel: (id: string): Promise<void> => end(id, { status: "cancelled" }),
    get: async (id: string): Promise<any> => interrupts.get(id),
    list: async (thread: string): Promise<any[]> => all({ thread }),
    listPending: async (thread: string): Promise<any[]> => pending({ thread }),
    listByRun: async (run: string): Promise<any[]> => all({ run }),
    listPendingByRun: async (run: string): Promise<any[]> => pending({ run }),
  };
}

function metadataOf(threads: Threads) {
  const values = new Records<{ value: unknown }>(threads, "metadata"), name = (...parts: string[]) => JSON.stringify(parts);
  return {
    get: async (namespace: string, key: string): Promise<any> => (await values.get(name(namespace, key)))?.value ?? null,
    set: async (namespace: string, key: string, value: unknown): Promise<void> => {
      await values.change(name(namespace, key), () => ({ value }), {});
    },
    delete: (namespace: string, key: string): Promise<void> => values.remove(name(namespace, key)),
  };
}

/** Records of a kind, each a session with the document "record". */
class Records<R extends object> {
  constructor(private readonly threads: Threads, private readonly kind: string) {}

  async get(name: string): Promise<R | null> {
    try {
      const { docs } = await this.threads.store.session(await this.id(name)).docs();
      return (docs as { record?: R }).record ?? null;
    } catch (e) {
      return absent(e) ?? null;
    }
  }

  /** Stores what change makes of a record; with of it may be a new one. What change returns as it was is not stored. */
  async change(name: string, change: (old: R | undefined) => R | undefined, of?: Of): Promise<R | undefined> {
    const session = this.threads.store.session(await this.id(name));
    for (let races = 0; ; races++) {
      try {
        const { docs } = await session.docs(), old = (docs as { record?: R }).record, next = change(old);
        if (next === undefined || next === old) return old;
        await session.commit([], { base: session.seen!, docs: { record: next } });
        return next;
      } catch (e) {
        const gone = e instanceof NotFound || e instanceof Deleted;
        if (!(e instanceof Conflict || gone) || races >= maxRaces) throw e;
        if (gone && !of) return undefined;
        if (gone) await this.create(session.id, of!);
      }
    }
  }

  /** Returns records by thread or run, in the order of their times: one request for 500. */
  async list(of: Of, time: (record: R) => number): Promise<R[]> {
    const out: R[] = [], query: Record<`meta.${string}`, string> = {};
    for (const [name, value] of Object.entries(this.meta(of))) query[`meta.${name}`] = value;
    for await (const s of this.threads.store.sessions({ ...query, docs: "record", order: "id", limit: 500 })) {
      const record = s.docs?.["record"] as R | undefined;
      if (record) out.push(record);
    }
    return out.sort((a, b) => time(a) - time(b));
  }

  async remove(name: string): Promise<void> {
    await this.threads.store.session(await this.id(name)).delete({ base: "*" }).catch(absent);
  }

  private async create(id: string, of: Of): Promise<void> {
    const creation: Schemas["NewSession"] = { again: true, meta: this.meta(of), relation: this.kind };
    if (of.thread !== undefined) creation.parent = of.thread;
    await this.threads.store.create(id, creation).catch((e: unknown) => {
      if (!(e instanceof CoppiceError) || e.code !== "exists") throw e;
    });
  }

  /** The metadata of a record: that of chats, but for their mark, and what it is of. */
  private meta(of: Of): Record<string, string> {
    const { store: _, ...own } = this.threads.meta;
    return { ...own, record: this.kind, ...of };
  }

  private async id(name: string): Promise<string> {
    return `${this.kind}-${(await hash([this.meta({}), name])).slice(0, 40)}`;
  }
}
