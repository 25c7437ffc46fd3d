import "./page.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Session } from "../api/client.ts";
import { commonStart, pointOf } from "../model/compare.ts";
import { pretty } from "../model/pretty.ts";
import { split } from "../model/search.ts";
import { isNew, markSeen } from "../model/seen.ts";
import { byDay, rollUp, spend, type Spent } from "../model/spend.ts";
import { sideOf, verdict } from "../model/verdict.ts";

Object.assign(globalThis, { localStorage: { getItem: () => null } });
const { nest } = await import("../model/sessions.ts");

function spent(session: string, cost: number, parent?: string, relation?: string): Spent {
  return { session, parent, relation, usage: { total: cost * 10, cost, output: 0 } };
}

test("agents count for all that are above them, forks for none, and a cycle ends", () => {
  const sums = rollUp([spent("a", 1), spent("b", 2, "a", "agent"), spent("c", 4, "b", "agent"), spent("d", 8, "a", "fork"),
    spent("x", 1, "y"), spent("y", 1, "x"), spent("z", 1, "gone")]);
  assert.deepEqual(sums.get("a"), { own: 1, all: 7, tokens: 10, allTokens: 70, agents: 2, failed: 0, damaged: false });
  assert.equal(sums.get("b")!.all, 6);
  assert.equal(sums.get("d")!.all, 8);
  assert.equal(sums.get("x")!.all, 2);
});

test("sessions are below their parents, also when parents lead in a circle", () => {
  const s = (id: string, parent?: string) => ({ id, parent }) as Session;
  const top = nest([s("c", "b"), s("a"), s("b", "a"), s("lost", "gone"), s("x", "y"), s("y", "x")]);
  assert.deepEqual(top.map((n) => n.session.id), ["a", "lost", "x", "y"]);
  assert.deepEqual(top[0]!.children.map((n) => [n.session.id, n.children.map((m) => m.session.id)]), [["b", ["c"]]]);
});

test("what was spent belongs to the day of the answer, in order, whenever the session was active last", () => {
  const on = (session: string, ...days: [string, number][]): Spent =>
    ({ ...spent(session, 10), days: days.map(([day, cost]) => ({ day, usage: { cost } })) });
  const list = [on("a", ["2026-03-01", 2], ["2026-03-02", 1]), on("b", ["2026-03-02", 3], ["?", 9]), spent("old server", 9)];
  assert.deepEqual(byDay(list), [{ time: 1772323200, cost: 2 }, { time: 1772409600, cost: 4 }]);
  const more = spend(list, "a", [{ time: "2026-03-01T23:59:59.000Z", cost: 4 }, { time: undefined, cost: 1 }]);
  assert.deepEqual(byDay(more), [{ time: 1772323200, cost: 6 }, { time: 1772409600, cost: 4 }]);
  assert.deepEqual(more.map((s) => s.usage.cost), [15, 10, 9]);
});

test("a response that is several entries is one message each, and one sum", () => {
  const part = (id: string, responseId: string, output: number) => ({
    type: "message", id, parentId: null,
    message: { role: "assistant", content: "x", responseId, usage: { totalTokens: output, cost: { total: output } } },
  });
  const one = "msg_0123456789abcdefghij";
  assert.deepEqual(sideOf([part("a", one, 2), part("b", one, 5), part("c", one, 4), part("d", "msg_01", 1), part("e", "msg_01", 1)]),
    { messages: 5, tokens: 7, cost: 7 });
});

test("a session is new once it has more commits than were shown, and what was shown first is forgotten first", () => {
  let table = markSeen([], "a", 4);
  assert.equal(isNew(table, "a", 4), false);
  assert.equal(isNew(table, "a", 5), true);
  assert.equal(isNew(table, "never", 5), false);
  assert.deepEqual(markSeen(table, "a", 2), [["a", 4]]);
  for (let i = 0; i < 500; i++) table = markSeen(table, "s" + i, 1);
  assert.equal(table.length, 500);
  assert.equal(isNew(table, "a", 5), false);
});

test("JSON is broken into lines, and no token changes", () => {
  const raw = '{"a":12345678901234567890,"b":[1.10,1e400,{}],"c":"x{\\"}:,","d":[ ]}';
  assert.equal(pretty(raw), `{
  "a": 12345678901234567890,
  "b": [
    1.10,
    1e400,
    {}
  ],
  "c": "x{\\"}:,",
  "d": []
}`);
  assert.equal(pretty(pretty(raw)), pretty(raw));
});

test("hits are where the words are", () => {
  assert.deepEqual(split("Tide and time", "TI  an").filter((s) => s.hit).map((s) => s.text), ["Ti", "an", "ti"]);
  assert.equal(split("anything", "").map((s) => s.text).join(""), "anything");
  for (const text of ["İstanbul ti", "ti ti", "x"]) assert.equal(split(text, "ti").map((s) => s.text).join(""), text);
  for (const [text, search, want] of [
    ["a cafe\u0301 there", "caf\u00e9", "cafe\u0301"], ["\u1112\u1161\u11a8\u110c", "\ud559", "\u1112\u1161\u11a8"],
    ["Stra\u00dfe", "RAS", "ra\u00df"], ["\u0130STANBUL", "istanbul", "\u0130STANBUL"], ["\uff26\uff35\uff2c\uff2c", "ful", "\uff26\uff35\uff2c"],
    ["\ud83c\udf0a tide \u6f6e\u6c50\u8868", "\u6c50", "\u6c50"],
  ] as const) {
    assert.deepEqual(split(text, search).filter((s) => s.hit).map((s) => s.text), [want]);
    assert.equal(split(text, search).map((s) => s.text).join(""), text);
  }
});

test("the tokens of a message are all that it took, whoever counted them", () => {
  const answer = (usage: object) => ({ type: "message", id: "a", parentId: null, message: { role: "assistant", content: "x", usage } });
  for (const usage of [
    { totalTokens: 110, output: 3 }, { total_tokens: 110 }, { input: 4, output: 6, cacheRead: 90, cacheWrite: 10 },
    { input_tokens: 4, output_tokens: 6, cache_read_input_tokens: 90, cache_creation_input_tokens: 10 },
    { prompt_tokens: 100, completion_tokens: 10 },
  ]) assert.equal(sideOf([answer(usage)]).tokens, 110, JSON.stringify(usage));
});

test("the verdict says what differs", () => {
  const none = { messages: 0, tokens: 0, cost: 0 };
  assert.equal(verdict(none, none, 0), "B: the same messages, the same state");
  const line = { messages: 446, tokens: 1, cost: 42.6 };
  assert.equal(verdict({ messages: 914, tokens: 1, cost: 30.33 }, line, -1, true), "B: 468 entries fewer, $12.27 dearer");
  assert.equal(verdict(line, line, -1, true), "B: as many entries");
  assert.equal(verdict({ messages: 13, tokens: 1, cost: 0.5 }, { messages: 1, tokens: 1, cost: 0.1 }, 3),
    "B: 12 messages fewer, $0.40 cheaper, 3 values differ");
});

test("a point is in this session or in another one", () => {
  assert.deepEqual(pointOf("s", "seq:4"), { session: "s", target: "seq:4" });
  assert.deepEqual(pointOf("s", "other/head"), { session: "other", target: "head" });
  assert.equal(commonStart([{ a: 1 }, 2, 3], [{ a: 1 }, 2, 4]), 2);
});
