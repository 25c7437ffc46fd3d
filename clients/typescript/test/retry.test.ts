// Retries on a clock and a network of the test's own.
import assert from "node:assert/strict";
import { Conflict, CoppiceError, Deleted, OutcomeUnknown, Store } from "coppice-client";
import { test } from "./limit.js";
import { json, network, problem, stored, writes, type Reply } from "./network.js";

test("a commit is sent again with the same key, bytes and base, and longer waits each time", async () => {
  const n = network(["broken", new Response("<html>", { status: 502 }), problem(429, "busy"), "broken", stored({ repeated: true })]);
  const r = await n.session.commit([{ role: "user", content: "x" }], { state: { a: 1 } });
  assert.equal(r.repeated, true);
  assert.equal(n.session.base, "c1");
  assert.equal(n.sent.length, 5);
  assert.match(n.sent[0]!.headers.get("Idempotency-Key")!, /^[0-9a-f]{32}$/);
  for (const s of n.sent) {
    assert.equal(s.url, "http://service/v1/sessions/s/commits");
    assert.equal(s.headers.get("Idempotency-Key"), n.sent[0]!.headers.get("Idempotency-Key"));
    assert.equal(s.headers.get("If-Match"), '"c0"');
    assert.equal(s.body, '{"entries":[{"role":"user","content":"x"}],"state":{"a":1}}');
  }
  assert.deepEqual(n.waits, [100, 200, 400, 800]);
});

test("two commits have two keys", async () => {
  const n = network([stored()]);
  await n.session.commit([]);
  await n.session.commit([]);
  assert.notEqual(n.sent[0]!.headers.get("Idempotency-Key"), n.sent[1]!.headers.get("Idempotency-Key"));
});

test("Retry-After is waited for, and half of a wait is random", async () => {
  const n = network([problem(503, "busy", {}, { "Retry-After": "7" }), "broken", stored()], { random: () => 0 });
  await n.session.commit([]);
  assert.deepEqual(n.waits, [7000, 100]);
});

test("a commit gives up after its time with OutcomeUnknown, which can be sent again under its key", async () => {
  const answers: Reply[] = ["broken"], n = network(answers, { retryFor: 10_000 });
  const e = await n.session.commit([], { key: "k" }).then(() => assert.fail(), (e: unknown) => e);
  assert.ok(e instanceof OutcomeUnknown);
  assert.deepEqual([e.outcome, e.key, e.code], ["unknown", "k", "outcome-unknown"]);
  assert.match(e.message, /ECONNRESET/);
  assert.ok(n.waits.reduce((a, b) => a + b) <= 10_000);
  const tries = n.sent.length;
  answers[0] = stored();
  assert.equal((await e.retry!()).commit, "c1");
  assert.deepEqual(n.sent[tries], n.sent[0]);
  assert.equal(n.session.base, "c1");
});

test("a commit gives up after a number of tries", async () => {
  const n = network(["broken"], { maxTries: 3 });
  await assert.rejects(n.session.commit([]), OutcomeUnknown);
  assert.equal(n.sent.length, 3);
});

test("a service that is busy all the time has stored nothing", async () => {
  const n = network([problem(503, "busy")], { maxTries: 3 });
  await assert.rejects(n.session.commit([]), (e: CoppiceError) => e.code === "busy" && e.outcome === "not-applied");
});

test("what is refused after a lost answer may be stored, unless the service has looked for the key", async () => {
  for (const [answer, outcome] of [[problem(401, "unauthorized"), "unknown"], [problem(409, "fenced"), "not-applied"],
    [problem(412, "conflict"), "not-applied"], [problem(507, "no-space"), "unknown"]] as const) {
    const n = network(["broken", answer]);
      await assert.rejects(n.session.commit([]), (e: CoppiceError) => e.outcome === outcome && n.sent.length === 2);
  }
});

test("what is refused at once is not sent again", async () => {
  for (const answer of [problem(400, "usage"), problem(404, "not-found"), problem(413, "too-large"), problem(422, "key-reused"), problem(500, "corrupt")]) {
    const n = network([answer]);
      await assert.rejects(n.session.commit([]), (e: CoppiceError) => e.outcome === "not-applied");
    assert.equal(n.sent.length, 1);
  }
});

test("a conflict has the winner, and keepBoth has the key of the commit", async () => {
  const n = network([problem(412, "conflict", { winner: { commit: "w" }, entries: [{ id: "e" }] }), "broken", stored({ kept: "b" })]);
  const e = await n.session.commit([], { state: 1 }).then(() => assert.fail(), (e: unknown) => e);
  assert.ok(e instanceof Conflict);
  assert.deepEqual([e.winner?.commit, e.entriesSince], ["w", [{ id: "e" }]]);
  assert.equal((await e.keepBoth!()).kept, "b");
  assert.equal(n.sent[2]!.body, '{"entries":[],"state":1,"onConflict":"keep-both"}');
  assert.equal(n.sent[2]!.headers.get("Idempotency-Key"), n.sent[0]!.headers.get("Idempotency-Key"));
  assert.equal(n.session.base, undefined);
  await assert.rejects(n.session.commit([]), (e: CoppiceError) => e.code === "no-base");
});

test("a read is sent again, and a try has a bound of its own", async () => {
  let tries = 0;
  const fetch = (_: unknown, init?: RequestInit) => (++tries < 3
    ? new Promise<Response>((_, no) => init!.signal!.addEventListener("abort", () => no(init!.signal!.reason)))
    : Promise.resolve(json({ status: "ok" })));
  await new Store("http://service", { fetch: fetch as typeof globalThis.fetch, timeout: 1, sleep: async () => undefined }).health();
  assert.equal(tries, 3);
});

test("a move is sent again with the same key; a write that has no key is not", async () => {
  const moved = json({ head: "e", branch: "main", seq: 2, state: null }, { etag: "c2" });
  for (const name of ["branch", "edit", "rollback", "switch", "label", "claim", "setInfo"]) {
    const n = network(["broken", moved]);
    await writes[name]!(n.session, {}, n.store);
    assert.deepEqual([n.sent.length, n.session.base], [2, "c2"], name);
    assert.match(n.sent[0]!.headers.get("Idempotency-Key")!, /^[0-9a-f]{32}$/, name);
    assert.deepEqual(n.sent[1], n.sent[0], name);
  }
  for (const name of ["snapshot", "compact"]) {
    const n = network(["broken"]);
    await assert.rejects(writes[name]!(n.session, {}, n.store), (e) => e instanceof OutcomeUnknown && e.key === undefined, name);
    assert.equal(n.sent.length, 1, name);
  }
});

test("a deletion is finished by a repeat, also where its answer was lost", async () => {
  for (const first of ["broken", problem(503, "delete-unfinished")] as const) {
    for (const last of [problem(410, "deleted"), json({ deleted: true, session: "s" })]) {
      const n = network([first, last]);
      assert.deepEqual([await n.session.delete(), n.sent.length], [{ deleted: true, session: "s" }, 2]);
    }
  }
  await assert.rejects(network([problem(410, "deleted")]).session.delete(), Deleted);
});

test("a fork that is refused after a lost answer may be there all the same: it has no key", async () => {
  const n = network(["broken", problem(412, "conflict")]);
  await assert.rejects(n.session.fork(), (e: CoppiceError) => e.outcome === "unknown");
  const made = network(["broken", problem(409, "exists")]);
  assert.equal((await made.session.fork()).base, undefined);
  await assert.rejects(network([problem(409, "exists")]).session.fork(), { code: "exists", outcome: "not-applied" });
});

test("tenant, base path and token are part of every request", async () => {
  const n = network([json({ status: "ok" })], { tenant: "acme", token: "secret" });
  await n.store.session("a/b c").stateAt();
  assert.equal(n.sent[0]!.url, "http://service/t/acme/v1/sessions/a%2Fb%20c/state");
  assert.equal(n.sent[0]!.headers.get("Authorization"), "Bearer secret");
});
