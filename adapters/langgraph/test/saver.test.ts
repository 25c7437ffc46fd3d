import { AIMessage, HumanMessage, ToolMessage, type BaseMessage } from "@langchain/core/messages";
import { Annotation, Command, END, interrupt, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { emptyCheckpoint, MemorySaver, uuid6, type BaseCheckpointSaver, type CheckpointTuple } from "@langchain/langgraph-checkpoint";
import { expect, test } from "vitest";
import { breaking, Counted, serve, unreliable } from "../../harness/service.ts";
import { CoppiceSaver, ForkError } from "../src/index.ts";

const T = { configurable: { thread_id: "t" } };
const checkpoint = (n: number, values: Record<string, unknown> = { step: n }) => ({
  ...emptyCheckpoint(), id: uuid6(n), channel_values: values, channel_versions: Object.fromEntries(Object.keys(values).map((name) => [name, n])),
});
/** Puts a checkpoint whose channels have the version n on a parent, and returns its id. */
const put = async (s: BaseCheckpointSaver, n: number, parent?: string, values?: Record<string, unknown>): Promise<string> => {
  const c = checkpoint(n, values), config = { configurable: { thread_id: "t", checkpoint_ns: "", ...(parent && { checkpoint_id: parent }) } };
  await s.put(config, c, { source: "loop", step: n, parents: {} }, c.channel_versions);
  return c.id;
};
const listed = async (s: BaseCheckpointSaver, options = {}): Promise<CheckpointTuple[]> => {
  const out: CheckpointTuple[] = [];
  for await (const t of s.list(T, options)) out.push(t);
  return out;
};

/** A graph with two nodes, a tool that asks, and messages. Ids of messages are given, so that two runs are equal. */
function graph(checkpointer: BaseCheckpointSaver, ids: { n: number }) {
  const State = Annotation.Root({ ...MessagesAnnotation.spec, count: Annotation<number>({ reducer: (a, b) => a + b, default: () => 0 }) });
  const answer = ({ messages }: { messages: BaseMessage[] }) => {
    const calls = messages.length % 4 === 1 ? [{ id: `call${++ids.n}`, name: "ask", args: { q: "sure?" } }] : [];
    const usage_metadata = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };
    return { messages: [new AIMessage({ id: `a${++ids.n}`, content: `answer ${messages.length}`, tool_calls: calls, usage_metadata })], count: 1 };
  };
  const tool = ({ messages }: { messages: BaseMessage[] }) => {
    const [call] = (messages.at(-1) as AIMessage).tool_calls!, said = interrupt("sure?") as string;
    return { messages: [new ToolMessage({ id: `t${++ids.n}`, tool_call_id: call!.id!, name: call!.name, content: said })], count: 10 };
  };
  return new StateGraph(State).addNode("answer", answer).addNode("tool", tool).addEdge(START, "answer").addEdge("tool", "answer")
    .addConditionalEdges("answer", ({ messages }) => ((messages.at(-1) as AIMessage).tool_calls?.length ? "tool" : END)).compile({ checkpointer });
}
/** What a run of the graph leaves, without the ids that it draws. */
async function story(saver: BaseCheckpointSaver, again: () => BaseCheckpointSaver) {
  const ids = { n: 0 };
  let g = graph(saver, ids);
  const say = (id: string) => ({ messages: [new HumanMessage({ id, content: `question ${id}` })] });
  await g.invoke(say("h1"), T);
  g = graph(again(), ids); // another process
  await g.invoke(new Command({ resume: "yes" }), T);
  await g.invoke(say("h2"), T);
  const past = [];
  for await (const s of g.getStateHistory(T)) past.push(s);
  await g.updateState(past.at(-2)!.config, { messages: [new AIMessage({ id: "edited", content: "edited" })], count: 100 }); // a fork
  const seen = [];
  for await (const s of g.getStateHistory(T)) seen.push({ values: s.values, next: s.next, step: s.metadata?.step, source: s.metadata?.source, tasks: s.tasks.map((t) => [t.name, t.interrupts.map((i) => i.value)]) });
  return JSON.parse(JSON.stringify(seen)) as unknown[];
}

test("a graph with interrupts, a fork and another process leaves what it leaves in memory", async () => {
  const { url } = await serve(), memory = new MemorySaver();
  const mine = await story(new CoppiceSaver(url), () => new CoppiceSaver(url)), theirs = await story(memory, () => memory);
  expect(theirs.length).toBeGreaterThan(6);
  expect(mine).toEqual(theirs);
});

test("search, tree, context and usage show a thread", async () => {
  const { store } = new Counted((await serve()).url), saver = new CoppiceSaver(store), session = store.session(await saver.id("t"));
  await story(saver, () => saver);
  const found = [];
  for await (const m of store.search({ q: '"question h2"' })) found.push(m.session);
  expect(found).toEqual([session.id]);
  expect((await session.branches()).branches.length).toBe(2); // the fork
  const entry = async (text: string): Promise<string> => {
    for await (const e of session.entries({ path: "all" })) if (e.text.includes(`"text":"${text}"`)) return (JSON.parse(e.text) as { id: string }).id;
    throw new Error(`${text} is no message`);
  };
  expect((await session.usage()).usage.total).toBe(45);
  expect((await session.versions(await entry("edited"))).versions.length).toBe(2);
  expect(await session.info()).toMatchObject({ title: "t", preview: "edited" });
});

test("a put on an older checkpoint is a branch, or an error: two writers are never silent", async () => {
  const { url } = await serve(), scope = "branch", savers = [0, 1].map(() => new CoppiceSaver(url, { scope }));
  const root = await put(savers[0]!, 1);
  const ids = await Promise.all(savers.map((s, n) => put(s, n + 2, root, { step: n + 2, only: `writer ${n}` })));
  const all = await listed(savers[0]!);
  expect(all.map((t) => t.parentConfig?.configurable?.checkpoint_id).filter(Boolean)).toEqual([root, root]);
  for (const [n, id] of ids.entries()) {
    const t = await new CoppiceSaver(url, { scope }).getTuple({ configurable: { ...T.configurable, checkpoint_id: id } });
    expect(t?.checkpoint.channel_values).toEqual({ step: n + 2, only: `writer ${n}` });
  }
  const strict = [0, 1].map(() => new CoppiceSaver(url, { scope: "error", onFork: "error" })), first = await put(strict[0]!, 1);
  const results = await Promise.allSettled(strict.map((s, n) => put(s, n + 2, first)));
  expect(results.map((r) => r.status).sort()).toEqual(["fulfilled", "rejected"]);
  const lost = results.find((r) => r.status === "rejected") as PromiseRejectedResult;
  expect(lost.reason).toBeInstanceOf(ForkError);
  expect(lost.reason).toMatchObject({ parent: first });
  expect((await listed(strict[0]!)).length).toBe(2);
});

test("writers of other tasks lose nothing", async () => {
  const { url } = await serve(), root = await put(new CoppiceSaver(url), 1), config = { configurable: { ...T.configurable, checkpoint_ns: "", checkpoint_id: root } };
  await Promise.all(Array.from({ length: 10 }, (_, n) => new CoppiceSaver(url).putWrites(config, [["step", n]], `task${n}`)));
  expect((await new CoppiceSaver(url).getTuple(T))!.pendingWrites!.map((w) => w[2])).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

test("what is sent twice is there once; a special write replaces the one before", async () => {
  const { url } = await serve(), s = new CoppiceSaver(url), c = checkpoint(1), config = { configurable: { ...T.configurable, checkpoint_ns: "" } };
  for (let i = 0; i < 2; i++) await s.put(config, c, { source: "loop", step: 1, parents: {} }, c.channel_versions);
  const at = { configurable: { ...config.configurable, checkpoint_id: c.id } };
  for (let i = 0; i < 2; i++) await s.putWrites(at, [["step", "a"], ["__interrupt__", i]], "task");
  const [t, ...more] = await listed(s);
  expect(more).toEqual([]);
  expect(t!.pendingWrites).toEqual([["task", "__interrupt__", 1], ["task", "step", "a"]]);
});

test("a put whose answer was lost is sent again: it is no fork", async () => {
  const service = await serve();
  let broken = 0;
  const proxy = await breaking(service, (request) => (request.startsWith("POST") && broken-- > 0 ? { answerBytes: 0 } : undefined));
  const s = new CoppiceSaver(new Counted(proxy.url, { maxTries: 1 }).store, { onFork: "error" });
  const root = await put(s, 1), c = checkpoint(2, { messages: [new HumanMessage("once")] });
  const again = (saver: BaseCheckpointSaver) => saver.put({ configurable: { ...T.configurable, checkpoint_ns: "", checkpoint_id: root } }, c, { source: "loop", step: 2, parents: {} }, c.channel_versions);
  broken = 1;
  await expect(again(s)).rejects.toMatchObject({ outcome: "unknown" });
  for (let i = 0; i < 2; i++) await again(s);
  expect((await listed(s)).map((t) => t.metadata!.step)).toEqual([2, 1]);
  const all: string[] = [];
  for await (const e of new Counted(service.url).store.session(await s.id("t")).entries({ path: "all" })) all.push(e.text);
  expect(all.filter((text) => text.includes('"once"') && text.includes('"type":"message"')).length).toBe(1);
});

test("a thread is written again after it was deleted", async () => {
  const { url } = await serve(), s = new CoppiceSaver(url);
  const first = await put(s, 1);
  await s.deleteThread("t");
  await s.deleteThread("t");
  expect([await s.getTuple(T), await listed(s)]).toEqual([undefined, []]);
  await put(s, 2);
  await put(new CoppiceSaver(url), 3, first); // the parent was deleted
  expect((await listed(s)).map((t) => t.metadata!.step)).toEqual([3, 2]);
  await s.deleteThread("t");
  await s.putWrites({ configurable: { ...T.configurable, checkpoint_ns: "", checkpoint_id: first } }, [["step", 1]], "task");
  expect(await s.getTuple(T)).toBeUndefined();
});

test("the service is killed in the middle of a run: every checkpoint and write is there once", async () => {
  const service = await serve();
  const proxy = await unreliable(service, 7);
  const s = new CoppiceSaver(new Counted(proxy.url).store), memory = new MemorySaver();
  expect(await story(s, () => s)).toEqual(await story(memory, () => memory));
});

test("threads have any names", async () => {
  const { url } = await serve();
  for (const thread of ["😀".repeat(300), "../é /", "\ud83d", "__proto__"]) {
    const s = new CoppiceSaver(url), c = checkpoint(1), config = { configurable: { thread_id: thread, checkpoint_ns: "sub|graph:é" } };
    await s.put(config, c, { source: "loop", step: 1, parents: {} }, c.channel_versions);
    expect((await new CoppiceSaver(url).getTuple(config))!.config.configurable).toEqual({ ...config.configurable, checkpoint_id: c.id });
    const all = [];
    for await (const t of s.list({ configurable: { thread_id: thread } })) all.push(t.checkpoint.id);
    expect(all).toEqual([c.id]);
  }
});

test("values survive: bytes, undefined, big lists, odd names", async () => {
  const { url } = await serve(), s = new CoppiceSaver(url), values = { bytes: new Uint8Array([0, 255, 1]), list: [{ a: 1 }, null], "odd/é __proto__": "x", message: new HumanMessage("hi") };
  await put(s, 1, undefined, values);
  expect((await new CoppiceSaver(url).getTuple(T))!.checkpoint.channel_values).toEqual(values);
});

test("10,000 entries: requests and bytes of a step are those of ten", async () => {
  const c = new Counted((await serve()).url), s = new CoppiceSaver(c.store), session = c.store.session(await s.id("t"));
  let parent: string | undefined, n = 0;
  const step = async () => {
    parent = await put(s, ++n, parent, { step: n, text: "x".repeat(100) });
    await s.putWrites({ configurable: { ...T.configurable, checkpoint_ns: "", checkpoint_id: parent } }, [["step", n]], "task");
  };
  const read = (fresh: CoppiceSaver) => c.of(async () => expect((await fresh.getTuple(T))!.checkpoint.id).toBe(parent));
  expect((await c.of(step)).requests).toEqual(["GET /sessions/ID/state", "PUT /sessions/ID", "POST /sessions/ID/commits", "POST /sessions/ID/commits"]);
  while (n < 10) await step();
  const [early, readEarly] = [await c.of(step), await read(new CoppiceSaver(c.store))];
  for (let i = 0; i < 20; i++) {
    const writes = Array.from({ length: 500 }, (_, k) => ({ type: "custom", customType: "langgraph.writes", data: { ns: "", cp: `old${i}`, task: `${k}`, path: "", writes: [] } }));
    await session.commit(writes, { base: "*" });
  }
  await put(s, ++n, parent, { step: n, text: "x".repeat(100) }).then((id) => (parent = id)); // another writer was there: read again
  const [late, readLate] = [await c.of(step), await read(new CoppiceSaver(c.store))];
  expect(late.requests).toEqual(["POST /sessions/ID/commits", "POST /sessions/ID/commits"]);
  expect(readLate.requests).toEqual(["GET /sessions/ID/state", "GET /sessions/ID/entries"]);
  expect(Math.abs(late.up + late.down - early.up - early.down)).toBeLessThan(200);
  expect(Math.abs(readLate.down - readEarly.down)).toBeLessThan(200);
  expect((await c.of(() => listed(s, { limit: 3 }))).requests.length).toBe(5);
});
