// The example's backend, as a chat UI uses it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Store } from "coppice-client";
import { chat } from "../../../examples/typescript/chat.js";
import { test } from "./limit.js";
import { quick, repository, Service } from "./service.js";

interface Repository { headId: string | null; messages: { message: { id: string; role: string; content: string }; parentId: string | null }[] }

test("a chat UI lists, appends, edits, regenerates, switches and follows", async (t) => {
  const service = await Service.start(t), server = chat(new Store(service.url, quick));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => (server.closeAllConnections(), server.close()));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const call = async <T>(path: string, body?: object): Promise<T> => {
    const r = await fetch(url + path, body && { method: "POST", body: JSON.stringify(body) });
    assert.equal(r.status, 200, await r.clone().text());
    return (await r.json()) as T;
  };
  const { id } = await call<{ id: string }>("/threads", { title: "A trip" }), at = `/threads/${id}`;
  assert.deepEqual((await call<{ title: string }[]>("/threads")).map((x) => x.title), ["A trip"]);

  const live = new AbortController(), stream = await fetch(`${url}${at}/events`, { headers: { "Last-Event-ID": "0" }, signal: live.signal });
  const say = (message: object, parentId: string | null) => call(`${at}/messages`, { message, parentId });
  const message = (id: string, role: string, content: string) => ({ id, role, content });
  await say(message("u1", "user", "Where?"), null);
  await say(message("a1", "assistant", "To th"), "u1");
  await say(message("a1", "assistant", "To the sea."), "u1"); // the same message, complete
  await call(`${at}/messages/a1`, { message: message("a2", "assistant", "To the hills.") }); // a new answer
  await call(`${at}/messages/u1`, { message: message("u2", "user", "When?") }); // an edit

  const shape = async () => {
    const r = await call<Repository>(at);
    return { head: r.headId, messages: r.messages.map((m) => `${m.parentId}>${m.message.id} ${m.message.content}`) };
  };
  const messages = ["null>u1 Where?", "u1>a1 To the sea.", "u1>a2 To the hills.", "null>u2 When?"];
  assert.deepEqual(await shape(), { head: "u2", messages });
  assert.deepEqual(await call(`${at}/messages/a1`), { versions: ["a1", "a2"], at: 0 });
  assert.deepEqual(await call(`${at}/messages/u2`), { versions: ["u1", "u2"], at: 1 });
  await call(`${at}/head`, { id: "a1" });
  assert.deepEqual(await shape(), { head: "a1", messages });
  await call(`${at}/head`, { id: "u1" }); // the newest below it
  assert.deepEqual(await shape(), { head: "a2", messages });

  let text = "";
  for await (const chunk of stream.body!.pipeThrough(new TextDecoderStream())) {
    if ((text += chunk).split("event: commit").length > 7) break;
  }
  const seqs = [...text.matchAll(/^event: commit\nid: (\d+)$/gm)].map((m) => Number(m[1]));
  live.abort();
  assert.deepEqual(seqs, [1, 2, 3, 4, 5, 6, 7]);
  assert.equal((await fetch(`${url}/threads/none`)).status, 404);
  assert.equal((await fetch(`${url}${at}/messages`, { method: "POST", body: "{" })).status, 400);
});

test("the backend has less than 150 lines", () => {
  assert.ok(readFileSync(join(repository, "examples/typescript/chat.ts"), "utf8").split("\n").length < 150);
});
