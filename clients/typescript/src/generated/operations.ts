// Generated from docs/openapi.json by scripts/generate.mjs: run `npm run generate` to change it.

import { RawJSON } from "../json.js";
import { Requests, type WriteOptions } from "../requests.js";
import type { components, operations } from "./openapi.js";

/** The documents of the service, by the names of docs/openapi.json. */
export type Schemas = components["schemas"];
/** What a commit did. */
export type Receipt = Schemas["Committed"];
/** The document of an error. */
export type Problem = Partial<Schemas["Problem"]>;
type Query<Op extends keyof operations> = NonNullable<operations[Op]["parameters"]["query"]>;
type ByMeta = { [name: `meta.${string}`]: string };

/** The operations on a session that are one request. */
export abstract class SessionOperations extends Requests {
  /** Makes a write that is no commit of entries. */
  protected abstract move<T>(method: string, operation: string, body: object, o: WriteOptions): Promise<T>;
  /** Delete a session for good, or into the trash. */
  delete(o: WriteOptions & { trash?: boolean } = {}): Promise<Schemas["Deleted"]> { return this.move("DELETE", o.trash ? "?trash=1" : "", {}, o); }
  /** The summary of a session; its ETag is the newest commit. */
  info(): Promise<Schemas["Session"]> { return this.get(""); }
  /** Change title, working directory and metadata. */
  setInfo(body: Schemas["SessionChange"], o: WriteOptions = {}): Promise<Schemas["Moved"]> { return this.move("PATCH", "", body, o); }
  /** Which commits changed a value of the state. */
  blame(query: Query<"blame"> = {}): AsyncGenerator<Schemas["BlameList"]["changes"][number]> { return this.pages("changes", "/blame", query); }
  /** The bytes of an image, or a range of them. */
  blob(sha256: string): Promise<Response> { return this.stream(`/blobs/${encodeURIComponent(sha256)}`); }
  /** Move the head to an entry, so that the next one begins a branch. */
  branch(body: Schemas["BranchBody"], o: WriteOptions = {}): Promise<Schemas["Moved"]> { return this.move("POST", "/branch", body, o); }
  /** Branches and their heads. */
  branches(): Promise<Schemas["BranchList"]> { return this.get("/branches"); }
  /** Take over the session from writers of before. */
  claim(o: WriteOptions = {}): Promise<Schemas["Moved"]> { return this.move("POST", "/claim", {}, o); }
  /** Commits, newest first. */
  commits(query: Query<"listCommits"> = {}): AsyncGenerator<Schemas["CommitList"]["commits"][number]> { return this.pages("commits", "/commits", query); }
  /** One commit, which never changes. */
  getCommit(seq: string): Promise<Schemas["Commit"]> { return this.get(`/commits/${encodeURIComponent(seq)}`); }
  /** Replace the older part of the context with a summary. */
  compact(body: Schemas["CompactBody"], o: WriteOptions = {}): Promise<Schemas["Compacted"]> { return this.move("POST", "/compact", body, o); }
  /** What the model saw, now or at any time, complete. */
  contextAt(query: Query<"context"> = {}): Promise<Schemas["Context"]> { return this.get("/context", query); }
  /** What differs in messages and state between two times. */
  diff(query: Query<"diff">): Promise<Schemas["Diff"]> { return this.get("/diff", query); }
  /** Append another version of an entry, and move the head to it. */
  edit(body: Schemas["EditBody"], o: WriteOptions = {}): Promise<Schemas["Moved"]> { return this.move("POST", "/edit", body, o); }
  /** Entries of a path or of all branches, in either direction. */
  entries(query: Query<"listEntries"> = {}): AsyncGenerator<RawJSON> { return this.pages("entries", "/entries", query, (raw) => new RawJSON(raw)); }
  /** One entry, as amendments have it. */
  entry(entry: string, query: Query<"getEntry"> = {}): Promise<RawJSON> { return this.raw(`/entries/${encodeURIComponent(entry)}`, query); }
  /** The session as a file. */
  export(query: Query<"export"> = {}): Promise<Response> { return this.stream("/export", query); }
  /** Name an entry for people; the head stays. */
  label(body: Schemas["LabelBody"], o: WriteOptions = {}): Promise<Schemas["Moved"]> { return this.move("POST", "/label", body, o); }
  /** Labels of entries. */
  labels(): Promise<Schemas["LabelList"]> { return this.get("/labels"); }
  /** The drawn tree in at most 2,048 buckets. */
  map(query: Query<"map"> = {}): Promise<Schemas["TreeMap"]> { return this.get("/map", query); }
  /** The session as it was imported, byte for byte. */
  original(): Promise<Response> { return this.stream("/original"); }
  /** Restore state, context and head as they were. */
  rollback(body: Schemas["TargetBody"], o: WriteOptions = {}): Promise<Schemas["Rollback"]> { return this.move("POST", "/rollback", body, o); }
  /** The tree as it is drawn, a stretch of rows at a time. */
  rows(query: Query<"rows"> = {}): Promise<Schemas["RowList"]> { return this.get("/rows", query); }
  /** Store the state of the newest commit as a snapshot. */
  snapshot(body: Schemas["SnapshotBody"], o: WriteOptions = {}): Promise<Schemas["Snapshot"]> { return this.move("POST", "/snapshot", body, o); }
  /** Snapshots. */
  snapshots(): Promise<Schemas["SnapshotList"]> { return this.get("/snapshots"); }
  /** The agent's state, now or at any time. */
  stateAt(query: Query<"state"> = {}): Promise<RawJSON> { return this.raw("/state", query); }
  /** Move the head to a branch, with the state in force there. */
  switch(body: Schemas["SwitchBody"], o: WriteOptions = {}): Promise<Schemas["Moved"]> { return this.move("POST", "/switch", body, o); }
  /** Tokens and cost of all branches, or of one path. Reads every entry of them. */
  usage(query: Query<"usage"> = {}): Promise<Schemas["Usage"]> { return this.get("/usage", query); }
  /** The versions of an entry: what grows from the same parent. */
  versions(entry: string): Promise<Schemas["Versions"]> { return this.get(`/versions/${encodeURIComponent(entry)}`); }
}

/** The operations on a store that are one request. */
export abstract class StoreOperations extends Requests {
  /** What the client may do, so that it does not offer what would be refused. */
  access(): Promise<Schemas["AccessDoc"]> { return this.get("/access"); }
  /** Whether the server answers. */
  health(): Promise<Schemas["Health"]> { return this.get("/health"); }
  /** What users typed in all sessions and branches, newest first. */
  prompts(query: Query<"prompts"> = {}): AsyncGenerator<Schemas["PromptList"]["prompts"][number]> { return this.pages("prompts", "/prompts", query); }
  /** Entries of all sessions and branches that contain words. */
  search(query: Query<"search"> = {}): AsyncGenerator<Schemas["MatchList"]["matches"][number]> { return this.pages("matches", "/search", query); }
  /** Sessions, newest activity first. */
  sessions(query: Query<"listSessions"> & ByMeta = {}): AsyncGenerator<Schemas["SessionList"]["sessions"][number]> { return this.pages("sessions", "/sessions", query); }
  /** Tokens and cost of sessions, each with all branches. */
  usage(query: Query<"allUsage"> & ByMeta = {}): AsyncGenerator<Schemas["UsageList"]["sessions"][number]> { return this.pages("sessions", "/usage", query); }
}
