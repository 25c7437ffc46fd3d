// The use of a session by a program, with a real server.
import assert from "node:assert/strict";
import { Conflict, CoppiceError, Deleted, Fenced, Forbidden, NotFound, RawJSON, rawItems, rawMembers, Session, Store } from "coppice-client";
import { before, test } from "./limit.js";
import { quick, Service } from "./service.js";

const user = (content: string) => ({ role: "user", content });
const said = (messages: unknown[]) => messages.map((m) => (m as { content: string }).content);
async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

let store: Store, plain: Service;
before(async (t) => {
  plain = await Service.start(t as never);
  store = new Store(plain.url, quick);
});

test("create, commit, resume", async () => {
  const s = await store.create(undefined, { title: "A trip", cwd: "/tmp", meta: { team: "blue" } });
  assert.match(s.id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/);
  const r = await s.commit([user("Where to?"), { role: "assistant", content: "To the sea." }], { state: { step: 1 }, docs: { note: { a: 1 } } });
  assert.deepEqual([r.seq, r.entries.length, s.base], [1, 2, r.commit]);
  const seen = await store.session(s.id).resume();
  assert.deepEqual([seen.seq, seen.commit, seen.head, seen.branch], [1, r.commit, r.entries[1], "main"]);
  assert.deepEqual([seen.state, said(seen.context), seen.openCalls], [{ step: 1 }, ["Where to?", "To the sea."], []]);
  assert.equal((await s.info()).title, "A trip");
  assert.deepEqual((await all(store.sessions({ "meta.team": "blue" }))).map((x) => x.id), [s.id]);
  await assert.rejects(store.create(s.id), (e: CoppiceError) => e.code === "exists");
  await assert.rejects(store.session("none").resume(), NotFound);
});

test("erase", async () => {
  const s = await store.create();
  const { entries: [id, kept] } = await s.commit([user("zorbalonquist"), user("kept")]);
  const dry = await s.erase({ entries: [id!], dryRun: true });
  assert.deepEqual([dry.entries, dry.dryRun, dry.commit], [[id], true, undefined]);
  assert.deepEqual(said((await s.resume()).context), ["zorbalonquist", "kept"]);
  const done = await s.erase({ entries: [id!], reason: "asked" });
  assert.deepEqual([done.entries, done.others], [[id], []]);
  await s.commit([user("later")]); // it is a conflict for no writer
  assert.deepEqual(said((await s.resume()).context), ["[erased]", "kept", "later"]);
  assert.deepEqual((await s.erase({ entries: [id!] })).already, [id]);
  await assert.rejects(s.erase({ entries: ["nothing"] }), (e: CoppiceError) => e.code === "no-entry" && kept !== undefined);
});

test("digits beyond 2^53 and the order of members survive a round trip", async () => {
  const s = await store.create(), state = '{"z":12345678901234567890,"a":[0.1000,1e400,-0]}', message = '{"role":"user","n":9007199254740993,"content":"\\"]}{,:"}';
  await s.commit([new RawJSON(message), { role: "user", content: "x", big: 2n ** 70n }], { state: new RawJSON(state) });
  const r = await s.resume();
  assert.equal(r.rawState, state);
  assert.equal(r.rawContext[0], message);
  assert.equal(rawMembers(r.rawContext[1]!).get("big"), "1180591620717411303424");
  assert.equal((await s.stateAt({ at: "seq:1" })).text, state);
  assert.deepEqual((await all(s.entries())).map((e) => rawMembers(e.text).get("message")), r.rawContext);
  await s.turn(async (t) => t.append(user("y"))); // a turn that does not change the state keeps its digits
  assert.equal((await s.resume()).rawState, state);
  await s.commit([], { state: new RawJSON(r.rawState.replace("1e400", "2")) });
  assert.equal((await s.resume()).rawState, state.replace("1e400", "2"));
});

test("a number that JavaScript cannot hold is not written back as another one", async () => {
  const s = await store.create(), state = `{"huge":1e400,"digits":${"9".repeat(5000)},"keep":1}`;
  await s.commit([], { state: new RawJSON(state) });
  await s.turn<{ huge: number }>(async (t) => {
    assert.equal(t.state.huge, Infinity);
    t.append(user("x"));
  });
  const { rawState, seq } = await s.resume();
  assert.deepEqual([rawState, seq], [state, 2]);
  const change = s.turn<{ keep: number }>(async (t) => void t.state.keep++);
  await assert.rejects(change, (e: CoppiceError) => e.code === "usage" && /^state\.huge: JSON has no Infinity/.test(e.message));
  assert.equal((await s.resume()).seq, 2);
  await s.turn(async () => ({ state: new RawJSON(rawState.replace('"keep":1', '"keep":2')) }));
  assert.equal((await s.resume()).rawState, state.replace('"keep":1', '"keep":2'));
});

test("raw parts of a JSON text are those that JSON.parse finds", () => {
  const value = { "": 1, 'a"\\': [[], {}, [[1], "],\\"], null], "\u2028": { x: { y: "}" } }, long: '\\"'.repeat(200_000) };
  for (const text of [JSON.stringify(value), JSON.stringify(value, null, 1)]) {
    const members = [...rawMembers(text)].map(([name, raw]) => [name, JSON.parse(raw)]);
    assert.deepEqual(Object.fromEntries(members), value);
    assert.deepEqual(rawItems(rawMembers(text).get('a"\\')!).map((raw) => JSON.parse(raw)), value['a"\\']);
  }
  assert.deepEqual([rawItems(" [ ] "), [...rawMembers("{}")], rawItems("[1]")], [[], [], ["1"]]);
  assert.throws(() => new RawJSON("{"), SyntaxError);
});

test("two clients on one session: the loser has the winner, and keeps its turn once", async () => {
  const one = await store.create(), two = store.session(one.id);
  await two.resume();
  const won = await one.commit([user("first")]);
  const e = await two.commit([user("second")], { state: 2 }).then(() => assert.fail(), (e: unknown) => e);
  assert.ok(e instanceof Conflict);
  assert.deepEqual([e.winner?.commit, e.outcome, e.status], [won.commit, "not-applied", 412]);
  assert.deepEqual(said(e.entriesSince.map((x) => (x as { message: object }).message)), ["first"]);
  const kept = await e.keepBoth!(), again = await e.keepBoth!();
  assert.ok(kept.kept);
  assert.deepEqual([again.commit, again.repeated], [kept.commit, true]);
  assert.deepEqual(said((await two.resume()).context), ["first"]);
  assert.deepEqual((await two.branches()).branches.map((b) => b.name).sort(), ["main", kept.kept].sort());
  await two.switch({ to: kept.kept! });
  assert.deepEqual([said((await two.resume()).context), (await two.resume()).state], [["second"], 2]);
  const error = await one.switch({ to: "main" }).then(() => assert.fail(), (e: unknown) => e);
  assert.ok(error instanceof Conflict && !error.keepBoth); // a move has nothing to keep
});

test("branch, edit, switch, rollback, label, snapshot, fork, compact, info, delete", async () => {
  const s = await store.create(), a = await s.commit([user("a")], { state: 1 }), b = await s.commit([user("b")], { state: 2 });
  await s.edit({ entry: b.entries[0]!, message: user("B") });
  assert.deepEqual([said((await s.resume()).context), (await s.resume()).state], [["a", "B"], 1]);
  const { versions, at } = await s.versions(b.entries[0]!);
  assert.deepEqual([versions.map((v) => v.preview), at], [["b", "B"], 0]);
  await s.switch({ to: b.entries[0]! });
  await s.branch({ entry: a.entries[0]!, name: "side" });
  await s.commit([user("c")]);
  assert.equal((await s.resume()).branch, "side");
  const back = await s.rollback({ to: "seq:2" });
  assert.deepEqual([back.state, (await s.resume()).state], [2, 2]);
  await s.label({ entry: a.entries[0]!, label: "start" });
  assert.equal((await s.labels()).labels[0]?.label, "start");
  const snap = await s.snapshot({ tag: "good" });
  assert.deepEqual((await s.snapshots()).snapshots.map((x) => x.id), [snap.id]);
  assert.equal((await s.stateAt({ at: "tag:good" })).text, "2");
  assert.equal((await s.stateAt({ at: "seq:1" })).text, "1");
  assert.equal((await s.diff({ a: "seq:1" })).messages.onlyB.length, 1);
  assert.equal((await s.contextAt({ provider: "openai-chat" })).provider, "openai-chat");
  assert.ok((await s.rows({ count: 10 })).rows.length >= 3);
  assert.ok((await s.map()).total >= 3);
  assert.ok((await all(s.blame({ path: "", limit: 1 }))).length >= 2);
  assert.equal((await s.commitAt("1")).commit, a.commit);
  assert.deepEqual((await s.verify({ deep: true })).problems, []);
  assert.equal((await all(s.commits({ limit: 2 }))).at(-1)!.reason, "create");
  assert.match(await (await s.export({ format: "markdown" })).text(), /\ba\b/);
  await s.setInfo({ title: "renamed" });
  const f = await s.fork({ to: "seq:1" });
  assert.deepEqual(said((await f.resume()).context), ["a"]);
  await f.commit([user("fork")]);
  const { entries: [newest] } = await s.commit([user("d")]);
  const short = await s.compact({ summary: "short", from: newest! });
  assert.deepEqual([short.firstKept, (await s.resume()).context.length], [newest, 2]);
  assert.equal((await s.info()).title, "renamed");
  await f.delete();
  await assert.rejects(f.resume(), Deleted);
  assert.ok((await all(store.search({ q: "a", session: s.id }))).length > 0);
  assert.ok((await all(store.prompts({ session: s.id }))).length > 0);
  assert.ok((await all(store.usages({ limit: 1 }))).length > 1);
  const jsonl = await (await s.export({ format: "pi" })).text();
  assert.equal((await store.importFile(jsonl)).total.files, 1);
});

test("a claim fences the agent of before", async () => {
  const old = await store.create(), fresh = store.session(old.id);
  await fresh.turn(async (t) => t.append(user("mine")), { claim: true });
  const fenced = await old.commit([user("late")]).catch((e: Fenced) => e) as Fenced;
  assert.ok(fenced instanceof Fenced);
  const writes = [() => old.commit([user("late")], { base: "*" }), () => old.switch({ to: "main" }), () => old.delete(),
    () => old.turn(async (t) => t.append(user("late")))];
  for (const write of writes) await assert.rejects(write(), Fenced); // nothing is sent
  assert.ok((await fenced.keepBoth!()).kept);
  await assert.rejects(old.setInfo({ title: "x" }), Fenced);
  assert.deepEqual(said((await old.resume()).context), ["mine"]);
  await old.commit([user("more")]);
  await fresh.claim({ base: "*" });
  await assert.rejects(old.setInfo({ title: "x" }), Fenced);
  await old.claim();
  await old.resume();
  await old.commit([user("again")]);
  assert.deepEqual(said((await fresh.resume()).context), ["mine", "more", "again"]);
});

test("a writer with a name is not fenced by its own claim", async () => {
  const named = new Store(plain.url, { ...quick, writer: "one" });
  const a = await named.create(), b = named.session(a.id);
  await b.resume();
  await a.claim();
  await b.commit([user("mine too")]);
  assert.deepEqual(said((await a.resume()).context), ["mine too"]);
});

test("a commit creates its session, moves the head and sets the context", async () => {
  const s = store.session(`made-${Date.now()}`), create = { title: "T" };
  const first = await s.commit([user("a"), user("b")], { create });
  assert.equal(first.created, true);
  assert.equal((await s.commit([user("c")], { create })).created, undefined);
  assert.ok((await s.commit([user("B")], { from: first.entries[0]! })).left);
  assert.deepEqual(said((await s.resume()).context), ["a", "B"]);
  await s.commit([user("d")], { context: [{ entry: first.entries[1]! }, { message: user("short") }] });
  assert.deepEqual(said((await s.resume()).context), ["b", "short", "d"]);
  await s.commit([{ message: user("e"), original: { n: 1 } }], { context: [] });
  assert.deepEqual(said((await s.resume()).context), ["a", "B", "d", "e"]);
  await s.delete();
  await assert.rejects(store.session(s.id).commit([user("x")], { create }), Deleted);
  await store.session(s.id).commit([user("x")], { create: { again: true } });
});

test("entries are amended and hidden, branches renamed, children deleted", async () => {
  const s = await store.create(), { entries: [a, b] } = await s.commit([user("a"), user("b")]);
  await s.amend({ entry: a!, message: user("A") });
  await s.hide({ entry: b! });
  assert.deepEqual(said((await s.resume()).context), ["A"]);
  await s.amend({ entry: b!, message: null });
  await s.branch({ entry: a!, name: "side" });
  await s.renameBranch({ branch: "side", name: "other" });
  await s.renameBranch({ branch: "main", name: "" });
  assert.deepEqual((await s.branches()).branches.map((x) => x.name), ["other"]);
  const child = await store.create(undefined, { parent: s.id, relation: "agent" });
  assert.deepEqual((await s.delete({ children: true })).children, [child.id]);
  await assert.rejects(child.resume(), Deleted);
});

test("a known id is ignored, amended or refused", async () => {
  const s = await store.create(), entry = (content: string) => ({ type: "message", id: "e1", parentId: null, timestamp: "2026-01-01T00:00:00Z", message: user(content) });
  await s.commit([entry("one")]);
  assert.deepEqual((await s.commit([entry("one")], { onKnownId: "ignore" })).entries, ["e1"]);
  assert.deepEqual(said((await s.resume()).context), ["one"]);
  await s.commit([entry("two")], { onKnownId: "amend" });
  assert.deepEqual(said((await s.resume()).context), ["two"]);
  await assert.rejects(s.commit([entry("one")]), (e: CoppiceError) => e.code === "exists");
});

test("a turn answers open calls, runs once, and stores what it appended or returned", async () => {
  const s = await store.create();
  await s.commit([user("go"), { role: "assistant", content: [{ type: "toolCall", id: "c1", name: "ls", arguments: {} }] }], { state: { n: 1 } });
  const r = await s.turn<{ n: number }>(async (t) => {
    assert.equal((t.messages.at(-1) as { toolCallId: string }).toolCallId, "c1");
    t.state.n++;
    t.append({ role: "assistant", content: "interrupted" });
    return { entries: [user("more")] };
  });
  assert.equal(r!.entries.length, 3);
  const now = await s.resume();
  assert.deepEqual([now.state, now.openCalls, now.context.length], [{ n: 2 }, [], 5]);
  assert.match(JSON.stringify(now.context[2]), /"isError":true/);
  const seq = now.seq;
  assert.equal(await s.turn(async () => undefined), undefined);
  await assert.rejects(s.turn(async (t) => { t.append(user("lost")); throw new Error("no"); }), /no/);
  assert.equal((await s.resume()).seq, seq);
});

test("a turn creates its session, and one that loses is kept as a branch", async () => {
  const id = "made-by-a-turn", s = store.session(id);
  await s.turn<{ n: number }>(async (t) => void t.append(user("one")), { initial: { n: 0 }, create: () => store.create(id) });
  assert.deepEqual((await s.resume()).state, { n: 0 });
  const other = store.session(id);
  const meanwhile = async (text: string) => { await other.resume(); await other.commit([user(text)]); };
  const r = await s.turn(async (t) => { await meanwhile("two"); t.append(user("mine")); });
  assert.ok(r!.kept);
  const e = await s.turn(async (t) => { t.append(user("also")); await meanwhile("three"); await t.commit(); }).then(() => assert.fail(), (e: unknown) => e);
  assert.ok(e instanceof Conflict && e.kept?.kept);
  assert.deepEqual(said((await s.resume()).context), ["one", "two", "three"]);
});

test("of partials the newest is sent, one at a time, and a commit comes after them", async () => {
  const sent: string[] = [];
  const recording: typeof fetch = async (url, init) => {
    sent.push(`${new URL(String(url)).pathname.split("/").at(-1)} ${String(init?.body).replace(/\W+/g, " ").trim()}`);
    const response = await fetch(url, init);
    sent.push("answered");
    return response;
  };
  const s = await new Store(plain.url, { ...quick, fetch: recording }).create("partials");
  sent.length = 0;
  const heard = ["W", "Wh", "Whe"].map((text) => s.partial(text));
  assert.deepEqual(await Promise.all(heard), [true, true, true]);
  void s.partial("Wher");
  void s.partial("Where");
  await s.commit([user("Where")]);
  const partials = ["W", "Whe", "Wher"].flatMap((text) => [`partial partial ${text}`, "answered"]);
  assert.deepEqual(sent.slice(0, 6), partials);
  assert.match(sent[6]!, /^commits /);
  assert.equal(sent.length, 8);
  assert.equal(await store.session("none").partial("x"), false);
});

test("each session that sessions() yields can be deleted", async (t) => {
  const service = await Service.start(t), own = new Store(service.url, quick);
  await Promise.all(Array.from({ length: 120 }, (_, i) => own.create(`s${i}`)));
  const deleted: string[] = [];
  for await (const { id } of own.sessions()) {
    await own.session(id).delete({ base: "*" });
    deleted.push(id);
  }
  assert.equal(new Set(deleted).size, 120);
  assert.deepEqual(await all(own.sessions()), []);
});

test("a server that is read-only refuses writes", async (t) => {
  const service = await Service.start(t, ["--read-only"]);
  const s = new Store(service.url, quick);
  await assert.rejects(s.create("x"), (e: unknown) => e instanceof Forbidden && e.code === "read-only" && e.outcome === "not-applied");
  assert.deepEqual(await all(s.sessions()), []);
});

test("a session that is not known to the handle refuses a write before it sends one", async () => {
  const s: Session = store.session("unknown");
  await assert.rejects(s.commit([]), (e: CoppiceError) => e.code === "no-base" && /resume first/.test(e.message));
});

test("lines of a program become messages, and keep their bytes", async () => {
  const s = store.session(`lines-${Date.now()}`), format = "claude-code";
  const line = (uuid: string, parentUuid: string | null, role: string, content: string) =>
    ({ type: role, uuid, parentUuid, timestamp: "2026-01-01T00:00:00.000Z", message: { role, content } });
  const lines = [line("a", null, "user", "By train?"), { type: "custom-title", customTitle: "T" }, line("b", "a", "user", "Or not?")];
  await s.commit(lines.slice(0, 2), { format, create: {} });
  await s.commit([lines[0], lines[2]], { format });
  assert.deepEqual(said((await s.resume()).context), ["By train?", "Or not?"]);
  assert.equal(await (await s.original()).text(), lines.map((x) => `${JSON.stringify(x)}\n`).join(""));
});

test("an image is uploaded as bytes", async () => {
  const s = await store.create(), image = Buffer.concat([Buffer.from("GIF89a"), Buffer.alloc(50_000)]);
  await s.commit([{ role: "user", content: [{ type: "image", mimeType: "image/gif", data: await s.upload(image) }] }], { images: "ref" });
  const [message] = (await s.resume()).context as { content: { data: string }[] }[];
  assert.ok(Buffer.from(message!.content[0]!.data, "base64").equals(image));
});
