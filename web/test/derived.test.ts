import "./page.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Entry } from "../api/client.ts";
import { derive, factOf, upTo, type Fact } from "../model/derived.ts";

let made = 0;
const entry = (e: object): Entry => ({ type: "message", id: "e" + made++, parentId: null, ...e });
const call = (name: string, args: unknown, more = {}) => entry({ message: { role: "assistant", model: "m-1", ...more,
  content: [{ type: "toolCall", id: "c" + made, name, arguments: args }] } });
const facts = (list: Entry[]) => list.map(factOf).filter((f): f is Fact => f !== null);

test("files, model, mode and tokens are those of the messages up to the cursor", () => {
  const list = [
    entry({ type: "model_change", provider: "p", modelId: "m-0" }),
    entry({ type: "custom", customType: "claude-code.permission-mode", data: { permissionMode: "plan" } }),
    call("Read", { file_path: "/a" }, { usage: { input: 10, cacheRead: 90, output: 5, totalTokens: 105, cost: { total: 0.5 } } }),
    call("Edit", { file_path: "/b", old_string: "x", new_string: "y" }),
    call("apply_patch", "*** Begin Patch\n*** Update File: c.go\n*** Add File: d.go\n*** End Patch"),
    entry({ message: { role: "toolResult", toolCallId: "1", content: "no", isError: true } }),
    call("Write", { file_path: "/a", content: "" }),
    entry({ type: "custom", customType: "claude-code.permission-mode", data: { permissionMode: "auto" } }),
  ];
  const all = derive(facts(list));
  assert.deepEqual([...all.written.keys()], ["/b", "c.go", "d.go", "/a"]);
  assert.deepEqual([all.read.size, all.model, all.mode, all.tokens, all.context, all.cost, all.answers, all.failed], [0, "m-1", "auto", 105, 100, 0.5, 4, 1]);
  assert.equal(all.written.get("/a"), list[6]!.id);
  const ids = list.map((e) => e.id);
  const early = derive(upTo(facts(list), ids, list[3]!.id));
  assert.deepEqual([[...early.read.keys()], [...early.written.keys()], early.mode, early.failed], [["/a"], ["/b"], "plan", 0]);
  assert.equal(derive(upTo(facts(list), ids, "elsewhere")).failed, 1);
});

test("task lists of several programs are lists of tasks", () => {
  const tasks = (...list: Entry[]) => derive(facts(list)).tasks.map((t) => `${t.status} ${t.text}`);
  assert.deepEqual(tasks(call("TodoWrite", { todos: [{ content: "a", status: "completed" }, { content: "b", status: "in_progress" }] })),
    ["done a", "active b"]);
  assert.deepEqual(tasks(call("update_plan", { plan: [{ step: "a", status: "pending" }] })), ["open a"]);
  const created = (n: number) => entry({ message: { role: "toolResult", toolCallId: "x", content: `Task #${n} created successfully: x` } });
  const update = (taskId: string, status: string) => call("TaskUpdate", { taskId, status });
  assert.deepEqual(tasks(call("TaskCreate", { subject: "a" }), created(7), call("TaskCreate", { subject: "b" }), created(8),
    call("TaskCreate", { subject: "c" }), created(9), update("8", "completed"), update("1", "completed"), update("9", "deleted")),
  ["open a", "done b"]);
  assert.deepEqual(tasks(call("plan", { plan: "text" })), []);
});

test("odd entries derive nothing", () => {
  for (const odd of [{ message: null }, { message: { role: "assistant", content: 5 } }, { type: "custom", data: [] }, { type: "label", label: "x" }]) {
    const d = derive(facts([entry(odd)]));
    assert.deepEqual([d.model, d.written.size, d.tasks.length], ["", 0, 0]);
  }
});
