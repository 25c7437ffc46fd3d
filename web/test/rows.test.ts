import assert from "node:assert/strict";
import { test } from "node:test";
import { chunk, firstRow, heightOf, offsetOf, Rows, tallest, type Ask, type Stretch } from "../model/rows.ts";

interface R {
  id: string;
}

/** server answers like the service: rows of a view of a length, and what was asked of it. */
function server(total: number): { asked: Ask[]; load: (ask: Ask) => Promise<Stretch<R>> } {
  const asked: Ask[] = [];
  const load = (ask: Ask): Promise<Stretch<R>> => {
    asked.push(ask);
    const at = ask.around === undefined ? undefined : Number(ask.around.slice(1));
    const from = at === undefined ? ask.from! : Math.max(0, at - Math.floor(ask.count / 2));
    const rows = Array.from({ length: Math.max(0, Math.min(ask.count, total - from)) }, (_, i) => ({ id: "e" + (from + i) }));
    return Promise.resolve({ view: "v", total, from, rows, at });
  };
  return { asked, load };
}

test("rows around an entry are where the view has them, though they begin within a chunk", async () => {
  const s = server(1_000_000);
  const rows = new Rows(s.load, new AbortController().signal);
  assert.equal(await rows.start("e500050"), 500_050);
  assert.equal(rows.at(500_050)?.id, "e500050");
  assert.equal(rows.indexOf("e500049"), 500_049);
  await rows.ensure(500_000, 200);
  for (let i = 500_000; i < 500_200; i++) assert.equal(rows.at(i)?.id, "e" + i);
});

test("rows that are there are not asked for again, and two that want them ask once", async () => {
  const s = server(1000);
  const rows = new Rows(s.load, new AbortController().signal);
  await rows.start(null);
  await Promise.all([rows.ensure(200, 50), rows.ensure(210, 50)]);
  await rows.ensure(0, 400);
  assert.equal(s.asked.length, 2);
});

test("what is kept is bounded, however far one scrolls", async () => {
  const s = server(1_000_000);
  const rows = new Rows(s.load, new AbortController().signal);
  await rows.start(null);
  for (let from = 0; from < 100 * chunk; from += chunk) await rows.ensure(from, chunk);
  let kept = 0;
  for (let i = 0; i < 100 * chunk; i++) if (rows.at(i)) kept++;
  assert.equal(kept, 20 * chunk);
});

test("an answer of the rows of before does not come among those of now", async () => {
  let answer: (() => void) | null = null;
  const s = server(1000);
  const rows = new Rows<R>((ask) => (ask.from === 400
    ? new Promise((done) => (answer = () => done({ view: "old", total: 1000, from: 400, rows: [{ id: "stale" }] })))
    : s.load(ask)), new AbortController().signal);
  await rows.start(null);
  const late = rows.ensure(400, 1);
  await rows.start(null);
  answer!();
  await late;
  assert.equal(rows.at(400), undefined);
});

test("the scroll bar reaches every row, though the element is shorter than the rows", () => {
  for (const [total, height] of [[10, 24], [1000, 24], [1_000_000, 24], [5_000_000, 44]] as const) {
    assert.ok(heightOf(total, height) <= tallest);
    const shown = 600 / height;
    assert.equal(firstRow(0, 600, total, height), 0);
    const last = firstRow(heightOf(total, height) - 600, 600, total, height);
    assert.ok(Math.abs(last - Math.max(0, total - shown)) < 1e-6);
    for (const row of [0, total / 3, total - shown].filter((r) => r >= 0 && r <= total - shown)) {
      assert.ok(Math.abs(firstRow(offsetOf(row, 600, total, height), 600, total, height) - row) < 1e-6 * total);
    }
  }
});
