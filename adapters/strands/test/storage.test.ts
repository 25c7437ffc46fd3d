import { Agent, Message, Model, ModelContentBlockDeltaEvent, ModelMessageStartEvent, SessionManager, SlidingWindowConversationManager, tool } from "@strands-agents/sdk";
import { InMemoryStorage, type Storage } from "@strands-agents/sdk/storage";
import { expect, test } from "vitest";
import { z } from "zod";
import { Counted, serve, unreliable } from "../../harness/service.ts";
import { align, CoppiceStorage } from "../src/index.ts";

const key = "session/s/scopes/agent/a/snapshots/snapshot_latest.json", history = (n: number) => `session/s/scopes/agent/a/snapshots/immutable_history/snapshot_${n}.json`;
const bytes = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
const parsed = (data: Uint8Array | null) => data && (JSON.parse(new TextDecoder().decode(data)) as unknown);
const message = (i: number, text = `message ${i} `.repeat(5)) => ({ role: i % 2 ? "assistant" : "user", content: [{ text }], trackingId: `id${i}` });
const snapshot = (messages: unknown[], state: unknown = {}) => ({ scope: "agent", schemaVersion: "1.0", createdAt: "2026-01-01T00:00:00.000Z", data: { messages, state }, appData: {} });
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => message(from + i));

/** A model that calls a tool at each third question. */
class Scripted extends Model {
  override updateConfig(): void {}
  override getConfig() { return { modelId: "scripted" }; }
  override async *stream(messages: Message[]) {
    const last = messages.at(-1)!.content[0]!, call = "text" in last && String(last.text).includes("tool");
    const id = `call${messages.length}`;
    yield { type: "modelMessageStartEvent", role: "assistant" } as ModelMessageStartEvent;
    yield { type: "modelContentBlockStartEvent", ...(call && { start: { type: "toolUseStart", name: "look", toolUseId: id } }) } as never;
    yield { type: "modelContentBlockDeltaEvent", delta: call ? { type: "toolUseInputDelta", input: '{"q":"x"}' } : { type: "textDelta", text: `answer ${messages.length}` } } as ModelContentBlockDeltaEvent;
    yield { type: "modelContentBlockStopEvent" } as never;
    yield { type: "modelMessageStopEvent", stopReason: call ? "toolUse" : "endTurn" } as never;
    yield { type: "modelMetadataEvent", usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 } } as never;
  }
}
const agent = (storage: Storage, o: object = {}) => new Agent({
  id: "a", model: new Scripted() as never, printer: false, sessionManager: new SessionManager({ sessionId: "s", storage, ...o }),
  tools: [tool({ name: "look", description: "looks", inputSchema: z.object({ q: z.string() }), callback: ({ q }) => `found ${q}` })],
  conversationManager: new SlidingWindowConversationManager({ windowSize: 8 }),
});
const texts = (a: Agent) => JSON.parse(JSON.stringify(a.messages.map((m) => m.toJSON()))).map(({ trackingId, metadata, ...m }: Record<string, unknown>) => m) as unknown[];
/** Ten turns of an agent, each by another process; immutable snapshots after each fourth; the first one is restored. */
async function story(storage: () => Storage) {
  const seen: unknown[] = [];
  for (let turn = 0; turn < 10; turn++) {
    const a = agent(storage(), { snapshotTrigger: () => turn % 4 === 3 });
    a.appState.set("turn", turn);
    await a.invoke(turn % 3 === 1 ? `tool ${turn}` : `question ${turn}`);
    seen.push(texts(a));
  }
  const s = storage(), a = agent(s, {}), manager = a.sessionManager as SessionManager;
  await a.initialize();
  seen.push(texts(a));
  const ids = await manager.listSnapshotIds({ target: a });
  await manager.restoreSnapshot({ target: a, snapshotId: ids[0]! });
  seen.push(ids.length, texts(a), a.appState.getAll());
  return seen;
}

test("an agent with tools, a window and snapshots is restored as from the SDK's own storage", async () => {
  const { url } = await serve(), memory = new InMemoryStorage();
  const theirs = await story(() => memory);
  expect(await story(() => new CoppiceStorage(url))).toEqual(theirs);
});

test("random calls: every answer is that of the SDK's own storage", async () => {
  const mine = new CoppiceStorage((await serve()).url), theirs = new InMemoryStorage();
  let seed = 7;
  const draw = (n: number) => (seed = (seed * 48271) % 2147483647) % n;
  const names = [key, history(1), history(2), "session/s/manifest.json", "memory//notes.json", "memory/bytes", "odd é/x"];
  let list = range(0, 4);
  for (let i = 0; i < 150; i++) {
    const name = names[draw(names.length)]!, op = draw(8);
    if (draw(3)) list = [...list, message(100 + i), message(101 + i)];
    else if (draw(2)) list = list.slice(draw(3)); // a window
    else list = list.slice(0, 1 + draw(list.length + 1));
    const value = name === "memory/bytes" ? new Uint8Array([i, 255, 0]) : bytes(name.includes("snapshots") ? snapshot(list, { i }) : { i, z: 1, a: 2 });
    for (const s of [mine, theirs]) {
      if (op < 5) await s.write(name, value);
      else if (op === 5) await s.delete(name);
    }
    const [a, b] = [await mine.read(name), await theirs.read(name)];
    if (name.includes("snapshots")) expect(parsed(a)).toEqual(parsed(b));
    else expect(a).toEqual(b);
    for (const prefix of ["", "session/", "session/s/scopes/agent/a/snapshots/immutable_history/", "mem", "none/"]) expect(await mine.list(prefix)).toEqual(await theirs.list(prefix));
  }
  for (const bad of ["", "/", "a/../b"]) await expect(mine.write(bad, new Uint8Array())).rejects.toThrow();
});

test("what a snapshot keeps of the messages before it", () => {
  const path = ["a", "b", "c", "d"];
  expect(align(path, ["a", "b", "c", "d", "e"], 0)).toEqual({ keep: 4, drop: 0 });
  expect(align(path, ["c", "d", "e"], 0)).toEqual({ keep: 4, drop: 2 }); // a window moved
  expect(align(path, ["c", "d", "e"], 2)).toEqual({ keep: 4, drop: 2 });
  expect(align(path, ["a", "b", "x"], 0)).toEqual({ keep: 2, drop: 0 }); // an edit
  expect(align(path, ["a", "b"], 0)).toEqual({ keep: 2, drop: 0 });
  expect(align(path, ["summary", "c", "d"], 0)).toEqual({ keep: 0, drop: 0 });
  expect(align(path, [], 0)).toEqual({ keep: 0, drop: 0 });
  expect(align([], ["a"], 0)).toEqual({ keep: 0, drop: 0 });
});

test("a snapshot that is written twice stores its messages once", async () => {
  const c = new Counted((await serve()).url);
  for (let i = 0; i < 2; i++) for (const s of [new CoppiceStorage(c.store), new CoppiceStorage(c.store)]) await s.write(key, bytes(snapshot(range(0, 6))));
  const { items } = await c.store.session(await new CoppiceStorage(c.store).id(key)).entries({ path: "all", limit: 500 }).page();
  expect(items.length).toBe(6);
});

test("two hosts: the snapshot is the last one, the other's messages stay as a branch; or it is an error", async () => {
  const c = new Counted((await serve()).url), [a, b] = [new CoppiceStorage(c.store), new CoppiceStorage(c.store)];
  await a.write(key, bytes(snapshot(range(0, 4))));
  await b.read(key);
  await a.write(key, bytes(snapshot([...range(0, 4), message(10, "of a")])));
  await b.write(key, bytes(snapshot([...range(0, 4), message(10, "of b")])));
  expect(parsed(await a.read(key))).toEqual(snapshot([...range(0, 4), message(10, "of b")]));
  const session = c.store.session(await a.id(key)), all: string[] = [];
  for await (const e of session.entries({ path: "all" })) all.push(e.text);
  expect([all.length, all.filter((t) => t.includes('"of a"')).length]).toEqual([6, 1]);
  expect((await session.branches()).branches.length).toBe(2);
  const strict = new CoppiceStorage(c.store, { onConflict: "error" });
  await strict.read(key);
  await a.write(key, bytes(snapshot([...range(0, 4), message(11)])));
  await expect(strict.write(key, bytes(snapshot(range(0, 5))))).rejects.toMatchObject({ code: "conflict" });
});

test("a session is written again after it was deleted", async () => {
  const c = new Counted((await serve()).url), s = new CoppiceStorage(c.store), a = agent(s, { snapshotTrigger: () => true });
  await a.invoke("question");
  await (a.sessionManager as SessionManager).deleteSession();
  expect([await s.list(""), await s.read(key)]).toEqual([[], null]);
  expect((await c.store.sessions({}).page()).items).toEqual([]); // nothing is left
  await s.write(key, bytes(snapshot(range(0, 3))));
  expect(parsed(await new CoppiceStorage(c.store).read(key))).toEqual(snapshot(range(0, 3)));
});

test("the service is killed in the middle of writes: every message is there once", async () => {
  const service = await serve();
  const proxy = await unreliable(service, 7);
  const store = new Counted(proxy.url).store, s = new CoppiceStorage(store);
  for (let n = 1; n <= 30; n++) await s.write(key, bytes(snapshot(range(0, 2 * n), { n })));
  expect(parsed(await new CoppiceStorage(store).read(key))).toEqual(snapshot(range(0, 60), { n: 30 }));
  expect((await store.session(await s.id(key)).info()).entries).toBe(60);
});

test("10 to 10,000 messages: a write is one request of the same size, a resume two; a window that moves stays small", async () => {
  const c = new Counted((await serve()).url), sizes: number[] = [];
  for (const n of [10, 1000, 10_000]) {
    const s = new CoppiceStorage(c.store, { scope: `${n}` });
    await s.write(key, bytes(snapshot(range(0, n))));
    const one = await c.of(() => s.write(key, bytes(snapshot(range(0, n + 2)))));
    expect(one.requests).toEqual(["POST /sessions/ID/commits"]);
    sizes.push(one.up + one.down);
    const window = await c.of(() => s.write(key, bytes(snapshot(range(5, n + 4)))));
    expect(window.requests).toEqual(["POST /sessions/ID/commits"]);
    expect(window.up).toBeLessThan(3000);
    const resumed = new CoppiceStorage(c.store, { scope: `${n}` });
    const read = await c.of(async () => expect(parsed(await resumed.read(key))).toEqual(snapshot(range(5, n + 4))));
    expect(read.requests).toEqual(["GET /sessions/ID/state", "GET /sessions/ID/entries"]);
    expect((await c.of(() => resumed.write(key, bytes(snapshot(range(5, n + 6)))))).requests).toEqual(["POST /sessions/ID/commits"]);
  }
  expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThan(100);
});

test("search, tree, context and usage show a session", async () => {
  const c = new Counted((await serve()).url), s = new CoppiceStorage(c.store), a = agent(s);
  await a.invoke("zebra");
  await a.invoke("tool please");
  const session = c.store.session(await s.id(key)), found: string[] = [];
  for await (const m of c.store.search({ q: "zebra" })) found.push(m.session);
  expect(found).toEqual([session.id]);
  const { context, openCalls } = (await session.resume()) as unknown as { context: { role: string }[]; openCalls: unknown[] };
  expect([context.map((m) => m.role), openCalls]).toEqual([["user", "assistant", "user", "assistant", "toolResult", "assistant"], []]);
  expect((await session.usage()).usage.total).toBe(45);
  expect(await session.info()).toMatchObject({ title: "s a" });
});
