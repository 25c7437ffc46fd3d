import { idle, serve } from "./page.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { effect } from "@preact/signals";
import { find } from "../model/find.ts";
import { open, session } from "../model/nav.ts";
import { connection, failure, head, start } from "../model/session.ts";

test("a search tells how much of the store it has looked at", async () => {
  const parts: Record<string, number> = { "/v1/search": 0.4, "/v1/prompts": 0.7 };
  serve((path) => ({ sessions: [], prompts: [], matches: [], ...(path in parts ? { indexing: parts[path] } : {}) }));
  const { signal } = new AbortController();
  assert.equal((await find("tide", signal)).indexing, 0.4);
  delete parts["/v1/search"];
  delete parts["/v1/prompts"];
  assert.deepEqual(await find("tide", signal), { list: [], indexing: null });
});

test("a session that is opened while the server is away is read when it is back, and nothing of another one is there", async () => {
  const commit = { seq: 7, commit: "c7", head: "e", branch: "main" };
  serve((path) => (path.endsWith("/commits") ? { commits: [commit] } : { id: "a" }));
  start();
  open("a");
  await idle();
  assert.equal(head.value?.seq, 7);
  globalThis.fetch = () => Promise.reject(new TypeError("refused"));
  open("b");
  await idle();
  assert.deepEqual([session.value, head.value, connection.value], ["b", null, "lost"]);
  assert.match(failure.value, /is opened when it is back/);
  serve((path) => (path.endsWith("/commits") ? { commits: [{ ...commit, seq: 9 }] } : { id: "b" }));
  await new Promise<void>((done) => {
    const end = effect(() => {
      if (head.value?.seq === 9) done();
    });
    setTimeout(() => { end(); done(); }, 5_000).unref();
  });
  await idle();
  const seen = [head.value?.seq, failure.value];
  open(null); // whatever came of it, the session is not followed any more
  assert.deepEqual(seen, [9, ""]);
});
