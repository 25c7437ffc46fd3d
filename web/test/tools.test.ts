import "./page.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { place } from "../model/agents.ts";
import type { Entry, Session } from "../api/client.ts";
import { itemsOf } from "../model/path.ts";
import { contextAfter, noteOf } from "../model/notes.ts";
import { rasterType, sourceOf } from "../model/picture.ts";
import { editsOf, languageOf, mainArgument } from "../model/tools.ts";
import { cut } from "../text/plain.tsx";

test("a call says what it is about in one line, whatever its arguments are", () => {
  assert.equal(mainArgument({ timeout: 5, command: "make\n  test" }), "make test");
  assert.equal(mainArgument({ limit: 3 }), "3");
  for (const odd of [null, undefined, [], {}, { a: { b: 1 } }]) assert.equal(mainArgument(odd), "");
});

test("edits of several programs are differences", () => {
  assert.deepEqual(editsOf({ path: "a.go", oldText: "x", newText: "y" }), [{ path: "a.go", before: "x", after: "y" }]);
  assert.deepEqual(editsOf({ file_path: "a", edits: [{ old_string: "x", new_string: "" }] }), [{ path: "a", before: "x", after: "" }]);
  assert.deepEqual(editsOf("*** Begin Patch\n"), [{ path: "", patch: "*** Begin Patch\n" }]);
  for (const none of [null, { command: "ls" }, { oldText: 1, newText: 2 }]) assert.deepEqual(editsOf(none), []);
  assert.equal(languageOf({ path: "x/main.go" }, "package main"), "go");
  assert.equal(languageOf({}, "diff --git a b"), "diff");
});

test("an image is where its reference says, and only pixels are shown", () => {
  const hex = "ab".repeat(32);
  assert.deepEqual(sourceOf(`coppice-blob:sha256:${hex}:12`), { kind: "blob", sha256: hex, bytes: 12 });
  assert.equal(sourceOf(`coppice-blob:=:sha256:${hex}:12`), null);
  assert.equal(sourceOf("https://example.org/x.png"), null);
  assert.equal(sourceOf("iVBORw0KGgo=")?.kind, "inline");
  assert.equal(rasterType(Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)), "image/png");
  assert.equal(rasterType(new TextEncoder().encode("<svg onload=alert(1)>")), null);
});

test("a long text is cut between lines, and one long line anywhere", () => {
  assert.equal(cut("a\nb\nc", 100, 2), "a\nb\n");
  assert.equal(cut("aaaa\nbbbb", 6, 9), "aaaa\n");
  assert.equal(cut("x".repeat(50), 10, 9), "x".repeat(10));
  assert.equal(cut("short", 10, 9), "short");
  assert.equal(cut("", 10, 9), "");
});

test("notes are words", () => {
  const note = (e: object) => noteOf({ id: "1", parentId: null, type: "", ...e } as Entry).text;
  assert.equal(note({ type: "model_change", provider: "p", modelId: "m" }), "model: p/m");
  assert.equal(note({ type: "label", label: "good" }), "label: good");
  assert.equal(note({ type: "custom", customType: "todo" }), "note of todo");
  assert.equal(note({ type: "some_new_thing" }), "some new thing");
  assert.equal(note({ type: "custom", customType: "coppice.move", data: null }), "working directory: changed");
});

test("the tokens after a compaction are those of the next answer", () => {
  const answer = { type: "message", id: "a", parentId: "c", message: { role: "assistant", usage: { input: 5, cacheRead: 7 } } };
  const compaction = { type: "compaction", id: "c", parentId: null };
  assert.equal(contextAfter([compaction, answer], compaction), 12);
  assert.equal(contextAfter([compaction, { ...compaction, id: "d" }, answer], compaction), 0);
});

test("agents are shown at the call that started them", () => {
  const at = (s: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, s)).toISOString();
  const call = (id: string, s: number, ...calls: [string, string][]): Entry => ({
    type: "message", id, parentId: null, timestamp: at(s), message: { role: "assistant",
      content: calls.map(([c, name]) => ({ type: "toolCall", id: c, name, arguments: {} })) },
  });
  const session = (id: string, s: number, relation = "agent") => ({ id, created: at(s), relation }) as Session;
  const result: Entry = { type: "message", id: "r", parentId: null, timestamp: at(9),
    message: { role: "toolResult", toolCallId: "t2", content: "session named" } };
  const items = itemsOf([call("a", 1, ["t1", "task"], ["t2", "task"]), result, call("b", 20, ["x", "bash"])]);
  const shown = place(items, [session("named", 8), session("one", 3), session("fork", 4, "fork"), session("late", 30)], false, false);
  assert.deepEqual(shown.get("a")!.map((x) => [x.session.id, x.call]), [["named", "t2"], ["one", "t1"]]);
  assert.deepEqual(shown.get("b")!.map((x) => [x.session.id, x.call]), [["late", ""]]);
  const ended = place(items, [session("named", 8), session("one", 3), session("late", 30)], false, false, true);
  assert.deepEqual([...ended.keys()], ["a"], "of a line that ended only calls count");
  assert.equal(place(items, [session("early", 0)], true, false).size, 0, "it was started where nothing is loaded");
});

test("what says which call started an agent counts before its time", () => {
  const at = (s: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, s)).toISOString();
  const entry = (id: string, message: object): Entry => ({ type: "message", id, parentId: null, timestamp: at(1), message });
  const items = itemsOf([
    entry("a", { role: "assistant", content: ["t1", "t2", "t3"].map((id) => ({ type: "toolCall", id, name: "look", arguments: {} })) }),
    entry("r1", { role: "toolResult", toolCallId: "t1", content: "", details: { session: "mine" } }),
    entry("r2", { role: "toolResult", toolCallId: "t2", content: "", details: { agentId: "7" } }),
    entry("b", { role: "assistant", content: [{ type: "toolCall", id: "x", name: "agent", arguments: {} }] }),
  ]);
  const session = (id: string, call?: string) =>
    ({ id, created: at(9), relation: "agent", ...(call ? { meta: { call } } : {}) }) as Session;
  const shown = place(items, [session("mine"), session("agent-7"), session("s3", "t3"), session("away", "on another line")], false, false);
  assert.deepEqual(shown.get("a")!.map((x) => [x.session.id, x.call]).toSorted(), [["agent-7", "t2"], ["mine", "t1"], ["s3", "t3"]]);
  assert.equal(shown.size, 1, "an agent that another line started is not shown on this one");
});
