import assert from "node:assert/strict";
import { test } from "node:test";
import { begins, edges, foldedBetween, laneX } from "../model/lanes.ts";

const row = (indent: number, children = 1, versions = 1) => ({ indent, children, versions });

test("a version hangs on the line that it left, and lanes beside it go on", () => {
  const parent = row(0, 3);
  const [first, below, second, main] = [row(1, 1, 3), row(1, 0), row(1, 0, 3), row(0, 0, 3)];
  assert.deepEqual([begins(first, parent), begins(below, first), begins(second, below), begins(main, second)], [true, false, true, false]);
  assert.equal(begins(first, undefined), false, "what is above is not loaded");
  assert.equal(edges(first, parent, 24), `M${laneX(0)} 0Q${laneX(0)} 12 ${laneX(1)} 12M${laneX(1)} 12V24`);
  assert.equal(edges(below, first, 24), `M${laneX(1)} 0V12`);
  assert.equal(edges(main, second, 24), `M${laneX(0)} 0V12`);
  assert.match(edges(row(2, 1), row(2, 1), 24), new RegExp(`^M${laneX(1)} 0V24`));
  assert.equal(edges(row(0, 0), undefined, 24), "");
});

test("what a filter folds between two rows is told where it is much", () => {
  const at = (id: string, ordinal: number, parentId: string | null = null, children = 1) => ({ id, ordinal, parentId, children });
  assert.equal(foldedBetween(at("a", 3), at("b", 50, "a")), 46);
  assert.equal(foldedBetween(at("a", 3), at("b", 6, "a")), 0);
  assert.equal(foldedBetween(at("a", 3, null, 2), at("b", 50, "a")), 0, "others hang between them");
  assert.equal(foldedBetween(at("a", 3), undefined), 0);
});
