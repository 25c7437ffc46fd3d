import { Conflict, CoppiceError, Deleted, Exists, Fenced, OutcomeUnknown } from "./errors.js";
import { follow, type Event, type FollowOptions } from "./follow.js";
import { required, SessionOperations, type Query, type Receipt, type Schemas } from "./generated/operations.js";
import { encode, object, rawItems, rawMembers } from "./json.js";
import { hex, octets, uuidv7, type KeyedOptions, type ReadOptions, type WriteOptions } from "./requests.js";
import type { Request, Transport } from "./transport.js";
import { begin, type Turn, type TurnChange, type TurnOptions } from "./turn.js";

/** What an agent needs to continue, and the text of the state and of each message, with all digits of numbers. */
export interface Resumed extends Readonly<Schemas["Resume"]> { readonly rawState: string; readonly rawContext: string[] }
/** What a commit stores in addition to its entries: see NewCommit of docs/openapi.json. Values may be RawJSON. With a format
 * the entries are lines of that program's session files. */
export interface CommitOptions extends KeyedOptions, Omit<Schemas["NewCommit"], "entries">, Query<"commit"> {}
/** A write that move makes. */
export interface Move { method: "POST" | "PUT" | "PATCH" | "DELETE"; path: string[]; query?: Request<unknown>["query"]; body?: object }

/** How long a partial waits for its answer, in milliseconds. */
const partialTimeout = 5000;

/** The handle of a session, for one caller at a time. Each write sends base as If-Match. */
export class Session extends SessionOperations {
  private partials: Promise<boolean> | undefined; // sends the latest
  private latest: string | undefined;
  private fence: Fenced | undefined; // met by a write, until resume or claim
  /** base is the commit of the next write: set by resume and by writes, undefined once a turn was kept as a branch. */
  constructor(transport: Transport, readonly id: string, public base?: string) {
    super(transport, ["sessions", id]);
  }

  /** Reads what an agent needs to continue, with one request, and sets base. The service reads the store once. */
  async resume(o: ReadOptions = {}): Promise<Resumed> {
    const [text, doc] = await this.read(["resume"], {}, o, (text) => [text, object<Resumed>(text, required.Resume, this.id)] as const);
    this.base = doc.commit;
    this.fence = undefined;
    const raw = (name: string) => rawMembers(text).get(name)!;
    return Object.defineProperties(doc, { rawState: { get: () => raw("state") }, rawContext: { get: () => rawItems(raw("context")) } });
  }

  /** Stores entries and state together. It is retried with one idempotency key, so stored at most once, until the outcome is
   * known or the bounds of the Store are reached. Entries are messages of any provider, or entries. Throws Conflict if
   * another writer was first, Fenced if the session was claimed, OutcomeUnknown if the service did not answer. */
  async commit(entries: readonly unknown[] = [], o: CommitOptions = {}): Promise<Receipt> {
    const { base, signal, key = hex(16), onConflict, format, ...content } = o;
    signal?.throwIfAborted();
    if (onConflict !== "keep-fenced") this.open();
    const turn = encode({ entries, ...content });
    const body = (policy: string | undefined) => (policy ? `${turn.slice(0, -1)},"onConflict":${encode(policy)}}` : turn);
    const read = (text: string) => object<Receipt>(text, required.Committed);
    const on = base ?? this.base ?? (o.create && "*"); // a session that may not be there
    const request = { ...this.write({ method: "POST", path: ["commits"], query: { format } }, on), body: body(onConflict), key, read };
    this.latest = undefined;
    await this.partials; // one that arrives after the commit would never be removed
    const send = async (r: Request<Receipt>): Promise<Receipt> => {
      try {
        const { value: receipt } = await this.transport.send(r);
        this.base = receipt.kept ? undefined : receipt.commit;
        return receipt;
      } catch (e) {
        const keep = (policy: string) => (signal?: AbortSignal) => send({ ...request, body: body(policy), signal });
        if (e instanceof Conflict) e.keepBoth = keep("keep-both");
        if (e instanceof Fenced) [this.fence, e.keepBoth] = [e, keep("keep-fenced")];
        if (e instanceof OutcomeUnknown) e.retry = (signal) => send({ ...r, signal });
        throw e;
      }
    };
    return send({ ...request, signal });
  }

  /** Does one turn of an agent: resumes, answers calls that an earlier process left open, calls fn, and commits what it
   * appended or returns together with the state. If another writer is first, the turn is kept as a branch (Receipt.kept);
   * if that happens to a commit within fn, the error is thrown with it (Conflict.kept). If fn throws, uncommitted entries
   * are dropped. undefined = there was nothing to store. */
  async turn<S>(fn: (t: Turn<S>) => Promise<TurnChange | void>, o: TurnOptions<S> = {}): Promise<Receipt | undefined> {
    if (!o.claim) this.open();
    const turn = await begin(this, o);
    let ended = false;
    try {
      const change = await fn(turn);
      turn.append(...(change?.entries ?? []));
      if (change?.state !== undefined) turn.state = change.state as S;
      ended = turn.changed();
      return ended ? await turn.commit() : undefined;
    } catch (e) {
      if (e instanceof Conflict && e.keepBoth) e.kept = await e.keepBoth();
      if (ended && e instanceof Conflict && e.kept) return e.kept;
      throw e;
    }
  }

  /** Sends the output streamed so far to followers, and returns whether the service has it. It is not retried. While one is
   * on its way, only the newest of the later ones is sent after it. A commit ends the output; null removes it. */
  async partial(message: unknown): Promise<boolean> {
    this.latest = encode({ partial: message });
    this.partials ??= this.sendPartials();
    return this.partials;
  }
  private async sendPartials(): Promise<boolean> {
    let sent = false;
    try {
      for (let body = this.latest; body; body = this.latest) {
        this.latest = undefined;
        const request = { method: "POST", path: [...this.path, "partial"], body, status: 204, timeout: partialTimeout } as const;
        const { answer } = await this.transport.once({ ...request, read: () => undefined });
        sent = answer !== undefined;
      }
    } finally {
      this.partials = undefined;
    }
    return sent;
  }

  /** Yields commits, and partial output between them, until the signal or a break. It reconnects when it is cut off:
   * no commit is missing or repeated. Throws if the service refuses, or is unreachable for longer than the bounds. */
  follow(o?: FollowOptions): AsyncGenerator<Event, void> { return follow(this.transport, [...this.path, "events"], o); }

  /** Sends the bytes of an image before the commit that has it. Returns the text that refers to it, in place of base64, in the
   * entries of a commit with images: "ref". */
  async upload(image: Uint8Array, o: ReadOptions = {}): Promise<string> {
    const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", image as BufferSource));
    const name = Array.from(sum, (b) => b.toString(16).padStart(2, "0")).join("");
    const request = { method: "PUT", path: [...this.path, "blobs", name], body: image, status: 204, read: () => undefined } as const;
    await this.transport.send({ ...request, headers: octets, signal: o.signal });
    return `coppice-blob:sha256:${name}:${image.length}`;
  }

  /** Returns the session as a file. The caller reads its body. */
  export(query: Query<"export"> = {}, o: ReadOptions = {}): Promise<Response> {
    const types: Record<string, string> = { html: "text/html", markdown: "text/markdown" };
    return this.file([types[query.format ?? "pi"] ?? "application/x-ndjson"], ["export"], query, o);
  }

  /** Makes a new session from this one at a target; default the head. */
  async fork(fork: Schemas["ForkBody"] = {}, o: WriteOptions = {}): Promise<Session> {
    const id = fork.id ?? uuidv7();
    const request = this.write({ method: "POST", path: ["fork"], body: { ...fork, id } }, o.base);
    const read = (text: string) => object(text, required.Fork, id);
    try {
      const { etag } = await this.transport.send({ ...request, signal: o.signal, status: 201, etag: true, read });
      return new Session(this.transport, id, etag);
    } catch (e) {
      const made = e instanceof Exists && e.outcome === "unknown"; // by a try whose answer was lost
      if (!made || fork.id) throw e;
      return new Session(this.transport, id);
    }
  }

  /** Removes the content of entries for good, and leaves stubs. It conflicts with no writer; a repeat completes what broke
   * off, and changes nothing else. */
  erase(body: Schemas["EraseBody"], o: ReadOptions = {}): Promise<Schemas["Erased"]> {
    return this.post(required.Erased, ["erase"], body, 200, o);
  }

  protected async move<T>(move: Move, members: readonly string[], o: KeyedOptions, keyed: boolean): Promise<T> {
    const deletes = move.method === "DELETE", claims = move.path[0] === "claim";
    if (!claims) this.open();
    const request = {
      ...this.write(move, o.base), signal: o.signal, etag: !deletes,
      key: keyed ? (o.key ?? hex(16)) : undefined,
      repeat: keyed || deletes, // another write could be made twice
      read: (text: string) => object<T>(text, members, this.id),
    };
    try {
      const { etag, value } = await this.transport.send(request);
      this.base = etag ?? this.base;
      if (claims) this.fence = undefined;
      return value;
    } catch (e) {
      if (e instanceof Fenced) this.fence = e;
      const done = deletes && e instanceof Deleted && e.outcome === "unknown"; // by a try whose answer was lost
      if (!done) throw e;
      return { deleted: true, session: this.id } as T;
    }
  }

  /** Throws if a write has met a fence since resume or claim. */
  private open() {
    if (this.fence) throw new Fenced(this.fence.problem, "not-applied", this.fence);
  }

  /** The request of a write on a commit. */
  private write({ method, path, query = {}, body }: Move, base = this.base) {
    if (!base) throw new CoppiceError({ code: "no-base", detail: "nothing was stored: resume first, or pass base" });
    const headers = { "If-Match": base === "*" ? base : `"${base}"` };
    return { method, path: [...this.path, ...path], query, headers, ...(body && { body: encode(body) }) };
  }
}
