// The session that is open: its summary, its newest commit, and who else writes. Panes read these signals.
import { effect, signal } from "@preact/signals";
import { api, Failure, type Commit, type Session } from "../api/client.ts";
import { newestCommit } from "../api/pages.ts";
import { follow, pause, type Change, type Status } from "../api/events.ts";
import { session } from "./nav.ts";
import { alive } from "./resource.ts";

/** Head is the newest commit of the session that is open. */
export interface Head {
  seq: number;
  commit: string;
  entry: string | null;
  branch: string;
}

export const summary = signal<Session | null>(null);
export const head = signal<Head | null>(null);
/** change is the newest commit that arrived while the session is open. Panes react to it. */
export const change = signal<Change | null>(null);
/** partial is the message that is being streamed; null = none. */
export const partial = signal<unknown>(null);
export const connection = signal<Status>("live");
export const failure = signal<string>("");
/** missing reports that there is no session of the URL's id, or none any more. */
export const missing = signal(false);
/** generation grows when everything that was read has to be read again. */
export const generation = signal(0);

/** writers are those that committed while the session is open, the newest first, with the time. At most 16. */
export const writers = signal<{ writer: string; time: string; commit: string }[]>([]);

const maxWriters = 16;

let current: AbortController | null = null;

/** refresh reads the summary and the newest commit again. */
export async function refresh(id: string, signal?: AbortSignal): Promise<void> {
  const [s, c] = await Promise.all([
    api.GET("/v1/sessions/{id}", { params: { path: { id } }, signal }),
    newestCommit(id, signal),
  ]);
  if (session.peek() !== id) return;
  summary.value = s.data!;
  if (c.seq >= (head.peek()?.seq ?? 0)) head.value = headOf(c);
}

function headOf(c: Pick<Commit, "seq" | "commit" | "head" | "branch">): Head {
  return { seq: c.seq, commit: c.commit, entry: c.head, branch: c.branch };
}

/** start opens the session of the URL, and whichever the URL names later. It is called once. */
export function start(): void {
  effect(() => {
    const id = session.value;
    current?.abort();
    summary.value = head.value = change.value = null;
    partial.value = null;
    failure.value = "";
    missing.value = false;
    writers.value = [];
    connection.value = "live";
    if (id === null) return;
    const abort = (current = new AbortController());
    void run(id, abort.signal);
  });
}

/** isAway reports whether a request failed because the server, or a proxy's, could not be reached: it may be back soon. */
function isAway(err: unknown): boolean {
  return err instanceof Failure && (err.status === 0 || err.status === 502 || err.status === 503 || err.status === 504);
}

/** first reads what is shown of a session, and again while the server is away. */
async function first(id: string, signal: AbortSignal): Promise<void> {
  for (let failed = 0; ; failed++) {
    try {
      await refresh(id, signal);
      failure.value = "";
      return;
    } catch (err) {
      if (signal.aborted || !isAway(err)) throw err;
      connection.value = "lost";
      failure.value = "The server does not answer. The session is opened when it is back.";
      await pause(failed, signal);
      if (signal.aborted) return;
    }
  }
}

async function run(id: string, signal: AbortSignal): Promise<void> {
  try {
    await first(id, signal);
    if (signal.aborted) return;
    await follow(id, head.peek()?.seq ?? 0, {
      commit(c) {
        head.value = headOf(c);
        writers.value = [{ writer: c.writer, time: c.time, commit: c.commit }, ...writers.peek()].slice(0, maxWriters);
        change.value = c;
      },
      partial(message) {
        partial.value = message;
      },
      reset() {
        void refresh(id, signal).then(() => generation.value++);
      },
      status(s) {
        if (s === "live") alive.value++;
        connection.value = s;
      },
    }, signal);
  } catch (err) {
    if (signal.aborted) return;
    if (err instanceof Failure && (err.status === 404 || err.status === 410)) missing.value = true;
    else failure.value = err instanceof Failure ? err.message : String(err);
  }
}

/** The commits that this page made, the newest last: they are nobody else's. At most maxOwn. */
const owned: string[] = [];
const maxOwn = 64;

/** own remembers the commit of an answer to a write, and returns what names it in a condition. */
export function own(answer: Response): string {
  const etag = answer.headers.get("ETag") ?? ifMatch();
  owned.push(etag.replaceAll('"', ""));
  if (owned.length > maxOwn) owned.shift();
  return etag;
}

/** isOwn reports whether this page made a commit. */
export function isOwn(commit: string): boolean {
  return owned.includes(commit);
}

/** ifMatch returns the condition of a write: the newest commit that this page has shown. */
export function ifMatch(): string {
  return `"${head.peek()?.commit ?? ""}"`;
}
