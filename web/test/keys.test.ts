import assert from "node:assert/strict";
import { test } from "node:test";
import { keys, nameOf, press } from "../model/keys.ts";

test("every key of the table does its action, and no key does two", () => {
  const seen = new Map<string, string>();
  for (const k of keys) {
    for (const text of k.keys) {
      assert.equal(seen.get(text), undefined, text);
      seen.set(text, k.action);
      let pending = "";
      let action = "";
      for (const name of text.split(" ")) ({ action, pending } = press(pending, name));
      assert.equal(action, k.action, text);
    }
  }
});

test("a sequence that is not finished does nothing, and its second key counts for itself", () => {
  assert.deepEqual(press("", "g"), { action: "", pending: "g" });
  assert.equal(press("g", "j").action, "next");
  assert.equal(press("g", "z").action, "");
});

test("keys have the names of the table", () => {
  const e = { key: "k", ctrlKey: false, metaKey: true, altKey: false };
  assert.equal(nameOf(e), "Mod+k");
  assert.equal(nameOf({ ...e, metaKey: false, key: "?" }), "?");
});
