import "./page.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseEvents } from "../api/events.ts";

function stream(...pieces: string[]): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder();
  return new ReadableStream({
    start(c) {
      for (const p of pieces) c.enqueue(bytes.encode(p));
      c.close();
    },
  });
}

async function all(...pieces: string[]): Promise<unknown[]> {
  const out: unknown[] = [];
  for await (const e of parseEvents(stream(...pieces))) out.push(e);
  return out;
}

test("events are whole wherever the stream is cut", async () => {
  const text = ": heartbeat\n\nretry: 1000\n\nevent: commit\nid: 1\ndata: {\"seq\":1,\ndata: \"x\":\"\u00fc\"}\n\nevent: reset\ndata: {}\n\n";
  const want = [{ name: "commit", data: "{\"seq\":1,\n\"x\":\"\u00fc\"}" }, { name: "reset", data: "{}" }];
  for (let i = 0; i < text.length; i++) assert.deepEqual(await all(text.slice(0, i), text.slice(i)), want);
});

test("an event that the end of the stream cuts is dropped", async () => {
  assert.deepEqual(await all("event: commit\ndata: {}\n\nevent: commit\ndata: {\"seq\""), [{ name: "commit", data: "{}" }]);
});
