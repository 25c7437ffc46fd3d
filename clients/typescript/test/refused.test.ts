// Values that are refused before anything is sent: ids, keys, tokens, addresses and JSON that cannot be transmitted.
import assert from "node:assert/strict";
import { CoppiceError, InvalidArgument, RawJSON, Store } from "coppice-client";
import { test } from "./limit.js";
import { network, stored } from "./network.js";

const usage = (e: unknown): boolean => e instanceof InvalidArgument && e.code === "usage" && e.outcome === "not-applied";

test("an id cannot change the path", async () => {
  for (const id of ["", ".", "..", "%2e", "%2E", ".%2e", "%2e%2E", "a\ud800"]) {
    const n = network([stored()]), s = n.store.session(id);
    s.base = "c0";
    for (const call of [() => s.resume(), () => s.commit([]), () => s.delete(), () => s.partial("x"), () => s.follow().next(), () => n.store.create(id),
      () => n.session.entry(id), () => n.session.commitAt(id), () => n.session.blob(id), () => n.session.versions(id)]) {
      await assert.rejects(call(), usage, JSON.stringify(id));
    }
    assert.throws(() => new Store("http://service", { tenant: id }), usage, JSON.stringify(id));
    assert.equal(n.sent.length, 0);
  }
  const n = network([stored()]);
  for (const id of ["...", "a..b", ".a", "%2e%2e%2fx", "?x#y"]) await n.store.session(id).stateAt();
  assert.deepEqual(n.sent.map((r) => r.url.slice("http://service/v1/sessions/".length)),
    ["...", "a..b", ".a", "%252e%252e%252fx", "%3Fx%23y"].map((id) => `${id}/state`));
});

test("an address is one of a service", () => {
  for (const address of ["", "service:7070", "/v1", "ftp://service", "http://", "http://user@service", "http://u:p@service", "http://service/?q", "http://service/#f"]) {
    assert.throws(() => new Store(address), usage, address);
  }
});

test("a key, a base or a token that no header can carry", async () => {
  const bad = ["", " ", "a ", " a", "\u043a\u043b\u044e\u0447", "a\nb", "a\r", "a\u0000", "a\tb", "\u007f", "\u0085", "\u20ac"];
  for (const text of bad) {
    const n = network([stored()]);
    for (const call of [() => n.session.commit([], { key: text }), () => n.store.create("s", { key: text }), () => n.session.switch({ to: "b" }, { key: text })]) {
      await assert.rejects(call(), usage, JSON.stringify(text));
    }
    assert.throws(() => new Store("http://service", { token: text }), usage);
    assert.equal(n.sent.length, 0);
  }
  assert.throws(() => new Store("http://service", { token: "secret\n" }), (e: CoppiceError) => usage(e) && !e.message.includes("secret"));
  const n = network([stored()], { token: "t\u00e9" });
  await assert.rejects(n.session.commit([], { base: "a\nb" }), usage);
  await n.session.commit([], { key: "a b \u00e9" });
  assert.deepEqual([n.sent.length, n.sent[0]!.headers.get("Idempotency-Key")], [1, "a b \u00e9"]);
});

test("a value that JSON does not have, with its place", async () => {
  const round: unknown[] = [];
  round.push(round);
  let deep: unknown = 1;
  for (let i = 0; i < 600; i++) deep = [deep];
  for (const value of [NaN, Infinity, -Infinity, new Map([[1, 2]]), new Set([1]), Symbol("s"), () => 1, new Uint8Array(2), new Error("e"),
    new Date(NaN), /x/, Promise.resolve(), round, deep, [undefined], [, 1], { toJSON: () => NaN }]) {
    const n = network([stored()]);
    for (const call of [() => n.session.commit([], { state: { a: { b: value } } }), () => n.session.commit([{ role: "user", content: value }]),
      () => n.session.setInfo({ meta: { k: value as string } }), () => n.session.partial(value), () => n.store.create("s", { meta: { k: value as string } })]) {
      await assert.rejects(call(), usage, String(value));
    }
    assert.equal(n.sent.length, 0);
  }
  await assert.rejects(network([stored()]).session.commit([], { state: { a: [{ b: NaN }] } }), { message: "state.a.0.b: JSON has no NaN; nothing was sent" });
});

test("what JSON has is sent as JSON.stringify writes it, with all digits", async () => {
  class Counter { n = 1; at = new Date(0); none = undefined; get double() { return 2; } }
  const plain = { "": [1, -0, 1e21, 5e-324, "\ud800\u2028", true, null], __proto__: null, c: new Counter(), u: new URL("http://a/"), sym: { [Symbol("x")]: 1 } };
  const n = network([stored()]);
  await n.session.commit([], { state: plain });
  assert.equal(n.sent[0]!.body, `{"entries":[],"state":${JSON.stringify(plain)}}`);
  await n.session.commit([], { state: { big: 2n ** 70n, raw: new RawJSON('{"n":1e400, "half":"\ud800"}') } });
  assert.equal(n.sent[1]!.body, '{"entries":[],"state":{"big":1180591620717411303424,"raw":{"n":1e400, "half":"\\ud800"}}}');
});
