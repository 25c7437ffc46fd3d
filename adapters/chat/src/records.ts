// What TanStack AI stores of a chat on a server: messages, runs, interrupts and metadata. A run and an interrupt is a session
// that the chat has started, and its record a document, so that a list is one request.
import { Conflict, CoppiceError, Deleted, NotFound, type Schemas, type Store } from "coppice-client";
import { absent, Threads, type ChatOptions } from "./thread.js";

interface Run { runId: string; threadId: string; status: string; startedAt: number; [member: string]: any }
interface Interrupt { interruptId: string; runId: string; threadId: string; requestedAt: number; payload: Record<string, unknown>; [member: string]: any }

/** Times that a record is changed again because another writer was first. */
const maxRaces = 100;

/** The stores of a chat for defineAIPersistence of TanStack AI: messages, runs, interrupts and metadata. */
export function coppiceStores(service: string | Store, o: ChatOptions = {}) {
  const threads = new Threads(service, o), runs = new Records<Run>(threads, "run"), interrupts = new Records<Interrupt>(threads, "interrupt");
  const metadata = new Records<{ value: unknown }>(threads, "metadata");
  const end = (status: string, more: object = {}) => (record: Interrupt | undefined) => record && { ...record, status, resolvedAt: Date.now(), ...more };
  const pending = (list: Interrupt[]) => list.filter((i) => i["status"] === "pending");
  const ofThread = (id: string) => interrupts.list({ thread: id }, (i) => i.requestedAt), ofRun = (id: string) => interrupts.list({ run: id }, (i) => i.requestedAt);
  const runsOf = (threadId: string) => runs.list({ thread: threadId }, (r) => r.startedAt);
  return {
    messages: {
      loadThread: async (threadId: string): Promise<any[]> => (await threads.path(threadId))?.values ?? [],
      saveThread: (threadId: string, messages: readonly any[]): Promise<void> => threads.save(threadId, messages.map((value) => ({ value }))),
    },
    runs: {
      createOrResume: async ({ runId, threadId, status = "running", startedAt }: { runId: string; threadId: string; status?: any; startedAt: number }): Promise<any> =>
        runs.change(runId, (old) => old ?? { runId, threadId, status, startedAt }, { threadId }),
      update: async (runId: string, patch: object): Promise<void> => void (await runs.change(runId, (old) => old && { ...old, ...patch })),
      get: async (runId: string): Promise<any> => runs.get(runId),
      findActiveRun: async (threadId: string): Promise<any> => (await runsOf(threadId)).findLast((r) => r.status === "running") ?? null,
      listByThread: async (threadId: string): Promise<any[]> => runsOf(threadId),
      listReclaimable: async ({ now, ttlMs }: { now: number; ttlMs: number }): Promise<any[]> =>
        (await runs.list({}, (r) => r.startedAt)).filter((r) => r.status === "running" && r["detachedSince"] <= now - ttlMs),
    },
    interrupts: {
      create: async (record: Interrupt): Promise<void> =>
        void (await interrupts.change(record.interruptId, (old) => old ?? { ...record, status: "pending" }, { threadId: record.threadId, run: record.runId })),
      resolve: async (id: string, response?: unknown): Promise<void> => void (await interrupts.change(id, end("resolved", { response }))),
      cancel: async (id: string): Promise<void> => void (await interrupts.change(id, end("cancelled"))),
      get: async (id: string): Promise<any> => interrupts.get(id),
      list: async (threadId: string): Promise<any[]> => ofThread(threadId),
      listPending: async (threadId: string): Promise<any[]> => pending(await ofThread(threadId)),
      listByRun: async (runId: string): Promise<any[]> => ofRun(runId),
      listPendingByRun: async (runId: string): Promise<any[]> => pending(await ofRun(runId)),
    },
    metadata: {
      get: async (namespace: string, key: string): Promise<any> => (await metadata.get(JSON.stringify([namespace, key])))?.value ?? null,
      set: async (namespace: string, key: string, value: unknown): Promise<void> => void (await metadata.change(JSON.stringify([namespace, key]), () => ({ value }), {})),
      delete: (namespace: string, key: string): Promise<void> => metadata.remove(JSON.stringify([namespace, key])),
    },
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
  async change(name: string, change: (old: R | undefined) => R | undefined, of?: { threadId?: string; run?: string }): Promise<R | undefined> {
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
  async list(of: { thread?: string; run?: string }, time: (record: R) => number): Promise<R[]> {
    const out: R[] = [], query: Record<`meta.${string}`, string> = { "meta.record": this.kind };
    for (const [name, value] of Object.entries({ ...this.threads.meta, ...of })) if (name !== "store") query[`meta.${name}`] = value;
    for await (const s of this.threads.store.sessions({ ...query, docs: "record", order: "id", limit: 500 })) {
      const record = s.docs?.["record"] as R | undefined;
      if (record) out.push(record);
    }
    return out.sort((a, b) => time(a) - time(b));
  }

  async remove(name: string): Promise<void> { await this.threads.store.session(await this.id(name)).delete({ base: "*" }).catch(absent); }

  private async create(id: string, { threadId, run }: { threadId?: string; run?: string }): Promise<void> {
    const { store: _, ...own } = this.threads.meta;
    const meta = { ...own, record: this.kind, ...(threadId !== undefined && { thread: threadId }), ...(run !== undefined && { run }) };
    const creation: Schemas["NewSession"] = { again: true, meta, relation: this.kind, ...(threadId !== undefined && { parent: threadId }) };
    await this.threads.store.create(id, creation).catch((e: unknown) => {
      if (!(e instanceof CoppiceError) || e.code !== "exists") throw e;
    });
  }

  private async id(name: string): Promise<string> {
    const { store: _, ...own } = this.threads.meta, text = JSON.stringify([own, this.kind, name]);
    const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
    return `${this.kind}-${Array.from(sum.slice(0, 20), (b) => b.toString(16).padStart(2, "0")).join("")}`;
  }
}
