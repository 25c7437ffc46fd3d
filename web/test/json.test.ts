import assert from "node:assert/strict";
import { test } from "node:test";
import { changes } from "../model/changes.ts";
import { at, members, step, steps, valueIn } from "../model/json.ts";
import { pretty } from "../model/pretty.ts";
import { chunk, rows } from "../model/jsonrows.ts";

/** random returns numbers from 0 to n-1, the same in every run (mulberry32). */
function random(seed: number): (n: number) => number {
  return (n) => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % n;
  };
}

const scalars = ["0", "-0", "1.10", "1e400", "9007199254740993", "0.30000000000000004", "1E+2", "true", "false", "null",
  '""', '"\\""', '"\\\\"', '"\\\\\\""', '"a,b]}:{["', '"\\u2028 é 😀"', '"</script>"', '"~1/"'];

/** make returns a random JSON text, with white space between tokens. */
function make(pick: (n: number) => number, depth: number): string {
  const gap = () => ["", "", " ", "\n\t", "\r\n  "][pick(5)]!;
  const kind = depth === 0 ? 0 : pick(3);
  if (kind === 0) return scalars[pick(scalars.length)]!;
  const items = Array.from({ length: pick(5) }, () => {
    const key = kind === 1 ? scalars[10 + pick(8)]! + gap() + ":" : "";
    return gap() + key + gap() + make(pick, depth - 1) + gap();
  });
  return (kind === 1 ? "{" : "[") + (items.length > 0 ? items.join(",") : gap()) + (kind === 1 ? "}" : "]");
}

/** tokens returns a text without the white space between tokens. */
function tokens(text: string): string {
  return text.replace(/"(?:[^"\\]|\\.)*"|[ \t\r\n]+/g, (s) => (s[0] === '"' ? s : ""));
}

test("random texts: the elements are those of JSON.parse, and only white space differs after pretty", () => {
  for (let seed = 1; seed <= 500; seed++) {
    const text = make(random(seed), 5);
    const value = valueIn(text);
    assert.equal(text.slice(value.start, value.end), text.trim());
    assert.equal(tokens(pretty(text)), tokens(text));
    const parsed = JSON.parse(text) as unknown;
    for (const m of new Map(members(text, value).map((m) => [m.key, m])).values()) {
      assert.deepEqual(JSON.parse(text.slice(m.start, m.end)), (parsed as Record<string, unknown>)[m.key]);
      assert.deepEqual(at(text, step("", m.key)), { start: m.start, end: m.end, kind: m.kind, key: m.key });
    }
    if (Array.isArray(parsed)) assert.equal(members(text, value).length, parsed.length);
    else if (value.kind === "object") {
      assert.deepEqual([...new Set(members(text, value).map((m) => m.key))].sort(), Object.keys(parsed as object).sort());
    }
  }
});

test("digits, escapes and repeated keys stay as they are", () => {
  const text = '{"big":12345678901234567890,"price":1.10,"a\\/b~":"\\u0041","twice":1,"twice":2}';
  const raw = (pointer: string) => {
    const v = at(text, pointer)!;
    return text.slice(v.start, v.end);
  };
  assert.equal(raw("/big"), "12345678901234567890");
  assert.equal(raw("/price"), "1.10");
  assert.equal(raw("/a~1b~0"), '"\\u0041"');
  assert.equal(raw("/twice"), "2");
  assert.equal(at(text, "/none"), null);
  assert.deepEqual(steps("/a~1b~0/0"), ["a/b~", "0"]);
  assert.ok(pretty(text).includes('"price": 1.10,\n'));
});

test("deep and long texts need no stack, and what is no JSON is an error", () => {
  const deep = "[".repeat(100_000) + "]".repeat(100_000);
  assert.equal(valueIn(deep).end, deep.length);
  assert.equal(members(deep, valueIn(deep)).length, 1);
  for (const text of ["", "[", '{"a"', '{"a" 1}', "[1 2]", '"', '"\\"', "{1:2}", "]"]) {
    assert.throws(() => members(text, valueIn(text)), SyntaxError, text);
  }
});

/** ops returns changes as lines. */
function ops(a: string | null, b: string | null, most = 100): string[] {
  return changes(a, b, most).list.map((c) => `${c.op} ${c.path} ${c.before ?? ""}>${c.after ?? ""}`);
}

test("changes are those of values, as they are written", () => {
  assert.deepEqual(ops('{"a":1,"b":[1,2],"c":{"d":null}}', '{ "c" : {"d":null}, "b":[1, 2], "a":1 }'), []);
  assert.deepEqual(ops('{"a":1.1}', '{"a":1.10}'), ["replace /a 1.1>1.10"]);
  assert.deepEqual(ops('{"n":9007199254740992}', '{"n":9007199254740993}'), ["replace /n 9007199254740992>9007199254740993"]);
  assert.deepEqual(ops('{"plan":{"step":3},"old":[1]}', '{"plan":{"step":4},"new":{}}'),
    ["replace /plan/step 3>4", "add /new >{}", "remove /old [1]>"]);
  assert.deepEqual(ops("[1,2,3,4]", "[1,3,4]"), ["remove /1 2>"]);
  assert.deepEqual(ops("[1,4]", "[1,2,3,4]"), ["add /1 >2", "add /2 >3"]);
  assert.deepEqual(ops(null, '{"a":1}'), ['replace  null>{"a":1}']);
  assert.deepEqual(ops('{"a":[]}', '{"a":{}}'), ["replace /a []>{}"]);
  const many = changes("[]", "[1,2,3]", 2);
  assert.equal(many.list.length, 2);
  assert.equal(many.more, true);
});

const closed = { open: new Map<string, boolean>(), shown: new Map<string, number>() };

test("rows have the marks of what changed, and what was removed", () => {
  const a = '{"plan":{"step":3},"todo":["x","y"]}';
  const b = '{"plan":{"step":4},"todo":["x"],"new":1}';
  const lines = rows(b, changes(a, b, 100), closed).map((r) => `${r.path} ${r.mark ?? "-"} ${r.inside}`);
  assert.deepEqual(lines, [" - 3", "/plan - 1", "/plan/step replace 0", "/todo - 1", "/todo/0 - 0", "/todo/1 remove 0",
    "/new add 0"]);
});

test("a long text is closed but for what changed, and a long array comes in pieces", () => {
  const numbers = Array.from({ length: 3 * chunk }, (_, i) => i);
  const text = JSON.stringify({ list: numbers, other: { deep: [1, 2] }, plan: { step: 1 } });
  const before = text.replace('"step":1', '"step":0');
  const list = rows(text, changes(before, text, 100), closed);
  assert.deepEqual(list.map((r) => r.path), ["", "/list", "/other", "/plan", "/plan/step"]);
  assert.deepEqual(list.map((r) => r.count), [3, 3 * chunk, 1, 1, 0]);
  const open = rows(text, { list: [], more: false }, { ...closed, open: new Map([["/list", true]]) });
  assert.equal(open.find((r) => r.more > 0)?.more, 2 * chunk);
  assert.equal(open.filter((r) => r.path.startsWith("/list/")).length, chunk);
});
