import assert from "node:assert/strict";
import { test } from "node:test";
import { Newest } from "../model/newest.ts";

/** Jobs are under way until the test ends them. */
class Jobs {
  begun: { place: number; signal: AbortSignal; end: (err?: unknown) => void }[] = [];
  done: number[] = [];
  failed: number[] = [];
  most = 0;
  private running = 0;

  newest(patience: number): Newest<number, number> {
    return new Newest((place, signal) => new Promise<number>((ok, no) => {
      this.most = Math.max(this.most, ++this.running);
      const end = (err?: unknown) => {
        this.running--;
        if (err === undefined) ok(place * 10);
        else no(err);
      };
      signal.addEventListener("abort", () => end(signal.reason));
      this.begun.push({ place, signal, end });
    }), (place, value) => this.done.push(place, value), (place) => this.failed.push(place), patience);
  }
}

const turn = () => new Promise((ok) => setImmediate(ok));

test("only the newest place is read, one at a time, and the one before is aborted", async () => {
  const jobs = new Jobs();
  const n = jobs.newest(0);
  for (let place = 1; place <= 100; place++) n.ask(place);
  await turn();
  assert.deepEqual(jobs.begun.map((j) => j.place), [1, 100]);
  assert.equal(jobs.begun[0]!.signal.aborted, true);
  jobs.begun[1]!.end();
  await turn();
  assert.deepEqual(jobs.done, [100, 1000]);
  assert.equal(jobs.most, 1);
});

test("with patience a job may end, so that a cursor that keeps moving shows something", async () => {
  const jobs = new Jobs();
  const n = jobs.newest(3);
  n.ask(1);
  n.ask(2);
  n.ask(3);
  jobs.begun[0]!.end();
  await turn();
  assert.deepEqual(jobs.done, [1, 10]);
  assert.deepEqual(jobs.begun.map((j) => j.place), [1, 3]);
});

test("a failure is reported, and the next place is read", async () => {
  const jobs = new Jobs();
  const n = jobs.newest(0);
  n.ask(1);
  jobs.begun[0]!.end(new Error("no"));
  await turn();
  n.ask(2);
  jobs.begun[1]!.end();
  await turn();
  assert.deepEqual([jobs.failed, jobs.done], [[1], [2, 20]]);
  n.ask(3);
  n.end();
  await turn();
  assert.deepEqual([jobs.failed, jobs.done], [[1], [2, 20]]);
});
