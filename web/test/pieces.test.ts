import assert from "node:assert/strict";
import { test } from "node:test";
import { pieces } from "../text/pieces.ts";

const paragraph = "Some words of a paragraph. ".repeat(20).trim() + "\n\n";

test("a short text is one piece, an empty one none", () => {
  assert.deepEqual(pieces(""), []);
  assert.deepEqual(pieces("a\n\nb"), ["a\n\nb"]);
});

test("a long text is cut before blocks, and is whole when joined", () => {
  const text = ("# Title\n\n" + paragraph.repeat(3) + "- one\n\n- two\n\n  more of two\n\n").repeat(20);
  const list = pieces(text);
  assert.equal(list.join(""), text);
  assert.ok(list.length > 5);
  for (const [i, piece] of list.entries()) {
    assert.ok(piece.length <= 8_000, `piece ${i} has ${piece.length} characters`);
    assert.match(piece, /^(# Title|Some words)/);
  }
});

test("a block of code is never cut, whatever it holds", () => {
  const code = "````go\n" + "```\n\nfunc f() {}\n\n".repeat(1_000) + "````\n\n";
  const list = pieces(paragraph.repeat(8) + code + paragraph.repeat(8));
  assert.equal(list.filter((p) => p.includes("func f() {}")).length, 1);
  assert.ok(list.find((p) => p.includes("````go"))!.includes("````\n"));
  assert.ok(list.length >= 2);
});

test("a text without blank lines is cut at the end of a line, one without lines anywhere", () => {
  const lines = pieces("a line of thirty characters .\n".repeat(1_000));
  assert.ok(lines.length > 3 && lines.slice(0, -1).every((p) => p.endsWith(".\n") && p.length <= 8_000));
  const one = pieces("x".repeat(20_000));
  assert.deepEqual(one.map((p) => p.length), [8_000, 8_000, 4_000]);
});
