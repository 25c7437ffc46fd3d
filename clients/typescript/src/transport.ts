import { errorOf, OutcomeUnknown } from "./errors.js";
import type { Problem } from "./generated/operations.js";

/** How a Store reaches its service. Times are milliseconds. */
export interface StoreOptions {
  /** Sent as Authorization: Bearer; and the tenant whose store is used, at /t/NAME. */
  token?: string; tenant?: string;
  /** Replaces the global fetch, for example to trust a certificate authority. */
  fetch?: typeof fetch;
  /** Bounds of one try (35,000: above that of the service for a commit), and of the silence of a stream (45,000). */
  timeout?: number; silence?: number;
  /** Bounds of all tries of a call together; default 120,000 and 40. */
  retryFor?: number; maxTries?: number;
  /** The clock and the randomness of waiting, for tests. */
  now?: () => number; sleep?: (ms: number, signal?: AbortSignal) => Promise<void>; random?: () => number;
}

/** A request. repeat: false = not to be sent again after a lost answer. stream = the caller reads the answer. */
export interface Request {
  method?: string; key?: string; repeat?: boolean; stream?: boolean; timeout?: number; signal?: AbortSignal | undefined;
  query?: Record<string, string | number | boolean | undefined> | undefined;
  headers?: Record<string, string>; body?: string | Uint8Array;
}
/** An answer; text is "" of one that is streamed. */
export interface Answer { response: Response; etag: string | undefined; text: string }
type Try = { answer: Answer } | { answer?: never; problem: Problem; wait?: number; cause?: unknown };

/** Reports whether the same request may succeed later. A status of 500 without a code is a proxy's. */
export const transient = ({ status = 0, code }: Problem): boolean =>
  [0, 408, 429, 502, 503, 504].includes(status) || code === "in-flight" || (status >= 500 && !code);
/** Of these answers, those which say that nothing was stored. */
const unstored = new Set<unknown>([429, "slow-body", "busy", "in-doubt"]);
/** Answers to a commit that come only after its key was looked for: no earlier try of it was stored either. */
const certain = new Set<unknown>([412, "fenced", "key-reused"]);

/** Sends requests: the only place that retries, and that says what is known afterwards. */
export class Transport {
  readonly o: Required<Omit<StoreOptions, "token" | "tenant" | "fetch">> & StoreOptions;
  constructor(private readonly base: string, o: StoreOptions) {
    this.base = `${base.replace(/\/+$/, "")}${o.tenant === undefined ? "" : `/t/${encodeURIComponent(o.tenant)}`}/v1`;
    const bounds = { timeout: 35_000, silence: 45_000, retryFor: 120_000, maxTries: 40 };
    this.o = { ...bounds, now: Date.now, sleep, random: Math.random, ...o };
  }

  /** Sends a request until it is answered, within the bounds. */
  async send(path: string, r: Request = {}): Promise<Answer> {
    const { method = "GET", signal } = r, began = this.o.now();
    for (let unknown = false, tries = 1; ; tries++) {
      const got = await this.once(path, r);
      if (got.answer) return got.answer;
      if (method === "GET" && signal?.aborted) throw signal.reason;
      const { problem, wait = 0, cause } = got, { status = 0, code } = problem, again = transient(problem);
      unknown ||= method !== "GET" && again && !unstored.has(status) && !unstored.has(code);
      const sure = !unknown || certain.has(status) || certain.has(code);
      const error = errorOf(problem, sure ? "not-applied" : "unknown", cause);
      if (!again) throw error;
      const pause = Math.max(wait, this.backoff(tries)), late = this.o.now() - began + pause > this.o.retryFor;
      if (tries >= this.o.maxTries || late || signal?.aborted || (unknown && r.repeat === false)) {
        throw unknown ? new OutcomeUnknown(`${method} ${path}`, r.key, error) : error;
      }
      await this.o.sleep(pause, signal);
    }
  }

  /** Sends a request once. */
  async once(path: string, r: Request): Promise<Try> {
    const url = new URL(this.base + path);
    for (const [name, v] of Object.entries(r.query ?? {})) if (v !== undefined) url.searchParams.set(name, String(v));
    const json = typeof r.body === "string" && { "Content-Type": "application/json" }, key = r.key && { "Idempotency-Key": r.key };
    const headers = { ...(this.o.token && { Authorization: `Bearer ${this.o.token}` }), ...key, ...json, ...r.headers };
    const cancel = new AbortController(), abort = () => cancel.abort(r.signal?.reason), { timeout = this.o.timeout } = r;
    const timer = setTimeout(() => cancel.abort(new Error(`no answer within ${timeout} ms`)), timeout);
    r.signal?.addEventListener("abort", abort);
    if (r.signal?.aborted) abort();
    try {
      const init = { method: r.method ?? "GET", headers, body: (r.body as BodyInit) ?? null, signal: cancel.signal };
      const response = await (this.o.fetch ?? fetch)(url, init);
      const text = r.stream && response.ok ? "" : await response.text(), head = response.headers;
      if (response.ok) return { answer: { response, text, etag: head.get("ETag")?.replace(/^W\/|"/g, "") } };
      const ours = head.get("Content-Type")?.startsWith("application/problem+json"); // else it is a proxy's page
      const problem = ours ? (JSON.parse(text) as Problem) : { title: response.statusText, status: response.status };
      return { problem, wait: 1000 * (Number(head.get("Retry-After")) || 0) };
    } catch (e) { // the connection broke: before the request came, or after its answer began
      const why = e instanceof Error ? (e.cause instanceof Error ? e.cause.message : e.message) : String(e);
      return { problem: { code: "unreachable", detail: `${path}: ${why}` }, cause: e };
    } finally {
      clearTimeout(timer);
      if (!r.stream) r.signal?.removeEventListener("abort", abort); // else it ends the stream
    }
  }

  /** How long to wait after a number of failed tries: 100 ms, doubled each time, at most 5 s; half of it is random. */
  backoff(failed: number): number { return Math.min(5000, 50 * 2 ** failed) * (0.5 + 0.5 * this.o.random()); }
}

/** Waits, at most until the signal. */
const sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((done) => (setTimeout(done, ms), signal?.addEventListener("abort", () => done(), { once: true })));
