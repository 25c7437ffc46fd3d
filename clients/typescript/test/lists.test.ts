// Lists: page by page, or in one answer as it arrives; and the use of their ETags.
import assert from "node:assert/strict";
import { Conflict, CoppiceError, RawJSON, Store } from "coppice-client";
import { before, test } from "./limit.js";
import { json, network } from "./network.js";
import { Proxy, quick, Service } from "./service.js";

const step = (n: number) => ({ type: "custom", customType: "check", data: { n, of: { source: n % 2 ? "loop" : "input" } } });
const numbers = (items: RawJSON[]) => items.map((e) => JSON.parse(e.text).data.n as number);
async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

let service: Service, store: Store;
before(async (t) => {
  service = await Service.start(t as never);
  store = new Store(service.url, quick);
});

test("a page has the cursors of the pages around it, and an ETag that a write can be made on", async () => {
  const s = await store.create(undefined);
  await s.commit(Array.from({ length: 7 }, (_, n) => step(n)), { docs: { plan: { n: 1 } } });
  const first = await s.entries({ limit: 3 }).page();
  assert.deepEqual([numbers(first.items), first.prev], [[0, 1, 2], undefined]);
  const second = await s.entries({ limit: 3, after: first.next! }).page();
  const back = await s.entries({ limit: 3, before: second.prev! }).page();
  assert.deepEqual([numbers(second.items), numbers(back.items)], [[3, 4, 5], [0, 1, 2]]);
  assert.deepEqual(numbers(await all(s.entries({ limit: 3, before: second.prev! }))), [0, 1, 2, 3, 4, 5, 6]);
  const other = store.session(s.id);
  await other.commit([step(7)], { base: first.etag! });
  await assert.rejects(s.commit([step(8)]), Conflict);
  assert.equal(((await s.docs()).docs["plan"] as { n: number }).n, 1);
  await s.commit([step(8)], { base: s.seen! });
  const { head } = await s.info();
  assert.equal(JSON.parse((await s.entry(head!)).text).data.n, 8);
});

test("entries are chosen by members, of one session and of all", async () => {
  const s = await store.create(undefined, { meta: { kind: "graph" } });
  await s.commit(Array.from({ length: 6 }, (_, n) => step(n)), { docs: { "a/b": 1 } });
  const loop = { "match.data.of.source": '"loop"' } as const;
  assert.deepEqual(numbers(await all(s.entries({ ...loop, order: "desc" }))), [5, 3, 1]);
  const found = await store.entries({ ...loop, "meta.kind": "graph", custom: "check", order: "desc", limit: 1 }).page();
  assert.deepEqual(found.items.map((f) => [f.session, (f.entry as any).data.n]), [[s.id, 5]]);
  const older = store.entries({ session: s.id, before: (found.items[0]!.entry as any).id, limit: 2 });
  assert.deepEqual((await all(older)).map((f) => (f.entry as any).data.n), [0, 1, 2, 3, 4]);
  assert.equal((await s.doc("a/b")).text, "1");
  assert.deepEqual((await all(store.sessions({ "meta.kind": "graph", docs: "a/b" }))).map((x) => x.docs), [{ "a/b": 1 }]);
});

test("all entries are one request, whose answer is read as it comes", async (t) => {
  const requests: string[] = [];
  const proxy = await Proxy.start(t, service, (request) => void requests.push(request));
  const s = await new Store(proxy.url, quick).create(undefined);
  for (let i = 0; i < 4; i++) await s.commit(Array.from({ length: 400 }, (_, n) => step(400 * i + n)));
  requests.length = 0;
  assert.deepEqual(numbers(await all(s.entries({ path: "all", limit: "all" }))), Array.from({ length: 1600 }, (_, n) => n));
  assert.equal(requests.length, 1);
  for await (const e of s.entries({ limit: "all" })) {
    assert.deepEqual(numbers([e]), [0]);
    break;
  }
  assert.equal((await all(store.entries({ session: s.id, limit: "all" }))).length, 1600);
});

const lines = (body: string | ReadableStream<Uint8Array>) => new Response(body, { headers: { "Content-Type": "application/x-ndjson" } });

test("an answer of lines that is cut, or ends with an error, is an error after what came", async () => {
  const cut = new ReadableStream<Uint8Array>({
    start: (c) => c.enqueue(new TextEncoder().encode('{"a":1}\n{"a":2}\n{"a"')), pull: (c) => c.error(new TypeError("terminated")),
  });
  const failed = '{"a":1}\n{"a":2}\n{"error":{"code":"corrupt","detail":"damaged","status":500}}\n';
  for (const [body, code] of [[cut, "unreachable"], ['{"a":1}\n{"a":2}\n{"a', "unreachable"], [failed, "corrupt"]] as const) {
    const { session } = network([async () => lines(body)]); // not a clone, which reads ahead
    const got: string[] = [];
    await assert.rejects(async () => {
      for await (const e of session.entries({ limit: "all" })) got.push(e.text);
    }, (e: CoppiceError) => e.code === code);
    assert.deepEqual(got, ['{"a":1}', '{"a":2}']);
  }
  const { session, sent } = network(["broken", lines('{"error":1,"a":2}\n')]);
  assert.deepEqual((await all(session.entries({ limit: "all" }))).map((e) => e.text), ['{"error":1,"a":2}']);
  assert.deepEqual([sent.length, sent[1]!.headers.get("Accept")], [2, "application/x-ndjson"]);
  const short = network([json({ entries: [{ a: 1 }], error: { code: "corrupt", status: 500 } })]).session;
  await assert.rejects(short.entries().page(), { code: "corrupt" });
});

test("a signal ends an answer of lines", async () => {
  const end = new AbortController(), why = new Error("enough");
  const body = new ReadableStream<Uint8Array>({ start: (c) => c.enqueue(new TextEncoder().encode('{"a":1}\n')) });
  const { session } = network([async (init) => {
    init.signal!.addEventListener("abort", () => body.cancel().catch(() => undefined));
    return lines(body.pipeThrough(new TransformStream(), { signal: init.signal! }));
  }]);
  await assert.rejects(async () => {
    for await (const _ of session.entries({ limit: "all" }, { signal: end.signal })) end.abort(why);
  }, why);
});
