// The tests of this package: each has a time limit, so that one that hangs fails under its name. --test-timeout bounds a file.
import * as node from "node:test";

/** The limit of a test, in milliseconds: many times the time of the slowest, since the machine may be busy. */
export const limit = 180_000;

export function test(name: string, body: (t: node.TestContext) => unknown): void {
  void node.test(name, { timeout: limit }, async (t) => void (await body(t)));
}

/** Prepares what the tests of a file share. */
export function before(body: (t: node.TestContext) => unknown): void {
  node.before(async (t) => void (await body(t as node.TestContext)), { timeout: limit });
}
