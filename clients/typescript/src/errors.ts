import type { Problem, Receipt } from "./generated/operations.js";

/** What is known of a write that failed. Of a read it is always "not-applied". */
export type Outcome = "not-applied" | "unknown";

/** The error of every method: what the service refused, or that it could not be reached. */
export class CoppiceError extends Error {
  constructor(readonly problem: Problem, readonly outcome: Outcome = "not-applied", cause?: unknown) {
    super(problem.detail ?? problem.title ?? `status ${problem.status}`, { cause });
    this.name = new.target.name;
  }
  /** HTTP status; 0 = no answer came. */
  get status(): number { return this.problem.status ?? 0; }
  /** For programs: a code of docs/http.md, or "unreachable", "no-base", "answer" (not one of the service). */
  get code(): string { return this.problem.code ?? "answer"; }
  /** What to do, if the service says it. */
  get hint(): string | undefined { return this.problem.hint; }
}
/** No such session, entry, commit or tenant; or the session was deleted. */
export class NotFound extends CoppiceError {}
/** No token, an unknown one, or one without the right; or the server is read-only. */
export class Unauthorized extends CoppiceError {}
/** The session was claimed by another agent: nothing was stored, and this one should stop. */
export class Fenced extends CoppiceError {}

/** Another writer committed first: nothing was stored. */
export class Conflict extends CoppiceError {
  /** Of a commit: stores the turn as a branch, once however often it is called. The head stays: resume then. */
  keepBoth?: () => Promise<Receipt>;
  /** The receipt of that branch, where Session.turn has kept the turn. */
  kept?: Receipt;
  /** The commit that was first, and the entries since the base, at most 100 (problem.more = not all). */
  get winner() { return this.problem.winner; }
  get entriesSince(): unknown[] { return this.problem.entries ?? []; }
}

/** The answer to a write did not come within the bounds: it may be stored. */
export class OutcomeUnknown extends CoppiceError {
  /** Sends a commit again, with the same key, bytes and base; bounded as before. Moves do not have it. */
  retry?: () => Promise<Receipt>;
  /** key is the Idempotency-Key: a commit of the same content with it is stored at most once. Moves have none. */
  constructor(what: string, readonly key: string | undefined, cause: CoppiceError) {
    const hint = key ? "send it again with this key" : "read the session again: its commits show whether it is stored";
    const detail = `${what}: unknown whether it is stored: ${cause.message}`;
    super({ code: "outcome-unknown", detail, hint }, "unknown", cause);
  }
}

/** The error that an answer is. */
export function errorOf(problem: Problem, outcome: Outcome, cause?: unknown): CoppiceError {
  const { status, code } = problem;
  const of = status === 412 && code !== "exists" ? Conflict : status === 404 || status === 410 ? NotFound
    : status === 401 || status === 403 ? Unauthorized : code === "fenced" ? Fenced : CoppiceError;
  return new of(problem, outcome, cause);
}
