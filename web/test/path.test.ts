import "./page.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Entry } from "../api/client.ts";
import { continuing, itemsOf, lineOf, mostLoaded, turnedTo, withNewer, withOlder } from "../model/path.ts";
import { anchorAt, covers, sliceAt, topOf } from "../model/slice.ts";

function entry(id: string, parentId: string | null, message: unknown = { role: "user", content: id }): Entry {
  return { type: "message", id, parentId, message };
}

/** path returns entries that follow each other: from, from+1 and so on. */
function path(from: number, to: number): Entry[] {
  return Array.from({ length: to - from }, (_, i) => entry(String(from + i), String(from + i - 1)));
}

const ids = (entries: readonly Entry[]) => entries.map((e) => e.id);

test("what is loaded is a stretch without gaps and repeats, and bounded in both directions", () => {
  let line = lineOf(path(5000, 5050), [], true, true);
  for (let i = 0; i < 30; i++) {
    const first = Number(line.entries[0]!.id);
    line = withOlder(line, lineOf(path(first - 99, first + 1), [], true, true));
  }
  assert.equal(line.entries.length, mostLoaded);
  assert.deepEqual(ids(line.entries), ids(path(Number(line.entries[0]!.id), Number(line.entries[0]!.id) + mostLoaded)));
  assert.equal(line.newer, true);
  for (let i = 0; i < 60; i++) {
    const last = Number(line.entries.at(-1)!.id);
    line = withNewer(line, lineOf(path(last, last + 100), [], true, i < 59));
  }
  assert.equal(line.entries.length, mostLoaded);
  assert.deepEqual([line.older, line.newer], [true, false]);
  assert.deepEqual(ids(line.entries), ids(path(Number(line.entries[0]!.id), Number(line.entries[0]!.id) + mostLoaded)));
});

test("another version keeps what is above it, and replaces what is below", () => {
  const line = lineOf(path(0, 100), [], true, false);
  const other = [...path(40, 50), entry("x", "49"), entry("y", "x")];
  const turned = turnedTo(line, lineOf(other, [], true, false));
  assert.deepEqual(ids(turned.entries), [...ids(path(0, 50)), "x", "y"]);
  assert.deepEqual([turned.older, turned.newer], [true, false]);
  const elsewhere = lineOf(path(900, 950), [], true, true);
  assert.equal(turnedTo(line, elsewhere), elsewhere);
});

test("a commit continues a line only if its entries grow from the end of that line", () => {
  const turn = [entry("a", "9"), entry("b", "a")];
  assert.deepEqual(ids(continuing({ entries: turn, head: "b" }, "9")!), ["a", "b"]);
  assert.equal(continuing({ entries: turn, head: "b" }, "8"), null, "it is on another line");
  assert.equal(continuing({ entries: [entry("b", "a")], head: "b" }, "9"), null, "an entry between is missing");
  assert.equal(continuing({ entries: [], head: "9" }, "9"), null);
  const label: Entry = { type: "label", id: "l", parentId: "9", targetId: "3" };
  assert.equal(continuing({ entries: [label], head: "9" }, "9"), null, "a label is not said");
  assert.deepEqual(ids(continuing({ entries: turn, head: "elsewhere" }, "9")!), ["a", "b"], "of a line that is not the head");
  const circle = [entry("a", "b"), entry("b", "a")];
  assert.equal(continuing({ entries: circle, head: "b" }, "9"), null);
});

test("results are shown at their calls, and alone where the call is not loaded", () => {
  const call = entry("c", null, { role: "assistant", content: [
    { type: "toolCall", id: "1", name: "bash", arguments: { command: "ls" } },
    { type: "toolCall", id: "2", name: "read", arguments: {} },
  ] });
  const result = (id: string, of: string) => entry(id, "c", { role: "toolResult", toolCallId: of, content: "out " + of });
  const items = itemsOf([result("r0", "0"), call, result("r2", "2"), result("r1", "1"), result("again", "1"), entry("u", "r1")]);
  assert.deepEqual(items.map((i) => i.ids), [["r0"], ["c", "r2", "r1"], ["again"], ["u"]]);
  assert.equal(items[1]!.results.get("2")!.part.text, "out 2");
  const mixed = entry("m", "c", { role: "user", content: [
    { type: "tool_result", tool_use_id: "1", content: "x" }, { type: "text", text: "and this" },
  ] });
  const two = itemsOf([call, mixed]);
  assert.deepEqual(two.map((i) => i.parts.map((p) => p.kind)), [["call", "call"], ["text"]]);
});

test("what is drawn covers the view, and its heights with those of the rest are all heights", () => {
  const heights = Array.from({ length: 500 }, (_, i) => 20 + ((i * 37) % 300));
  const whole = heights.reduce((a, b) => a + b, 0);
  for (let top = 0; top < whole - 10_000; top += 997) {
    const s = sliceAt(heights, top, 800, 400);
    assert.equal(s.above + heights.slice(s.from, s.to).reduce((a, b) => a + b, 0) + s.below, whole);
    assert.ok(covers(s, heights, top, 800, 400));
    assert.ok(s.to - s.from < 120, `${s.to - s.from} articles`);
    assert.ok(!covers(s, heights, top + 5000, 800, 400));
    const keys = heights.map((_, i) => "k" + i);
    assert.equal(topOf(keys, heights, anchorAt(keys, heights, top)!), top);
  }
  assert.deepEqual(sliceAt([], 0, 800, 400), { from: 0, to: 0, above: 0, below: 0 });
});

test("an anchor holds when entries come before it", () => {
  const before = ["a", "b", "c"];
  const anchor = anchorAt(before, [100, 100, 100], 130)!;
  assert.deepEqual(anchor, { key: "b", offset: -30 });
  assert.equal(topOf(["x", "y", ...before], [50, 70, 100, 100, 100], anchor), 250);
  assert.equal(topOf(["x"], [50], anchor), null);
});
