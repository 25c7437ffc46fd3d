export { Conflict, CoppiceError, Deleted, Fenced, InvalidArgument, NotFound, OutcomeUnknown, Unauthorized, type Outcome } from "./errors.js";
export type { Event, FollowedCommit, FollowOptions } from "./follow.js";
export { rawItems, RawJSON, rawMembers } from "./json.js";
export { Session, type CommitOptions, type Resumed } from "./session.js";
export type { Receipt, Schemas } from "./generated/operations.js";
export type { KeyedOptions, List, Page, ReadOptions, WriteOptions } from "./requests.js";
export { Store, type CreateOptions, type ImportOptions } from "./store.js";
export type { StoreOptions } from "./transport.js";
export { toolResult, Turn, type TurnChange, type TurnOptions } from "./turn.js";
