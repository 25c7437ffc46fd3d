import assert from "node:assert/strict";
import { test } from "node:test";
import { States } from "../model/states.ts";

const never = new AbortController().signal;

test("a state is read once, and those around it before they are wanted", async () => {
  const asked: number[] = [];
  const states = new States(async (seq) => {
    asked.push(seq);
    return `{"n":${seq}}`;
  });
  assert.equal(await states.load(3, never), '{"n":3}');
  await states.prefetch(3, 5);
  assert.deepEqual(asked, [3, 2, 4, 1, 5, 0]);
  assert.equal(await states.load(4, never), '{"n":4}');
  assert.equal(asked.length, 6);
  assert.equal(states.get(-1), "null");
});

test("reading ahead ends when a state is wanted, and long states are not read ahead", async () => {
  const asked: number[] = [];
  const states = new States(async (seq) => {
    asked.push(seq);
    return "1".repeat(seq === 500 ? 1 << 20 : 1);
  });
  await states.load(100, never);
  const reading = states.prefetch(100, 1000);
  await states.load(300, never);
  await reading;
  assert.deepEqual(asked, [100, 99, 300]);
  await states.load(500, never);
  await states.prefetch(500, 1000);
  assert.equal(asked.at(-1), 500);
});

test("what is kept is bounded", async () => {
  const states = new States(async () => "1".repeat(1 << 20));
  for (let seq = 0; seq < 100; seq++) await states.load(seq, never);
  let kept = 0;
  for (let seq = 0; seq < 100; seq++) if (states.get(seq) !== undefined) kept++;
  assert.equal(kept, 32);
  assert.ok(states.get(99));
});
