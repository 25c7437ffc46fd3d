import { CoppiceError, errorOf } from "./errors.js";
import type { Schemas } from "./generated/operations.js";
import { transient, type Transport } from "./transport.js";

/** A commit for those who follow: with the entries that it made durable, and what it changed in the state (RFC 6902). */
export type FollowedCommit = Schemas["Commit"] & { entries: unknown[]; state: Patch[] };
type Patch = { op: string; path: string; value?: unknown };
/** What follow yields. partial: what is streamed now, null = nothing any more. reset: read the session again. */
export type Event = { type: "commit"; seq: number; commit: FollowedCommit; raw: string }
  | { type: "partial"; partial: unknown; raw: string } | { type: "reset" };
/** Options of follow: the seq after which to begin (default the newest commit), and the end. */
export interface FollowOptions { after?: number; signal?: AbortSignal }

/** Yields what happens in a session, over as many connections as it takes. See Session.follow. */
export async function* follow(transport: Transport, path: string, o: FollowOptions = {}): AsyncGenerator<Event, void> {
  const { now, silence, retryFor, maxTries } = transport.o, headers = { Accept: "text/event-stream" };
  for (let { after } = o, heard = now(), failed = 0; !o.signal?.aborted; ) {
    const end = new AbortController(), stop = () => end.abort();
    o.signal?.addEventListener("abort", stop);
    let quiet = setTimeout(stop, silence), cause: unknown;
    try {
      const got = await transport.once(path, { query: { after }, headers, signal: end.signal, stream: true });
      if (!got.answer && !transient(got.problem)) throw errorOf(got.problem, "not-applied");
      if (!got.answer) cause = got.cause;
      else for await (const { event, id, data } of frames(got.answer.response.body!)) {
        clearTimeout(quiet);
        [quiet, heard, failed] = [setTimeout(stop, silence), now(), 0];
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
    const wait = transport.backoff(++failed), gone = now() - heard + wait;
    const detail = `${path}: gone for ${gone} ms, at ${failed} connections; go on after ${after}`;
    if (failed >= maxTries || gone > retryFor) throw new CoppiceError({ code: "unreachable", detail }, "not-applied", cause);
    await transport.o.sleep(wait, o.signal);
  }
}

/** Bound of one event, in UTF-16 units: a commit of the largest body, 64 MiB, with its patch. */
const maxEvent = 1 << 28;

/** Yields the blocks of server-sent events; event "" = only an id, or a comment. A block that is cut is dropped. */
export async function* frames(body: ReadableStream<Uint8Array>) {
  const reader = body.getReader(), decoder = new TextDecoder();
  const none = { event: "", id: undefined as string | undefined, data: "" };
  try {
    for (let rest = "", frame = { ...none }, read = await reader.read(); !read.done; read = await reader.read()) {
      const text = decoder.decode(read.value, { stream: true });
      if ((rest += text).length + frame.data.length > maxEvent) throw new Error("an event is too large");
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
  } finally {
    await reader.cancel().catch(() => undefined); // of a connection that broke
  }
}
