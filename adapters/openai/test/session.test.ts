// A Session of the package: its oracle is the SDK's MemorySession.
import { Agent, MemorySession, Runner, tool, type AgentInputItem, type Session, type SessionHistoryTransactionAwareSession } from "@openai/agents-core";
import { ScriptedModel, assistantMessage, functionCall } from "@openai/agents-core/testing";
import { OutcomeUnknown } from "coppice-client";
import { expect, test } from "vitest";
import { breaking, Counted, serve, unreliable } from "../../harness/service.ts";
import { CoppiceSession } from "../src/index.ts";

type Both = SessionHistoryTransactionAwareSession & Pick<MemorySession, "applyHistoryMutations">;
const user = (text: string): AgentInputItem => ({ type: "message", role: "user", content: text });
const call = (callId: string, args = "{}"): AgentInputItem => ({ type: "function_call", callId, name: "look", arguments: args, status: "completed" });
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => user(`message ${from + i}`));
const items = async (s: Session) => (await s.getItems()).map((item) => JSON.parse(JSON.stringify(item)) as AgentInputItem);
const append = (operationId: string, ...list: AgentInputItem[]) => ({ operationId, transaction: { type: "append_items" as const, items: list } });
const replace = (operationId: string, expectedSuffix: AgentInputItem[], replacement: AgentInputItem[]) =>
  ({ operationId, transaction: { type: "replace_suffix" as const, expectedSuffix, replacement } });
/** Whether each of some calls succeeded, and what it returned. */
const done = (f: Promise<unknown> | unknown) => Promise.resolve(f).then((value) => ({ value }), () => "refused");

/** Three runs of an agent that calls a tool; the output of the last one is refused by a guardrail. */
async function story(session: Session) {
  const model = new ScriptedModel([
    [assistantMessage("Hello.", { id: "m1" })],
    [functionCall("look", { q: "x" }, { callId: "c1", id: "f1" })], [assistantMessage("Sunny.", { id: "m2" })],
    [functionCall("look", { q: "y" }, { callId: "c2", id: "f2" })], [assistantMessage("forbidden", { id: "m3" })],
  ]);
  const look = tool({
    name: "look", description: "looks", execute: () => "sunshine", strict: false,
    parameters: { type: "object", properties: { q: { type: "string" } }, required: ["q"], additionalProperties: true },
  });
  const agent = new Agent({
    name: "guide", model, tools: [look],
    outputGuardrails: [{ name: "polite", execute: async ({ agentOutput }) => ({ outputInfo: null, tripwireTriggered: agentOutput === "forbidden" }) }],
  });
  const runner = new Runner({ tracingDisabled: true });
  for (const question of ["hello", "weather?", "again?"]) await runner.run(agent, question, { session }).catch((e: Error) => expect(e.name).toMatch(/Tripwire/));
  return items(session);
}

test("an agent with tools, of which a guardrail refuses an output, has the history of the SDK's own session", async () => {
  const theirs = await story(new MemorySession()), session = new CoppiceSession((await serve()).url, { sessionId: "trip/1" });
  const mine = await story(session as unknown as Session);
  expect(mine).toEqual(theirs);
  expect(mine.length).toBeGreaterThan(6);
});

test("random calls: every answer is that of the SDK's own session", async () => {
  const mine = new CoppiceSession((await serve()).url, { sessionId: "s" }) as unknown as Both, theirs: Both = new MemorySession();
  let seed = 7;
  const draw = (n: number) => (seed = (seed * 48271) % 2147483647) % n;
  const used: ReturnType<typeof append | typeof replace>[] = [];
  for (let i = 0; i < 100; i++) {
    const op = draw(10), n = draw(4), now = await theirs.getItems();
    const fresh = [call(`c${draw(3)}`, `{"n":${i}}`), ...range(i, i + n)];
    const again = used[draw(used.length || 1)], suffix = now.slice(now.length - Math.min(n, now.length));
    const change = draw(3) === 0 && again ? (draw(4) ? again : append(again.operationId, user("other")))
      : op % 2 ? append(`op ${i}`, ...fresh) : replace(`op ${i}`, draw(3) ? suffix : [user("not there")], fresh);
    const outcomes = [];
    for (const s of [mine, theirs]) {
      if (op < 2) outcomes.push(await done(s.addItems(fresh)));
      else if (op < 4) outcomes.push(await done(s.popItem()));
      else if (op < 5) outcomes.push(await done(s.applyHistoryMutations({ mutations: [{ type: "replace_function_call", callId: `c${n}`, replacement: call(`c${n}`, "{}") as never }] })));
      else outcomes.push(await done(s.applyHistoryTransaction(change)));
    }
    if (op >= 5) used.push(change);
    expect(outcomes[0], `call ${i}`).toEqual(outcomes[1]);
    expect(await mine.getItems(), `call ${i}`).toEqual(await theirs.getItems());
    expect(await mine.getItems(n), `call ${i}`).toEqual(await theirs.getItems(n));
  }
});

test("a change is made once by two hosts, a retry of another change is refused, and nothing is changed then", async () => {
  const { url } = await serve(), [a, b] = [1, 2].map(() => new CoppiceSession(url, { sessionId: "s" })) as [CoppiceSession, CoppiceSession];
  await a.addItems(range(0, 3));
  const change = replace("op", range(1, 3), [user("better")]);
  await Promise.all([a, b, a, b].map((s) => s.applyHistoryTransaction(change)));
  await b.addItems([user("next")]);
  await a.applyHistoryTransaction(change);
  await a.applyHistoryTransaction(append("order", { type: "message", role: "user", content: "last" }));
  await b.applyHistoryTransaction(append("order", { content: "last", role: "user", type: "message" }));
  const all = [...range(0, 1), user("better"), user("next"), user("last")];
  expect(await a.getItems()).toEqual(all);
  await expect(b.applyHistoryTransaction(replace("op", [user("last")], []))).rejects.toThrow("another change");
  await expect(b.applyHistoryTransaction(replace("op 2", [user("better")], []))).rejects.toThrow("expected");
  await expect(b.applyHistoryTransaction(append(" "))).rejects.toThrow("empty");
  await expect(b.addItems([{ type: "message", role: "user", content: new Uint8Array(1) }])).rejects.toThrow("base64");
  expect(await b.getItems()).toEqual(all);
});

test("two hosts: nothing is lost, no item is popped twice, and what was taken away stays as a branch", async () => {
  const c = new Counted((await serve()).url), hosts = [1, 2].map(() => new CoppiceSession(c.store, { sessionId: "s" }));
  await Promise.all(hosts.flatMap((s, w) => range(0, 5).map((_, i) => s.addItems([user(`${w} ${i}`)]))));
  const popped = await Promise.all(hosts.flatMap((s) => range(0, 5).map(() => s.popItem())));
  expect(new Set(popped.map((item: { content: string }) => item.content)).size).toBe(10);
  expect([await hosts[0]!.getItems(), await hosts[1]!.popItem()]).toEqual([[], undefined]);
  await hosts[0]!.addItems([user("again")]);
  await hosts[1]!.clearSession();
  await hosts[1]!.addItems([user("new")]);
  expect(await hosts[0]!.getItems()).toEqual([user("new")]);
  const session = c.store.session(await hosts[0]!.id());
  expect((await session.info()).entries).toBe(12);
  await session.delete({ base: "*" });
  expect([await hosts[0]!.getItems(), await hosts[0]!.popItem()]).toEqual([[], undefined]);
  await hosts[0]!.addItems([user("after a deletion")]);
  expect(await hosts[1]!.getItems()).toEqual([user("after a deletion")]);
});

test("answers that are lost, and a service that is killed: each item once, in order", async () => {
  const service = await serve(), proxy = await unreliable(service, 7), { store } = new Counted(proxy.url);
  const s = new CoppiceSession(store, { sessionId: "s" }), want: AgentInputItem[] = [];
  for (let n = 0; n < 10; n++) {
    await s.addItems([user(`${n}`), user("again")]);
    await s.applyHistoryTransaction(replace(`op ${n}`, [user("again")], [user("better"), user("last")]));
    expect(await s.popItem()).toEqual(user("last"));
    want.push(user(`${n}`), user("better"));
  }
  expect(await new CoppiceSession(service.url, { sessionId: "s" }).getItems()).toEqual(want);
});

test("items that are sent again after an unknown outcome are stored once", async () => {
  const service = await serve(), proxy = await breaking(service, (_, n) => (n === 1 ? { answerBytes: 0 } : undefined));
  const s = new CoppiceSession(proxy.url, { sessionId: "s", maxTries: 1 });
  await expect(s.addItems(range(0, 2))).rejects.toThrow(OutcomeUnknown);
  for (let n = 0; n < 2; n++) await s.addItems(range(0, 2));
  expect(await s.getItems()).toEqual([...range(0, 2), ...range(0, 2)]); // the third time is meant
});

test("10,000 items: the requests of each call, and their bytes, do not grow", async () => {
  const c = new Counted((await serve()).url), s = new CoppiceSession(c.store, { sessionId: "s" }), bytes: number[] = [];
  for (const n of [10, 10_000]) {
    for (let at = (await s.getItems()).length; at < n; at += 500) await s.addItems(range(at, Math.min(at + 500, n)));
    const before = bytes.length;
    for (const [want, f] of [
      [["POST /sessions/ID/commits"], () => s.addItems([user("one")])],
      [["GET /sessions/ID/entries"], () => s.getItems(5)],
      [["GET /sessions/ID/entries", "POST /sessions/ID/commits"], () => s.popItem()],
      [["POST /sessions/ID/commits"], () => s.applyHistoryTransaction(append(`${n}`, user("one"), user("two")))],
      [["GET /sessions/ID/entries", "POST /sessions/ID/commits"], () => s.applyHistoryTransaction(replace(`r${n}`, [user("one"), user("two")], []))],
    ] as [string[], () => Promise<unknown>][]) {
      const { requests, up, down } = await c.of(f);
      expect(requests).toEqual(want);
      bytes.push(up + down);
    }
    expect(Math.max(...bytes.slice(before))).toBeLessThan(4000);
    const all = await c.of(async () => expect((await s.getItems()).length).toBe(n));
    expect(all.requests).toEqual(["GET /sessions/ID/entries"]);
  }
});

test("search, tree and context show a session; an edit in the viewer is an item", async () => {
  const c = new Counted((await serve()).url), s = new CoppiceSession(c.store, { sessionId: "trip/1" });
  await story(s as unknown as Session);
  const session = c.store.session(await s.id()), found: string[] = [];
  for await (const m of c.store.search({ q: "sunshine" })) found.push(m.session);
  expect([found[0], (await session.info()).title]).toEqual([session.id, "trip/1"]);
  const { openCalls, context } = (await session.resume()) as unknown as { openCalls: unknown[]; context: object[] };
  expect([openCalls, context.length]).toEqual([[], (await s.getItems()).length]);
  await session.commit([{ role: "user", content: "said elsewhere" }, { role: "assistant", content: [{ type: "text", text: "Yes." }] }], { base: "*" });
  expect((await s.getItems(2)).map((item: { content: unknown }) => item.content)).toEqual(["said elsewhere", [{ type: "output_text", text: "Yes." }]]);
});
