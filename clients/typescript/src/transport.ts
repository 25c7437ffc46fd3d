import { CoppiceError, errorOf, InvalidArgument, OutcomeUnknown, Unavailable } from "./errors.js";
import type { Problem } from "./generated/operations.js";

/** Options of the connection to the service. Times are milliseconds. */
export interface StoreOptions {
  /** Sent with each request as Authorization: Bearer. */
  token?: string;
  /** The tenant whose store is used, at /t/NAME. */
  tenant?: string;
  /** The name of this client, sent with writes as Coppice-Writer: its own claim does not fence it. */
  writer?: string;
  /** Replaces the global fetch, for example to trust a certificate authority. */
  fetch?: typeof fetch;
  /** How long a try waits for a byte. Default 35,000, above the bound of the service for a commit. fetch does not show what it
   * has sent, so a try has a second more for each 64 KiB of its body, as the service allows. */
  timeout?: number;
  /** How long a stream of events waits for a byte. Default 45,000. */
  silence?: number;
  /** No try of a call begins after this time. Default 120,000. */
  retryFor?: number;
  /** How many tries a call makes at most. Default 40. */
  maxTries?: number;
  /** The clock, for tests. */
  now?: () => number;
  /** Waits, for tests: until the time has passed or the signal is aborted. */
  sleep?: (ms: number, signal?: AbortSignal) => Promise<void>;
  /** The randomness of waits, for tests. */
  random?: () => number;
}

/** A request, and its valid answers. Any other answer is not the service's: a proxy made it. */
export interface Request<T> {
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** The segments of the path below /v1, not encoded. */
  path: readonly string[];
  query?: Record<string, string | number | boolean | undefined>;
  headers?: Record<string, string>;
  /** A string is JSON, unless headers set another type. */
  body?: string | Uint8Array;
  /** The Idempotency-Key. */
  key?: string | undefined;
  /** false = not sent again after a lost answer. */
  repeat?: boolean;
  timeout?: number | undefined;
  signal?: AbortSignal | undefined;
  /** The status (default 200) and the media types (default JSON) of the answer, and whether it has an ETag. */
  status?: number;
  types?: readonly string[];
  etag?: boolean;
  /** Returns the value of a body; an error = the body is not what the service returns. Absent: the caller reads the body. */
  read?: (text: string) => T;
}

/** An answer of the service. */
export interface Answer<T> { response: Response; etag: string | undefined; value: T }
/** The result of one try: an answer, or the reason that there is none, and the wait that the service requests. */
type Try<T> = { answer: Answer<T> } | { answer?: never; problem: Problem; wait: number; cause?: unknown };

/** Reports whether the same request may succeed later. A status of 500 without a code is a proxy's. */
export function transient({ status = 0, code }: Problem): boolean {
  if (code === "answer") return false;
  return [0, 408, 429, 502, 503, 504].includes(status) || (status >= 500 && !code);
}
/** The problems after which a write is sent again although nothing was stored. */
const unstored = new Set<unknown>([429, "slow-body", "busy", "in-doubt"]);
/** Answers to a write with a key, sent only after a search for the key: no earlier try of it was stored either. */
const certain = new Set<unknown>([412, "fenced", "key-reused"]);

/** The bytes of a body a second that the service requires. */
const bodyRate = 64 << 10;
/** Bound of an answer, in UTF-16 units: four times the largest body. */
const maxAnswer = 1 << 28;
const maxRedirects = 5;
/** The longest time of setTimeout: a longer one would be 1 ms. */
const maxTimer = 2 ** 31 - 1;

/** Sends requests: the only place that retries, checks answers, and determines what is stored afterwards. */
export class Transport {
  readonly o: Required<Omit<StoreOptions, "token" | "tenant" | "writer" | "fetch">> & StoreOptions;
  private readonly base: string;
  constructor(address: string, o: StoreOptions) {
    const bounds = { timeout: 35_000, silence: 45_000, retryFor: 120_000, maxTries: 40 };
    this.o = { ...bounds, now: Date.now, sleep, random: Math.random, ...o };
    this.base = `${baseOf(address)}${o.tenant === undefined ? "" : `/t/${segment(o.tenant)}`}/v1`;
    if (o.token !== undefined) checkHeader("the token", o.token);
    if (o.writer !== undefined) checkHeader("the writer", o.writer);
  }

  /** Sends a request until the service answers it, within the bounds. */
  async send<T>(r: Request<T>): Promise<Answer<T>> {
    r.signal?.throwIfAborted();
    const write = r.method !== undefined && r.method !== "GET";
    const what = `${r.method ?? "GET"} /${r.path.join("/")}`;
    const began = this.o.now();
    let unknown = false; // whether a try may have been stored
    const giveUp = (why: unknown) => (unknown ? new OutcomeUnknown(what, r.key, why) : why);
    for (let tries = 1; ; tries++) {
      const got = await this.once(r);
      if (got.answer) return got.answer;
      const { problem, wait, cause } = got;
      const again = transient(problem);
      if (write && again && !unstored.has(problem.status) && !unstored.has(problem.code)) unknown = true;
      if (write && problem.code === "answer") throw new OutcomeUnknown(what, r.key, errorOf(problem, "unknown", cause));
      const known = !unknown || (r.key !== undefined && (certain.has(problem.status) || certain.has(problem.code)));
      if (!again) throw errorOf(problem, known ? "not-applied" : "unknown", cause);
      const error = new Unavailable(problem, "not-applied", cause);
      if (r.signal?.aborted) throw giveUp(r.signal.reason);
      const pause = Math.max(wait, this.backoff(tries));
      const late = this.o.now() - began + pause > this.o.retryFor;
      if (tries >= this.o.maxTries || late || (unknown && r.repeat === false)) throw giveUp(error);
      await this.o.sleep(pause, r.signal);
      if (r.signal?.aborted) throw giveUp(r.signal.reason);
    }
  }

  /** Sends a request once. It throws only errors found before anything is sent. */
  async once<T>(r: Request<T>): Promise<Try<T>> {
    const url = this.url(r);
    const headers = this.headers(r);
    const limit = r.timeout ?? this.o.timeout;
    const cancel = new AbortController();
    const abort = () => cancel.abort(r.signal?.reason);
    const late = () => cancel.abort(new Error(`no byte within ${limit} ms`));
    let timer = setTimeout(late, Math.min(maxTimer, limit + (1000 * sizeOf(r.body)) / bodyRate));
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(late, Math.min(maxTimer, limit));
    };
    r.signal?.addEventListener("abort", abort);
    if (r.signal?.aborted) abort();
    try {
      const init = { method: r.method ?? "GET", headers, body: (r.body as BodyInit) ?? null, signal: cancel.signal };
      const response = await this.fetch(url, { ...init, redirect: "manual" });
      heard();
      return await received(r, url, response, heard);
    } catch (e) { // the connection broke: before the request came, or after its answer began
      const why = e instanceof Error ? (e.cause instanceof Error ? e.cause.message : e.message) : String(e);
      return { problem: { code: "unreachable", detail: `${url.pathname}: ${why}` }, wait: 0, cause: e };
    } finally {
      clearTimeout(timer);
      if (r.read) r.signal?.removeEventListener("abort", abort); // otherwise it ends the stream
    }
  }

  /** Fetches, and follows redirects of a read within the origin: the token is sent nowhere else. A browser hides where a
   * redirect leads: there none is followed. */
  private async fetch(from: URL, init: RequestInit): Promise<Response> {
    for (let url = from, left = maxRedirects; ; left--) {
      const response = await (this.o.fetch ?? fetch)(url, init);
      const location = response.headers.get("Location");
      const redirect = [301, 302, 303, 307, 308].includes(response.status);
      if (init.method !== "GET" || !redirect || location === null || !URL.canParse(location, url.href)) return response;
      const to = new URL(location, url);
      if (to.origin !== url.origin || left === 0) return response;
      discard(response.body);
      url = to;
    }
  }

  /** Yields the lines of an answer as they arrive. The request is sent again only until its answer has begun. */
  async *lines(r: Request<unknown>): AsyncGenerator<string, void> {
    const end = new AbortController();
    const stop = () => end.abort(r.signal?.reason);
    const timeout = Math.min(maxTimer, this.o.timeout);
    const late = () => end.abort(new Error(`no byte within ${timeout} ms`));
    let timer: ReturnType<typeof setTimeout> | undefined;
    r.signal?.throwIfAborted();
    r.signal?.addEventListener("abort", stop);
    try {
      const types = ["application/x-ndjson"];
      const { response } = await this.send({ ...r, headers: { Accept: types[0]! }, types, signal: end.signal });
      let rest = "";
      timer = setTimeout(late, timeout);
      for await (const piece of pieces(response.body!)) {
        clearTimeout(timer); // the time that the caller takes does not count
        rest += piece;
        if (rest.length > maxAnswer) throw new Error("a line is too long");
        const lines = piece.includes("\n") ? rest.split("\n") : [rest];
        rest = lines.pop()!;
        yield* lines;
        timer = setTimeout(late, timeout);
      }
      if (rest) throw new Error("the last line is cut");
    } catch (e) {
      if (r.signal?.aborted) throw r.signal.reason;
      if (e instanceof CoppiceError) throw e;
      throw new Unavailable({ code: "unreachable", detail: `/${r.path.join("/")}: the answer was cut: ${(e as Error).message}` }, "not-applied", e);
    } finally {
      clearTimeout(timer);
      r.signal?.removeEventListener("abort", stop);
      stop();
    }
  }

  private url(r: Request<unknown>): URL {
    const url = new URL(this.base + r.path.map((name) => `/${segment(name)}`).join(""));
    for (const [name, value] of Object.entries(r.query ?? {})) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    return url;
  }

  private headers(r: Request<unknown>): Record<string, string> {
    const headers: Record<string, string> = {};
    if (this.o.token !== undefined) headers["Authorization"] = `Bearer ${this.o.token}`;
    if (r.key !== undefined) headers["Idempotency-Key"] = r.key;
    if (this.o.writer !== undefined && (r.method ?? "GET") !== "GET") headers["Coppice-Writer"] = this.o.writer;
    if (typeof r.body === "string") headers["Content-Type"] = "application/json";
    Object.assign(headers, r.headers);
    for (const [name, value] of Object.entries(headers)) checkHeader(name, value);
    return headers;
  }

  /** How long to wait after a number of failed tries: 100 ms, doubled each time, at most 5 s; half of it is random. */
  backoff(failed: number): number { return Math.min(5000, 50 * 2 ** failed) * (0.5 + 0.5 * this.o.random()); }
}

/** Reads the received data. heard is called for each piece. */
async function received<T>(r: Request<T>, url: URL, response: Response, heard: () => void): Promise<Try<T>> {
  const { status, headers } = response;
  const wait = 1000 * (Number(headers.get("Retry-After")) || 0);
  const ours = mediaType(response) === "application/problem+json"; // otherwise it is a proxy's page
  if (status >= 400 && (ours || transient({ status }))) {
    const text = (await textOf(response, heard)) ?? "";
    const problem = ours ? (JSON.parse(text) as Problem) : { title: response.statusText };
    return { problem: { ...problem, status }, wait };
  }
  const etag = headers.get("ETag")?.replace(/^W\/|"/g, "") || undefined;
  const foreign = (why: string, cause?: unknown): Try<T> => {
    const detail = `${url.pathname}: ${why}: this is not an answer of the service`;
    return { problem: { code: "answer", status, detail }, wait: 0, cause };
  };
  const why = strange(r, url, response) ?? (r.etag && !etag ? "it has no ETag" : undefined);
  if (why) {
    discard(response.body);
    return foreign(why);
  }
  if (!r.read) return { answer: { response, etag, value: undefined as T } };
  const text = await textOf(response, heard);
  if (text === undefined) return foreign(`more than ${maxAnswer} characters`);
  try {
    return { answer: { response, etag, value: r.read(text) } };
  } catch (e) {
    return foreign((e as Error).message, e);
  }
}

/** Returns why the head of an answer is not the service's. */
function strange(r: Request<unknown>, url: URL, response: Response): string | undefined {
  const { status, redirected, headers } = response;
  if ((status >= 300 && status < 400) || response.type === "opaqueredirect") {
    return `a redirect to ${(headers.get("Location") ?? "an address that is hidden").slice(0, 200)}, which is not followed`;
  }
  const write = (r.method ?? "GET") !== "GET";
  if (redirected && (write || new URL(response.url).origin !== url.origin)) return "a redirect, which fetch has followed";
  if (status !== (r.status ?? 200)) return `status ${status}`;
  const types = r.types ?? ["application/json"];
  return status === 204 || types.includes(mediaType(response)) ? undefined : `the type ${mediaType(response) || "is missing"}`;
}

function mediaType(response: Response): string {
  return (response.headers.get("Content-Type") ?? "").split(";")[0]!.trim().toLowerCase();
}

/** Reads a body; undefined = it is longer than its bound. */
async function textOf(response: Response, heard: () => void): Promise<string | undefined> {
  let text = "";
  if (!response.body) return text;
  for await (const piece of pieces(response.body)) {
    heard();
    text += piece;
    if (text.length > maxAnswer) return undefined;
  }
  return text;
}

/** Yields a body as text, piece by piece. */
export async function* pieces(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      yield decoder.decode(read.value, { stream: true });
    }
    yield decoder.decode(); // a truncated character: U+FFFD
  } finally {
    discard(reader);
  }
}

/** Cancels a body that is not read, without waiting: the cancel of a cloned body ends only with its clone. */
function discard(body: { cancel(): Promise<void> } | null): void {
  body?.cancel().catch(() => undefined); // of a connection that broke
}

function sizeOf(body: string | Uint8Array | undefined): number {
  if (body === undefined) return 0;
  return typeof body === "string" ? new TextEncoder().encode(body).byteLength : body.byteLength;
}

/** Returns the address of a service without the last slash. */
function baseOf(address: string): string {
  let url: URL;
  try {
    url = new URL(address);
  } catch {
    throw new InvalidArgument("the address of the service is not a URL");
  }
  const plain = !url.username && !url.password && !url.search && !url.hash;
  if (!/^https?:$/.test(url.protocol) || !plain) throw new InvalidArgument("the address of the service is not http(s)://HOST/PATH alone");
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

/** Returns a segment of a path. The segments . and .. lead to another path, written %2e too: a proxy may decode them. */
function segment(name: string): string {
  if (typeof name !== "string" || /^(\.|%2e){0,2}$|\p{Surrogate}/iu.test(name)) throw new InvalidArgument(`no id is ${JSON.stringify(name)}`);
  return encodeURIComponent(name);
}

/** Refuses a value that a header cannot contain. */
function checkHeader(name: string, value: string): void {
  const fits = /^[\x21-\x7e\xa0-\xff]([\x20-\x7e\xa0-\xff]*[\x21-\x7e\xa0-\xff])?$/.test(value);
  if (!fits) throw new InvalidArgument(`${name} is empty, or has characters that a header cannot carry`);
}

/** Waits, at most until the signal. */
function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (signal?.aborted) return done();
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      done();
    };
    const timer = setTimeout(end, Math.min(maxTimer, ms));
    signal?.addEventListener("abort", end);
  });
}
