// OpenSession: all that the page knows of the session that it shows. Its requests and effects end with it.
import { effect, signal } from "@preact/signals";
import { isAway, waitToRetry } from "../api/away.ts";
import { api, Failure, forgetReads, type Commit, type Session } from "../api/client.ts";
import { watchCommits, type Change, type Status } from "../api/events.ts";
import { newestCommit } from "../api/pages.ts";
import { Agents } from "./agents.ts";
import type { Question } from "./asking.ts";
import { Branches } from "./branches.ts";
import { Conversation } from "./conversation.ts";
import { Cursor } from "./cursor.ts";
import { credentialsOf, type Credentials } from "./credentials.ts";
import { failuresOf, type Failures } from "./failures.ts";
import { Folds } from "./folds.ts";
import { sessionId } from "./nav.ts";
import { alive, messageOf, resource, type Resource } from "./resource.ts";
import { Turns } from "./turns.ts";
import { Versions } from "./versions.ts";

/** Head is the newest commit of a session. */
export interface Head {
  seq: number;
  commit: string;
  entry: string | null;
  branch: string;
}

const maxWriters = 16;

/** An OpenSession reads one session and follows its commits while the page shows it. */
export class OpenSession {
  private readonly life = new AbortController();
  /** ended is aborted when the page shows another session. */
  readonly ended = this.life.signal;

  readonly summary = signal<Session | null>(null);
  readonly head = signal<Head | null>(null);
  /** change is the newest commit that arrived while the session is open. Panes react to it. */
  readonly change = signal<Change | null>(null);
  /** partial is the message that is being streamed; null = none. */
  readonly partial = signal<unknown>(null);
  readonly connection = signal<Status>("live");
  readonly failure = signal("");
  /** missing reports whether the server has no session with this id, or it was deleted. */
  readonly missing = signal(false);
  /** generation is incremented when everything has to be read again, because commits were missed. */
  readonly generation = signal(0);
  /** writers has the newest commits of any writer since the session was opened, newest first. At most maxWriters. */
  readonly writers = signal<{ writer: string; time: string; commit: string }[]>([]);
  /** mapped reports whether the map was read once. Requests that make the server read all entries wait for it. */
  readonly mapped = signal(false);
  /** asking is the form that is open for an entry, such as an edit; null = none. */
  readonly asking = signal<Question | null>(null);

  readonly id: string;
  readonly folds = new Folds();
  readonly conversation: Conversation;
  readonly cursor: Cursor;
  readonly failures: Resource<Failures>;
  readonly credentials: Resource<Credentials>;
  readonly turns: Turns;
  readonly agents: Agents;
  readonly branches: Branches;
  readonly versions = new Versions(this);

  constructor(id: string) {
    this.id = id;
    void this.run(); // safe before the fields below are set: it uses them only after its first answer, in a later task
    this.conversation = new Conversation(this);
    this.cursor = new Cursor(this);
    this.failures = failuresOf(this);
    this.credentials = credentialsOf(this);
    this.turns = new Turns(this);
    this.agents = new Agents(this);
    this.branches = new Branches(this);
  }

  /** isShown reports whether the page shows this session. The URL may name another one before this one has ended. */
  isShown(): boolean {
    return sessionId.value === this.id && !this.ended.aborted;
  }

  /** effect runs f, and runs it again when a signal that f read changes, until the session ends. */
  effect(f: () => void | (() => void)): void {
    this.ended.addEventListener("abort", effect(() => (this.isShown() ? f() : undefined)));
  }

  /** resource returns a resource that ends with the session. */
  resource<K, T>(key: () => K | null, load: (key: K, signal: AbortSignal) => Promise<T>, keep = false): Resource<T> {
    const r = resource(() => (this.isShown() ? key() : null), load, keep);
    this.ended.addEventListener("abort", r.end);
    return r;
  }

  /** end cancels all requests and effects of the session. */
  end(): void {
    this.life.abort();
  }

  /** refresh reads the summary and the newest commit again. */
  async refresh(): Promise<void> {
    const [s, c] = await Promise.all([
      api.GET("/v1/sessions/{id}", { params: { path: { id: this.id } }, signal: this.ended }),
      newestCommit(this.id, this.ended),
    ]);
    if (this.ended.aborted) return;
    this.summary.value = s.data!;
    if (c.seq >= (this.head.peek()?.seq ?? 0)) this.head.value = headOf(c);
  }

  /** ifMatch returns the condition of a write: the newest commit that this page has shown. */
  ifMatch(): string {
    return `"${this.head.peek()?.commit ?? ""}"`;
  }

  /** first reads summary and newest commit. While the server cannot be reached it tries again. */
  private async first(): Promise<void> {
    for (let failed = 0; ; failed++) {
      try {
        await this.refresh();
        this.failure.value = "";
        return;
      } catch (err) {
        if (this.ended.aborted || !isAway(err)) throw err;
        this.connection.value = "lost";
        this.failure.value = "The server does not answer. The session is opened when it is back.";
        await waitToRetry(failed, this.ended);
        if (this.ended.aborted) return;
      }
    }
  }

  private async run(): Promise<void> {
    try {
      await this.first();
      if (this.ended.aborted) return;
      await watchCommits(this.id, this.head.peek()?.seq ?? 0, {
        commit: (c) => {
          forgetReads();
          this.head.value = headOf(c);
          this.writers.value = [{ writer: c.writer, time: c.time, commit: c.commit }, ...this.writers.peek()].slice(0, maxWriters);
          this.change.value = c;
        },
        partial: (message) => (this.partial.value = message),
        reset: () => void this.refresh().then(() => this.generation.value++),
        status: (s) => {
          if (s === "live") alive.value++;
          this.connection.value = s;
        },
      }, this.ended);
    } catch (err) {
      if (this.ended.aborted) return;
      if (err instanceof Failure && (err.status === 404 || err.status === 410)) this.missing.value = true;
      else this.failure.value = messageOf(err);
    }
  }
}

/** openSession returns an OpenSession. Its first requests are under way then. It creates nothing on the server. */
export function openSession(id: string): OpenSession {
  return new OpenSession(id);
}

function headOf(c: Pick<Commit, "seq" | "commit" | "head" | "branch">): Head {
  return { seq: c.seq, commit: c.commit, entry: c.head, branch: c.branch };
}

/** The commits that this page made, the newest last; no other client made one. At most maxOwn. */
const owned: string[] = [];
const maxOwn = 64;

/** own remembers the commit that a write of this page made, and returns the ETag of the answer, or else otherwise. */
export function own(answer: Response, otherwise = ""): string {
  const etag = answer.headers.get("ETag") ?? otherwise;
  owned.push(etag.replaceAll('"', ""));
  if (owned.length > maxOwn) owned.shift();
  return etag;
}

/** isOwn reports whether this page made a commit. */
export function isOwn(commit: string): boolean {
  return owned.includes(commit);
}
