import "./page.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { signal } from "@preact/signals";
import type { Entry, Row } from "../api/client.ts";
import { hasFailed, nextFailure, withFailed } from "../model/failures.ts";
import { alive, resource } from "../model/resource.ts";
import { rollUp, spend } from "../model/spend.ts";
import { hasOne } from "../model/ticks.ts";
import { failedTurns, isImported, turnAt, turnsOf } from "../model/turns.ts";
import { idle } from "./page.ts";

const time = (minute: number) => new Date(Date.UTC(2026, 2, 2, 9, minute)).toISOString();
const entry = (id: string, message: object, minute = 0): Entry => ({ type: "message", id, parentId: null, timestamp: time(minute), message });
const result = (id: string, isError: boolean, minute = 0) => entry(id, { role: "toolResult", toolCallId: "1", content: "out", isError }, minute);

test("failures are answers that ended in an error, and results of calls that failed", () => {
  assert.ok(hasFailed(result("r", true)));
  assert.ok(!hasFailed(result("r", false)));
  assert.ok(hasFailed(entry("a", { role: "assistant", content: [], stopReason: "error", errorMessage: "overloaded" })));
  assert.ok(hasFailed(entry("u", { role: "user", content: [{ type: "tool_result", tool_use_id: "1", content: "x", is_error: true }] })));
  assert.ok(!hasFailed(entry("u", { role: "user", content: "an error" })));
});

test("what fails in a commit that arrives is counted, and the next failure comes around the end", () => {
  const known = withFailed({ list: [], total: 0 }, { seq: 4, time: time(0), entries: [result("a", true, 1), result("b", false, 2)] });
  assert.deepEqual([known.list.map((f) => [f.entry, f.seq]), known.total], [[["a", 4]], 1]);
  const { list } = withFailed(known, { seq: 5, time: time(3), entries: [result("c", true, 3)] });
  const next = (at: string | null, t?: string) => nextFailure(list, at, t)?.entry;
  assert.deepEqual([next("a"), next("c"), next(null), next("x", time(2)), next("x", time(9))], ["c", "a", "a", "c", "a"]);
  assert.equal(nextFailure([], null, undefined), undefined);
});

test("sessions of the list count what failed", () => {
  const usage = { total: 1, cost: 1, output: 1 };
  const list = spend([{ session: "s", usage, failed: 2 }, { session: "t", usage }], "s", [], 1);
  const sums = rollUp(list);
  assert.deepEqual([sums.get("s")!.failed, sums.get("t")!.failed], [3, 0]);
});

test("a session that was imported has a tick for each turn, by its time", () => {
  assert.ok(isImported(["create", "import", "roll"]));
  assert.ok(!isImported(["create", "turn"]));
  assert.ok(!isImported(["create"]));
  const row = (id: string, minute: number, role = "user") => ({ id, role, time: time(minute), preview: id, onPath: true }) as Row;
  const turns = turnsOf([row("late", 30), row("x", 5, "assistant"), row("early", 10)]);
  assert.deepEqual(turns.map((t) => t.entry), ["early", "late"]);
  assert.deepEqual([turnAt(turns, time(1)), turnAt(turns, time(10)), turnAt(turns, time(29)), turnAt(turns, time(31))], [0, 0, 0, 1]);
  const failed = [12, 40, 45].map((minute) => ({ entry: "e" + minute, seq: 1, time: time(minute) }));
  assert.deepEqual(failedTurns(turns, failed), [0, 1]);
});

test("a tick is red if one of its commits failed", () => {
  const failed = [3, 9, 200];
  assert.deepEqual([[0, 3], [3, 1], [4, 5], [4, 6], [201, 9]].map(([first, n]) => hasOne(failed, first!, n!)), [false, true, false, true, false]);
});

test("a resource shows nothing of another key, and reads again what could not be read", async () => {
  const key = signal<string | null>("a");
  const waiting = new Map<string, (v: string) => void>();
  const aborted: string[] = [];
  let fails = true;
  const r = resource(() => key.value, (k, abort) => {
    abort.addEventListener("abort", () => aborted.push(k));
    if (k === "bad" && fails) return Promise.reject(new Error("the server does not answer"));
    return new Promise<string>((done) => waiting.set(k, done));
  });
  assert.deepEqual([r.value.value, r.busy.value], [null, true]);
  key.value = "b";
  waiting.get("a")!("of a");
  await idle();
  assert.deepEqual([r.value.value, r.busy.value, aborted], [null, true, ["a"]]);
  waiting.get("b")!("of b");
  await idle();
  assert.deepEqual([r.value.value, r.busy.value], ["of b", false]);
  key.value = "bad";
  assert.equal(r.value.value, null);
  await idle();
  assert.deepEqual([r.value.value, r.busy.value, r.error.value], [null, false, "the server does not answer"]);
  fails = false;
  alive.value++;
  assert.deepEqual([r.busy.value, r.error.value], [true, ""]);
  waiting.get("bad")!("now");
  await idle();
  assert.equal(r.value.value, "now");
  key.value = null;
  assert.deepEqual([r.value.value, r.busy.value], [null, false]);
  r.end();
});
