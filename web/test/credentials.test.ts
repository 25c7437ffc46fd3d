import assert from "node:assert/strict";
import { test } from "node:test";
import "./page.ts";
import { wordsOf } from "../model/credentials.ts";

test("credentials are counted in words, and nothing is said where there are none", () => {
  const of = (count: number, more = false) => wordsOf({ count, entries: [], more });
  assert.deepEqual([of(0), of(1), of(2), of(2, true), wordsOf(null)], ["", "1 credential", "2 credentials", "2 credentials or more", ""]);
});
