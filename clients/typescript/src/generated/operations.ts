// Generated from docs/openapi.json by scripts/generate.mjs: run `npm run generate` to change it.

import { RawJSON } from "../json.js";
import { Requests, type KeyedOptions, type List, type ReadOptions, type WriteOptions } from "../requests.js";
import type { Move } from "../session.js";
import type { components, operations } from "./openapi.js";

/** The documents of the service, by the names of docs/openapi.json. */
export type Schemas = components["schemas"];
/** What a commit did. */
export type Receipt = Schemas["Committed"];
/** The document of an error. */
export type Problem = Partial<Schemas["Problem"]>;
/** The parameters of an operation. */
export type Query<Op extends keyof operations> =
  operations[Op] extends { parameters: { query?: infer Q } } ? NonNullable<Q> : never;
type ByMeta = { [name: `meta.${string}`]: string };
/** Members of an entry by their dotted path, each with the JSON that it has to be: {"match.data.source": '"loop"'}. */
type ByMatch = { [name: `match.${string}`]: string };

/** The members that a document always has. */
export const required = {
  AccessDoc: ["rights", "readOnly", "tenant"],
  BranchList: ["branches"],
  Commit: ["seq", "commit", "reason", "head", "branch", "time", "entries", "snapshot", "writer", "epoch"],
  Committed: ["entries", "seq", "commit", "head", "branch", "io"],
  Compacted: ["entry", "firstKept", "tokensBefore", "replaced", "head", "branch", "seq"],
  Context: ["messages", "thinkingLevel", "model", "leaf", "openCalls", "diagnostics", "io"],
  Created: ["session"],
  Deleted: ["deleted", "session"],
  Diff: ["base", "messages", "state"],
  DocList: ["docs"],
  Erased: ["session", "entries", "written", "removed", "bytes", "images", "others", "trash", "io"],
  Fork: ["session"],
  Health: ["status"],
  Import: ["imported", "total"],
  IssuedToken: ["token", "expires"],
  LabelList: ["labels"],
  Moved: ["head", "branch", "seq"],
  Resume: ["session", "seq", "commit", "head", "branch", "state", "context", "window", "openCalls", "io"],
  Retention: ["policy"],
  Rollback: ["state", "head", "branch", "seq"],
  RowList: ["view", "total", "from", "rows", "head", "branches"],
  Session: ["id", "title", "cwd", "created", "updated", "entries", "bytes", "seq", "head", "branch", "preview"],
  Snapshot: ["id", "seq", "tag", "time", "bytes", "reason", "commit"],
  SnapshotList: ["snapshots"],
  TreeMap: ["view", "total", "buckets"],
  Usage: ["session", "scope", "entries", "usage", "models", "days"],
  Verify: ["sessions", "objects", "bytes", "problems", "deep", "io"],
  Versions: ["versions", "at"],
} satisfies { [name in keyof Schemas]?: string[] };

/** The operations on a session that are one request. */
export abstract class SessionOperations extends Requests {
  /** Makes a write that is no commit of entries. keyed = it is made once, under a key. */
  protected abstract move<T>(move: Move, required: readonly string[], o: KeyedOptions, keyed: boolean): Promise<T>;
  /** Delete a session for good, or into the trash. */
  delete(o: WriteOptions & { trash?: boolean; children?: boolean } = {}): Promise<Schemas["Deleted"]> { return this.move({ method: "DELETE", path: [], query: { trash: o.trash ? 1 : undefined, children: o.children ? 1 : undefined } }, required.Deleted, o, false); }
  /** The summary of a session; its ETag is the newest commit. */
  info(o: ReadOptions = {}): Promise<Schemas["Session"]> { return this.get(required.Session, [], {}, o); }
  /** Change title, working directory and metadata. */
  setInfo(body: Schemas["SessionChange"], o: KeyedOptions = {}): Promise<Schemas["Moved"]> { return this.move({ method: "PATCH", path: [], body }, required.Moved, o, true); }
  /** Replace the content of an entry, for all that read it. */
  amend(body: Schemas["AmendBody"], o: KeyedOptions = {}): Promise<Schemas["Moved"]> { return this.move({ method: "POST", path: ["amend"], body }, required.Moved, o, true); }
  /** Which commits changed a value of the state. */
  blame(query: Query<"blame"> = {}, o: ReadOptions = {}): List<Schemas["BlameList"]["changes"][number]> { return this.pages("changes", ["blame"], query, o); }
  /** The bytes of an image, or a range of them. */
  blob(sha256: string, o: ReadOptions = {}): Promise<Response> { return this.file(["application/octet-stream", "image/gif", "image/jpeg", "image/png", "image/webp"], ["blobs", sha256], {}, o); }
  /** Move the head to an entry, so that the next one begins a branch. */
  branch(body: Schemas["BranchBody"], o: KeyedOptions = {}): Promise<Schemas["Moved"]> { return this.move({ method: "POST", path: ["branch"], body }, required.Moved, o, true); }
  /** Branches and their heads. */
  branches(o: ReadOptions = {}): Promise<Schemas["BranchList"]> { return this.get(required.BranchList, ["branches"], {}, o); }
  /** Take over the session from writers of before. */
  claim(o: KeyedOptions = {}): Promise<Schemas["Moved"]> { return this.move({ method: "POST", path: ["claim"], body: {} }, required.Moved, o, true); }
  /** Commits, newest first. */
  commits(query: Query<"listCommits"> = {}, o: ReadOptions = {}): List<Schemas["CommitList"]["commits"][number]> { return this.pages("commits", ["commits"], query, o); }
  /** One commit, which never changes. */
  commitAt(seq: string, o: ReadOptions = {}): Promise<Schemas["Commit"]> { return this.get(required.Commit, ["commits", seq], {}, o); }
  /** Replace the older part of the context with a summary. */
  compact(body: Schemas["CompactBody"], o: WriteOptions = {}): Promise<Schemas["Compacted"]> { return this.move({ method: "POST", path: ["compact"], body }, required.Compacted, o, false); }
  /** What the model saw, now or at any time, complete or in pages. */
  contextAt(query: Query<"context"> = {}, o: ReadOptions = {}): Promise<Schemas["Context"]> { return this.get(required.Context, ["context"], query, o); }
  /** What differs in messages and state between two times. */
  diff(query: Query<"diff">, o: ReadOptions = {}): Promise<Schemas["Diff"]> { return this.get(required.Diff, ["diff"], query, o); }
  /** The documents of a session, now or at any time. */
  docs(query: Query<"docs"> = {}, o: ReadOptions = {}): Promise<Schemas["DocList"]> { return this.get(required.DocList, ["docs"], query, o); }
  /** One document, now or at any time; 404 where there is none of this name. */
  doc(name: string, query: Query<"getDoc"> = {}, o: ReadOptions = {}): Promise<RawJSON> { return this.raw(["docs", name], query, o); }
  /** Append another version of an entry, and move the head to it. */
  edit(body: Schemas["EditBody"], o: KeyedOptions = {}): Promise<Schemas["Moved"]> { return this.move({ method: "POST", path: ["edit"], body }, required.Moved, o, true); }
  /** Entries of a path or of all branches, in either direction. */
  entries(query: Query<"listEntries"> & ByMatch = {}, o: ReadOptions = {}): List<RawJSON> { return this.pages("entries", ["entries"], query, o, true); }
  /** One entry, as amendments have it. */
  entry(entry: string, query: Query<"getEntry"> = {}, o: ReadOptions = {}): Promise<RawJSON> { return this.raw(["entries", entry], query, o); }
  /** Leave an entry out of contexts, paths and trees; amend shows it again. */
  hide(body: Schemas["HideBody"], o: KeyedOptions = {}): Promise<Schemas["Moved"]> { return this.move({ method: "POST", path: ["hide"], body }, required.Moved, o, true); }
  /** End the hold of a session. */
  release(o: KeyedOptions = {}): Promise<Schemas["Moved"]> { return this.move({ method: "DELETE", path: ["hold"] }, required.Moved, o, true); }
  /** Hold a session: nothing removes it. */
  hold(body: Schemas["NewHold"], o: KeyedOptions = {}): Promise<Schemas["Moved"]> { return this.move({ method: "PUT", path: ["hold"], body }, required.Moved, o, true); }
  /** Name an entry for people; the head stays. */
  label(body: Schemas["LabelBody"], o: KeyedOptions = {}): Promise<Schemas["Moved"]> { return this.move({ method: "POST", path: ["label"], body }, required.Moved, o, true); }
  /** Labels of entries. */
  labels(o: ReadOptions = {}): Promise<Schemas["LabelList"]> { return this.get(required.LabelList, ["labels"], {}, o); }
  /** The drawn tree in at most 2,048 buckets. */
  map(query: Query<"map"> = {}, o: ReadOptions = {}): Promise<Schemas["TreeMap"]> { return this.get(required.TreeMap, ["map"], query, o); }
  /** The session as it was imported, byte for byte. */
  original(o: ReadOptions = {}): Promise<Response> { return this.file(["application/octet-stream"], ["original"], {}, o); }
  /** Rename a branch, or remove its name. */
  renameBranch(body: Schemas["RenameBody"], o: KeyedOptions = {}): Promise<Schemas["Moved"]> { return this.move({ method: "POST", path: ["rename-branch"], body }, required.Moved, o, true); }
  /** Restore state, context and head as they were. */
  rollback(body: Schemas["TargetBody"], o: KeyedOptions = {}): Promise<Schemas["Rollback"]> { return this.move({ method: "POST", path: ["rollback"], body }, required.Rollback, o, true); }
  /** The tree as it is drawn, a stretch of rows at a time. */
  rows(query: Query<"rows"> = {}, o: ReadOptions = {}): Promise<Schemas["RowList"]> { return this.get(required.RowList, ["rows"], query, o); }
  /** How many credentials a session has, by rule. */
  secrets(query: Query<"secrets"> = {}, o: ReadOptions = {}): List<Schemas["SecretList"]["secrets"][number]> { return this.pages("secrets", ["secrets"], query, o); }
  /** Store the state of the newest commit as a snapshot. */
  snapshot(body: Schemas["SnapshotBody"], o: WriteOptions = {}): Promise<Schemas["Snapshot"]> { return this.move({ method: "POST", path: ["snapshot"], body }, required.Snapshot, o, false); }
  /** Snapshots. */
  snapshots(o: ReadOptions = {}): Promise<Schemas["SnapshotList"]> { return this.get(required.SnapshotList, ["snapshots"], {}, o); }
  /** The agent's state, now or at any time. */
  stateAt(query: Query<"state"> = {}, o: ReadOptions = {}): Promise<RawJSON> { return this.raw(["state"], query, o); }
  /** Move the head to a branch, with the state in force there. */
  switch(body: Schemas["SwitchBody"], o: KeyedOptions = {}): Promise<Schemas["Moved"]> { return this.move({ method: "POST", path: ["switch"], body }, required.Moved, o, true); }
  /** Tokens and cost of all branches, or of one path. Lists the store, for copies, and reads every entry. */
  usage(query: Query<"usage"> = {}, o: ReadOptions = {}): Promise<Schemas["Usage"]> { return this.get(required.Usage, ["usage"], query, o); }
  /** Read the session and report damage; changes nothing, so the right to read is enough. */
  verify(body: Schemas["VerifyBody"] = {}, o: ReadOptions = {}): Promise<Schemas["Verify"]> { return this.post(required.Verify, ["verify"], body, 200, o); }
  /** The versions of an entry: what grows from the same parent. */
  versions(entry: string, o: ReadOptions = {}): Promise<Schemas["Versions"]> { return this.get(required.Versions, ["versions", entry], {}, o); }
}

/** The operations on a store that are one request. */
export abstract class StoreOperations extends Requests {
  /** What the client may do, so that it does not offer what would be refused. */
  access(o: ReadOptions = {}): Promise<Schemas["AccessDoc"]> { return this.get(required.AccessDoc, ["access"], {}, o); }
  /** Entries of many sessions, by their type and by any member. */
  entries(query: Query<"queryEntries"> & ByMeta & ByMatch = {}, o: ReadOptions = {}): List<Schemas["FoundList"]["entries"][number]> { return this.pages("entries", ["entries"], query, o, false, false); }
  /** Whether the server answers. */
  health(o: ReadOptions = {}): Promise<Schemas["Health"]> { return this.get(required.Health, ["health"], {}, o); }
  /** What users typed in all sessions and branches, newest first. */
  prompts(query: Query<"prompts"> = {}, o: ReadOptions = {}): List<Schemas["PromptList"]["prompts"][number]> { return this.pages("prompts", ["prompts"], query, o); }
  /** Which sessions and snapshots stay. */
  getRetention(o: ReadOptions = {}): Promise<Schemas["Retention"]> { return this.get(required.Retention, ["retention"], {}, o); }
  /** Entries of all sessions and branches that contain words. */
  search(query: Query<"search"> = {}, o: ReadOptions = {}): List<Schemas["MatchList"]["matches"][number]> { return this.pages("matches", ["search"], query, o); }
  /** Sessions, newest activity first or in another order. */
  sessions(query: Query<"listSessions"> & ByMeta = {}, o: ReadOptions = {}): List<Schemas["SessionList"]["sessions"][number]> { return this.pages("sessions", ["sessions"], query, o); }
  /** A token for one session, or for some, that is valid for a time. */
  issueToken(body: Schemas["NewToken"] = {}, o: ReadOptions = {}): Promise<Schemas["IssuedToken"]> { return this.post(required.IssuedToken, ["tokens"], body, 201, o); }
  /** Tokens and cost of sessions, each with all branches. */
  usages(query: Query<"allUsage"> & ByMeta = {}, o: ReadOptions = {}): List<Schemas["UsageList"]["sessions"][number]> { return this.pages("sessions", ["usage"], query, o); }
}
