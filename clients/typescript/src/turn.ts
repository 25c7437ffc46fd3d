import { Exists, NotFound } from "./errors.js";
import { fingerprint } from "./json.js";
import type { Receipt } from "./generated/operations.js";
import type { CommitOptions, Resumed, Session } from "./session.js";

/** Options of Session.turn. */
export interface TurnOptions<S> {
  /** The state of a session without one. Default null. */
  initial?: S;
  /** Creates the session if there is none. It is not called for one that was deleted. */
  create?: () => Promise<unknown>;
  /** Fences every older agent, by one commit. */
  claim?: boolean;
  /** The text that answers calls which an earlier process left open. */
  interrupted?: string;
  /** Ends the reads and commits of the turn. */
  signal?: AbortSignal | undefined;
}
/** The result of fn: more entries, and the state instead of Turn.state. */
export interface TurnChange { entries?: readonly unknown[]; state?: unknown }

/** A turn that is under way. */
export class Turn<S> {
  /** The agent's state. Change it, or replace it: the next commit stores it if it differs. */
  state: S;
  /** The messages of the context, with those of this turn. */
  readonly messages: unknown[];
  private pending: unknown[] = [];
  private stored: string; // fingerprint of the state that the service has
  private readonly signal: AbortSignal | undefined;
  constructor(readonly session: Session, readonly resumed: Resumed, o: TurnOptions<S>) {
    this.state = structuredClone((resumed.state ?? o.initial ?? null) as S);
    this.stored = fingerprint(resumed.state);
    this.messages = [...resumed.context];
    this.signal = o.signal;
    const text = o.interrupted ?? "interrupted: it is unknown whether this ran; check before repeating it";
    this.append(...resumed.openCalls.map(({ id, name }) => toolResult(id, name, text, true)));
  }
  /** Adds messages. The next commit stores them. */
  append(...messages: unknown[]): void {
    for (const list of [this.pending, this.messages]) list.push(...messages);
  }
  /** Stores appended messages and the state. Call it before a tool runs, so that its call is durable first. */
  async commit(o: Omit<CommitOptions, "state" | "base"> = {}): Promise<Receipt> {
    const state = fingerprint(this.state);
    const change = state === this.stored ? {} : { state: this.state };
    const receipt = await this.session.commit(this.pending, { signal: this.signal, ...o, ...change });
    this.pending = [];
    this.stored = state;
    return receipt;
  }
  /** Reports whether there is something to commit. */
  changed(): boolean { return this.pending.length > 0 || fingerprint(this.state) !== this.stored; }
}

/** The message that answers a call of a tool, in the form that every reader of sessions knows. */
export function toolResult(callId: string, name: string, text: string, isError = false): object {
  return { role: "toolResult", toolCallId: callId, toolName: name, content: [{ type: "text", text }], isError };
}

/** Begins a turn: claims the session if asked to, and resumes it; creates it first if there is none. */
export async function begin<S>(session: Session, o: TurnOptions<S>): Promise<Turn<S>> {
  const { create, claim, signal } = o;
  const start = async (): Promise<Resumed> => {
    if (claim) await session.claim({ base: "*", signal }); // also if older agents have just committed
    return session.resume({ signal });
  };
  try {
    return new Turn(session, await start(), o);
  } catch (e) {
    if (!(e instanceof NotFound) || !create) throw e;
  }
  try {
    await create();
  } catch (e) {
    if (!(e instanceof Exists)) throw e; // otherwise another host was first
  }
  return new Turn(session, await start(), o);
}
