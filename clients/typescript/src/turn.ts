import { type CoppiceError, NotFound } from "./errors.js";
import { encode } from "./json.js";
import type { Receipt } from "./generated/operations.js";
import type { CommitOptions, Resumed, Session } from "./session.js";

/** Options of Session.turn: the state of a session that has none (default null), what creates the session if there is none,
 * claim = fence every older agent by one commit, and the text that answers calls which an earlier process left open. */
export interface TurnOptions<S> { initial?: S; create?: () => Promise<unknown>; claim?: boolean; interrupted?: string }
/** What fn may return: more entries, and the state in place of Turn.state. */
export interface TurnChange { entries?: readonly unknown[]; state?: unknown }

/** A turn that is under way. */
export class Turn<S> {
  /** The agent's state. Change it, or replace it: the next commit stores it if it is another one. */
  state: S;
  /** The messages of the context, with those of this turn. */
  readonly messages: unknown[];
  private pending: unknown[] = [];
  private stored: string;
  constructor(readonly session: Session, readonly resumed: Resumed, o: TurnOptions<S>) {
    this.state = structuredClone((resumed.state ?? o.initial ?? null) as S);
    this.stored = encode(resumed.state);
    this.messages = [...resumed.context];
    const text = o.interrupted ?? "interrupted: it is unknown whether this ran; check before repeating it";
    this.append(...resumed.openCalls.map(({ id, name }) => toolResult(id, name, text, true)));
  }
  /** Adds messages: they are stored by the next commit. */
  append(...messages: unknown[]): void { for (const list of [this.pending, this.messages]) list.push(...messages); }
  /** Stores what was appended and the state: before a tool runs, say, so that its call is durable before its effects. */
  async commit(o: Omit<CommitOptions, "state" | "base"> = {}): Promise<Receipt> {
    const state = encode(this.state), change = state === this.stored ? {} : { state: this.state };
    const receipt = await this.session.commit(this.pending, { ...o, ...change });
    [this.pending, this.stored] = [[], state];
    return receipt;
  }
  /** Reports whether there is something to commit. */
  changed(): boolean { return this.pending.length > 0 || encode(this.state) !== this.stored; }
}

/** The message that answers a call of a tool, in the form that every reader of sessions knows. */
export function toolResult(callId: string, name: string, text: string, isError = false): object {
  return { role: "toolResult", toolCallId: callId, toolName: name, content: [{ type: "text", text }], isError };
}

/** Begins a turn: claims the session if asked to, and resumes it; creates it first if there is none. */
export async function begin<S>(session: Session, o: TurnOptions<S>): Promise<Turn<S>> {
  const start = async (): Promise<Resumed> => {
    if (o.claim) await session.claim({ base: "*" }); // whatever the older agents have just committed
    return session.resume();
  };
  return new Turn(session, await start().catch(async (e: unknown) => {
    if (!(e instanceof NotFound) || !o.create) throw e;
    await o.create().catch((e: CoppiceError) => { if (e.code !== "exists") throw e; }); // by another host
    return start();
  }), o);
}
