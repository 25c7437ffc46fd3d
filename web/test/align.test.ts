import "./page.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { align, keyOf } from "../model/align.ts";
import { itemsOf } from "../model/path.ts";

test("calls of the same tool with the same arguments are in one row", () => {
  const call = (id: string, name: string, args: object) => (
    { type: "message", id, parentId: null, message: { role: "assistant", content: [{ type: "toolCall", id: "c" + id, name, arguments: args }] } });
  const a = itemsOf([call("1", "read", { path: "x" }), call("2", "bash", { command: "make" }), call("3", "read", { path: "z" })]);
  const b = itemsOf([call("4", "read", { path: "y" }), call("5", "bash", { command: "ls" }), call("6", "bash", { command: "make" })]);
  assert.deepEqual(align(a, b, keyOf).map((row) => row.map((item) => item?.entry.id ?? "")), [["1", "4"], ["", "5"], ["2", "6"], ["3", ""]]);
  assert.deepEqual(align<string>([], ["x"], String), [[null, "x"]]);
});
