import { randomUUID } from "node:crypto";
import { AssistantMessageAccumulator } from "assistant-stream";
import type { RemoteThreadListAdapter, ThreadHistoryAdapter } from "@assistant-ui/core";
import { MessageRepository } from "@assistant-ui/core/internal";
import { ChatClient, type ChatClientPersistence } from "@tanstack/ai-client";
import { validateUIMessages, type UIMessage } from "ai";
import { expect, test } from "vitest";
import { Counted, serve, unreliable } from "../../harness/service.ts";
import { CoppiceChats, CoppiceHistory, coppicePersistence, coppiceStores, CoppiceThreadList } from "../src/index.ts";

type Message = Parameters<MessageRepository["addOrUpdateMessage"]>[1];
const message = (id: string, role: string, text: string) => ({
  id, role, createdAt: new Date(1.7e12), content: [{ type: "text", text }], attachments: [], metadata: { custom: {} },
  ...(role === "assistant" && { status: { type: "complete", reason: "stop" }, metadata: { custom: {}, unstable_state: null, unstable_annotations: [], unstable_data: [], steps: [] } }),
}) as unknown as Message;
const ui = (id: string, role: "user" | "assistant", text: string): UIMessage => ({ id, role, parts: [{ type: "text", text }] });
const draws = (seed: number) => (n: number) => (seed = (seed * 48271) % 2147483647) % n;

test("assistant-ui: random trees. After a reload repository, head and branches are as before", async () => {
  const { url } = await serve(), draw = draws(7);
  for (let round = 0; round < 6; round++) {
    const repo = new MessageRepository(), id = randomUUID(), ids: string[] = [];
    const h: ThreadHistoryAdapter & { show(id: string | null): Promise<void> } = new CoppiceHistory(url, id);
    for (let i = 0; i < 30; i++) {
      const op = draw(10);
      if (op < 6 || ids.length < 2) {
        const parentId = ids.length === 0 ? null : op < 4 ? repo.headId : draw(8) ? ids[draw(ids.length)]! : null, m = message(randomUUID(), i % 2 ? "assistant" : "user", `t${i}`);
        repo.addOrUpdateMessage(parentId, m);
        repo.resetHead(m.id);
        ids.push(m.id);
        await h.append({ message: m, parentId });
      } else if (op < 8) {
        const { parentId, message: old } = repo.getMessage(ids[draw(ids.length)]!), m = { ...old, content: [{ type: "text", text: `changed ${i}` }] } as Message;
        repo.addOrUpdateMessage(parentId, m);
        await h.update!({ message: m, parentId });
      } else {
        repo.switchToBranch(ids[draw(ids.length)]!);
        await h.show(repo.headId);
      }
    }
    const fresh = new MessageRepository();
    fresh.import(await new CoppiceHistory(url, id).load());
    const sorted = (r: MessageRepository) => r.export().messages.map(({ message: m, parentId }) => ({ m, parentId })).sort((a, b) => (a.m.id < b.m.id ? -1 : 1));
    expect(fresh.headId).toBe(repo.headId);
    expect(sorted(fresh)).toEqual(sorted(repo));
    expect(fresh.getMessages().map((m) => m.id)).toEqual(repo.getMessages().map((m) => m.id));
    for (const m of ids) expect([...fresh.getBranches(m)].sort()).toEqual([...repo.getBranches(m)].sort());
  }
});

test("assistant-ui: updates that come first, deletions twice, files, run configurations", async () => {
  const { url } = await serve(), h = new CoppiceHistory(url, "t");
  expect(await h.load()).toEqual({ messages: [] });
  await h.delete([{ message: message("a", "user", "1"), parentId: null }]);
  const withFile = { ...message("a", "user", "1"), attachments: [{ id: "f", type: "file", name: "n", file: new File(["x"], "n"), status: { type: "complete" }, content: [] }] };
  await h.update({ message: withFile, parentId: null, runConfig: { custom: { k: 1 } } });
  await h.append({ message: message("b", "assistant", "2"), parentId: "a" });
  await h.append({ message: message("c", "user", "3"), parentId: "b" });
  for (let i = 0; i < 2; i++) await h.delete([{ message: message("b", "assistant", "2"), parentId: "a" }]);
  const { headId, messages } = await h.load();
  expect([headId, messages.map((m) => [m.message.id, m.parentId])]).toEqual(["c", [["a", null], ["c", "a"]]]);
  expect([messages[0]!.runConfig, messages[0]!.message.attachments]).toEqual([{ custom: { k: 1 } }, [{ id: "f", type: "file", name: "n", status: { type: "complete" }, content: [] }]]);
  await h.delete([{ message: message("c", "user", "3"), parentId: "a" }]);
  expect((await h.load()).headId).toBe("a");
});

test("assistant-ui: messages of the AI SDK through withFormat", async () => {
  const { url } = await serve();
  const format = {
    format: "ai-sdk/v7", getId: (m: UIMessage) => m.id,
    encode: ({ message: { id, ...m } }: { message: UIMessage }) => m as Record<string, unknown>,
    decode: (s: { id: string; parent_id: string | null; content: Record<string, unknown> }) => ({ parentId: s.parent_id, message: { id: s.id, ...s.content } as UIMessage }),
  };
  const h = new CoppiceHistory(url, "t").withFormat(format);
  await h.append({ message: ui("a", "user", "q"), parentId: null });
  await h.append({ message: ui("b", "assistant", "one"), parentId: "a" });
  await h.append({ message: ui("c", "assistant", "two"), parentId: "a" });
  await h.update({ message: ui("b", "assistant", "one, changed"), parentId: "a" });
  const expected = [["a", null, "q"], ["b", "a", "one, changed"], ["c", "a", "two"]];
  const loaded = await new CoppiceHistory(url, "t").withFormat(format).load();
  expect([loaded.headId, loaded.messages.map((m) => [m.message.id, m.parentId, (m.message.parts[0] as { text: string }).text])]).toEqual(["c", expected]);
});

test("assistant-ui: the list of threads, in pages, by user", async () => {
  const { url } = await serve(), list: RemoteThreadListAdapter = new CoppiceThreadList(url, { meta: { user: "u1" } }) as never;
  for (let i = 0; i < 55; i++) await list.initialize(`t${i}`, i === 0 ? { custom: { first: true } } : {});
  await new CoppiceThreadList(url, { meta: { user: "u2" } }).initialize("other");
  await list.initialize("t0"); // again
  const one = await list.list(), two = await list.list({ after: one.nextCursor });
  expect([one.threads.length, two.threads.length, two.nextCursor]).toEqual([50, 5, undefined]);
  expect(new Set([...one.threads, ...two.threads].map((t) => t.remoteId)).size).toBe(55);
  await list.rename("t0", "Named");
  await list.archive("t0");
  expect(await list.fetch("t0")).toMatchObject({ remoteId: "t0", title: "Named", status: "archived", custom: { first: true } });
  await list.unarchive!("t0");
  await list.updateCustom!("t0", undefined);
  expect(await list.fetch("t0")).toMatchObject({ status: "regular" });
  expect((await list.fetch("t0")).custom).toBeUndefined();
  const parts: string[] = [];
  const titled = (await list.generateTitle("t1", [message("a", "user", "Where to?")] as never)).pipeThrough(new AssistantMessageAccumulator());
  for await (const m of titled as unknown as AsyncIterable<{ parts: { text?: string }[] }>) parts.push(m.parts.map((p) => p.text).join());
  expect([parts.at(-1), (await list.fetch("t1")).title]).toEqual(["Where to?", "Where to?"]);
  await list.generateTitle("t2", [message("a", "user", "😀".repeat(80))] as never);
  expect((await list.fetch("t2")).title).toBe("😀".repeat(59) + "…");
  await list.delete("t1");
  await list.delete("t1");
  expect((await list.list()).nextCursor).not.toBe(undefined);
});

test("AI SDK: what is saved is loaded, whatever was changed, edited, made again or taken back", async () => {
  const { url } = await serve(), draw = draws(11), live = new CoppiceChats(url);
  for (let round = 0; round < 6; round++) {
    const chatId = randomUUID(), past: UIMessage[][] = [];
    let list: UIMessage[] = [], n = 0;
    for (let i = 0; i < 25; i++) {
      const op = draw(8), at = list.length ? draw(list.length) : 0, next = () => ui(`m${++n}`, n % 2 ? "user" : "assistant", `text ${n}`);
      if (op < 3 || list.length === 0) list = [...list, next(), next()];
      else if (op === 3) list = list.with(-1, ui(list.at(-1)!.id, "assistant", `grown ${i}`)); // while it is streamed
      else if (op === 4) list = [...list.slice(0, at), next()]; // an edit, or an answer made again
      else if (op === 5) list = list.slice(0, at);
      else list = past[draw(past.length)] ?? list; // back to a branch
      past.push(list);
      await (round % 2 ? live : new CoppiceChats(url)).saveChat({ chatId, messages: list });
      expect(await new CoppiceChats(url).loadChat(chatId)).toEqual(list);
    }
    const loaded = await live.loadChat<UIMessage>(chatId);
    if (loaded.length) expect(await validateUIMessages({ messages: loaded })).toEqual(loaded);
  }
  expect(await live.loadChat("none")).toEqual([]);
});

test("TanStack AI: a ChatClient is restored by its persistence", async () => {
  const { url } = await serve(), persistence = coppicePersistence(url) as unknown as ChatClientPersistence;
  const answer = async function* (messages: unknown[]) {
    const id = `a${messages.length}`, at = { timestamp: 1, model: "m" };
    yield { type: "RUN_STARTED", runId: "r", threadId: "t", ...at };
    yield { type: "TEXT_MESSAGE_START", messageId: id, role: "assistant", ...at };
    yield { type: "TEXT_MESSAGE_CONTENT", messageId: id, delta: `answer ${messages.length}`, ...at };
    yield { type: "TEXT_MESSAGE_END", messageId: id, ...at };
    yield { type: "RUN_FINISHED", runId: "r", threadId: "t", finishReason: "stop", ...at };
  };
  const connection = { connect: (messages: unknown[]) => answer(messages) };
  const texts = (c: { getMessages(): { role: string; parts: unknown[] }[] }) => c.getMessages().map((m) => [m.role, (m.parts[0] as { content?: string }).content]);
  const client = new ChatClient({ connection: connection as never, threadId: "t", persistence });
  await client.sendMessage("hello");
  const said = [["user", "hello"], ["assistant", "answer 1"]];
  expect(texts(client)).toEqual(said);
  await expect.poll(async () => ((await persistence.getItem("t")) as { messages: unknown[] } | null)?.messages.length, { timeout: 30_000 }).toBe(2);
  const again = new ChatClient({ connection: connection as never, threadId: "t", persistence });
  await expect.poll(() => texts(again), { timeout: 30_000 }).toEqual(said);
  const resume = { resumeState: { threadId: "t", runId: "r2" } };
  await persistence.setItem("t", { messages: [], resume } as never);
  expect(await persistence.getItem("t")).toEqual({ messages: [], resume });
  await persistence.setItem("t", { messages: [] });
  expect(await persistence.getItem("t")).toEqual({ messages: [] });
  await persistence.removeItem("t");
  expect(await persistence.getItem("t")).toBeNull();
});

test("TanStack AI: a message store keeps messages without ids, and replaces a thread", async () => {
  const { url } = await serve(), s = coppiceStores(url).messages, hi = { role: "user", content: "hi" };
  const call = { role: "assistant", content: null, toolCalls: [{ id: "c", type: "function", function: { name: "f", arguments: '{"q":1}' } }] };
  expect(await s.loadThread("t")).toEqual([]);
  for (const list of [[hi], [hi, hi], [hi, hi, call, { role: "tool", content: "r", toolCallId: "c" }], [call], [], [hi, call]]) {
    await s.saveThread("t", list);
    expect(await coppiceStores(url).messages.loadThread("t")).toEqual(list);
  }
});

test("TanStack AI: runs, interrupts and metadata", async () => {
  const c = new Counted((await serve()).url), { messages, runs, interrupts, metadata } = coppiceStores(c.store);
  await messages.saveThread("t", [{ role: "user", content: "hi" }]);
  const made = await Promise.all([1, 2].map((startedAt) => runs.createOrResume({ runId: "r1", threadId: "t", startedAt })));
  expect(made[0]).toEqual(made[1]); // one of the two was first
  await runs.createOrResume({ runId: "r2", threadId: "t", startedAt: 20 });
  expect(await runs.findActiveRun("t")).toMatchObject({ runId: "r2" });
  await Promise.all([runs.update("r2", { status: "completed" }), runs.update("r2", { usage: { totalTokens: 7 } })]);
  expect(await runs.createOrResume({ runId: "r2", threadId: "t", startedAt: 30 })).toEqual({ runId: "r2", threadId: "t", status: "completed", startedAt: 20, usage: { totalTokens: 7 } });
  expect((await c.of(async () => expect(await runs.listByThread("t")).toHaveLength(2))).requests).toEqual(["GET /sessions"]);
  await runs.update("none", { status: "failed" });
  expect([await runs.get("none"), (await runs.findActiveRun("t"))!.runId, await runs.findActiveRun("u")]).toEqual([null, "r1", null]);
  const interrupt = (interruptId: string, requestedAt: number) => ({ interruptId, runId: "r1", threadId: "t", requestedAt, payload: { tool: "x" } });
  for (const i of [interrupt("b", 2), interrupt("a", 1)]) await interrupts.create(i);
  await interrupts.resolve("a", { ok: true });
  await interrupts.create(interrupt("a", 1)); // not pending again
  await interrupts.cancel("none");
  expect((await interrupts.list("t")).map((i) => [i.interruptId, i.status, i.response])).toEqual([["a", "resolved", { ok: true }], ["b", "pending", undefined]]);
  expect((await interrupts.listPendingByRun("r1")).map((i) => i.interruptId)).toEqual(["b"]);
  await metadata.set("a:b", "c", 1);
  await metadata.set("a", "b:c", 2);
  await metadata.delete("a:b", "c");
  expect([await metadata.get("a:b", "c"), await metadata.get("a", "b:c")]).toEqual([null, 2]);
  expect((await new CoppiceThreadList(c.store).list()).threads.map((t) => t.remoteId)).toEqual(["t"]);
  await new CoppiceThreadList(c.store).delete("t");
  expect([await runs.listByThread("t"), await interrupts.get("b")]).toEqual([[], null]);
});

test("two writers: nothing is lost", async () => {
  const c = new Counted((await serve()).url), chats = [new CoppiceChats(c.store), new CoppiceChats(c.store)], start = [ui("q", "user", "q")];
  await chats[0]!.saveChat({ chatId: "t", messages: start });
  await chats[1]!.loadChat("t");
  await Promise.all(chats.map((s, n) => s.saveChat({ chatId: "t", messages: [...start, ui(`a${n}`, "assistant", `of ${n}`)] })));
  expect((await c.store.session("t").versions("a0")).versions.map((v) => v.id).sort()).toEqual(["a0", "a1"]);
  const h = [new CoppiceHistory(c.store, "h"), new CoppiceHistory(c.store, "h")];
  await h[0]!.append({ message: message("r", "user", "r"), parentId: null });
  await Promise.all(h.flatMap((x, n) => [0, 1, 2, 3].map((i) => x.append({ message: message(`${n}.${i}`, "assistant", "x"), parentId: "r" }))));
  expect((await h[0]!.load()).messages.length).toBe(9);
});

test("a chat is written again after it was deleted; what is sent twice is there once", async () => {
  const { url } = await serve(), s = new CoppiceChats(url), list = [ui("a", "user", "1"), ui("b", "assistant", "2")];
  await s.saveChat({ chatId: "t", messages: list });
  await s.deleteChat("t");
  expect(await s.loadChat("t")).toEqual([]);
  for (let i = 0; i < 2; i++) await s.saveChat({ chatId: "t", messages: list });
  expect(await s.loadChat("t")).toEqual(list);
  const h = new CoppiceHistory(url, "h"), item = { message: message("a", "user", "1"), parentId: null };
  await h.append(item);
  await new CoppiceThreadList(url).delete("h");
  for (let i = 0; i < 2; i++) await h.append(item);
  expect((await h.load()).messages).toEqual([item]);
});

test("the service is killed in the middle of saves: every message is there once", async () => {
  const service = await serve();
  const proxy = await unreliable(service, 7);
  const { store } = new Counted(proxy.url), s = new CoppiceChats(store), list: UIMessage[] = [];
  for (let i = 0; i < 20; i++) {
    list.push(ui(`q${i}`, "user", "q"), ui(`a${i}`, "assistant", "a"));
    await s.saveChat({ chatId: "t", messages: list });
  }
  expect(await new CoppiceChats(store).loadChat("t")).toEqual(list);
  expect((await store.session("t").info()).entries).toBe(40);
});

test("10,000 messages: an append and a save are one request of the same size, a load two or three", async () => {
  const c = new Counted((await serve()).url), s = new CoppiceChats(c.store), list: UIMessage[] = [];
  const grow = (n: number) => { while (list.length < n) list.push(ui(randomUUID(), list.length % 2 ? "assistant" : "user", "message ".repeat(10))); };
  const save = () => s.saveChat({ chatId: "t", messages: list });
  grow(10);
  expect((await c.of(save)).requests).toEqual(["GET /sessions/ID", "PUT /sessions/ID", "POST /sessions/ID/commits"]);
  grow(12);
  const early = await c.of(save);
  grow(10_000);
  await save();
  grow(10_002);
  const late = await c.of(save);
  for (const { requests } of [early, late]) expect(requests).toEqual(["POST /sessions/ID/commits"]);
  expect(Math.abs(late.up + late.down - early.up - early.down)).toBeLessThan(200);
  expect((await c.of(save)).requests).toEqual([]); // nothing is new
  const read = await c.of(async () => expect(await new CoppiceChats(c.store).loadChat("t")).toEqual(list));
  expect(read.requests).toEqual(["GET /sessions/ID/state", "GET /sessions/ID", "GET /sessions/ID/entries"]);
  const h = new CoppiceHistory(c.store, "t");
  expect((await c.of(() => h.append({ message: message("new", "user", "x"), parentId: list.at(-1)!.id }))).requests).toEqual(["POST /sessions/ID/commits"]);
  expect((await c.of(() => new CoppiceThreadList(c.store).list())).requests).toEqual(["GET /sessions"]);
});

test("search, tree and context show a chat", async () => {
  const { store } = new Counted((await serve()).url), s = new CoppiceChats(store), found: string[] = [];
  const tool = { id: "b", role: "assistant", parts: [{ type: "tool-look", toolCallId: "c", state: "output-available", input: { q: "zebra" }, output: "striped" }, { type: "text", text: "It is striped." }] } as UIMessage;
  await s.saveChat({ chatId: "t", messages: [ui("a", "user", "What is a zebra?"), tool] });
  for await (const m of store.search({ q: "striped" })) found.push(m.snippet);
  expect(found.length).toBe(1);
  const { context } = (await store.session("t").resume()) as unknown as { context: { role: string; content: { text: string }[] }[] };
  expect(context.map((m) => m.role)).toEqual(["user", "assistant"]);
  expect(context[1]!.content[0]!.text).toBe('look({"q":"zebra"}) -> striped');
});
