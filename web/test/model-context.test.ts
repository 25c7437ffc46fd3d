import assert from "node:assert/strict";
import { test } from "node:test";
import { alike } from "../model/alike.ts";
import { beforeOf, differenceOf, inPages, isBeyond, lineOf, sawOf, sharesOf, tokensOf, windowOf } from "../model/model-context.ts";

test("a context consists of messages of several kinds, and the newest answer has its tokens", () => {
  const list = ['{"role":"compactionSummary","summary":"x"}', '{"role":"user","content":"hello"}',
    '{"role":"assistant","content":[],"usage":{"input":10,"cacheRead":80,"output":5}}', '{"role":"toolResult","content":"' + "y".repeat(200) + '"}'];
  assert.deepEqual(sharesOf(list).map((s) => [s.kind, s.messages]), [["tool", 1], ["assistant", 1], ["summary", 1], ["user", 1]]);
  assert.equal(sharesOf(list).reduce((n, s) => n + s.chars, 0), list.join("").length);
  assert.deepEqual([tokensOf(list), tokensOf(list.slice(0, 2)), tokensOf([])], [[95], [], []]);
  assert.deepEqual(tokensOf([...list, list[2]!.replace("80", "90"), list[2]!]), [95, 105]);
  assert.deepEqual([windowOf("anthropic/claude-sonnet-4-5", 95), windowOf("claude-sonnet-4-5[1m]", 95), windowOf("claude-opus-4", 300_000), windowOf("m", 1)],
    [200_000, 1_000_000, 0, 0]);
});

test("texts are alike by the characters that they share", () => {
  assert.equal(alike([{ kind: "same", text: "four" }]), 1);
  assert.equal(alike([{ kind: "removed", text: "four" }, { kind: "same", text: " \n" }, { kind: "added", text: "five" }]), 0);
  assert.equal(alike([{ kind: "removed", text: "1234" }, { kind: "same", text: "12" }]), 0.5);
});

test("a context has its messages as they are stored", () => {
  const summary = '{"role":"compactionSummary","summary":"so far","tokensBefore":335000}';
  const message = '{"role":"user","content":"price 1.10, id 12345678901234567890","n":1.10}';
  const saw = sawOf(`{"messages":[${summary}, ${message}],"thinkingLevel":"high","model":"m","openCalls":[{"entry":"e","id":"c","name":"bash","arguments":null}],"diagnostics":[]}`);
  assert.deepEqual(saw.messages, [summary, message]);
  assert.equal(saw.chars, summary.length + message.length);
  assert.equal(saw.summary, true);
  assert.equal(saw.rest.openCalls?.[0]?.name, "bash");
  assert.equal(sawOf('{"messages":[],"diagnostics":[]}').summary, false);
});

test("one line says what a message of any provider does", () => {
  const line = (raw: string) => Object.values(lineOf(raw)).join(": ");
  assert.equal(line('{"role":"user","content":"a  b\\nc"}'), "user: a b c");
  assert.equal(line('{"role":"assistant","content":[{"type":"text","text":"I look"},{"type":"toolCall","id":"c","name":"bash","arguments":{}}]}'),
    "assistant: I look · calls bash");
  assert.equal(line('{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"ls","arguments":"{}"}}]}'), "assistant: calls ls");
  assert.equal(line('{"role":"model","parts":[{"functionCall":{"name":"ls"}}]}'), "model: calls ls");
  assert.equal(line('{"type":"function_call_output","call_id":"c","output":"done"}'), "function_call_output: done");
  assert.equal(line('{"role":"user","content":[{"type":"image","data":"AAAA"}]}'), "user: [image]");
  assert.equal(line('{"role":"compactionSummary","summary":"so far"}'), "compactionSummary: so far");
  assert.equal(line("{}"), "message: ");
});

test("a context is read in pages, and is known to be cut where one cannot be read", async () => {
  const pages: Record<string, string | null> = {
    "": '{"messages":[1],"next":"a","model":"m","diagnostics":[]}', a: '{"messages":[2],"next":"b"}', b: '{"messages":[3]}',
  };
  const asked: string[] = [];
  const read = (after: string) => (asked.push(after), Promise.resolve(pages[after]!));
  const all = await inPages(read);
  assert.deepEqual([all?.messages, all?.chars, all?.rest.model, all?.cut, asked], [["1", "2", "3"], 3, "m", false, ["", "a", "b"]]);
  pages.b = null;
  const some = await inPages(read);
  assert.deepEqual([some?.messages, some?.cut], [["1", "2"], true]);
  assert.equal(await inPages(() => Promise.resolve(null)), null);
});

test("a context differs from the one before by what was added and removed, equal messages counted", () => {
  const d = differenceOf(["a", "b", "ok", "ok"], ["summary", "ok", "c"]);
  assert.deepEqual([[...d.added], d.removed], [[0, 2], ["a", "b", "ok"]]);
  assert.deepEqual(differenceOf(["a"], ["a"]), { added: new Set(), removed: [] });
  assert.deepEqual([beforeOf("seq:9"), beforeOf("seq:1"), beforeOf("entry:e")], ["seq:8", null, null]);
});

test("a message beyond the bound is known by its place; summaries among them stay", () => {
  const omitted = { count: 2, first: "a", last: "c", from: 1, to: 4 };
  const list = ['{"role":"compactionSummary"}', "{}", '{"role":"branchSummary"}', "{}", "{}"];
  const beyond = (more: object) => {
    const saw = sawOf(JSON.stringify({ messages: list.map((m) => JSON.parse(m) as unknown), diagnostics: [], ...more }));
    return list.map((_, i) => i).filter((i) => isBeyond(saw, i));
  };
  assert.deepEqual([beyond({ omitted }), beyond({}), beyond({ omitted, provider: "gemini" })], [[1, 3], [], []]);
});
