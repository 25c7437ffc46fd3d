import { idle, serve } from "./page.ts";
import { shows } from "./open.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import type { VNode } from "preact";
import type { Change } from "../api/events.ts";
import { go, view } from "../model/nav.ts";
import { panesReady } from "../model/startup.ts";
import { Toast } from "../parts/toast.tsx";
import { done } from "../parts/undo.ts";

const newest = (seq: number, entry: string) => ({ seq, commit: "c" + seq, entry, branch: "main" });

test("the state at an entry is that of the newest commit there, also after a visit", async () => {
  let seq = 3;
  serve((path) => path.endsWith("/commits") ? { commits: [{ ...newest(seq, "e"), head: "e" }] } : { snapshots: [], entries: [], buckets: [] });
  panesReady.value = true;
  const s = shows("s", { at: "e" });
  await idle();
  assert.equal(s.cursor.settled.value, 3);
  seq = 4;
  s.head.value = newest(4, "e");
  s.change.value = { seq: 4, head: "e", entries: [], state: [] } as unknown as Change;
  go({ at: "other" });
  go({ at: "e" });
  await idle();
  assert.equal(s.cursor.settled.value, 4);
});

test("the line that was read last below a version is shown again", async () => {
  const below: (string | null)[] = [];
  serve((_, query) => {
    if (query.get("below")) below.push(query.get("path"));
    return { entries: [{ type: "message", id: query.get("path"), parentId: null }] };
  });
  const s = shows("s", { line: "older leaf of a" });
  s.head.value = newest(9, "newest leaf of a");
  const mark = { versions: ["a", "b"], of: 2, version: 0, children: 1, label: "", onHead: true };
  await s.versions.choose({ ...mark, id: "a" }, 1, 0);
  await s.versions.choose({ ...mark, id: "b" }, -1, 0);
  assert.deepEqual(below, ["b", "older leaf of a"]);
});

/** click clicks the button of the toast with a label. */
function click(label: string): void {
  const find = (node: unknown): void => {
    if (Array.isArray(node)) return node.forEach(find);
    const { props } = (node ?? {}) as Partial<VNode<{ onClick?: () => void }>>;
    if (props?.children === label) props.onClick!();
    else if (props) find(props.children);
  };
  find(Toast());
}

test("Undo returns to where the person was, unless the person has moved on", async () => {
  serve(() => ({}));
  for (const [at, want] of [["new", "old"], ["elsewhere", "elsewhere"]]) {
    const s = shows("s", { at: "new" });
    s.head.value = newest(4, "new");
    done(s, "Added.", 3, '"c4"', { at: "old" });
    view.value = { ...view.value, at: at! };
    click("Undo");
    await idle();
    assert.equal(view.value.at, want);
  }
});
