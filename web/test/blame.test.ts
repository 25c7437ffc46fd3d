import assert from "node:assert/strict";
import { test } from "node:test";
import { pageOf } from "../model/blame.ts";

const change = (seq: number, value: string) => `{"seq":${seq},"commit":"c${seq}","reason":"turn","head":null,"branch":"main",` +
  `"time":"2026-01-02T03:04:05Z","entries":1,"snapshot":null,"writer":"w","epoch":1${value && `,"value":${value}`}}`;

test("values of a history keep their digits, and what was before them is the next older one", () => {
  const page = pageOf(`{"changes":[${change(9, "")},${change(7, "12345678901234567890")},${change(3, '{"a": 1.10}')}]}`);
  assert.deepEqual(page.list.map((p) => [p.commit.seq, p.before, p.value]), [
    [9, "12345678901234567890", null], [7, '{"a": 1.10}', "12345678901234567890"], [3, null, '{"a": 1.10}']]);
  assert.equal(page.next, null);
});

test("what was before the last of a page is not known, and a page may be empty", () => {
  assert.equal(pageOf(`{"changes":[${change(9, "1")}],"next":"OQ"}`).list[0]!.before, undefined);
  assert.deepEqual(pageOf('{"changes":[],"next":"OQ"}'), { list: [], next: "OQ" });
});
