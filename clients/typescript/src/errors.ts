import type { Problem, Receipt } from "./generated/operations.js";

/** The effect of a failed write. Of a read it is always "not-applied". */
export type Outcome = "not-applied" | "unknown";

/** The error of every method: the service refused the request, or could not be reached. */
export class CoppiceError extends Error {
  constructor(readonly problem: Problem, readonly outcome: Outcome = "not-applied", cause?: unknown) {
    super(problem.detail || problem.title || `status ${problem.status}`, { cause });
    this.name = new.target.name;
  }
  /** HTTP status; 0 = there was no answer. */
  get status(): number { return this.problem.status ?? 0; }
  /** For programs: a code of docs/http.md, or one of the client: "unreachable", "no-base", "answer" (what
   * answered is not the service). */
  get code(): string { return this.problem.code ?? "answer"; }
  /** What to do next, where the message does not contain it. */
  get hint(): string | undefined { return this.problem.hint; }
}
/** No such session, tenant or path; or the view of rows is gone. */
export class NotFound extends CoppiceError {}
/** The session was deleted. Only a creation with again uses its id. */
export class Deleted extends CoppiceError {}
/** The id of a new session, or the name of a branch, is taken. */
export class Exists extends CoppiceError {}
/** The idempotency key belongs to a write with other content: nothing was stored. */
export class KeyReused extends CoppiceError {}
/** The request has no token, or one that the service does not know. */
export class Unauthorized extends CoppiceError {}
/** The token, the tenant or the service does not permit the request: the code is "permission" or "read-only". */
export class Forbidden extends CoppiceError {}
/** The service could not be reached within the bounds: nothing was stored. */
export class Unavailable extends CoppiceError {}
/** Another writer was first: nothing was stored. */
abstract class Lost extends CoppiceError {
  /** Stores the commit as a branch, at most once. The head stays: call resume() then. Undefined for other writes. */
  keepBoth?: (signal?: AbortSignal) => Promise<Receipt>;
}
/** The session was claimed by another agent: nothing was stored, and this one should stop. Its handle refuses writes from
 * then on, until resume or claim. */
export class Fenced extends Lost {}

/** Another writer committed first: nothing was stored. */
export class Conflict extends Lost {
  /** The receipt of that branch, where Session.turn has kept the turn. */
  kept?: Receipt;
  /** The commit that was first. */
  get winner() { return this.problem.winner; }
  /** The entries since the base, at most 100 (problem.more = not all). */
  get entriesSince(): unknown[] { return this.problem.entries ?? []; }
}

/** The service did not answer a write, which may be stored. The cause is the last error, or the signal's reason. */
export class OutcomeUnknown extends CoppiceError {
  /** Sends a commit again, with the same key, bytes and base, within the same bounds. Undefined for other writes. */
  retry?: (signal?: AbortSignal) => Promise<Receipt>;
  /** key is the Idempotency-Key, if the write has one: the same write with it is stored at most once. */
  constructor(what: string, readonly key: string | undefined, cause: unknown) {
    const hint = key ? "send it again with this key" : "look whether it is stored before you send it again";
    const why = cause instanceof Error ? cause.message : String(cause);
    super({ code: "outcome-unknown", detail: `${what}: unknown whether it is stored: ${why}`, hint }, "unknown", cause);
  }
}
/** A value, key, token, id or address that cannot be sent. */
export class InvalidArgument extends CoppiceError {
  constructor(detail: string) {
    super({ code: "usage", detail: `${detail}; nothing was sent` });
  }
}

/** The class of an error, by its code, or else by its status. */
const classes: Record<string, typeof CoppiceError> = {
  conflict: Conflict, deleted: Deleted, exists: Exists, fenced: Fenced, gone: NotFound, "key-reused": KeyReused,
  "not-found": NotFound, 401: Unauthorized, 403: Forbidden,
};

/** Returns the error for a problem document. */
export function errorOf(problem: Problem, outcome: Outcome, cause?: unknown): CoppiceError {
  const kind = classes[problem.code ?? ""] ?? classes[problem.status ?? 0] ?? CoppiceError;
  return new kind(problem, outcome, cause);
}

