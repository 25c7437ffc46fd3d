// The check of answers: for every operation, only an answer of the service is accepted.
import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { Conflict, CoppiceError, Deleted, Exists, Forbidden, KeyReused, NotFound, OutcomeUnknown, Session, Store, Unauthorized,
  Unavailable } from "coppice-client";
import { test } from "./limit.js";
import { json, keyed, network, problem, reads, stored, writes } from "./network.js";

/** Starts a server, which ends with the test; returns its address. */
async function serve(t: TestContext, answer: (q: IncomingMessage, a: ServerResponse) => void): Promise<string> {
  const server = createServer((q, a) => q.resume().on("end", () => answer(q, a)));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  t.after(() => (server.closeAllConnections(), server.close()));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("the lists of operations are complete", () => {
  const names = (of: object): string[] => {
    const own = Object.getOwnPropertyNames(of);
    return own.includes("pages") ? [] : [...own, ...names(Object.getPrototypeOf(of))]; // up to Requests
  };
  const others = new Set(["constructor", "move", "write", "sendPartials", "session", "partial", "follow", "open", "upload"]);
  const want = [...names(Session.prototype), ...names(Store.prototype)].filter((name) => !others.has(name)).sort();
  assert.deepEqual([...Object.keys(reads), ...Object.keys(writes)].map((name) => name.replace("Store.", "")).sort(), want);
});

test("an answer of another program is an error after a read, and leaves a write unknown", async () => {
  const bodies: [string | null, string | undefined][] = [["<html>Log in</html>", "text/html"], ["", "application/json"], ["{}", "application/json"],
    ['{"status":"up"}', "application/json; charset=utf-8"], ['{"entries":[],"seq":1,"comm', "application/json"], ["[]", "application/json"],
    ["null", "application/json"], ['{"entries":null,"seq":1,"commit":"","io":{}}', "application/json"], ['{"a":1}', undefined], ["ok", "text/plain"]];
  for (const status of [200, 201, 202, 203, 204, 206, 304]) {
    for (const [body, type] of bodies) {
      const answer = () => new Response(status === 204 || status === 304 ? null : body, { status, headers: type ? { "Content-Type": type } : {} });
      const what = `${status} ${type} ${body}`;
      for (const [name, call] of Object.entries(reads)) {
        const isState = name === "stateAt" || name === "entry" || name === "doc"; // any JSON
        if (isState && status === 200 && /^(\{\}|\[\]|null|\{.*\})$/.test(body ?? "") && type) continue;
        if (name === "health" && status === 200 && body === '{"status":"up"}') continue;
        const n = network([answer()]);
        await assert.rejects(call(n.session, {}, n.store), (e: CoppiceError) => e instanceof CoppiceError && e.code === "answer" && e.outcome === "not-applied", `${name}: ${what}`);
        assert.equal(n.sent.length, 1, name);
      }
      for (const [name, call] of Object.entries(writes)) {
        const n = network([answer()]);
        const e = await call(n.session, {}, n.store).then(() => assert.fail(`${name}: ${what}`), (e: unknown) => e);
        assert.ok(e instanceof OutcomeUnknown, `${name}: ${what}: ${e}`);
        assert.deepEqual([(e.cause as CoppiceError).code, e.key !== undefined, n.sent.length, n.session.base], ["answer", keyed.has(name), 1, "c0"], name);
      }
      assert.equal(await network([answer()]).session.partial("x"), status === 204, what);
      await assert.rejects(network([answer()]).session.follow().next(), { code: "answer" });
    }
  }
});

test("a page of a proxy with a status of 4xx is no answer of the service", async () => {
  for (const status of [400, 401, 403, 404, 409, 412, 413, 422]) {
    const page = () => new Response("<html>Blocked</html>", { status, headers: { "Content-Type": "text/html" } });
    for (const [name, call] of Object.entries(writes)) {
      const n = network([page()]);
      const e = await call(n.session, {}, n.store).then(() => assert.fail(name), (e: unknown) => e);
      assert.ok(e instanceof OutcomeUnknown && e.status !== 200 && n.sent.length === 1, `${name} ${status}: ${e}`);
    }
    for (const [name, call] of Object.entries(reads)) {
      await assert.rejects(call(network([page()]).session, {}, network([page()]).store), { code: "answer", outcome: "not-applied" }, name);
    }
  }
});

test("a receipt of another session, or with values that the service never sends, counts for nothing", async () => {
  const moved = { head: null, branch: "main", seq: 2 };
  const tag = { etag: "c9" };
  const wrong: [keyof typeof writes, object, object?][] = [
    ["delete", { deleted: false, session: "s" }], ["delete", { deleted: true, session: "other" }],
    ["create", { session: null }, { status: 201, ...tag }], ["create", { session: "other" }, { status: 201, ...tag }],
    ["fork", { session: "other" }, { status: 201, ...tag }], ["switch", { ...moved, branch: null }, tag], ["label", { ...moved, seq: null }, tag],
    ["claim", { ...moved, seq: -1 }, tag], ["commit", { entries: null, seq: 1, commit: "c", head: null, branch: "main", io: {} }], ["commit", { entries: [], seq: -13, commit: "c", head: null, branch: "main", io: {} }],
  ];
  for (const [name, doc, init] of wrong) {
    const n = network([json(doc, init)]);
    await assert.rejects(writes[name]!(n.session, {}, n.store), OutcomeUnknown, `${name} ${JSON.stringify(doc)}`);
  }
});

test("a creation, a fork and a move need the ETag that the next write is made on", async () => {
  const doc = { session: "new", head: "e", branch: "main", seq: 2, state: null };
  for (const [name, status] of [["create", 201], ["fork", 201], ["switch", 200], ["rollback", 200], ["label", 200]] as const) {
    const n = network([json(doc, { status })]);
    await assert.rejects(writes[name]!(n.session, {}, n.store), OutcomeUnknown, name);
    const whole = network([json(doc, { status, etag: "c2" })]);
    await writes[name]!(whole.session, {}, whole.store);
  }
});

test("a commit that another program answered can be sent again, under its key", async () => {
  const n = network([new Response("<html>", { headers: { "Content-Type": "text/html" } }), stored({ repeated: true })]);
  const e = await n.session.commit([{ role: "user", content: "x" }]).then(() => assert.fail(), (e: unknown) => e);
  assert.ok(e instanceof OutcomeUnknown);
  assert.equal((await e.retry!()).repeated, true);
  assert.deepEqual(n.sent[1], n.sent[0]);
  assert.equal(n.session.base, "c1");
});

test("an export has the type of its format", async () => {
  for (const [format, type] of [["pi", "application/x-ndjson"], ["html", "text/html"], ["markdown", "text/markdown"]] as const) {
    for (const is of ["application/x-ndjson", "text/html; charset=utf-8", "text/markdown"]) {
      const n = network([new Response("x", { headers: { "Content-Type": is } })]);
      if (is.startsWith(type)) assert.equal(await (await n.session.export({ format })).text(), "x");
      else await assert.rejects(n.session.export({ format }), { code: "answer" });
    }
  }
});

test("a write that is redirected is not sent to another place, and is unknown", async (t) => {
  const seen: string[] = [];
  let status = 0;
  const url = await serve(t, (q, a) => {
    seen.push(`${q.method} ${q.url}`);
    if (q.url!.startsWith("/old/")) return void a.writeHead(status, { Location: q.url!.replace("/old/", "/") }).end();
    a.writeHead(200, { "Content-Type": "application/json", ETag: '"c9"' }).end('{"sessions":[],"entries":[],"seq":9,"commit":"c9","head":null,"branch":"main","io":{}}');
  });
  for (status of [301, 302, 303, 307, 308]) {
    for (const [name, call] of Object.entries(writes)) {
      const store = new Store(`${url}/old`), s = store.session("s");
      s.base = "c0";
      seen.length = 0;
      await assert.rejects(call(s, {}, store), (e) => e instanceof OutcomeUnknown && /redirect to \/v1\//.test(e.message), `${name} ${status}`);
      assert.deepEqual([seen.length, s.base], [1, "c0"], `${name} ${status}: ${seen}`);
    }
    assert.equal(await new Store(`${url}/old`).session("s").partial("x"), false);
  }
});

test("a read follows redirects within the origin, a bounded number of them, and takes its token nowhere else", async (t) => {
  const seen: string[] = [];
  const other = await serve(t, (q, a) => (seen.push(`other ${q.url}`), a.writeHead(200, { "Content-Type": "application/json" }).end('{"status":"ok"}')));
  const url = await serve(t, (q, a) => {
    seen.push(`${q.url} ${q.headers.authorization}`);
    if (q.url!.startsWith("/moved/")) return void a.writeHead(308, { Location: "/v1/health" }).end();
    if (q.url!.startsWith("/left/")) return void a.writeHead(302, { Location: `${other}/v1/health` }).end();
    if (q.url!.startsWith("/bad/")) return void a.writeHead(302, { Location: "http://" }).end();
    if (q.url!.startsWith("/round/")) return void a.writeHead(307, { Location: q.url! }).end();
    a.writeHead(200, { "Content-Type": "application/json" }).end('{"status":"ok"}');
  });
  const health = (path: string) => new Store(url + path, { token: "secret" }).health();
  assert.deepEqual(await health("/moved"), { status: "ok" });
  assert.deepEqual(seen.splice(0), ["/moved/v1/health Bearer secret", "/v1/health Bearer secret"]);
  await assert.rejects(health("/left"), (e: CoppiceError) => e.code === "answer" && e.message.includes(other));
  assert.deepEqual(seen.splice(0), ["/left/v1/health Bearer secret"]);
  await assert.rejects(health("/bad"), { code: "answer" });
  assert.equal(seen.splice(0).length, 1);
  await assert.rejects(health("/round"), { code: "answer" });
  assert.equal(seen.splice(0).length, 6);
  await assert.rejects(new Store(`${url}/left`).session("s").follow().next(), { code: "answer" });
  assert.equal(seen.length, 1);
});

test("a redirect that a browser hides, and one that fetch has followed, are no answers", async () => {
  const hidden = () => Object.defineProperties(new Response(null), { type: { value: "opaqueredirect" }, status: { value: 0 }, ok: { value: false } });
  const followed = (to: string) => Object.defineProperties(stored(), { redirected: { value: true }, url: { value: to } });
  for (const answer of [hidden, () => followed("http://service/v1/else"), () => followed("http://other/v1")]) {
    const n = network([async () => answer()]);
    await assert.rejects(n.session.commit([]), OutcomeUnknown);
    assert.deepEqual([n.sent.length, n.session.base, n.sent[0]!.redirect], [1, "c0", "manual"]);
  }
  for (const answer of [hidden, () => followed("http://other/v1")]) await assert.rejects(network([async () => answer()]).session.stateAt(), { code: "answer" });
  assert.match((await network([async () => followed("http://service/v1/else")]).session.stateAt()).text, /"c1"/);
});

test("only the service's own codes have classes of their own", async () => {
  for (const status of [404, 410, 412]) {
    const n = network([new Response("<html>", { status, headers: { "Content-Type": "text/html" } })]);
    await assert.rejects(n.session.resume(), (e: CoppiceError) => Object.getPrototypeOf(e) === CoppiceError.prototype && e.code === "answer" && e.status === status);
  }
  for (const [status, code, kind] of [[404, "not-found", NotFound], [410, "gone", NotFound], [410, "deleted", Deleted], [412, "conflict", Conflict],
    [412, "exists", Exists], [422, "key-reused", KeyReused], [422, "no-entry", CoppiceError], [401, "unauthorized", Unauthorized],
    [403, "permission", Forbidden], [403, "read-only", Forbidden]] as const) {
    await assert.rejects(network([problem(status, code)]).session.commit([]), (e: CoppiceError) => Object.getPrototypeOf(e) === kind.prototype && e.code === code && e.outcome === "not-applied");
  }
  for (const reply of ["broken", problem(503, "busy")] as const) {
    await assert.rejects(network([reply], { maxTries: 2 }).session.resume(), (e: CoppiceError) => e instanceof Unavailable && e.outcome === "not-applied");
  }
});

test("a turn does not create a session that was deleted", async () => {
  const n = network([problem(410, "deleted")]);
  let created = 0;
  const turn = n.session.turn(async (t) => t.append({ role: "user", content: "x" }), { create: async () => void created++ });
  await assert.rejects(turn, (e) => e instanceof Deleted && !(e instanceof NotFound));
  assert.deepEqual([created, n.sent.length], [0, 1]);
});
