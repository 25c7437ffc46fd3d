import { idle, serve } from "./page.ts";
import { shows } from "./open.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { effect } from "@preact/signals";
import { api } from "../api/client.ts";
import type { Change } from "../api/events.ts";
import { go, open } from "../model/nav.ts";
import { openSession } from "../model/session.ts";
import { panesReady } from "../model/startup.ts";

const commit = { seq: 7, commit: "c7", head: "e", branch: "main" };
const entry = { type: "message", id: "e", parentId: null, message: { role: "user", content: "tide" } };
const answer = (path: string) => path.endsWith("/commits") ? { commits: [commit] } : path.endsWith("/entries") ? { entries: [entry] } :
  path.endsWith("/snapshots") ? { snapshots: [] } : path.endsWith("/map") ? { buckets: [] } : { id: path.split("/")[3], sessions: [] };

test("a session that is opened while the server is away is read when it is back", async () => {
  globalThis.fetch = () => Promise.reject(new TypeError("refused"));
  const s = shows("b");
  await idle();
  assert.deepEqual([s.head.value, s.connection.value], [null, "lost"]);
  assert.match(s.failure.value, /is opened when it is back/);
  serve((path) => (path.endsWith("/commits") ? { commits: [{ ...commit, seq: 9 }] } : answer(path)));
  await new Promise<void>((done) => {
    const end = effect(() => {
      if (s.head.value?.seq === 9) done();
    });
    setTimeout(() => { end(); done(); }, 5_000).unref();
  });
  await idle();
  const seen = [s.head.value?.seq, s.failure.value];
  s.end();
  assert.deepEqual(seen, [9, ""]);
});

test("nothing of a session is in another one, and a session that ended asks for nothing", async () => {
  const asked: string[] = [];
  serve((path) => {
    asked.push(path);
    return answer(path);
  });
  panesReady.value = true;
  const a = shows("a");
  await idle();
  assert.equal(a.conversation.line.value.entries.length, 1);
  assert.equal(a.cursor.settled.value, 7);
  assert.ok(asked.every((path) => !path.startsWith("/v1/sessions/") || path.startsWith("/v1/sessions/a")), asked.join(" "));
  asked.length = 0;
  open("b", { line: "x", at: "y", seq: 3, pane: "state" }); // as the page does: the URL first
  await idle();
  a.end();
  assert.equal(asked.length, 0, String(asked));
  const b = openSession("b");
  assert.deepEqual([b.head.value, b.conversation.line.value.entries.length, b.cursor.settled.value, b.failures.value.value], [null, 0, null, null]);
  asked.length = 0;
  a.change.value = { ...commit, entries: [], state: [] } as unknown as Change;
  a.generation.value++;
  go({ at: "z" });
  await idle();
  assert.deepEqual(asked.filter((path) => path.startsWith("/v1/sessions/a")), []);
  b.end();
  panesReady.value = false;
});

test("equal reads that are under way are one request, which ends when all have given it up", async () => {
  let requests = 0;
  let given = 0;
  const ends: (() => void)[] = [];
  globalThis.fetch = (request) => {
    requests++;
    return new Promise((ok, no) => {
      (request as Request).signal.addEventListener("abort", () => (given++, no(new Error("aborted"))));
      ends.push(() => ok(new Response('{"sessions":[]}')));
    });
  };
  const read = (signal: AbortSignal) => api.GET("/v1/sessions", { signal }).then(() => "read", () => "given up");
  const [one, two, three] = [new AbortController(), new AbortController(), new AbortController()];
  const answers = [read(one.signal), read(two.signal)];
  await idle();
  one.abort();
  assert.deepEqual([requests, given], [1, 0]);
  ends[0]!();
  assert.deepEqual(await Promise.all(answers), ["given up", "read"]);
  const last = read(three.signal);
  await idle();
  three.abort();
  assert.deepEqual([requests, given, await last], [2, 1, "given up"]);
});
