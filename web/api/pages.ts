// Pages of entries and commits. openapi-fetch types an answer that can be JSON or NDJSON as neither; these are JSON.
import { api, Failure, type Commit, type Entry, type Problem, type Schemas } from "./client.ts";
import { exact } from "./exact.ts";
import type { operations } from "../../clients/typescript/src/generated/openapi.ts";

export type Mark = Schemas["Mark"];

export interface EntryPage {
  entries: Entry[];
  marks?: Mark[]; // with marks: one for each entry, in their order
  next?: string;
  prev?: string;
  broken?: string; // why the page ends before its end, or the list's: what a person can read of it
}

type EntryQuery = NonNullable<operations["listEntries"]["parameters"]["query"]>;
type SessionQuery = NonNullable<operations["listSessions"]["parameters"]["query"]>;
type CommitQuery = NonNullable<operations["listCommits"]["parameters"]["query"]>;

/** entryPage returns at most 500 entries, with references in place of large images. */
export async function entryPage(id: string, query: EntryQuery, signal?: AbortSignal): Promise<EntryPage> {
  const { data } = await api.GET("/v1/sessions/{id}/entries", {
    params: { path: { id }, query: { images: "ref", ...query } }, signal, parseAs: "text",
  });
  const page = exact(data!) as EntryPage & { error?: Problem };
  return page.error ? { ...page, broken: new Failure(0, page.error).message } : page;
}

/** commitPage returns at most 500 commits, newest first. */
export async function commitPage(id: string, query: CommitQuery, signal?: AbortSignal): Promise<Schemas["CommitList"]> {
  const { data } = await api.GET("/v1/sessions/{id}/commits", { params: { path: { id }, query }, signal });
  return data as Schemas["CommitList"];
}

/** newestCommit returns the newest commit. Every session has one. */
export async function newestCommit(id: string, signal?: AbortSignal): Promise<Commit> {
  return (await commitPage(id, { limit: 1 }, signal)).commits[0]!;
}

/** sessionPage returns at most 500 sessions, newest activity first. */
export async function sessionPage(query: SessionQuery, signal?: AbortSignal): Promise<Schemas["SessionList"]> {
  const { data } = await api.GET("/v1/sessions", { params: { query }, signal });
  return data as Schemas["SessionList"];
}
