// Signals and time-outs.
import assert from "node:assert/strict";
import { mock } from "node:test";
import { OutcomeUnknown } from "coppice-client";
import { test } from "./limit.js";
import { network, problem, reads, stored, writes } from "./network.js";

test("a signal that was aborted before the call: nothing is sent, and it rejects with the reason", async () => {
  for (const reason of [new Error("mine"), "mine", 0]) {
    const n = network([stored()]);
    for (const [name, call] of Object.entries({ ...reads, ...writes })) {
      const e = await call(n.session, { signal: AbortSignal.abort(reason) }, n.store).then(() => assert.fail(name), (e: unknown) => e);
      assert.equal(e, reason, name);
    }
    assert.equal(n.sent.length, 0);
  }
});

test("a signal that is aborted after the request was sent: a read rejects with the reason, a write is unknown", async () => {
  const reason = new Error("mine");
  for (const [name, call] of Object.entries({ ...reads, ...writes })) {
    const stop = new AbortController();
    const n = network([(init) => {
      stop.abort(reason);
      return Promise.reject(init.signal!.reason);
    }]);
    const e = await call(n.session, { signal: stop.signal }, n.store).then(() => assert.fail(name), (e: unknown) => e);
    if (name in reads) assert.equal(e, reason, name);
    else assert.ok(e instanceof OutcomeUnknown && e.cause === reason, name);
    assert.equal(n.sent.length, 1, name);
  }
});

test("a signal ends the reading of an answer", async () => {
  const stop = new AbortController(), reason = new Error("mine");
  const n = network([async (init) => new Response(new ReadableStream({ pull: (c) => (stop.abort(reason), c.error(init.signal!.reason)) }),
    { headers: { "Content-Type": "application/json" } })]);
  await assert.rejects(n.session.info({ signal: stop.signal }), reason);
  await assert.rejects(n.session.commit([], { signal: AbortSignal.any([stop.signal]) }), reason); // it was aborted before
  assert.equal(n.sent.length, 1);
});

test("a signal between two tries of a write: known where the service said that nothing was stored", async () => {
  for (const [answer, unknown] of [[problem(503, "busy"), false], ["broken", true]] as const) {
    const stop = new AbortController(), reason = new Error("mine");
    const n = network([answer, stored()], { sleep: async () => stop.abort(reason) });
    const e = await n.session.commit([], { signal: stop.signal }).then(() => assert.fail(), (e: unknown) => e);
    assert.equal(n.sent.length, 1);
    if (!unknown) assert.equal(e, reason);
    else assert.ok(e instanceof OutcomeUnknown && e.cause === reason);
    if (e instanceof OutcomeUnknown) assert.equal((await e.retry!()).commit, "c1"); // the signal is not that of the retry
  }
});

/** Runs with timers that the test advances. */
async function timed(body: (tick: (ms: number) => Promise<void>) => Promise<void>): Promise<void> {
  mock.timers.enable({ apis: ["setTimeout"] });
  const settle = async () => { for (let i = 0; i < 20; i++) await Promise.resolve(); };
  try {
    await body(async (ms) => (await settle(), mock.timers.tick(ms), settle()));
  } finally {
    mock.timers.reset();
  }
}

test("a body has a second more for each 64 KiB", () => timed(async (tick) => {
  let aborted = false, answer = (_: Response) => {};
  const slow = (init: RequestInit) => new Promise<Response>((done, fail) => {
    answer = done;
    init.signal!.addEventListener("abort", () => ((aborted = true), fail(init.signal!.reason)));
  });
  const n = network([slow]), image = "x".repeat(24 << 20);
  const commit = n.session.commit([{ role: "user", content: image }]);
  await tick(35_000 + 24 * 16_000);
  assert.deepEqual([aborted, n.sent.length], [false, 1]);
  answer(stored());
  assert.equal((await commit).commit, "c1");
  const late = n.session.commit([{ role: "user", content: image }], { signal: AbortSignal.any([]) });
  await tick(35_000 + 24 * 16_000);
  assert.equal(aborted, false);
  await tick(100);
  assert.equal(aborted, true);
  answer(stored());
  assert.equal((await late).commit, "c1");
}));

test("an answer may take as long as it likes, as long as bytes come", () => timed(async (tick) => {
  let body!: ReadableStreamDefaultController<Uint8Array>;
  const n = network([async (init) => new Response(new ReadableStream({ start: (c) => {
    body = c;
    init.signal!.addEventListener("abort", () => c.error(init.signal!.reason));
  } }), { headers: { "Content-Type": "application/json" } })]);
  const state = n.session.stateAt();
  for (const byte of "[1,2,3]") {
    await tick(34_000);
    body.enqueue(new TextEncoder().encode(byte));
  }
  await tick(0);
  body.close();
  assert.equal((await state).text, "[1,2,3]");
  assert.equal(n.sent.length, 1);
  const read = n.session.stateAt();
  await tick(34_000);
  body.enqueue(new TextEncoder().encode("["));
  await tick(35_001);
  await tick(0);
  assert.equal(n.sent.length, 3); // it is sent again
  body.enqueue(new TextEncoder().encode("{}"));
  await tick(0);
  body.close();
  assert.equal((await read).text, "{}");
}));

test("a time-out beyond what a timer takes is long, not 1 ms", () => timed(async (tick) => {
  const n = network([(init) => new Promise((_, fail) => init.signal!.addEventListener("abort", () => fail(init.signal!.reason)))], { timeout: Infinity, maxTries: 1 });
  let ended = false;
  const health = n.store.health().catch(() => (ended = true));
  await tick(2 ** 31 - 2);
  assert.equal(ended, false);
  await tick(1);
  await health;
}));
