import assert from "node:assert/strict";
import { test } from "node:test";
import { filters, format, forms, home, panes, parse, tabOf, tabs, zooms, type View } from "../model/url.ts";

const views: View[] = [
  home(), home("a.b-C_1"), { ...home("s"), line: "e/1 2", at: "ü&=?#", seq: 0, pane: "state", path: "" },
  ...panes.map((pane) => ({ ...home("s"), pane, compare: "seq:4", path: pane === "state" ? "/plan/~1step" : null })),
  ...zooms.map((rows) => ({ ...home("s"), rows })), ...forms.map((form) => ({ ...home("s"), pane: "context" as const, form })),
  ...tabs.map((tab) => ({ ...home("s"), tab })), { ...home("s"), pane: "state", text: true },
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

test("the history of a value is in the URL of the pane that shows it", () => {
  assert.equal(format("", { ...home("s"), pane: "context", path: "/plan" }), "/s/s?pane=context");
});

test("a phone shows the conversation, unless the URL needs or names another pane", () => {
  const of = (query: string, session = "/s/x") => tabOf(parse("", session, query));
  assert.deepEqual([of("", "/"), of(""), of("?pane=none"), of("?pane=state"), of("?pane=state&tab=talk"), of("?tab=side")],
    ["sessions", "talk", "talk", "side", "talk", "side"]);
});

test("what a URL says that the viewer does not know is left out", () => {
  assert.deepEqual(parse("", "/s/x", "?seq=-1&pane=boom&filter=nope&seq2=3&rows=huge&form=cobol&as=hex&tab=0"), home("x"));
  assert.deepEqual(parse("", "/s/%E0%A4%A", ""), home("%E0%A4%A"));
});
