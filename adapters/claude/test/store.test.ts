import { randomUUID } from "node:crypto";
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  deleteSession, foldSessionSummary, forkSession, getSessionInfo, getSessionMessages, importSessionToStore, InMemorySessionStore, listSessions,
  listSubagents, renameSession, tagSession, type SessionStore,
} from "@anthropic-ai/claude-agent-sdk";
import { expect, onTestFinished, test } from "vitest";
import { breaking, Counted, serve, unreliable } from "../../harness/service.ts";
import { CoppiceSessionStore, type Fold, type SessionStoreEntry } from "../src/index.ts";

const K = { projectKey: "p", sessionId: "s" }, fold = foldSessionSummary as unknown as Fold;
let lines = 0;
const line = (text = `message ${lines}`, parentUuid: string | null = null): SessionStoreEntry => {
  const role = lines++ % 2 ? "assistant" : "user", timestamp = new Date(1.7e12 + lines * 1000).toISOString();
  const message = { role, ...(role === "assistant" && { id: `msg_${lines}`, model: "m", usage: { input_tokens: 3, output_tokens: 5 } }), content: [{ type: "text", text }] };
  return { type: role, uuid: randomUUID(), parentUuid, timestamp, sessionId: "s", cwd: "/w", message };
};
const chain = (n: number): SessionStoreEntry[] => {
  const out: SessionStoreEntry[] = [];
  for (let i = 0; i < n; i++) out.push(line(undefined, out.at(-1)?.uuid ?? null));
  return out;
};
const sorted = (list: { sessionId: string }[] | undefined) => [...(list ?? [])].sort((a, b) => (a.sessionId < b.sessionId ? -1 : 1));

test("random calls: every answer is that of the SDK's own store", async () => {
  const mine: SessionStore = new CoppiceSessionStore((await serve()).url, { fold }), theirs = new InMemorySessionStore();
  let seed = 7;
  const draw = (n: number) => (seed = (seed * 48271) % 2147483647) % n;
  for (let i = 0; i < 150; i++) {
    const key = { projectKey: `p${draw(2)}`, sessionId: `s${draw(3)}`, ...(draw(3) === 0 && { subpath: `subagents/a${draw(2)}` }) };
    const op = draw(10);
    if (op < 6) {
      const batch = Array.from({ length: 1 + draw(3) }, () => (draw(4) ? line() : { type: "custom-title", customTitle: `t${i}`, sessionId: key.sessionId }));
      for (const store of [mine, theirs]) await store.append(key, batch);
    } else if (op < 7) for (const store of [mine, theirs]) await store.delete!(key);
    expect(await mine.load(key)).toEqual(await theirs.load(key));
    expect((await mine.listSubkeys!(key)).sort()).toEqual((await theirs.listSubkeys(key)).sort());
    expect(sorted(await mine.listSessions!(key.projectKey)).map((s) => s.sessionId)).toEqual(sorted(await theirs.listSessions(key.projectKey)).map((s) => s.sessionId));
    const strip = (list: { sessionId: string; data: unknown }[]) => sorted(list).map((s) => ({ ...s, mtime: 0 }));
    expect(strip(await mine.listSessionSummaries!(key.projectKey))).toEqual(strip(await theirs.listSessionSummaries(key.projectKey)));
  }
});

test("a summary and its session have one time, in whole milliseconds", async () => {
  const s = new CoppiceSessionStore((await serve()).url, { fold });
  await s.append(K, chain(3));
  const [session] = await s.listSessions("p"), [summary] = await s.listSessionSummaries!("p");
  expect(Number.isInteger(session!.mtime)).toBe(true);
  expect(summary!.mtime).toBe(session!.mtime);
});

test("without a fold the SDK finds no summaries, and lists by loading", async () => {
  const s = new CoppiceSessionStore((await serve()).url);
  expect(s.listSessionSummaries).toBeUndefined();
});

test("the SDK's helpers: import, list, read, rename, tag, fork, delete", async () => {
  const dir = mkdtempSync(join(tmpdir(), "coppice-adapter-")), was = process.env["CLAUDE_CONFIG_DIR"];
  onTestFinished(() => {
    rmSync(dir, { recursive: true });
    if (was === undefined) delete process.env["CLAUDE_CONFIG_DIR"];
    else process.env["CLAUDE_CONFIG_DIR"] = was;
  });
  process.env["CLAUDE_CONFIG_DIR"] = dir;
  const id = randomUUID(), all = chain(1200).map((e) => ({ ...e, sessionId: id }));
  mkdirSync(join(dir, "projects", "-w"), { recursive: true });
  writeFileSync(join(dir, "projects", "-w", `${id}.jsonl`), all.map((e) => JSON.stringify(e) + "\n").join(""));
  const s = new CoppiceSessionStore((await serve()).url, { fold }), o = { dir: "/w", sessionStore: s as SessionStore };
  for (let i = 0; i < 2; i++) await importSessionToStore(id, o.sessionStore, { dir: "/w" }); // the second replays the first
  expect((await getSessionMessages(id, o)).length).toBe(1200);
  expect(await s.load({ projectKey: "-w", sessionId: id })).toEqual(all);
  await renameSession(id, "A title", o);
  await tagSession(id, "blue", o);
  expect(await getSessionInfo(id, o)).toMatchObject({ sessionId: id, customTitle: "A title", tag: "blue" });
  const { sessionId: fork } = await forkSession(id, o);
  expect((await getSessionMessages(fork, o)).length).toBe(1200);
  expect((await listSessions(o)).map((x) => x.sessionId).sort()).toEqual([id, fork].sort());
  await deleteSession(fork, o);
  expect((await listSessions(o)).map((x) => x.sessionId)).toEqual([id]);
  expect(await listSubagents(id, o)).toEqual([]);
});

test("lines that come again are stored once, also within a batch and of another process", async () => {
  const { url } = await serve(), s = new CoppiceSessionStore(url), a = chain(4);
  await s.append(K, a.slice(0, 2));
  await s.append(K, [...a, a[3]!]);
  await new CoppiceSessionStore(url).append(K, a);
  expect(await s.load(K)).toEqual(a);
});

test("the lines of one answer are each there once, whatever part of them comes again", async () => {
  const s = new CoppiceSessionStore((await serve()).url);
  const part = (uuid: string, parentUuid: string | null, text: string) =>
    ({ type: "assistant", uuid, parentUuid, message: { id: "msg_1", role: "assistant", model: "m", content: [{ type: "text", text }] } });
  const all = [part("a", null, "one"), part("b", "a", "two"), part("c", "b", "three")];
  await s.append(K, all);
  for (const again of [[all[0]!], [all[1]!], [all[2]!], all.slice(0, 2), all]) await s.append(K, again);
  expect(await s.load(K)).toEqual(all);
});

test("lines without a uuid are all kept, and values survive as they are", async () => {
  const s = new CoppiceSessionStore((await serve()).url), t = { type: "custom-title", customTitle: "T" };
  const odd = { type: "x", uuid: "odd/uuid é", id: "not-ours", parentId: "nor-this", n: 1e21, u: "\u2028😀", cut: "\ud83d", empty: {}, nul: null, original: 1 };
  await s.append(K, [t]);
  await s.append(K, [t, odd]);
  expect(await s.load(K)).toEqual([t, t, odd]);
});

test("a summary counts lines that come again once", async () => {
  const { url } = await serve(), m = new InMemorySessionStore(), a = chain(6);
  for (let i = 0; i < 6; i += 2) await m.append(K, a.slice(i, i + 2) as never);
  for (const s of [new CoppiceSessionStore(url, { fold }), new CoppiceSessionStore(url, { fold })]) {
    for (let i = 0; i < 6; i += 2) await s.append(K, a.slice(i, i + 2));
    expect((await s.listSessionSummaries!("p"))[0]!.data).toEqual((await m.listSessionSummaries("p"))[0]!.data);
  }
});

test("two writers: nothing is lost, each is in its order, the summary has both", async () => {
  const { url } = await serve(), writers = [0, 1].map(() => new CoppiceSessionStore(url, { fold })), mine = [chain(20), chain(20)];
  await Promise.all(writers.map(async (s, w) => { for (const e of mine[w]!) await s.append(K, [e, { type: "tag", tag: `w${w}`, sessionId: "s" }]); }));
  const all = (await writers[0]!.load(K))!;
  expect(all.length).toBe(80);
  for (const list of mine) expect(all.filter((e) => list.some((x) => x.uuid === e.uuid))).toEqual(list);
  const m = new InMemorySessionStore();
  await m.append(K, all as never);
  expect((await writers[1]!.listSessionSummaries!("p"))[0]!.data).toEqual((await m.listSessionSummaries("p"))[0]!.data);
});

test("a transcript is written again after it was deleted, and its agents are gone", async () => {
  for (const o of [{}, { fold }]) {
    const s = new CoppiceSessionStore((await serve()).url, o), a = chain(2), b = chain(2), sub = { ...K, subpath: "subagents/x" };
    await s.append(K, a);
    await s.append(sub, a);
    await s.delete(K);
    expect([await s.load(K), await s.load(sub), await s.listSubkeys(K), await s.listSessions("p")]).toEqual([null, null, [], []]);
    await s.append(K, b);
    await s.append(K, a);
    expect(await s.load(K)).toEqual([...b, ...a]);
  }
});

test("the service is killed in the middle of batches: every line is there once, in its order", async () => {
  for (const o of [{}, { fold }]) {
    const service = await serve();
    const proxy = await unreliable(service, 9);
    const s = new CoppiceSessionStore(new Counted(proxy.url).store, o), all = chain(120);
    for (let i = 0; i < all.length; i += 4) await s.append(K, all.slice(i, i + 4));
    expect(await s.load(K)).toEqual(all);
  }
});

test("a batch that the SDK sends again after an unknown outcome is stored once, without uuids too", async () => {
  for (const o of [{}, { fold }] as { fold?: Fold }[]) {
    const service = await serve();
    let broken = 2;
    const proxy = await breaking(service, (request) => (request.startsWith("POST") && broken-- > 0 ? { answerBytes: 0 } : undefined));
    const s = new CoppiceSessionStore(new Counted(proxy.url, { maxTries: 1 }).store, o), batch = [{ type: "tag", tag: "t", sessionId: "s" }, line("q")];
    for (let i = 0; i < 2; i++) await expect(s.append(K, batch)).rejects.toMatchObject({ outcome: "unknown" });
    await s.append(K, batch);
    expect(await s.load(K)).toEqual(batch);
    const next = [line("a", batch[1]!.uuid!)], m = new InMemorySessionStore();
    await s.append(K, next);
    expect(await s.load(K)).toEqual([...batch, ...next]);
    for (const lines of [batch, next]) await m.append(K, lines as never);
    if (o.fold) expect((await s.listSessionSummaries!("p"))[0]!.data).toEqual((await m.listSessionSummaries("p"))[0]!.data);
  }
});

test("a batch that was stored after all is in the summary once", async () => {
  const service = await serve(), count: Fold = (was, key, lines) => ({ sessionId: key.sessionId, mtime: 0, data: { lines: ((was?.data["lines"] as number) ?? 0) + lines.length } });
  let broken = 1;
  const proxy = await breaking(service, (request) => (request.startsWith("POST") && broken-- > 0 ? { answerBytes: 0 } : undefined));
  const s = new CoppiceSessionStore(new Counted(proxy.url, { maxTries: 1 }).store, { fold: count }), batch = [{ type: "tag", tag: "t" }, line()];
  await expect(s.append(K, batch)).rejects.toMatchObject({ outcome: "unknown" });
  await s.append(K, batch);
  await s.append(K, chain(2));
  expect((await s.listSessionSummaries!("p"))[0]!.data).toEqual({ lines: 4 });
  expect((await s.load(K))!.length).toBe(4);
});

test("a writer that is killed is replaced by one that replays everything", async () => {
  const { url } = await serve(), all = chain(100), first = new CoppiceSessionStore(url);
  for (let i = 0; i < 60; i += 7) await first.append(K, all.slice(i, i + 7));
  const second = new CoppiceSessionStore(url, { fold });
  for (let i = 0; i < 100; i += 10) await second.append(K, all.slice(i, i + 10));
  expect(await second.load(K)).toEqual(all);
});

test("10,000 lines: an append and a load are one request, and an append does not grow", async () => {
  const c = new Counted((await serve()).url), s = new CoppiceSessionStore(c.store, { fold }), all = chain(10_000);
  const small = new CoppiceSessionStore(c.store, { fold, scope: "small" });
  const first = await c.of(() => small.append(K, all.slice(0, 10)));
  expect(first.requests).toEqual(["GET /sessions/ID/docs", "PUT /sessions/ID", "POST /sessions/ID/commits"]);
  const early = await c.of(() => small.append(K, all.slice(10, 11)));
  for (let i = 0; i < 9_999; i += 500) await s.append(K, all.slice(i, Math.min(i + 500, 9_999)));
  const late = await c.of(() => s.append(K, all.slice(9_999)));
  for (const n of [early, late]) expect(n.requests).toEqual(["POST /sessions/ID/commits"]);
  expect(Math.abs(late.up + late.down - early.up - early.down)).toBeLessThan(100);
  expect((await c.of(async () => expect(await s.load(K)).toEqual(all))).requests).toEqual(["GET /sessions/ID/original"]);
  expect((await c.of(() => s.listSessionSummaries!("p"))).requests).toEqual(["GET /sessions"]);
  const plain = new CoppiceSessionStore(c.store, { scope: "plain" });
  expect((await c.of(() => plain.append(K, all.slice(0, 10)))).requests).toEqual(["POST /sessions/ID/commits"]);
});

test("search, tree, context and usage show a transcript", async () => {
  const { store } = new Counted((await serve()).url), s = new CoppiceSessionStore(store), word = "zebra";
  const q = line(word), id = await s.id(K);
  const answer = (text: string) => ({ ...line(text, q.uuid!), type: "assistant", message: { id: text, role: "assistant", model: "m", content: text, usage: { input_tokens: 3, output_tokens: 5 } } });
  const [one, two] = [answer("one"), answer("two")];
  await s.append(K, [{ ...q, type: "user", message: { role: "user", content: word } }, one]);
  await s.append(K, [two]);
  const found = [];
  for await (const m of store.search({ q: word })) found.push(m.session);
  expect(found).toEqual([id]);
  const session = store.session(id);
  expect((await session.versions(two.uuid!)).versions.length).toBe(2);
  expect((await session.resume()).context.length).toBe(2);
  expect((await session.usage()).usage.total).toBe(16);
  expect(await session.info()).toMatchObject({ cwd: "/w", first: word });
});
