import assert from "node:assert/strict";
import { test } from "node:test";
import type { Commit } from "../api/client.ts";
import { Commits, pageSize } from "../model/commits.ts";
import { columns, flags, markOf, moved, seqAt, whole, xOf, zoom, type Mark } from "../model/ticks.ts";

function commit(seq: number, more: Partial<Commit> = {}): Commit {
  return {
    seq, commit: "c" + seq, reason: "turn", head: "e" + seq, branch: "main", time: "2026-01-02T03:04:05Z", entries: seq % 7,
    snapshot: null, writer: "w", epoch: 1, ...more,
  };
}

test("every commit is in one column, few or many, and the columns are in order", () => {
  for (const [newest, width] of [[0, 300], [9, 300], [299, 300], [300, 300], [10_000, 977], [1_000_000, 1200]] as const) {
    const list = columns(whole(newest), width, newest, () => 1);
    assert.equal(list.reduce((n, c) => n + c.count, 0), newest + 1, `${newest} on ${width}`);
    let next = 0;
    for (const c of list) {
      assert.equal(c.first, next);
      next += c.count;
      assert.ok(c.x >= 0 && c.x <= width);
    }
    assert.ok(list.length <= Math.max(newest + 1, 1) && list.length <= width + 1);
  }
});

test("a column is as tall as its largest commit, and says what is not known", () => {
  const list = columns({ from: 0, to: 100 }, 10, 99, (seq) => (seq < 50 ? (seq === 17 ? 90 : 1) : undefined));
  assert.deepEqual(list.map((c) => c.entries), [1, 90, 1, 1, 1, 0, 0, 0, 0, 0]);
  assert.deepEqual(list.map((c) => c.known), [true, true, true, true, true, false, false, false, false, false]);
});

test("the work for a long log is bounded", () => {
  let looks = 0;
  columns(whole(1_000_000), 1000, 1_000_000, () => {
    looks++;
    return undefined;
  });
  assert.ok(looks <= 1001 * 64, String(looks));
});

test("a place is that of its commit, at every zoom", () => {
  for (const span of [whole(1200), { from: 100, to: 150 }, { from: 33.3, to: 77.7 }]) {
    for (let seq = Math.ceil(span.from); seq < Math.floor(span.to) && seq <= 1200; seq += 7) {
      assert.equal(seqAt(xOf(seq, span, 5000), span, 5000, 1200), seq);
    }
  }
  assert.equal(seqAt(-50, whole(20), 300, 20), 0);
  assert.equal(seqAt(900, whole(20), 300, 20), 20);
});

test("zooming keeps the commit under the pointer, and stays within the log", () => {
  const span = zoom(whole(1000), 0.5, 300, 1000, 1000);
  assert.equal(seqAt(300, span, 1000, 1000), seqAt(300, whole(1000), 1000, 1000));
  assert.equal(Math.round(span.to - span.from), 501);
  assert.deepEqual(zoom(span, 100, 300, 1000, 1000), whole(1000));
  assert.equal(zoom(span, 1e-9, 0, 1000, 1000).to - span.from, 8);
  assert.deepEqual(moved({ from: 10, to: 20 }, -50, 1000), { from: 0, to: 10 });
  assert.deepEqual(moved({ from: 10, to: 20 }, 5000, 1000), { from: 991, to: 1001 });
});

test("marks that share a place are one, the weightiest, with their number", () => {
  const all: { seq: number; mark: Mark }[] = [
    { seq: 0, mark: "+" }, { seq: 500, mark: "S" }, { seq: 501, mark: "x" }, { seq: 502, mark: "C" }, { seq: 900, mark: "R" }];
  assert.deepEqual(flags(whole(999), 500, all).map((f) => [f.mark, f.count]), [["+", 1], ["x", 3], ["R", 1]]);
  assert.deepEqual(flags({ from: 495, to: 505 }, 500, all).map((f) => [f.mark, f.count]), [["S", 1], ["x", 1], ["C", 1]]);
});

test("marks that share a place are where the most telling of them is", () => {
  assert.deepEqual(flags(whole(213), 642, [{ seq: 105, mark: "S" }, { seq: 106, mark: "C" }, { seq: 107, mark: "S" }]),
    [{ x: xOf(106, whole(213), 642), mark: "C", count: 3 }]);
});

test("commits have the marks of what they did", () => {
  const of = (more: Partial<Commit>) => markOf(commit(5, more));
  assert.equal(of({}), null);
  assert.equal(of({ reason: "rollback", kept: "main", branch: "rollback-2" }), "R");
  assert.equal(of({ kept: "conflict-1", branch: "conflict-1" }), "x");
  assert.equal(of({ reason: "compaction" }), "C");
  assert.equal(of({ reason: "switch" }), "F");
  assert.equal(markOf(commit(0, { reason: "create" })), "+");
});

/** pages returns commits of a log, and the seqs that were asked for. */
function log(newest: number): { asked: number[]; commits: Commits; idle: () => Promise<void> } {
  const asked: number[] = [];
  const commits = new Commits(newest, async (seq, limit) => {
    asked.push(seq);
    return Array.from({ length: Math.min(limit, seq + 1) }, (_, i) => commit(seq - i, seq - i === 600 || newest > 9_999 ? { reason: "rollback" } : {}));
  }, new AbortController().signal, () => {});
  const idle = async () => {
    for (let n = -1; n !== asked.length;) {
      n = asked.length;
      for (let i = 0; i < 10; i++) await new Promise((ok) => setImmediate(ok));
    }
  };
  return { asked, commits, idle };
}

test("commits are read once, in pages, the nearest first", async () => {
  const { asked, commits, idle } = log(2300);
  commits.want(0, 2300, 700);
  await idle();
  assert.deepEqual(asked, [999, 499, 1499, 1999, 2300]);
  commits.want(0, 2300, 0);
  await idle();
  assert.equal(asked.length, 5);
  assert.equal(commits.get(2300)?.seq, 2300);
  assert.deepEqual([...commits.marks()].map((m) => m.seq).sort(), [0, 600]);
  commits.add(commit(2301));
  commits.want(0, 2301, 2301);
  await idle();
  assert.equal(asked.length, 5);
});

test("a page that is being read is not asked for again", async () => {
  const { asked, commits, idle } = log(2300);
  commits.want(0, 2300, 700);
  commits.want(0, 2300, 700);
  await idle();
  assert.deepEqual(asked, [999, 499, 1499, 1999, 2300]);
});

test("what is kept of a long log is bounded, around the cursor", async () => {
  const { asked, commits, idle } = log(999_999);
  commits.want(0, 999_999, 500_000);
  await idle();
  assert.ok(asked.length === 40, String(asked.length));
  assert.ok(commits.get(500_000));
  commits.want(0, 20, 3);
  await idle();
  assert.ok(commits.get(3));
  let kept = 0;
  for (let seq = 0; seq < 1_000_000; seq += pageSize) if (commits.get(seq)) kept++;
  assert.ok(kept <= 41, String(kept));
  for (let at = 0; at < 200_000; at += 40 * pageSize) {
    commits.want(at, at + 40 * pageSize - 1, at);
    await idle();
  }
  const marks = [...commits.marks()].length;
  assert.ok(marks <= 80 * pageSize, `${marks} marks are kept`);
});
