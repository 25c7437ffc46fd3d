import assert from "node:assert/strict";
import { test } from "node:test";
import { costAt, grown, type CostAt } from "../model/costs.ts";

test("the sum at a commit is that of the last point up to it", () => {
  const points = [{ seq: 2, cost: 0.5 }, { seq: 4, cost: 1.5 }];
  assert.deepEqual([0, 1, 2, 3, 4, 9].map((seq) => costAt(points, seq)), [0, 0, 0.5, 0.5, 1.5, 1.5]);
  assert.equal(costAt([], 7), 0);
});

test("a commit that costs something adds a point, once; one that does not adds none", () => {
  const points = [{ seq: 2, cost: 0.5 }];
  assert.deepEqual(grown(points, 3, 0.25), [{ seq: 2, cost: 0.5 }, { seq: 3, cost: 0.75 }]);
  assert.equal(grown(points, 3, 0), points);
  assert.equal(grown(points, 2, 1), points);
  let many: readonly CostAt[] = [];
  for (let seq = 1; seq <= 5000; seq++) many = grown(many, seq, 1);
  assert.ok(many.length <= 2001);
  assert.equal(costAt(many, 5000), 5000);
});
