// A SessionStore of the Claude Agent SDK on a coppice service. A transcript is a session: each line is a message of it, with
// the line as it came as its original. Types are structural, so that the package needs no version of the SDK.
import {
  Conflict, CoppiceError, Deleted, NotFound, OutcomeUnknown, Store, type Receipt, type Schemas, type Session,
  type StoreOptions,
} from "coppice-client";
import { absent, hash, Queues, Recent } from "../../shared/index.js";

/** A transcript: of a session, or with a subpath of an agent that it started. */
export interface SessionKey { projectKey: string; sessionId: string; subpath?: string }
/** A line of a transcript. */
export interface SessionStoreEntry { type: string; uuid?: string; timestamp?: string; [member: string]: unknown }
/** What the SDK's lists show of a session. data is the SDK's own. */
export interface SessionSummaryEntry { sessionId: string; mtime: number; data: Record<string, unknown> }
/** foldSessionSummary of the SDK. */
export type Fold = (
  previous: SessionSummaryEntry | undefined, key: SessionKey, entries: SessionStoreEntry[], o?: { mtime?: number },
) => SessionSummaryEntry;

/** How a store keeps transcripts. */
export interface CoppiceSessionStoreOptions extends StoreOptions {
  /** foldSessionSummary of the SDK: then lists of sessions are one request. Without it the SDK loads each session. */
  fold?: Fold;
  /** Keeps transcripts apart from those of other scopes of the same service. */
  scope?: string;
}

/** What the process knows of a session: the summary, and the commit that has it. */
interface Known { base: string; summary: SessionSummaryEntry | undefined }
/** A batch whose outcome is unknown: the same batch again has the same key. */
interface Pending { batch: string; key: string }

/** Sessions whose summary or pending batch is kept in memory; the oldest goes. */
const maxSessions = 1000;
/** Times that a summary is folded again because another writer was first. */
const maxRaces = 100;

export class CoppiceSessionStore {
  /** Only with a fold: without it the SDK must not find the method. */
  listSessionSummaries?: (projectKey: string) => Promise<SessionSummaryEntry[]>;
  private readonly store: Store;
  private readonly scope: string;
  private readonly fold: Fold | undefined;
  private readonly known = new Recent<Known>(maxSessions);
  private readonly pending = new Recent<Pending>(maxSessions);
  private readonly queues = new Queues(); // of appends

  constructor(service: string | Store, o: CoppiceSessionStoreOptions = {}) {
    const { fold, scope = "", ...options } = o;
    this.store = typeof service === "string" ? new Store(service, options) : service;
    this.scope = scope;
    this.fold = fold;
    if (fold) this.listSessionSummaries = (projectKey) => this.summaries(projectKey);
  }

  /** Stores lines after those of earlier calls, once by their uuid. */
  async append(key: SessionKey, entries: SessionStoreEntry[]): Promise<void> {
    const batch = once(entries);
    if (batch.length === 0) return;
    const id = await this.id(key);
    await this.queues.run(id, () => this.write(id, key, batch));
  }

  private async write(id: string, key: SessionKey, batch: SessionStoreEntry[]): Promise<void> {
    const text = await hash([id, batch]), was = this.pending.get(id);
    const idempotency = was?.batch === text ? was.key : `${text.slice(0, 16)}-${crypto.randomUUID()}`;
    this.pending.delete(id);
    try {
      if (this.fold && key.subpath === undefined) await this.commitFolded(id, key, batch, idempotency);
      else await this.commit(id, key, batch, { base: "*", key: idempotency });
    } catch (e) {
      if (e instanceof OutcomeUnknown) this.pending.set(id, { batch: text, key: idempotency });
      // The key is of this batch alone: it was stored, with the summary as it was then.
      if (!(e instanceof CoppiceError) || e.code !== "key-reused") throw e;
    }
  }

  private async commit(
    id: string, key: SessionKey, batch: SessionStoreEntry[], o: { base: string; key: string; docs?: { summary: object } },
  ): Promise<Receipt> {
    const create = await this.creation(key, batch);
    return this.store.session(id).commit(batch, { ...o, format: "claude-code", create });
  }

  /** Stores lines and the summary that has them, in one commit on the one that has the summary before. */
  private async commitFolded(id: string, key: SessionKey, batch: SessionStoreEntry[], idempotency: string): Promise<void> {
    for (let races = 0; ; races++) {
      try {
        const { base, summary } = this.known.get(id) ?? (await this.read(id, key, batch));
        const folded = this.fold!(summary, key, batch);
        const receipt = await this.commit(id, key, batch, { base, key: idempotency, docs: { summary: folded } });
        if (receipt.repeated) return void this.known.delete(id);
        if (!receipt.known?.length) return void this.known.set(id, { base: receipt.commit, summary: folded });
        const old = new Set(receipt.known), fresh = batch.filter(({ uuid }) => uuid === undefined || !old.has(uuid));
        const exact = fresh.length ? this.fold!(summary, key, fresh) : summary;
        const session = this.store.session(id);
        const { commit } = await session.commit([], { base: receipt.commit, docs: { summary: exact ?? null } });
        return void this.known.set(id, { base: commit, summary: exact });
      } catch (e) {
        this.known.delete(id);
        if (!(e instanceof Conflict || e instanceof NotFound || e instanceof Deleted) || races >= maxRaces) throw e;
      }
    }
  }

  /** Reads the summary of a session, which is created if there is none. */
  private async read(id: string, key: SessionKey, batch: SessionStoreEntry[]): Promise<Known> {
    const session = this.store.session(id);
    try {
      const { docs } = await session.docs();
      return { base: session.seen!, summary: (docs as { summary?: SessionSummaryEntry }).summary };
    } catch (e) {
      if (!(e instanceof NotFound || e instanceof Deleted)) throw e;
    }
    const made = await this.store.create(id, await this.creation(key, batch)).catch(absentIf("exists"));
    return made ? { base: made.base!, summary: undefined } : this.read(id, key, batch);
  }

  private async creation(key: SessionKey, batch: SessionStoreEntry[]): Promise<Schemas["NewSession"]> {
    const cwd = batch.find((e) => typeof e["cwd"] === "string")?.["cwd"] as string | undefined;
    const of = { project: await this.project(key.projectKey), session: key.sessionId };
    const { subpath, ...main } = key;
    return {
      again: true, // a transcript may come back after it was deleted
      ...(cwd !== undefined && { cwd }),
      ...(subpath === undefined ? { meta: { store: "claude", ...of } }
        : { meta: { store: "claude-agent", ...of, subpath }, parent: await this.id(main), relation: "agent" }),
    };
  }

  /** Returns all lines in the order in which they were stored; null = there are none. */
  async load(key: SessionKey): Promise<SessionStoreEntry[] | null> {
    const answer = await this.store.session(await this.id(key)).original().catch(absent);
    if (!answer) return null;
    const lines = (await answer.text()).split("\n").filter((line) => line !== "");
    const entries = once(lines.map((line) => JSON.parse(line) as SessionStoreEntry));
    return entries.length ? entries : null;
  }

  async listSessions(projectKey: string): Promise<{ sessionId: string; mtime: number }[]> {
    const out: { sessionId: string; mtime: number }[] = [];
    for await (const s of this.sessions(projectKey)) out.push({ sessionId: s.meta!["session"]!, mtime: Date.parse(s.updated) });
    return out;
  }

  private async summaries(projectKey: string): Promise<SessionSummaryEntry[]> {
    const out: SessionSummaryEntry[] = [];
    for await (const s of this.sessions(projectKey, "summary")) {
      const summary = s.docs?.["summary"] as SessionSummaryEntry | undefined;
      if (summary) out.push({ ...summary, mtime: Date.parse(s.updated) });
    }
    return out;
  }

  private async *sessions(projectKey: string, docs?: string): AsyncGenerator<Schemas["Session"], void> {
    const query = { "meta.store": "claude", "meta.project": await this.project(projectKey), limit: 500, order: "id" } as const;
    yield* this.store.sessions({ ...query, ...(docs !== undefined && { docs }) });
  }

  /** Deletes a transcript; that of a session with those of its agents. */
  async delete(key: SessionKey): Promise<void> {
    const id = await this.id(key);
    this.known.delete(id);
    this.pending.delete(id);
    const gone = await this.store.session(id).delete({ base: "*", children: key.subpath === undefined }).catch(absent);
    if (gone || key.subpath !== undefined) return;
    for (const child of await this.agents(id)) await child.delete({ base: "*" }).catch(absent); // its session has no lines
  }

  private async agents(id: string): Promise<Session[]> {
    const out: Session[] = [];
    for await (const s of this.store.sessions({ parent: id, limit: 500, order: "id" })) out.push(this.store.session(s.id));
    return out;
  }

  async listSubkeys({ projectKey, sessionId }: { projectKey: string; sessionId: string }): Promise<string[]> {
    const parent = await this.id({ projectKey, sessionId });
    const out: string[] = [], query = { parent, "meta.store": "claude-agent", limit: 500, order: "id" } as const;
    for await (const s of this.store.sessions(query)) out.push(s.meta!["subpath"]!);
    return out;
  }

  /** The session of a transcript: keys have any length and characters, ids do not. */
  async id({ projectKey, sessionId, subpath }: SessionKey): Promise<string> {
    return `claude-${(await hash([this.scope, projectKey, sessionId, subpath ?? null])).slice(0, 40)}`;
  }
  private async project(projectKey: string): Promise<string> {
    const name = this.scope ? `${this.scope}/${projectKey}` : projectKey;
    return name.length <= 200 ? name : `${Array.from(name).slice(0, 150).join("")}-${(await hash(name)).slice(0, 40)}`;
  }
}

/** The first of the lines with a uuid. The service knows the lines of one answer by its last one: if a part of them comes
 * again, it is stored again. */
function once(lines: SessionStoreEntry[]): SessionStoreEntry[] {
  const seen = new Set<string>();
  return lines.filter(({ uuid }) => uuid === undefined || (!seen.has(uuid) && seen.add(uuid)));
}

function absentIf(code: string) {
  return (e: unknown): undefined => {
    if ((e as { code?: string }).code !== code) throw e;
  };
}
