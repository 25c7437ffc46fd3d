import assert from "node:assert/strict";
import { test } from "node:test";
import type { Element, Root } from "hast";
import { parse } from "../text/parse.ts";

/** words returns the text of a tree. */
function words(node: Root | Element): string {
  return node.children.map((c) => (c.type === "text" ? c.value : c.type === "element" ? words(c) : "")).join("");
}

/** tags returns the names of all elements of a tree, in order. */
function tags(node: Root | Element): string[] {
  return node.children.flatMap((c) => (c.type === "element" ? [c.tagName, ...tags(c)] : []));
}

for (const [what, text, want, elements] of [
  ["a type in a sentence", "an Array<string> of <Button> parts", "an Array<string> of <Button> parts", ["p"]],
  ["a block of tags", "<system-reminder>\nRead *this*.\n</system-reminder>", "<system-reminder>\nRead *this*.\n</system-reminder>", ["p"]],
  ["a tag and Markdown after it", "<plan>\n\n1. **go**\n\n</plan>", "<plan>\n\ngo\n\n</plan>", ["p", "ol", "li", "strong", "p"]],
  ["a script", "<script>executed(1)</script>", "<script>executed(1)</script>", ["p"]],
  ["an image", "a <img src=x onerror=executed(1)> b", "a <img src=x onerror=executed(1)> b", ["p"]],
  ["a comment", "<!-- not shown? -->", "<!-- not shown? -->", ["p"]],
  ["in a list and in a quotation", "- <b>x</b>\n- y\n\n> <div>", "<b>x</b>y<div>", ["ul", "li", "li", "blockquote", "p"]],
  ["in a table", "| a |\n|---|\n| <T> |", "a<T>", ["table", "thead", "tr", "th", "tbody", "tr", "td"]],
  ["in a heading", "# The <main> part", "The <main> part", ["h1"]],
  ["a definition", "see [it][1]\n\n[1]: https://a.example/b", "see it[1]: https://a.example/b", ["p", "a", "p"]],
] as const) {
  test("nothing of a text is left out: " + what, () => {
    const { root, whole } = parse(text);
    assert.equal(whole, true);
    assert.equal(words(root!).replaceAll("\n", ""), want.replaceAll("\n", "")); // blocks are joined by new lines
    assert.deepEqual(tags(root!), elements);
  });
}

test("HTML keeps its lines", () => {
  const text = "<system-reminder>\n  Read *this*.\n</system-reminder>";
  assert.equal(words(parse(text).root!), text);
});

test("what would run or load is no element", () => {
  const { root } = parse("<script>x</script>\n\n[a](javascript:x) <iframe src=x> ![i](x)");
  assert.deepEqual(tags(root!), ["p", "p", "a", "img"]);
  assert.ok(!JSON.stringify(root).includes('"javascript:x"'));
});
