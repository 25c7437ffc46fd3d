// The example's agent is killed at each of its external calls, and another process continues.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Store } from "coppice-client";
import { limit, test } from "./limit.js";
import { here, repository, Service, temporary } from "./service.js";

/** Runs the agent; returns its external calls, and whether it was killed. */
async function agent(url: string, id: string, n: number, effects: string): Promise<{ contacts: string[]; killed: boolean }> {
  const script = join(here, "build/clients/typescript/test/agent-process.js");
  const p = spawn(process.execPath, [script, url, id, String(n), effects], { stdio: ["ignore", "pipe", "inherit"], timeout: limit });
  let out = "";
  p.stdout.on("data", (chunk: Buffer) => (out += chunk));
  const killed = await new Promise<boolean>((resolve) => p.on("close", (code, signal) => {
    assert.ok(code === 0 || signal === "SIGKILL", `exit ${code}`);
    resolve(signal === "SIGKILL");
  }));
  return { contacts: out.split("\n").filter(Boolean), killed };
}

interface Message { role: string; content: string | { type: string; id?: string }[]; toolCallId?: string }

test("killed anywhere, an agent continues with one request: nothing is lost, nothing is doubled", async (t) => {
  const service = await Service.start(t), store = new Store(service.url), dir = temporary();
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  let at = 1;
  for (; ; at++) {
    const id = `killed-${at}`, effects = join(dir, id), first = await agent(service.url, id, at, effects);
    const exists = first.killed && await store.session(id).info().then(() => true, () => false);
    const second = first.killed ? await agent(service.url, id, 0, effects) : first;
    if (exists) { // what the second process does before it asks the model: one request, and its answer
      const begin = second.contacts.indexOf("model");
      assert.deepEqual(second.contacts.slice(0, begin < 0 ? undefined : begin), ["GET resume"], `killed at ${at}`);
    }
    const r = await store.session(id).resume(), messages = r.context as Message[];
    const users = messages.filter((m) => m.role === "user").map((m) => m.content);
    assert.deepEqual(users, ["list the files"], `killed at ${at}: prompts`);
    const calls = messages.flatMap((m) => (m.role === "assistant" ? (m.content as { type: string; id?: string }[]) : []).filter((b) => b.type === "toolCall"));
    const results = messages.filter((m) => m.role === "toolResult").map((m) => m.toolCallId);
    assert.deepEqual(results, calls.map((c) => c.id), `killed at ${at}: each call has one result`);
    assert.equal(messages.filter((m) => m.role === "assistant").length - calls.length, 1, `killed at ${at}: answers`);
    assert.deepEqual(r.state, { asked: 1, answered: 1 });
    assert.deepEqual((await store.session(id).branches()).branches.map((b) => b.name), ["main"]);
    const ran = existsSync(effects) ? readFileSync(effects, "utf8").trim().split("\n") : [];
    assert.equal(new Set(ran).size, ran.length, `killed at ${at}: a tool ran twice`);
    if (!first.killed) break;
  }
  assert.ok(at > 10, `only ${at} contacts`);
});

test("persistence of the example is at most 15 lines", () => {
  const text = readFileSync(join(repository, "examples/typescript/agent.ts"), "utf8");
  const [, marked] = /\/\/ persistence: begin\n(.*?)\/\/ persistence: end/s.exec(text)!;
  const lines = marked!.split("\n").filter((l) => l.trim() && !/^\s*(\/\*\*|\/\/)/.test(l));
  assert.ok(lines.length <= 15, `${lines.length} lines`);
});
