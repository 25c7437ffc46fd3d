// Resume, turn and list of other session stores and of coppice, in one run; tools/bench-peers.sh starts it.
//
// A message has 430 bytes; a turn adds two. Prints medians in milliseconds: of a turn on an open session; of a resume
// by a new handle, which has the messages in memory afterwards; of the ten newest of 200 sessions of 20 messages. Clients
// and stores run in this process, but for PostgreSQL and coppice, which are asked over loopback.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [dir, url, postgres] = process.argv.slice(2);
const lengths = [100, 1000, 5000], sessions = 200, short = 20, repeats = 9;

const text = (i) => `message ${i} `.padEnd(430, "abcdefghijklmnopqrstuvwxyz ");
const role = (i) => (i % 2 ? "assistant" : "user");
const message = (i) => ({ role: role(i), content: text(i) });
const messages = (from, to) => Array.from({ length: to - from }, (_, i) => message(from + i));

/** Runs f up to nine times, for at most ten seconds, and returns the median of its milliseconds. */
async function median(f) {
  const times = [], begin = performance.now();
  for (let i = 0; i < repeats && performance.now() - begin < 10_000; i++) {
    const start = performance.now();
    await f(i);
    times.push(performance.now() - start);
  }
  return times.sort((a, b) => a - b)[Math.floor(times.length / 2)];
}

// A store has open(id), which returns { count, add(messages) }; add makes them as durable as the store makes anything.
// list() returns the ids of the newest sessions.

async function pi() {
  const { SessionManager } = await import("@mariozechner/pi-coding-agent");
  const root = join(dir, "pi"), cwd = "/w", files = new Map();
  const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: {} };
  const answer = { usage, provider: "p", model: "m", api: "a", stopReason: "stop" };
  mkdirSync(root);
  return {
    name: "pi 0.73.1, JSONL, no fsync",
    async open(id) {
      const session = files.has(id) ? SessionManager.open(files.get(id), root) : SessionManager.create(cwd, root);
      files.set(id, session.getSessionFile());
      return {
        count: session.buildSessionContext().messages.length,
        async add(list) {
          for (const m of list) {
            const content = [{ type: "text", text: m.content }];
            session.appendMessage({ role: m.role, content, timestamp: 1, ...(m.role === "assistant" && answer) });
          }
        },
      };
    },
    list: async () => (await SessionManager.list(cwd, root)).slice(0, 10).map((s) => s.id),
  };
}

async function strands() {
  const { LocalFileStorage } = await import("@strands-agents/sdk/storage");
  const storage = new LocalFileStorage(join(dir, "strands"));
  const key = (id) => `session/${id}/scopes/agent/a/snapshots/snapshot_latest.json`;
  return {
    name: "Strands 1.19.0, LocalFileStorage, no fsync",
    async open(id) {
      const stored = await storage.read(key(id));
      const all = stored ? JSON.parse(new TextDecoder().decode(stored)).data.messages : [];
      return {
        count: all.length,
        async add(list) {
          all.push(...list.map((m) => ({ role: m.role, content: [{ text: m.content }] })));
          const snapshot = { scope: "agent", schemaVersion: "1.0", data: { messages: all } };
          await storage.write(key(id), new TextEncoder().encode(JSON.stringify(snapshot)));
        },
      };
    },
    list: async () => (await storage.list("session/")).slice(0, 10), // by name: it has no times
  };
}

async function langgraph(name, saver) {
  const { uuid6 } = await import("@langchain/langgraph-checkpoint");
  const at = (id) => ({ configurable: { thread_id: id, checkpoint_ns: "" } });
  return {
    name,
    async open(id) {
      const found = await saver.getTuple(at(id)), all = found?.checkpoint.channel_values.messages ?? [];
      let config = found?.config ?? at(id), step = found?.metadata.step ?? 0;
      return {
        count: all.length,
        async add(list) {
          all.push(...list);
          const versions = { messages: ++step }, v = 4, ts = new Date().toISOString();
          const values = { channel_values: { messages: all }, channel_versions: versions, versions_seen: {} };
          const checkpoint = { v, id: uuid6(step), ts, ...values };
          config = await saver.put(config, checkpoint, { source: "loop", step, parents: {} }, versions);
        },
      };
    },
    async list() {
      const ids = new Set();
      for await (const c of saver.list({})) {
        ids.add(c.config.configurable.thread_id);
        if (ids.size === 10) break;
      }
      return [...ids];
    },
  };
}

async function sqlite() {
  const { SqliteSaver } = await import("@langchain/langgraph-checkpoint-sqlite");
  return langgraph("LangGraph, SqliteSaver 1.0.4", SqliteSaver.fromConnString(join(dir, "threads.sqlite")));
}

async function pgSaver() {
  const { PostgresSaver } = await import("@langchain/langgraph-checkpoint-postgres");
  const saver = PostgresSaver.fromConnString(postgres);
  await saver.setup();
  return { ...(await langgraph("LangGraph, PostgresSaver 1.0.5", saver)), close: () => saver.end() };
}

async function table() {
  const { default: pg } = await import("pg");
  const client = new pg.Client(postgres);
  await client.connect();
  await client.query(`CREATE TABLE messages (
    session text, seq int, at timestamptz DEFAULT now(), message jsonb, PRIMARY KEY (session, seq))`);
  const read = "SELECT message FROM messages WHERE session = $1 ORDER BY seq";
  const insert = `INSERT INTO messages (session, seq, message)
    SELECT $1, $2 + row_number() OVER (), m FROM jsonb_array_elements($3) m`;
  const newest = "SELECT session FROM messages GROUP BY session ORDER BY max(at) DESC LIMIT 10";
  return {
    name: "PostgreSQL, a row a message, one INSERT a turn",
    async open(id) {
      let { length } = (await client.query(read, [id])).rows;
      return {
        count: length,
        async add(list) {
          await client.query(insert, [id, length, JSON.stringify(list)]);
          length += list.length;
        },
      };
    },
    list: async () => (await client.query(newest)).rows,
    close: () => client.end(),
  };
}

async function coppice() {
  const { Store } = await import(pathToFileURL(join(process.cwd(), "clients/typescript/dist/index.js")));
  const store = new Store(url), known = new Set();
  return {
    name: "coppice, TypeScript client and service, fsync",
    async open(id) {
      const session = known.has(id) ? store.session(id) : await store.create(id);
      known.add(id);
      const { context } = await session.resume();
      return { count: context.length, add: (list) => session.commit(list) };
    },
    async list() {
      return (await store.sessions({ limit: 10 }).page()).items.map((s) => s.id);
    },
  };
}

async function measure(make) {
  const store = await make(), row = [];
  for (const n of lengths) {
    const id = `long-${n}`, writer = await store.open(id);
    for (let i = 0; i < n; i += 500) await writer.add(messages(i, Math.min(n, i + 500)));
    row.push(await median(async () => assert.equal((await store.open(id)).count, n)));
    row.push(await median((i) => writer.add(messages(n + 2 * i, n + 2 * i + 2))));
  }
  for (let s = 0; s < sessions; s++) await (await store.open(`short-${s}`)).add(messages(0, short));
  row.push(await median(async () => assert.equal((await store.list()).length, 10)));
  console.log(`| ${store.name} | ${row.map((ms) => ms.toFixed(ms < 10 ? 1 : 0)).join(" | ")} |`);
  await store.close?.();
}

console.log(`| ms | ${lengths.flatMap((n) => [`resume, ${n}`, `turn, ${n}`]).join(" | ")} | list |`);
console.log(`|${"---|".repeat(2 * lengths.length + 2)}`);
const sides = [coppice, pi, strands, sqlite];
if (postgres) sides.push(pgSaver, table);
for (const side of sides) await measure(side);
