import { Conflict, CoppiceError, OutcomeUnknown } from "./errors.js";
import { follow, type Event, type FollowOptions } from "./follow.js";
import { SessionOperations, type Receipt, type Schemas } from "./generated/operations.js";
import { encode, rawItems, rawMembers } from "./json.js";
import { hex, parse, uuidv7, type WriteOptions } from "./requests.js";
import type { Request, Transport } from "./transport.js";
import { begin, type Turn, type TurnChange, type TurnOptions } from "./turn.js";

/** What an agent needs to continue, and the text of the state and of each message, with all digits of numbers. */
export interface Resumed extends Readonly<Schemas["Resume"]> { readonly rawState: string; readonly rawContext: string[] }
/** What a commit stores beside its entries: see NewCommit of docs/openapi.json. Values may be RawJSON. A commit with the
 * key (Idempotency-Key, default 128 random bits) and the content of an earlier one is that one. */
export interface CommitOptions extends WriteOptions, Omit<Schemas["NewCommit"], "entries"> { key?: string }

/** A session. The handle knows the commit on which it stands; it is for one caller at a time. */
export class Session extends SessionOperations {
  private partials: Promise<boolean> | undefined; // sends the latest
  private latest: string | undefined;
  /** base is the commit of the next write: set by resume and by writes, undefined once a turn was kept as a branch. */
  constructor(transport: Transport, readonly id: string, public base?: string) {
    super(transport, `/sessions/${encodeURIComponent(id)}`);
  }

  /** Reads what an agent needs to continue: one request, one read of the store. */
  async resume(): Promise<Resumed> {
    const text = await this.text("/resume"), doc = parse<Resumed>(text), raw = (name: string) => rawMembers(text).get(name)!;
    this.base = doc.commit;
    return Object.defineProperties(doc, { rawState: { get: () => raw("state") }, rawContext: { get: () => rawItems(raw("context")) } });
  }

  /** Stores entries and state together, once or not at all: sent again, under one key, until the outcome is known or the
   * bounds of the Store are reached. Entries are messages of any provider, or entries. Throws Conflict if another writer
   * was first, Fenced if the session was claimed, OutcomeUnknown if no answer came. */
  async commit(entries: readonly unknown[] = [], o: CommitOptions = {}): Promise<Receipt> {
    const { base: _, signal: __, key = hex(16), ...rest } = o, r = { ...this.write("POST", { entries, ...rest }, o), key };
    this.latest = undefined;
    await this.partials; // one that came after the commit would be shown for ever
    const send = async (r: Request): Promise<Receipt> => {
      try {
        const receipt = parse<Receipt>((await this.transport.send(`${this.path}/commits`, r)).text);
        this.base = receipt.kept ? undefined : receipt.commit;
        return receipt;
      } catch (e) {
        if (e instanceof Conflict) e.keepBoth = () => send({ ...r, body: encode({ entries, ...rest, onConflict: "keep-both" }) });
        if (e instanceof OutcomeUnknown) e.retry = () => send(r);
        throw e;
      }
    };
    return send(r);
  }

  /** Does one turn of an agent: resumes, answers calls that an earlier process left open, calls fn, and commits what it
   * appended or returns together with the state. If another writer is first, the turn is kept as a branch (Receipt.kept);
   * if that befalls a commit within fn, the error is thrown with it (Conflict.kept). If fn throws, what was not committed
   * is dropped. undefined = there was nothing to store. */
  async turn<S>(fn: (t: Turn<S>) => Promise<TurnChange | void>, o: TurnOptions<S> = {}): Promise<Receipt | undefined> {
    const turn = await begin(this, o);
    let ended = false;
    try {
      const change = await fn(turn);
      turn.append(...(change?.entries ?? []));
      if (change?.state !== undefined) turn.state = change.state as S;
      return (ended = turn.changed()) ? await turn.commit() : undefined;
    } catch (e) {
      if (e instanceof Conflict && e.keepBoth) e.kept = await e.keepBoth();
      if (ended && e instanceof Conflict && e.kept) return e.kept;
      throw e;
    }
  }
  /** Says what is streamed so far to those who follow, as well as it can: true = the service has it. While one is on its
   * way, only the newest of the others is sent after it. A commit ends it; null takes it back. */
  partial(message: unknown): Promise<boolean> {
    this.latest = encode({ partial: message });
    return (this.partials ??= (async () => {
      let heard = false;
      for (let body = this.latest; body; body = this.latest) {
        this.latest = undefined;
        const r = { method: "POST", body, repeat: false, timeout: 5000 };
        heard = await this.transport.send(`${this.path}/partial`, r).then(() => true, () => false);
      }
      this.partials = undefined;
      return heard;
    })());
  }
  /** Yields commits, and what is streamed between them, until the signal or a break. It connects again when it is cut off:
   * no commit is missing and none comes twice. Throws if the service refuses, or is gone for longer than the bounds. */
  follow(o?: FollowOptions): AsyncGenerator<Event, void> { return follow(this.transport, `${this.path}/events`, o); }

  /** Makes a new session of what this one was at a target; default the head. */
  async fork(fork: Schemas["ForkBody"] = {}, o: WriteOptions = {}): Promise<Session> {
    const id = fork.id ?? uuidv7(), r = this.write("POST", { ...fork, id }, o);
    const made = await this.transport.send(`${this.path}/fork`, r).catch((e: CoppiceError) => {
      if (e.code !== "exists" || e.outcome !== "unknown" || fork.id) throw e; // else by a try whose answer was lost
    });
    return new Session(this.transport, id, made?.etag);
  }
  /** The request of a write. */
  private write(method: string, body: object, { base = this.base, signal }: WriteOptions): Request {
    if (!base) throw new CoppiceError({ code: "no-base", detail: "nothing was stored: resume first, or pass base" });
    const headers = { "If-Match": base === "*" ? base : `"${base}"` };
    return { method, headers, signal, ...(method === "DELETE" ? {} : { body: encode(body) }) };
  }

  /** Makes a write that has no key, so that it is not simply sent again. If its answer is lost, the commits since the base
   * show it: one that did the same; else it is unknown, unless there is none of its kind and If-Match refuses a second one. */
  protected async move<T>(method: string, op: string, body: object, o: WriteOptions, lost?: OutcomeUnknown): Promise<T> {
    const base = o.base ?? this.base, r = { ...this.write(method, body, o), repeat: false };
    try {
      const { etag, text } = await this.transport.send(this.path + op, r);
      this.base = etag ?? this.base;
      return parse(text);
    } catch (e) {
      const why = e instanceof OutcomeUnknown ? e : lost;
      if (!why || !/^.(switch|branch|edit)$/.test(op) || base === "*") throw why ?? e;
      let made: Schemas["Commit"] | undefined;
      for await (const c of this.commits()) {
        if (c.commit === base) break;
        if (c.reason === "branch") made = c; // as all three are called; only the oldest can be this one
      }
      if (made ? !(await this.didSame(made, body)) : e === why && lost) throw why;
      if (made) return { head: made.head, branch: made.branch, seq: made.seq, commit: (this.base = made.commit) } as T;
      if (e !== why) throw e; // refused, and there is no such commit: it was not applied
      return this.move(method, op, body, { ...o, base: base! }, why);
    }
  }
  /** Reports whether a commit did what the body of a switch, branch or edit says. */
  private async didSame(c: Schemas["Commit"], body: { to?: string; entry?: string; name?: string; message?: unknown }) {
    const { to, entry, name, message } = body, head = c.head ?? "";
    if (to !== undefined) return c.branch === to || head === to;
    if (message === undefined) return !c.entries && head === entry && (!name || c.branch === name);
    return c.entries === 1 && rawMembers((await this.entry(head)).text).get("message") === encode(message);
  }
}
