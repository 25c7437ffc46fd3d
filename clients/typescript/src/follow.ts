import { CoppiceError, errorOf, Unavailable } from "./errors.js";
import type { Schemas } from "./generated/operations.js";
import { pieces, transient, type Transport } from "./transport.js";

/** A commit for followers: with the entries that it made durable, and its change of the state (RFC 6902). */
export type FollowedCommit = Schemas["Commit"] & { entries: unknown[]; state: Patch[] };
type Patch = { op: string; path: string; value?: unknown };
/** The events of follow. partial: the present partial output, null = none. reset: read the session again. */
export type Event = { type: "commit"; seq: number; commit: FollowedCommit; raw: string }
  | { type: "partial"; partial: unknown; raw: string } | { type: "reset" };
/** Options of follow: the seq after which to begin (default the newest commit), and the end. */
export interface FollowOptions { after?: number; signal?: AbortSignal | undefined }

/** Yields the events of a session, over as many connections as it takes. See Session.follow. */
export async function* follow(transport: Transport, path: readonly string[], o: FollowOptions = {}): AsyncGenerator<Event, void> {
  const { now, silence, retryFor, maxTries } = transport.o;
  const stream = { path, headers: { Accept: "text/event-stream" }, types: ["text/event-stream"] };
  let { after } = o;
  let heard = now(), failed = 0; // connections that have failed since then
  while (!o.signal?.aborted) {
    const end = new AbortController();
    const stop = () => end.abort();
    o.signal?.addEventListener("abort", stop);
    let quiet = setTimeout(stop, silence);
    let cause: unknown;
    try {
      const got = await transport.once({ ...stream, query: { after }, signal: end.signal });
      if (!got.answer && !transient(got.problem)) throw errorOf(got.problem, "not-applied", got.cause);
      if (!got.answer) cause = got.cause;
      else for await (const { event, id, data } of frames(got.answer.response.body!)) {
        clearTimeout(quiet);
        quiet = setTimeout(stop, silence);
        heard = now();
        failed = 0;
        const seq = Number(id ?? NaN);
        if (event === "partial") yield { type: event, partial: JSON.parse(data), raw: data };
        if (event === "reset") yield { type: event };
        if (event === "" && seq >= 0) after = seq; // where the stream begins
        if (event !== "commit" || seq <= (after ?? -1)) continue;
        after = seq; // before the yield: a caller that fails on an event does not get it again
        yield { type: event, seq, commit: JSON.parse(data), raw: data };
      }
    } catch (e) {
      if (e instanceof CoppiceError) throw e;
      cause = e;
    } finally {
      clearTimeout(quiet);
      o.signal?.removeEventListener("abort", stop);
      stop();
    }
    const wait = transport.backoff(++failed);
    const gone = now() - heard + wait;
    const detail = `${path.join("/")}: gone for ${gone} ms, at ${failed} connections; go on after ${after}`;
    if (failed >= maxTries || gone > retryFor) throw new Unavailable({ code: "unreachable", detail }, "not-applied", cause);
    await transport.o.sleep(wait, o.signal);
  }
}

/** Bound of one event, in UTF-16 units: a commit of the largest body, 64 MiB, with its patch. */
const maxEvent = 1 << 28;

/** Yields the blocks of server-sent events; event "" = only an id, or a comment. A block that is cut is dropped. */
async function* frames(body: ReadableStream<Uint8Array>) {
  const none = { event: "", id: undefined as string | undefined, data: "" };
  let frame = { ...none };
  let rest = ""; // the beginning of a line
  for await (const text of pieces(body)) {
    rest += text;
    if (rest.length + frame.data.length > maxEvent) throw new Error("an event is too large");
    if (!text.includes("\n")) continue; // a long line is split once
    const lines = rest.split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      const [, name, value = ""] = /^([^:\r]*)(?:: ?([^\r]*))?\r?$/.exec(line) ?? [];
      if (name === "data") frame.data += (frame.data && "\n") + value;
      if (name === "event" || name === "id") frame[name] = value;
      if (name !== "" || line.startsWith(":")) continue;
      yield frame;
      frame = { ...none };
    }
  }
}
