import { idle, serve } from "./page.ts";
import { shows } from "./open.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { endsOf } from "../model/branches.ts";
import { panesReady } from "../model/startup.ts";

const branch = (name: string, head: string | null, title?: string) => ({ name, head, ...(title ? { title } : {}) });

test("branches are called by their titles, and a rollback does not collect names", () => {
  const list = [branch("main", "m", "main"), branch("rollback-1", "r", "Draw the table…"), branch("rollback-9", "r"), branch("rollback-3", "a"), branch("empty", null, "empty")];
  const main = { entry: "m", name: "main" };
  const other = { entry: "r", name: "Draw the table…" };
  assert.deepEqual(endsOf(list, { entry: "m", branch: "main" }), [main, other]);
  assert.deepEqual(endsOf(list, { entry: "r", branch: "rollback-9" }), [other, main]);
  assert.deepEqual(endsOf(list, { entry: "a", branch: "rollback-3" }), [{ entry: "a", name: "rollback-3" }, main, other]);
  assert.deepEqual(endsOf([], null), []);
});

test("a commit is on the branch that its title names", async () => {
  panesReady.value = true;
  serve((path) => (path.endsWith("/commits") ? { commits: [{ seq: 7, commit: "c7", head: "r", branch: "rollback-9" }] } : path.endsWith("/branches")
    ? { branches: [branch("main", "m", "main"), branch("rollback-1", "r", "Draw the table…"), branch("rollback-9", "r")] }
    : { entries: [], snapshots: [], buckets: [], sessions: [] }));
  const s = shows("a");
  await idle();
  assert.deepEqual(["main", "rollback-9", "gone"].map((name) => s.branches.titleOf(name)), ["main", "Draw the table…", "gone"]);
});
