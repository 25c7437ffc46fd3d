// The table of shapes is the same as in Go: internal/message/testdata/vectors.json, which its test writes.
import assert from "node:assert/strict";
import { test } from "node:test";
import vectors from "../../internal/message/testdata/vectors.json";
import { read, type Part } from "../model/message.ts";

interface Want {
  speaker: string;
  failed?: string;
  tokens?: number;
  parts: unknown[];
}

/** lean returns what a vector has of a part: fields that are empty are left out. */
function lean(p: Part): unknown {
  const absent = (key: string, v: unknown) =>
    !v || key === "value" || key === "exit" || key === "agent" || (Array.isArray(v) && v.length === 0);
  const fields = Object.entries(p).map(([key, v]) => [key, key === "parts" ? (v as Part[]).map(lean) : v] as const);
  return Object.fromEntries(fields.filter(([key, v]) => !absent(key, v)));
}

for (const { name, message, want } of vectors as { name: string; message: Record<string, unknown>; want: Want }[]) {
  test("message: " + name, () => {
    const { speaker, failed, tokens, parts } = read(message);
    assert.deepEqual({ speaker, failed, tokens, parts: parts.map(lean) }, { failed: "", tokens: 0, ...want });
  });
}
