// A checkpointer of LangGraph on a coppice service. A thread is a session; the values of channels are its state, a checkpoint
// is an entry of it, and so are the writes of a task.
import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver, compareWritesSortKeys, copyCheckpoint, maxChannelVersion, TASKS, WRITES_IDX_MAP, writesSortKey,
  type ChannelVersions, type Checkpoint, type CheckpointListOptions, type CheckpointMetadata, type CheckpointPendingWrite,
  type CheckpointTuple, type PendingWrite, type SerializerProtocol,
} from "@langchain/langgraph-checkpoint";
import { Conflict, CoppiceError, Deleted, NotFound, Store, type Receipt, type Session, type StoreOptions } from "coppice-client";
import { absent, hash, Queues, Recent } from "../../shared/index.js";
import { messageOf } from "./messages.js";
import { dump, load, type Stored } from "./values.js";

/** How a saver keeps threads. */
export interface CoppiceSaverOptions extends StoreOptions {
  /** What a put on a checkpoint that is not the newest one is: a branch of the session (the default), or a ForkError. */
  onFork?: "branch" | "error";
  /** Keeps threads apart from those of other scopes of the same service. */
  scope?: string;
  /** Replaces the serializer of LangGraph. */
  serde?: SerializerProtocol;
}

/** A put on a checkpoint that another one follows already: nothing was stored. */
export class ForkError extends Error {
  constructor(readonly parent: string, readonly newest: string) {
    super(`checkpoint ${parent} is followed by ${newest}: nothing was stored; read the thread again`);
    this.name = "ForkError";
  }
}

/** What the state of a session has of a namespace: its checkpoint, with the values of its channels by version. */
interface Space {
  id: string;
  parent?: string | undefined;
  checkpoint: Stored;
  metadata: Stored;
  channels: Record<string, { v: number | string } & Stored>;
  /** Messages of the channel of this name that are entries. */
  shown?: number;
}
/** The state of a session. latest is the greatest id of each namespace, whose checkpoint need not be on the head's branch. */
interface State { latest: Record<string, string>; spaces: Record<string, Space> }
/** The data of entries. */
interface CheckpointData { thread: string; ns: string; id: string; metadata: Stored }
interface WritesData { ns: string; cp: string; task: string; path: string; writes: ({ i: number; ch: string } & Stored)[] }
/** What the process knows of a session: its newest commit. */
interface Known { base: string; seq: number; state: State }
/** A put or putWrites. */
interface Place { thread: string; ns: string; sid: string }

const checkpoints = "langgraph.checkpoint", writesOf = "langgraph.writes";
/** Threads whose newest state is kept in memory; the oldest goes. */
const maxThreads = 100;
/** Times that a put is made again because another writer was first. */
const maxRaces = 100;

export class CoppiceSaver extends BaseCheckpointSaver {
  private readonly store: Store;
  private readonly scope: string;
  private readonly onFork: "branch" | "error";
  private readonly known = new Recent<Known>(maxThreads);
  private readonly queues = new Queues(); // of writes to a thread

  constructor(service: string | Store, o: CoppiceSaverOptions = {}) {
    const { onFork = "branch", scope = "", serde, ...options } = o;
    super(serde);
    this.store = typeof service === "string" ? new Store(service, options) : service;
    this.scope = scope;
    this.onFork = onFork;
  }

  /** The session of a thread: names of threads have any length and characters, ids do not. */
  async id(thread: string): Promise<string> { return `langgraph-${(await hash([this.scope, thread])).slice(0, 40)}`; }

  /** Stores a checkpoint with the channels in newVersions: one commit. */
  async put(
    config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const at = await this.place(config), parent = config.configurable?.["checkpoint_id"] as string | undefined;
    const { channel_values: values, ...rest } = copyCheckpoint(checkpoint);
    const space = {
      id: checkpoint.id, parent, checkpoint: await dump(this.serde, rest), metadata: await dump(this.serde, metadata),
    };
    const stored: Record<string, ({ v: number | string } & Stored) | undefined> = {};
    for (const [name, v] of Object.entries(newVersions)) {
      stored[name] = Object.hasOwn(values, name) ? { v, ...(await dump(this.serde, values[name])) } : undefined;
    }
    await this.queues.run(at.sid, () => this.commit(at, space, checkpoint, stored));
    return { configurable: { thread_id: at.thread, checkpoint_ns: at.ns, checkpoint_id: checkpoint.id } };
  }

  private async commit(
    at: Place, space: Omit<Space, "channels">, { channel_values, channel_versions }: Checkpoint,
    stored: Record<string, Space["channels"][string] | undefined>,
  ): Promise<void> {
    for (let races = 0; ; races++) {
      try {
        const known = this.known.get(at.sid) ?? (await this.newest(at));
        const { from, spaces } = await this.parentOf(at, known.state, space);
        const before = spaces[at.ns], merged = { ...before?.channels, ...stored };
        const channels: Space["channels"] = {};
        for (const [name, c] of Object.entries(merged)) if (c && Object.hasOwn(channel_versions, name)) channels[name] = c;
        const messages = at.ns === "" && Array.isArray(channel_values["messages"]) ? channel_values["messages"] : [];
        const shown = messages.slice(before?.shown ?? 0).map(messageOf).filter((m) => m !== undefined);
        const data: CheckpointData = { thread: at.thread, ns: at.ns, id: space.id, metadata: space.metadata };
        const newest = known.state.latest[at.ns] ?? "";
        const state: State = {
          latest: { ...known.state.latest, [at.ns]: newest > space.id ? newest : space.id },
          spaces: { ...spaces, [at.ns]: { ...space, channels, shown: messages.length } },
        };
        const entry = { type: "custom", customType: checkpoints, id: await entryOf(at.ns, space.id), data };
        const receipt = await this.store.session(at.sid).commit([...shown, { entry, onKnownId: "ignore" }], {
          base: known.base, state, reason: "checkpoint", ...(from !== undefined && { from }),
        });
        return void this.known.set(at.sid, { base: receipt.commit, seq: receipt.seq, state });
      } catch (e) {
        this.known.delete(at.sid);
        if (!(e instanceof Conflict || e instanceof NotFound || e instanceof Deleted) || races >= maxRaces) throw e;
      }
    }
  }

  /** What a checkpoint is made on: the newest state, or, where its parent is another one, that of the parent. */
  private async parentOf(
    at: Place, state: State, { id, parent }: Omit<Space, "channels">,
  ): Promise<{ spaces: State["spaces"]; from?: string }> {
    const { spaces } = state, now = spaces[at.ns];
    if (parent === undefined || !now || now.id === parent || now.id === id) return { spaces }; // id: it is put again
    const entry = await entryOf(at.ns, parent), old = await this.stateAt(at.sid, entry);
    if (!old) return { spaces }; // a parent that was never stored
    if (this.onFork === "error") throw new ForkError(parent, now.id);
    if (at.ns === "") return { spaces: old.spaces, from: entry };
    return { spaces: { ...spaces, [at.ns]: old.spaces[at.ns]! } }; // the head is where the thread is, not a subgraph
  }

  /** Stores what a task has written: one commit. */
  async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string, taskPath = ""): Promise<void> {
    const at = await this.place(config), cp = config.configurable?.["checkpoint_id"] as string | undefined;
    if (cp === undefined) throw new Error('putWrites: config.configurable has no "checkpoint_id"');
    const list = await Promise.all(writes.map(async ([ch, value], n) =>
      ({ i: WRITES_IDX_MAP[ch] || n, ch, ...(await dump(this.serde, value)) })));
    const data: WritesData = { ns: at.ns, cp, task: taskId, path: taskPath, writes: list };
    await this.queues.run(at.sid, async () => {
      const entry = { type: "custom", customType: writesOf, data }, create = { again: true, ...this.describe(at.thread) };
      const receipt = await this.store.session(at.sid).commit([entry], { base: "*", create, reason: "writes" });
      this.follow(at.sid, receipt);
    });
  }

  async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    if (config.configurable?.["thread_id"] === undefined) return undefined;
    const at = await this.place(config), wanted = config.configurable?.["checkpoint_id"] as string | undefined;
    const newest = wanted ? undefined : await this.stateAt(at.sid);
    const id = wanted || newest?.latest?.[at.ns];
    if (!id) return undefined;
    const state = newest?.spaces[at.ns]?.id === id ? newest : await this.stateAt(at.sid, await entryOf(at.ns, id));
    const space = state?.spaces?.[at.ns];
    if (space?.id !== id) return undefined;
    return this.tuple(at, space, await this.writesOf(at, id), () => this.writesOf(at, space.parent!));
  }

  /** Yields checkpoints, newest first: a request for all of them, one for writes, and one for each that is yielded. */
  async *list(config: RunnableConfig, options: CheckpointListOptions = {}): AsyncGenerator<CheckpointTuple> {
    const { thread_id: thread, checkpoint_ns: ns, checkpoint_id: id } = config?.configurable ?? {};
    const { limit = Infinity, filter = {} } = options;
    const before = options.before?.configurable?.["checkpoint_id"] as string | undefined;
    const found = (await this.checkpointsOf(thread as string | undefined)).filter((c) =>
      (ns === undefined || c.ns === ns) && (!id || c.id === id) && (!before || c.id < before));
    found.sort((a, b) => (a.id < b.id ? 1 : a.id > b.id ? -1 : 0));
    const writes = new Map<string, WritesData[]>(); // of a thread that has a checkpoint to yield
    let left = limit;
    for (const c of found) {
      if (left <= 0) return;
      const metadata = await load<CheckpointMetadata & Record<string, unknown>>(this.serde, c.metadata);
      if (!Object.entries(filter).every(([name, value]) => JSON.stringify(metadata[name]) === JSON.stringify(value))) continue;
      const at = { thread: c.thread, ns: c.ns, sid: await this.id(c.thread) };
      const space = (await this.stateAt(at.sid, await entryOf(c.ns, c.id)))?.spaces[c.ns];
      if (space?.id !== c.id) continue; // it was deleted meanwhile
      const all = writes.get(at.sid) ?? (await this.writesOf(at));
      writes.set(at.sid, all);
      const own = (cp: string) => all.filter((w) => w.ns === c.ns && w.cp === cp);
      left--;
      yield await this.tuple(at, space, own(c.id), async () => own(space.parent!));
    }
  }

  /** Deletes a thread. A later put begins it again. */
  async deleteThread(thread: string): Promise<void> {
    const sid = await this.id(thread);
    await this.queues.run(sid, async () => {
      this.known.delete(sid);
      await this.store.session(sid).delete({ base: "*" }).catch(absent);
    });
  }

  private async tuple(
    at: Place, space: Space, writes: WritesData[], ofParent: () => Promise<WritesData[]>,
  ): Promise<CheckpointTuple> {
    const rest = await load<Omit<Checkpoint, "channel_values">>(this.serde, space.checkpoint);
    const channel_values: Record<string, unknown> = {};
    for (const [name, v] of Object.entries(rest.channel_versions)) {
      const c = space.channels[name];
      if (c && c.v === v) channel_values[name] = await load(this.serde, c);
    }
    const checkpoint = { ...rest, channel_values } as Checkpoint;
    if (checkpoint.v < 4 && space.parent !== undefined) await this.migrate(checkpoint, await ofParent());
    const configurable = { thread_id: at.thread, checkpoint_ns: at.ns, checkpoint_id: space.id };
    const pendingWrites: CheckpointPendingWrite[] = await Promise.all(
      inOrder(writes).map(async (w): Promise<CheckpointPendingWrite> => [w.task, w.ch, await load(this.serde, w)]));
    const metadata = await load<CheckpointMetadata>(this.serde, space.metadata);
    const tuple: CheckpointTuple = { config: { configurable }, checkpoint, metadata, pendingWrites };
    if (space.parent !== undefined) tuple.parentConfig = { configurable: { ...configurable, checkpoint_id: space.parent } };
    return tuple;
  }

  /** Before version 4 of checkpoints what a superstep sent was among the writes of the parent. */
  private async migrate(checkpoint: Checkpoint, writes: WritesData[]): Promise<void> {
    const versions = Object.values(checkpoint.channel_versions) as number[];
    checkpoint.channel_values[TASKS] = await Promise.all(
      inOrder(writes).filter((w) => w.ch === TASKS).map((w) => load(this.serde, w)));
    checkpoint.channel_versions[TASKS] = versions.length ? maxChannelVersion(...versions) : this.getNextVersion(undefined);
  }

  private async writesOf(at: Place, cp?: string): Promise<WritesData[]> {
    const query = { path: "all", limit: "all", custom: writesOf } as const, out: WritesData[] = [];
    const entries = this.store.session(at.sid).entries({ ...query, ...(cp !== undefined && { "match.data.cp": JSON.stringify(cp) }) });
    try {
      for await (const raw of entries) out.push((JSON.parse(raw.text) as { data: WritesData }).data);
    } catch (e) {
      absent(e);
    }
    return cp === undefined ? out : out.filter((w) => w.ns === at.ns);
  }

  private async checkpointsOf(thread: string | undefined): Promise<CheckpointData[]> {
    const query = { limit: "all", type: "custom", custom: checkpoints } as const, out: CheckpointData[] = [];
    try {
      if (thread === undefined) {
        const found = this.store.entries({ ...query, "meta.store": this.label() });
        for await (const { entry } of found) out.push((entry as { data: CheckpointData }).data);
      } else {
        const entries = this.store.session(await this.id(thread)).entries({ ...query, path: "all" });
        for await (const raw of entries) out.push((JSON.parse(raw.text) as { data: CheckpointData }).data);
      }
    } catch (e) {
      absent(e);
    }
    return out;
  }

  /** The state of a session, now or at an entry; undefined = there is none. */
  private async stateAt(sid: string, entry?: string): Promise<State | undefined> {
    try {
      const { text } = await this.store.session(sid).stateAt(entry === undefined ? {} : { at: `entry:${entry}` });
      return (JSON.parse(text) as State | null) ?? undefined;
    } catch (e) {
      if (e instanceof CoppiceError && e.code === "no-entry") return undefined;
      return absent(e);
    }
  }

  /** Reads the newest commit of a session, which is created if there is none. */
  private async newest(at: Place): Promise<Known> {
    const session = this.store.session(at.sid), none: State = { latest: {}, spaces: {} };
    try {
      const { text } = await session.stateAt();
      return { base: session.seen!, seq: -1, state: (JSON.parse(text) as State | null) ?? none };
    } catch (e) {
      absent(e);
    }
    try {
      const made: Session = await this.store.create(at.sid, { again: true, ...this.describe(at.thread) });
      return { base: made.base!, seq: 0, state: none };
    } catch (e) {
      if (!(e instanceof CoppiceError) || e.code !== "exists") throw e;
      return this.newest(at);
    }
  }

  private label(): string { return `langgraph${this.scope && `/${this.scope}`}`; }
  private describe(thread: string) {
    const name = Array.from(thread).slice(0, 200).join("");
    return { title: name, meta: { store: this.label(), thread: name } };
  }

  private async place(config: RunnableConfig): Promise<Place> {
    const { thread_id: thread, checkpoint_ns: ns = "" } = config.configurable ?? {};
    if (thread === undefined) throw new Error('config.configurable has no "thread_id"');
    return { thread: String(thread), ns: ns as string, sid: await this.id(String(thread)) };
  }

  /** Takes a commit that leaves the state alone: what is known stays true if no other commit came between. */
  private follow(sid: string, { commit, seq }: Receipt): void {
    const known = this.known.get(sid);
    if (known && known.seq === seq - 1) this.known.set(sid, { ...known, base: commit, seq });
    else this.known.delete(sid);
  }
}

/** The entry of a checkpoint. */
async function entryOf(ns: string, id: string): Promise<string> {
  const plain = /^[\w-]{1,80}$/.test(id) ? id : (await hash([id])).slice(0, 40);
  return ns ? `${plain}.${(await hash([ns])).slice(0, 12)}` : plain;
}

/** The writes to a checkpoint in the order in which they are applied. A regular one stays as it was first written. */
function inOrder(list: WritesData[]): ({ task: string; ch: string } & Stored)[] {
  const byKey = new Map<string, { key: ReturnType<typeof writesSortKey>; write: { task: string; ch: string } & Stored }>();
  for (const { task, path, writes } of list) {
    for (const { i, ...w } of writes) {
      const key = `${task},${i}`;
      if (i < 0 || !byKey.has(key)) byKey.set(key, { key: writesSortKey(path, task, i), write: { task, ...w } });
    }
  }
  return [...byKey.values()].sort((a, b) => compareWritesSortKeys(a.key, b.key)).map(({ write }) => write);
}
