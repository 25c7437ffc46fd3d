// Following a session: server-sent events over fetch, which can carry a token. A connection that ends is opened again
// after the newest commit that arrived, so that nothing is missed and nothing comes twice.
import { exact } from "./exact.ts";
import { call, Failure, type Commit, type Entry } from "./client.ts";
import { waitToRetry } from "./away.ts";

/** A Change is a commit as followers get it. state is an RFC 6902 patch. */
export interface Change extends Omit<Commit, "entries"> {
  entries: Entry[];
  state: unknown;
}

export type Status = "live" | "lost";

export interface Listener {
  commit(change: Change): void;
  /** partial is the output that is being streamed, before it is committed; null = there is none any more. */
  partial(message: unknown): void;
  /** reset: commits after the last one cannot be had; read the session again. */
  reset(): void;
  status(status: Status): void;
}

/** left is true from when the page is left until "back" shows it again. visibilityState changes only after that. */
let left = false;
addEventListener("pagehide", () => (left = true));
addEventListener("pageshow", () => (left = false));

/** unseenFor is how long a page may be hidden before it closes its connection, in ms. */
const unseenFor = 5_000;

/**
 * whileSeen returns a signal that is aborted when the page is left, or was hidden for a while, and a function that ends
 * its listening. A browser has six connections to a server, for all of its tabs and the pages that "back" would show.
 */
function whileSeen(outer: AbortSignal): { signal: AbortSignal; end: () => void } {
  const abort = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const leave = () => abort.abort();
  const look = () => {
    clearTimeout(timer);
    if (document.visibilityState === "hidden") timer = setTimeout(leave, unseenFor);
  };
  outer.addEventListener("abort", leave);
  addEventListener("pagehide", leave);
  document.addEventListener("visibilitychange", look);
  look();
  return {
    signal: abort.signal,
    end() {
      clearTimeout(timer);
      outer.removeEventListener("abort", leave);
      removeEventListener("pagehide", leave);
      document.removeEventListener("visibilitychange", look);
    },
  };
}

/** seen waits until the page is in sight, or the signal aborted. */
function seen(signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const look = () => {
      if ((left || document.visibilityState === "hidden") && !signal.aborted) return;
      document.removeEventListener("visibilitychange", look);
      removeEventListener("pageshow", look);
      signal.removeEventListener("abort", look);
      done();
    };
    document.addEventListener("visibilitychange", look);
    addEventListener("pageshow", look);
    signal.addEventListener("abort", look);
    look();
  });
}

/** watchCommits calls listener for each commit of a session after the seq after, while the page is visible. It returns
 * when the signal is aborted. */
export async function watchCommits(id: string, after: number, listener: Listener, signal: AbortSignal): Promise<void> {
  let seq = after;
  for (let failed = 0; !signal.aborted; ) {
    await seen(signal);
    const sight = whileSeen(signal);
    try {
      const path = `/v1/sessions/${encodeURIComponent(id)}/events?after=${seq}`;
      const answer = await call(path, { signal: sight.signal, headers: { Accept: "text/event-stream" } });
      listener.status("live");
      for await (const event of parseEvents(answer.body!)) {
        failed = 0;
        if (event.name === "commit") {
          const change = exact(event.data) as Change;
          if (change.seq <= seq) continue;
          seq = change.seq;
          listener.commit(change);
        } else if (event.name === "partial") listener.partial(exact(event.data));
        else if (event.name === "reset") listener.reset();
      }
    } catch (err) {
      if (signal.aborted) return;
      if (err instanceof Failure && err.status >= 400 && err.status < 500 && err.status !== 429) throw err;
    } finally {
      sight.end();
    }
    if (signal.aborted) return;
    if (sight.signal.aborted) continue;
    listener.status("lost");
    failed++;
    await waitToRetry(failed, signal);
  }
}

export interface ServerEvent {
  name: string;
  data: string;
}

/** maxEvent bounds the text of one event, in UTF-16 code units: the server's own bound is lower. */
const maxEvent = 256 << 20;

/** parseEvents yields the events of a stream. An event that the end of the stream cuts is dropped. */
export async function* parseEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
        const event = parseEvent(rest.slice(0, end));
        rest = rest.slice(end + 2);
        if (event) yield event;
      }
      if (rest.length > maxEvent) throw new Error("an event is too long");
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** parseEvent returns the event of a block of lines; null for comments. */
export function parseEvent(block: string): ServerEvent | null {
  let name = "message";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
  }
  return data.length > 0 ? { name, data: data.join("\n") } : null;
}
