// Retries on a clock and a network of the test's own.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Conflict, CoppiceError, OutcomeUnknown, Store, type StoreOptions } from "coppice-client";

/** A network whose answers are given; "broken" = the connection breaks. It records requests and waits. */
function network(answers: (Response | "broken")[], more: StoreOptions = {}) {
  const sent: { url: string; headers: Headers; body: unknown }[] = [], waits: number[] = [];
  let time = 0;
  const fetch = async (url: unknown, init?: RequestInit): Promise<Response> => {
    sent.push({ url: String(url), headers: new Headers(init?.headers), body: init?.body });
    const a = answers.length > 1 ? answers.shift()! : answers[0]!;
    if (a === "broken") throw new TypeError("fetch failed", { cause: new Error("read ECONNRESET") });
    return a.clone();
  };
  const sleep = async (ms: number) => void (waits.push(ms), (time += ms));
  const store = new Store("http://service/", { fetch: fetch as typeof globalThis.fetch, sleep, now: () => time, random: () => 1, ...more });
  return { session: store.session("s"), store, sent, waits };
}
const problem = (status: number, code: string, more: object = {}, headers: Record<string, string> = {}) =>
  new Response(JSON.stringify({ type: "about:blank", title: "", status, code, detail: code, ...more }),
    { status, headers: { "Content-Type": "application/problem+json", ...headers } });
const stored = (more: object = {}) => new Response(JSON.stringify({ entries: ["e"], seq: 1, commit: "c1", io: {}, ...more }),
  { status: 200, headers: { ETag: '"c1"' } });

test("a commit is sent again with the same key, bytes and base, and longer waits each time", async () => {
  const n = network(["broken", new Response("<html>", { status: 502 }), problem(409, "in-flight"), "broken", stored({ repeated: true })]);
  n.session.base = "c0";
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
  n.session.base = "c0";
  await n.session.commit([]);
  await n.session.commit([]);
  assert.notEqual(n.sent[0]!.headers.get("Idempotency-Key"), n.sent[1]!.headers.get("Idempotency-Key"));
});

test("Retry-After is waited for, and half of a wait is random", async () => {
  const n = network([problem(503, "busy", {}, { "Retry-After": "7" }), "broken", stored()], { random: () => 0 });
  n.session.base = "c0";
  await n.session.commit([]);
  assert.deepEqual(n.waits, [7000, 100]);
});

test("a commit gives up after its time with OutcomeUnknown, which can be sent again under its key", async () => {
  const answers: (Response | "broken")[] = ["broken"], n = network(answers, { retryFor: 10_000 });
  n.session.base = "c0";
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
  n.session.base = "c0";
  await assert.rejects(n.session.commit([]), OutcomeUnknown);
  assert.equal(n.sent.length, 3);
});

test("a service that is busy all the time has stored nothing", async () => {
  const n = network([problem(503, "busy")], { maxTries: 3 });
  n.session.base = "c0";
  await assert.rejects(n.session.commit([]), (e: CoppiceError) => e.code === "busy" && e.outcome === "not-applied");
});

test("what is refused after a lost answer may be stored, unless the service has looked for the key", async () => {
  for (const [answer, outcome] of [[problem(401, "unauthorized"), "unknown"], [problem(409, "fenced"), "not-applied"],
    [problem(412, "conflict"), "not-applied"], [problem(507, "no-space"), "unknown"]] as const) {
    const n = network(["broken", answer]);
    n.session.base = "c0";
    await assert.rejects(n.session.commit([]), (e: CoppiceError) => e.outcome === outcome && n.sent.length === 2);
  }
});

test("what is refused at once is not sent again", async () => {
  for (const answer of [problem(400, "usage"), problem(404, "not-found"), problem(413, "too-large"), problem(422, "key-reused"), problem(500, "corrupt")]) {
    const n = network([answer]);
    n.session.base = "c0";
    await assert.rejects(n.session.commit([]), (e: CoppiceError) => e.outcome === "not-applied");
    assert.equal(n.sent.length, 1);
  }
});

test("a conflict has the winner, and keepBoth has the key of the commit", async () => {
  const n = network([problem(412, "conflict", { winner: { commit: "w" }, entries: [{ id: "e" }] }), "broken", stored({ kept: "b" })]);
  n.session.base = "c0";
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
    : Promise.resolve(new Response('{"status":"ok"}')));
  await new Store("http://service", { fetch: fetch as typeof globalThis.fetch, timeout: 1, sleep: async () => undefined }).health();
  assert.equal(tries, 3);
});

test("an aborted read throws the reason, and an aborted commit is unknown", async () => {
  const n = network(["broken"]), stop = new AbortController();
  n.session.base = "c0";
  stop.abort(new Error("enough"));
  await assert.rejects(n.session.commit([], { signal: stop.signal }), OutcomeUnknown);
  assert.equal(n.sent.length, 1);
});

test("a move whose answer is lost is not sent again unless If-Match refuses a second one", async () => {
  const n = network(["broken"]);
  n.session.base = "c0";
  for (const op of [() => n.session.label({ entry: "e", label: "l" }), () => n.session.claim(), () => n.session.snapshot({}),
    () => n.session.setInfo({ title: "t" }), () => n.session.rollback({ to: "seq:0" }), () => n.session.switch({ to: "b" }, { base: "*" })]) {
    n.sent.length = 0;
    await assert.rejects(op(), OutcomeUnknown);
    assert.equal(n.sent.length, 1);
  }
});

test("an answer of something else is an error of its own", async () => {
  const n = network([new Response("<html>hello</html>", { status: 200 })]);
  await assert.rejects(n.session.resume(), (e: CoppiceError) => e.code === "answer");
});

test("tenant, base path and token are part of every request", async () => {
  const n = network([new Response("{}")], { tenant: "acme", token: "secret" });
  await n.store.session("a/b c").info();
  assert.equal(n.sent[0]!.url, "http://service/t/acme/v1/sessions/a%2Fb%20c");
  assert.equal(n.sent[0]!.headers.get("Authorization"), "Bearer secret");
});
