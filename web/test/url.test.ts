import assert from "node:assert/strict";
import { test } from "node:test";
import { filters, format, home, panes, parse, type View } from "../model/url.ts";

const views: View[] = [
  home(), home("a.b-C_1"), { ...home("s"), line: "e/1 2", at: "ü&=?#", seq: 0, pane: "state", path: "" },
  ...panes.map((pane) => ({ ...home("s"), pane, compare: "seq:4", path: "/plan/~1step" })),
  ...filters.map((filter) => ({ ...home("s"), filter, search: "two words <b>" })),
];

test("a URL shows what it was made of, below any base", () => {
  for (const base of ["", "/coppice", "/coppice/t/acme"]) {
    for (const v of views) {
      const url = new URL(format(base, v), "http://x");
      assert.deepEqual(parse(base, url.pathname, url.search), v);
    }
  }
});

test("what a URL says that the viewer does not know is left out", () => {
  assert.deepEqual(parse("", "/s/x", "?seq=-1&pane=boom&filter=nope&seq2=3"), home("x"));
  assert.deepEqual(parse("", "/s/%E0%A4%A", ""), home("%E0%A4%A"));
});
