import assert from "node:assert/strict";
import { test } from "node:test";
import { digits, exact } from "../api/exact.ts";
import { read } from "../model/message.ts";

test("texts are read as JSON.parse reads them, apart from digits that it would lose", () => {
  for (const text of ['{"a":[1.5,"x",null,{"__proto__":{"b":1}}]}', '{"cost":0.0034500000000000004}', '[12345678901234567,"\\u0061"]']) {
    assert.deepEqual(JSON.parse(JSON.stringify(exact(text))), JSON.parse(text));
  }
  assert.throws(() => exact('{"a":9007199254740993'));
});

test("a number is counted with whatever digits it has", () => {
  const usage = exact('{"totalTokens":12,"cost":{"total":0.2500000000000000000001}}');
  const m = read({ role: "assistant", content: "", usage });
  assert.deepEqual([m.tokens, m.cost], [12, 0.25]);
  assert.deepEqual([1, "1", null, {}].map(digits), ["1", "", "", ""]);
});
