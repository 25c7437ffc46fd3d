// The clients of OpenAI as they are published, with nothing but another base URL.
import { OpenAIConversationsSession } from "@openai/agents-openai";
import OpenAI from "openai";
import { expect, test } from "vitest";
import { Counted, serve, unreliable } from "../../harness/service.ts";

type Session = OpenAIConversationsSession;
type Item = Awaited<ReturnType<Session["getItems"]>>[number];

/** A client, and the requests that it sent. */
function connect(url: string) {
  const requests: string[] = [];
  const counting: typeof fetch = (at, init) => {
    const { pathname, search } = new URL(String(at));
    requests.push(`${init?.method?.toUpperCase() ?? "GET"} ${pathname.replace("/openai/v1", "").replace(/conv_\w+/, "C")}${search}`.replace(/(msg|fc)_\w+/g, "I"));
    return fetch(at, init);
  };
  return { requests, client: new OpenAI({ apiKey: "any", baseURL: `${url}/openai/v1`, fetch: counting }) };
}
const user = (text: string): Item => ({ type: "message", role: "user", content: text });
const text = (item: Item | undefined) => {
  const content = (item as { content?: unknown } | undefined)?.content;
  return typeof content === "string" ? content : (content as { text: string }[] | undefined)?.[0]?.text;
};
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => `message ${from + i}`);

test("add, read, limit, pop, clear: the requests of the stock session", async () => {
  const { url } = await serve(), { client, requests } = connect(url), s = new OpenAIConversationsSession({ client });
  await s.addItems(["a", "b", "c"].map(user));
  expect((await s.getItems()).map(text)).toEqual(["a", "b", "c"]);
  expect((await s.getItems(2)).map(text)).toEqual(["b", "c"]);
  expect(text(await s.popItem())).toBe("c");
  await s.addItems([user("d")]);
  expect((await s.getItems()).map(text)).toEqual(["a", "b", "d"]);
  await s.clearSession();
  expect(await s.getItems()).toEqual([]);
  expect(await s.popItem()).toBeUndefined();
  expect(requests).toEqual([
    "POST /conversations", "POST /conversations/C/items", "GET /conversations/C/items?order=asc", "GET /conversations/C/items?limit=2&order=desc",
    "GET /conversations/C/items?limit=1&order=desc", "DELETE /conversations/C/items/I", "POST /conversations/C/items", "GET /conversations/C/items?order=asc",
    "DELETE /conversations/C", "POST /conversations", "GET /conversations/C/items?order=asc", "GET /conversations/C/items?limit=1&order=desc",
  ]);
});

test("a turn with reasoning and a call comes back, and the service shows it", async () => {
  const { url } = await serve(), { client } = connect(url), s = new OpenAIConversationsSession({ client });
  const turn: Item[] = [
    user("weather?"),
    { type: "reasoning", id: "rs_1", content: [{ type: "input_text", text: "think" }], providerData: { encrypted_content: "xyz" } },
    { type: "function_call", callId: "call_1", name: "weather", arguments: '{"q":1}', status: "completed" },
    { type: "function_call_result", callId: "call_1", name: "weather", status: "completed", output: { type: "text", text: "sunshine" } },
    { type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: "Sunny." }] },
  ];
  await s.addItems(turn);
  const back = await s.getItems();
  expect(back.map(({ type }) => type)).toEqual(turn.map(({ type }) => type));
  expect(back[1]).toMatchObject({ id: "rs_1", content: [{ type: "input_text", text: "think" }], providerData: { encrypted_content: "xyz" } });
  expect(back[2]).toMatchObject({ callId: "call_1", name: "weather", arguments: '{"q":1}' });
  expect(back[3]).toMatchObject({ callId: "call_1", output: "sunshine" }); // as the session converts it
  expect(text(back[4])).toBe("Sunny.");
  const id = await s.getSessionId(), session = new Counted(url).store.session(id);
  expect((await session.info()).entries).toBe(5);
  const found = await (await fetch(`${url}/v1/search?q=sunshine`)).text();
  expect(found).toContain(id);
});

test("the client: metadata, one item, one in the middle deleted, errors", async () => {
  const { url } = await serve(), { client } = connect(url);
  const c = await client.conversations.create({ metadata: { team: "blue" }, items: ["a", "b", "c"].map((content) => ({ type: "message" as const, role: "user" as const, content })) });
  expect(await client.conversations.retrieve(c.id)).toEqual(c);
  expect((await client.conversations.update(c.id, { metadata: { team: "red" } })).metadata).toEqual({ team: "red" });
  const { data } = await client.conversations.items.list(c.id, { order: "asc" });
  expect(await client.conversations.items.retrieve(data[1]!.id!, { conversation_id: c.id })).toEqual(data[1]);
  await client.conversations.items.delete(data[1]!.id!, { conversation_id: c.id });
  expect((await client.conversations.items.list(c.id, { order: "asc" })).data).toEqual([data[0], data[2]]);
  await expect(client.conversations.items.retrieve(data[1]!.id!, { conversation_id: c.id })).rejects.toThrow(OpenAI.NotFoundError);
  await expect(client.conversations.retrieve("conv_none")).rejects.toMatchObject({ status: 404, type: "invalid_request_error", code: "not-found" });
  await expect(client.conversations.items.list(c.id, { limit: 501 })).rejects.toThrow(OpenAI.BadRequestError);
  expect(await client.conversations.delete(c.id)).toEqual({ id: c.id, object: "conversation.deleted", deleted: true });
  await expect(client.conversations.items.create(c.id, { items: [{ role: "user", content: "late" }] })).rejects.toThrow(OpenAI.NotFoundError);
});

test("two processes: nothing is lost, and no item is popped twice", async () => {
  const { url } = await serve(), one = new OpenAIConversationsSession({ client: connect(url).client });
  await one.addItems([user("first")]);
  const two = new OpenAIConversationsSession({ client: connect(url).client, conversationId: await one.getSessionId() });
  await Promise.all([one, two].flatMap((s, w) => range(0, 10).map((t) => s.addItems([user(`${w} ${t}`)]))));
  expect((await two.getItems()).map(text).sort()).toEqual([...range(0, 10).map((t) => `0 ${t}`), ...range(0, 10).map((t) => `1 ${t}`), "first"].sort());
  const popped: (string | undefined)[] = [];
  for (let left = 21; left > 0; left = 21 - popped.length) {
    for (const r of await Promise.allSettled([one, two].map((s) => s.popItem()))) {
      if (r.status === "fulfilled" && r.value) popped.push(text(r.value));
      else if (r.status === "rejected") expect(r.reason).toBeInstanceOf(OpenAI.NotFoundError); // the other one has it
    }
  }
  expect(new Set(popped).size).toBe(21);
  expect(await one.getItems()).toEqual([]);
});

test("answers that are lost, and a service that is killed: each item once, in order", async () => {
  const service = await serve(), first = new OpenAIConversationsSession({ client: connect(service.url).client });
  const conversationId = await first.getSessionId(), proxy = await unreliable(service, 7);
  const client = new OpenAI({ apiKey: "any", baseURL: `${proxy.url}/openai/v1`, maxRetries: 10 });
  const s = new OpenAIConversationsSession({ client, conversationId });
  const all = range(0, 20);
  for (const t of all) await s.addItems([user(t), user("again")]);
  expect((await first.getItems()).map(text)).toEqual(all.flatMap((t) => [t, "again"]));
});

test("10,000 items: a request of each operation is the same, and all are read in 20", async () => {
  const { url } = await serve(), { client, requests } = connect(url), s = new OpenAIConversationsSession({ client });
  for (let n = 0; n < 10_000; n += 500) await s.addItems(range(n, n + 500).map(user));
  requests.length = 0;
  expect((await s.getItems(3)).map(text)).toEqual(range(9_997, 10_000));
  expect(text(await s.popItem())).toBe("message 9999");
  await s.addItems([user("message 9999")]);
  expect(requests).toHaveLength(4);
  requests.length = 0;
  expect((await s.getItems()).map(text)).toEqual(range(0, 10_000));
  expect(requests).toHaveLength(20);
});
