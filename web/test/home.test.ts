import "./page.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Session } from "../api/client.ts";
import { daysOf, drawing, folderOf, isRunning, twigsOf, valuesOf } from "../model/home.ts";

const now = new Date(2026, 2, 3, 12, 0);
const at = (day: number, hour: number) => new Date(2026, 2, day, hour).toISOString();
const nested = (s: Partial<Session>, ...children: Partial<Session>[]) => ({
  session: s as Session, children: children.map((c) => ({ session: c as Session, children: [] })),
});

test("sessions are by day, in their order, and one that waits for hours does not run", () => {
  const list = [nested({ id: "a", updated: at(3, 9) }), nested({ id: "b", updated: at(3, 1) }), nested({ id: "c", updated: at(2, 23) }), nested({ id: "d", updated: at(1, 8) })];
  assert.deepEqual(daysOf(list, now).map((d) => [d.name, ...d.sessions.map((n) => n.session.id)]),
    [["Today", "a", "b"], ["Yesterday", "c"], ["1 Mar 2026", "d"]]);
  const runs = (status: string, updated: string) => isRunning({ status, updated } as Session, now);
  assert.deepEqual([runs("calling", new Date(2026, 2, 3, 11, 55).toISOString()), runs("calling", at(3, 9)), runs("answered", at(3, 12))], [true, false, false]);
  const all = [nested({ cwd: "/a/b" }), nested({ cwd: "" }), nested({ cwd: "/a/b" })];
  assert.deepEqual(valuesOf(all, (n) => n.session.cwd), ["/a/b"]);
  assert.equal(folderOf("C:\\src\\tide"), "tide");
});

test("what a session started leaves its line where it began, within the drawing", () => {
  const child = (created: string, updated: string, relation: string) => ({ created, updated, relation });
  const twigs = twigsOf(nested({ created: at(1, 0), updated: at(2, 0) }, child(at(1, 12), at(1, 18), "agent"), child(at(2, 0), at(9, 0), "fork")));
  assert.deepEqual(twigs.map((t) => t.fork), [false, true]);
  for (const { d } of twigs) {
    for (const x of d.matchAll(/[MHQ](\d+)/g)) assert.ok(Number(x[1]) <= drawing.width, d);
  }
  assert.ok(twigs[0]!.d.startsWith("M41 "));
  assert.equal(twigsOf(nested({}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})).length, 8);
});
