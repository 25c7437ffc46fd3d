// The API, with the types that the TypeScript client generates from docs/openapi.json. An answer that is no success is
// thrown as a Failure.
import createClient from "openapi-fetch";
import { signal } from "@preact/signals";
import type { components, paths } from "../../clients/typescript/src/generated/openapi.ts";
import { base } from "./base.ts";

export type Schemas = components["schemas"];
export type Session = Schemas["Session"];
/** nameOf returns what a session is called: its title, or the words that it begins or ends with. */
export const nameOf = (s: Pick<Session, "id" | "title" | "first" | "preview">): string => s.title || s.first || s.preview || s.id;
export type Commit = Schemas["Commit"];
export type Row = Schemas["Row"];
export type Problem = Schemas["Problem"];

/** An Entry is a line of the transcript, as it was stored. */
export interface Entry {
  type: string;
  id: string;
  parentId: string | null;
  timestamp?: string;
  [field: string]: unknown;
}

/** advice is what a person can do about a problem, by its code; the hints of the API are for programs. */
const advice: Record<string, string> = {
  corrupt: "This session is damaged. `coppice verify --deep` shows what is affected, `coppice repair` recovers what it can. ",
  "not-found": "Not found: ",
};

/** Failure is an answer of the API that is no success, or none (status 0). Nothing was stored unless its text reports it. */
export class Failure extends Error {
  constructor(readonly status: number, readonly problem: Partial<Problem>) {
    super((advice[problem.code ?? ""] ?? "") + (problem.detail ?? problem.title ?? "the server does not answer"));
  }
}

/** locked is how the server refused the page: 401 for want of a token, 403 for one that allows nothing here; 0 = it did not. */
export const locked = signal(0);

const tokenKey = "coppice-token";

/** setToken keeps the token that requests carry until the tab is closed. A cookie of a one-time link needs none. */
export function setToken(token: string): void {
  sessionStorage.setItem(tokenKey, token);
}

/** dropToken forgets the token, which a server refused, and reports whether there was one. */
export function dropToken(): boolean {
  const had = sessionStorage.getItem(tokenKey) !== null;
  sessionStorage.removeItem(tokenKey);
  return had;
}

/** withToken returns the headers of a request. */
export function withToken(headers: Record<string, string> = {}): Record<string, string> {
  const token = sessionStorage.getItem(tokenKey);
  return token ? { ...headers, Authorization: "Bearer " + token } : headers;
}

/** call sends a request to a path below base, and throws what is no success. */
export async function call(path: string, init: RequestInit = {}): Promise<Response> {
  return send(new Request(base + path, { ...init, headers: withToken(init.headers as Record<string, string>) }));
}

/** textOf returns the text of what is below a path; null if it is longer than so many UTF-16 code units. */
export async function textOf(path: string, most: number, signal: AbortSignal): Promise<string | null> {
  const reader = (await call(path, { signal })).body!.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    text += decoder.decode(value, { stream: true });
    if (text.length > most) {
      await reader.cancel();
      return null;
    }
  }
}

async function send(request: Request): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(request);
  } catch (err) {
    if (request.signal.aborted) throw err;
    throw new Failure(0, { detail: "the server does not answer" });
  }
  if (answer.ok || answer.status === 304) return answer;
  const text = await answer.text();
  let problem: Partial<Problem> = { title: answer.statusText };
  try {
    problem = JSON.parse(text) as Partial<Problem>;
  } catch {
    // a proxy's page
  }
  if (answer.status === 401) locked.value = 401;
  throw new Failure(answer.status, problem);
}

/** A Shared is a read that is under way, for all that asked for it. */
interface Shared {
  answer: Promise<{ text: string; status: number; headers: Headers }>;
  abort: AbortController;
  users: number;
}

/** reads are those under way, by their addresses. */
const reads = new Map<string, Shared>();

/** forgetReads makes every read from now on a request of its own: what is under way may be older than what is known. */
export function forgetReads(): void {
  reads.clear();
}

/** share sends a read, unless an equal one is under way. It is given up when the last of its callers gave up. */
async function share(request: Request): Promise<Response> {
  const key = request.url;
  let s = reads.get(key);
  if (!s) {
    const abort = new AbortController();
    const answer = send(new Request(request, { signal: abort.signal }))
      .then(async (r) => ({ status: r.status, headers: r.headers, text: await r.text() }));
    const mine: Shared = { answer, abort, users: 0 };
    const forget = () => void (reads.get(key) === mine && reads.delete(key));
    mine.answer.then(forget, forget);
    reads.set(key, s = mine);
  }
  const of = s;
  of.users++;
  const given = new Promise<never>((_, no) => request.signal.addEventListener("abort", () => {
    no(request.signal.reason);
    if (--of.users > 0) return;
    of.abort.abort();
    if (reads.get(key) === of) reads.delete(key);
  }));
  const { status, headers, text } = await Promise.race([of.answer, given]);
  return new Response(status === 304 ? null : text, { status, headers });
}

/** api has a method for each verb, with the paths and documents of docs/openapi.json. Its data is never undefined. */
export const api = createClient<paths>({
  baseUrl: base,
  fetch: (request) => {
    for (const [name, value] of Object.entries(withToken())) request.headers.set(name, value);
    if (request.method === "GET") return share(request);
    forgetReads();
    return send(request).finally(forgetReads);
  },
});
