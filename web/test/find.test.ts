import { serve } from "./page.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { find } from "../model/find.ts";

test("a search tells how much of the store it has looked at", async () => {
  const parts: Record<string, number> = { "/v1/search": 0.4, "/v1/prompts": 0.7 };
  serve((path) => ({ sessions: [], prompts: [], matches: [], ...(path in parts ? { indexing: parts[path] } : {}) }));
  const { signal } = new AbortController();
  assert.equal((await find("tide", signal)).indexing, 0.4);
  delete parts["/v1/search"];
  delete parts["/v1/prompts"];
  assert.deepEqual(await find("tide", signal), { list: [], indexing: null });
});
