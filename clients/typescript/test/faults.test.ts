// Lost answers, cut streams and a server that is killed: against a real server.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { Conflict, OutcomeUnknown, Store, type Event, type Session } from "coppice-client";
import { test } from "./limit.js";
import { Proxy, quick, Service, type Fault } from "./service.js";

const user = (content: string) => ({ role: "user", content });
const contents = async (s: Session): Promise<string[]> => {
  const list: string[] = [];
  for await (const e of s.entries({ path: "all", limit: 500 })) list.push((JSON.parse(e.text) as { message: { content: string } }).message.content);
  return list;
};

/** A generator of numbers below n that every run repeats. */
function numbers(seed: number): (n: number) => number {
  return (n) => (seed = (seed * 48271) % 2147483647) % n;
}

test("every turn is stored once while requests and answers are dropped", async (t) => {
  const service = await Service.start(t), next = numbers(7);
  const faults: (Fault | undefined)[] = [undefined, undefined, { answerBytes: 0 }, { request: false }, { answerBytes: 20 }, { answerBytes: 300 }];
  const proxy = await Proxy.start(t, service, () => faults[next(faults.length)]);
  const s = await new Store(proxy.url, quick).create("s");
  for (let i = 0; i < 40; i++) await s.commit([user(`turn ${i}`)], { state: { i } });
  assert.deepEqual(await contents(s), Array.from({ length: 40 }, (_, i) => `turn ${i}`));
  const direct = await new Store(service.url).session("s").resume();
  assert.deepEqual([direct.seq, direct.state], [40, { i: 39 }]);
  assert.ok(proxy.requests > 60, `only ${proxy.requests} requests: nothing was dropped`);
});

test("moves whose answers are lost are applied once, or unknown", async (t) => {
  const service = await Service.start(t);
  let fault: Fault | undefined;
  const proxy = await Proxy.start(t, service, (request) => {
    if (request.startsWith("GET")) return undefined;
    const f = fault;
    fault = undefined; // the next one passes
    return f;
  });
  const s = await new Store(proxy.url, quick).create("s"), a = await s.commit([user("a")]), b = await s.commit([user("b")]);
  for (const lost of [{ request: false }, { answerBytes: 0 }]) {
    const seq = (await s.resume()).seq;
    fault = lost;
    assert.equal((await s.edit({ entry: b.entries[0]!, message: user("b2") })).seq, seq + 1);
    fault = lost;
    assert.equal((await s.switch({ to: b.entries[0]! })).head, b.entries[0]);
    fault = lost;
    assert.equal((await s.branch({ entry: a.entries[0]!, name: `side-${seq}` })).branch, `side-${seq}`);
    fault = lost;
    const f = await s.fork();
    await f.resume();
    assert.equal((await s.resume()).seq, seq + 3);
    await s.commit([user("on")]); // the handle continues from there
    await s.switch({ to: "main" });
  }
  fault = { answerBytes: 0 };
  assert.equal((await s.label({ entry: a.entries[0]!, label: "x" })).repeated, true);
  fault = { answerBytes: 0 };
  await assert.rejects(s.snapshot({}), OutcomeUnknown); // it has no key
  const { seq } = await s.resume();
  fault = { answerBytes: 0 };
  const back = await s.rollback({ to: "seq:1" });
  assert.deepEqual([back.seq, back.repeated, (await s.resume()).seq], [seq + 1, true, seq + 1]);
  const other = new Store(service.url).session("s");
  await other.resume();
  await other.commit([user("other")]);
  fault = { request: false };
  await assert.rejects(s.switch({ to: `side-2` }), Conflict); // it did not arrive, and cannot be applied any more
});

test("kill -9 of the server during commits: every turn that was acknowledged is stored once", async (t) => {
  const service = await Service.start(t), done: string[] = [];
  const s = await new Store(service.url, quick).create("s");
  const next = numbers(5);
  let killed = 0, restarts = Promise.resolve();
  const restart = async (): Promise<void> => {
    for (let n = next(30); n > 0; n--) await new Promise((go) => setImmediate(go)); // somewhere in the commits that follow
    await service.kill();
    killed++;
    await service.start();
  };
  for (let i = 0; i < 40; i++) {
    if (i % 5 === 2) restarts = restarts.then(restart);
    await s.commit([user(`turn ${i}`)], { state: { i } });
    done.push(`turn ${i}`);
  }
  await restarts;
  assert.equal(killed, 8);
  assert.deepEqual(await contents(s), done);
  const now = await s.resume();
  assert.deepEqual([now.seq, now.state], [40, { i: 39 }]);
});

test("two clients in one session, each with answers dropped: each turn once, on the head or on a branch", async (t) => {
  const service = await Service.start(t), next = numbers(11);
  const proxy = await Proxy.start(t, service, () => (next(3) ? undefined : { answerBytes: 0 }));
  const store = new Store(proxy.url, quick);
  await store.create("s");
  const agent = async (name: string) => {
    const s = store.session("s");
    for (let i = 0; i < 15; i++) await s.turn(async (turn) => turn.append(user(`${name} ${i}`)));
  };
  await Promise.all([agent("one"), agent("two")]);
  const want = ["one", "two"].flatMap((name) => Array.from({ length: 15 }, (_, i) => `${name} ${i}`)).sort();
  assert.deepEqual((await contents(store.session("s"))).sort(), want);
});

test("it gives up after a bounded time, and says so", async (t) => {
  const service = await Service.start(t);
  const s = await new Store(service.url, { ...quick, retryFor: 300 }).create("s");
  await service.kill();
  const e = await s.commit([user("x")], { key: "mine" }).then(() => assert.fail(), (e: unknown) => e);
  assert.ok(e instanceof OutcomeUnknown && e.key === "mine");
  await service.start();
  assert.equal((await e.retry!()).seq, 1);
  assert.equal((await e.retry!()).repeated, true);
  assert.deepEqual(await contents(s), ["x"]);
});

test("a follower misses nothing and gets nothing twice, whatever is cut", async (t) => {
  const service = await Service.start(t), next = numbers(3);
  const proxy = await Proxy.start(t, service, () => ({ answerBytes: 200 + next(2000) }));
  const writer = await new Store(service.url).create("s"), got: Event[] = [], end = new AbortController();
  let connected = () => {};
  const ready = new Promise<void>((resolve) => (connected = resolve));
  const following = (async () => {
    const follower = new Store(proxy.url, quick).session("s");
    for await (const e of follower.follow({ after: 0, signal: end.signal })) {
      connected();
      if (e.type === "commit") got.push(e);
      if (got.length === 60) end.abort();
    }
  })();
  await writer.commit([user("turn 1")], { state: { n: 1 } });
  await ready;
  for (let i = 2; i <= 60; i++) {
    await writer.commit([user(`turn ${i}`)], { state: { n: i } });
    if (i % 20 === 0) proxy.cut();
    if (i === 30) {
      await service.kill();
      await service.start();
    }
  }
  await following;
  assert.deepEqual(got.map((e) => e.type === "commit" && e.seq), Array.from({ length: 60 }, (_, i) => i + 1));
  const last = got.at(-1)!;
  assert.ok(last.type === "commit" && last.commit.entries.length === 1 && last.commit.state.length > 0 && proxy.requests > 5);
});

test("a follower that is cut before the first event misses nothing", async (t) => {
  const service = await Service.start(t), writer = await new Store(service.url).create("s");
  const proxy = await Proxy.start(t, service, (_, n) => (n === 1 ? { endAfter: "id: 0\n\n" } : undefined));
  const sleep = async () => void (await writer.commit([user("meanwhile")])); // while it is not connected
  const events = new Store(proxy.url, { sleep }).session("s").follow();
  const e = (await events.next()).value as Event;
  assert.ok(e.type === "commit" && e.seq === 1 && proxy.requests === 2);
  await events.return();
});

test("partials come between commits, and a reset where the commit is not known", async (t) => {
  const service = await Service.start(t), s = await new Store(service.url).create("s");
  const events = new Store(service.url).session("s").follow({ after: 7 });
  assert.deepEqual((await events.next()).value, { type: "reset" });
  await s.partial({ role: "assistant", content: "Wh" });
  const partial = (await events.next()).value as Event;
  assert.deepEqual(partial, { type: "partial", partial: { role: "assistant", content: "Wh" }, raw: '{"role":"assistant","content":"Wh"}' });
  await s.commit([user("x")]);
  const rest = [(await events.next()).value as Event, (await events.next()).value as Event].map((e) => e.type).sort();
  assert.deepEqual(rest, ["commit", "partial"]); // the commit ends it
  await events.return();
});

test("a follower ends with its signal, with an error that stays, and when the service is gone", async (t) => {
  const service = await Service.start(t), s = await new Store(service.url).create("s"), end = new AbortController();
  const events = s.follow({ after: 0, signal: end.signal }), next = events.next(); // whichever is first, stream or commit
  await s.commit([user("x")]);
  await next;
  const over = events.next();
  end.abort();
  assert.equal((await over).done, true);
  await assert.rejects(new Store(service.url).session("none").follow().next(), { name: "NotFound" });
  await service.kill();
  await assert.rejects(new Store(service.url, { ...quick, maxTries: 3 }).session("s").follow().next(), { code: "unreachable" });
});

test("a stream that says nothing is given up", async () => {
  let connections = 0;
  const silent = async (_: unknown, init?: RequestInit) => {
    connections++;
    const body = new ReadableStream({ start: (c) => init!.signal!.addEventListener("abort", () => c.error(init!.signal!.reason)) });
    return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
  };
  const store = new Store("http://service", { fetch: silent as typeof fetch, silence: 5, maxTries: 3, sleep: async () => undefined });
  await assert.rejects(store.session("s").follow().next(), { code: "unreachable" });
  assert.equal(connections, 3);
});

test("bodies for which the service has no room are sent again until each is stored, once", async (t) => {
  const service = await Service.start(t), { port } = new URL(service.url);
  const direct = new Store(service.url);
  for (let i = 0; i < 6; i++) await direct.create(`s${i}`);
  const stalled = connect(Number(port), "127.0.0.1"); // uses the whole limit of one client
  t.after(() => stalled.destroy());
  stalled.on("error", () => undefined);
  stalled.write(`POST /v1/sessions/s0/commits HTTP/1.1\r\nHost: localhost\r\nIf-Match: *\r\nContent-Length: ${64 << 20}\r\n` +
    "Expect: 100-continue\r\n\r\n");
  await once(stalled, "data"); // 100: the body is being read
  const waits: number[] = [];
  const sleep = async (ms: number) => {
    if (waits.push(ms) === 6) stalled.destroy();
  };
  const text = "x".repeat(200_000);
  await Promise.all(Array.from({ length: 6 }, async (_, i) => {
    const s = new Store(service.url, { sleep }).session(`s${i}`);
    await s.resume();
    await s.commit([user(text), user(`${i}`)]);
    assert.deepEqual(await contents(s), [text, `${i}`]);
    assert.equal((await s.resume()).seq, 1);
  }));
  assert.ok(waits.length >= 6 && waits.every((ms) => ms >= 1000), `waits of ${waits} ms`);
});
