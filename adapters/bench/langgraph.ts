// The bytes that savers of LangGraph keep of a thread whose list of messages grows, in one run. By hand:
//
//	npm install --no-save @langchain/langgraph-checkpoint-sqlite@1.0.4 @langchain/langgraph-checkpoint-postgres@1.0.5
//	BENCH=1 POSTGRES=postgresql://USER@/DATABASE?host=DIR npx vitest run bench/langgraph
//
// A turn adds a question and an answer of 100 bytes: three checkpoints. Sizes are of files and tables, without their logs.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AIMessage, HumanMessage, type BaseMessage } from "@langchain/core/messages";
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { MemorySaver, type BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { onTestFinished, test } from "vitest";
import { serve } from "../harness/service.ts";
import { CoppiceSaver } from "../langgraph/src/index.ts";

const marks = [100, 250, 500, 1000, 2000], hour = 3_600_000;
const text = (n: number) => `message ${n} `.padEnd(100, "abcdefghijklmnopqrstuvwxyz");

/** MemorySaver, which counts what it would hold, and holds the newest checkpoint alone. */
class Counting extends MemorySaver {
  bytes = 0;
  override async put(...args: Parameters<MemorySaver["put"]>) {
    const config = await super.put(...args), { thread_id, checkpoint_ns = "", checkpoint_id } = config.configurable!;
    const all = this.storage[thread_id]![checkpoint_ns]!, [checkpoint, metadata] = all[checkpoint_id]!;
    this.bytes += checkpoint.length + metadata.length;
    for (const id of Object.keys(all)) if (id !== checkpoint_id) delete all[id];
    return config;
  }
  override async putWrites(...args: Parameters<MemorySaver["putWrites"]>) {
    await super.putWrites(...args);
    for (const [task, writes] of Object.entries(this.writes)) {
      for (const [, , value] of Object.values(writes)) this.bytes += value.length;
      delete this.writes[task];
    }
  }
}

async function run(name: string, saver: BaseCheckpointSaver, bytes: () => number | Promise<number>): Promise<void> {
  const answer = ({ messages }: { messages: BaseMessage[] }) => ({ messages: [new AIMessage({ id: `a${messages.length}`, content: text(messages.length) })] });
  const graph = new StateGraph(MessagesAnnotation).addNode("answer", answer).addEdge(START, "answer").compile({ checkpointer: saver });
  const start = Date.now();
  for (let n = 1; n <= marks.at(-1)!; n++) {
    await graph.invoke({ messages: [new HumanMessage({ id: `h${n}`, content: text(n) })] }, { configurable: { thread_id: "t" } });
    if (marks.includes(n)) console.log(`${name}: ${n} turns, ${await bytes()} bytes, ${Math.round((Date.now() - start) / 1000)} s`);
  }
}
const folder = (): string => {
  const dir = mkdtempSync(join(tmpdir(), "coppice-bench-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
};
const sizeOf = (path: string) => Number(execFileSync("du", ["-sb", path], { encoding: "utf8" }).split("\t")[0]);

test("coppice", { timeout: hour }, async () => {
  const dir = folder(), { url } = await serve(["--store", dir]);
  await run("coppice-langgraph", new CoppiceSaver(url), () => sizeOf(dir));
});

test("memory", { timeout: hour }, async () => {
  const saver = new Counting();
  await run("MemorySaver", saver, () => saver.bytes);
});

test("SQLite", { timeout: hour }, async () => {
  const { SqliteSaver } = await import("@langchain/langgraph-checkpoint-sqlite" as string);
  const dir = folder(), saver = SqliteSaver.fromConnString(join(dir, "a.sqlite"));
  await run("SqliteSaver", saver, () => {
    saver.db.pragma("wal_checkpoint(TRUNCATE)");
    return sizeOf(dir);
  });
});

test.skipIf(!process.env["POSTGRES"])("Postgres", { timeout: hour }, async () => {
  const { PostgresSaver } = await import("@langchain/langgraph-checkpoint-postgres" as string);
  const saver = PostgresSaver.fromConnString(process.env["POSTGRES"]!);
  await saver.setup();
  const size = "SELECT sum(pg_total_relation_size(c)) AS n FROM unnest(ARRAY['checkpoints','checkpoint_blobs','checkpoint_writes']::regclass[]) c";
  await run("PostgresSaver", saver, async () => Number((await saver.pool.query(size)).rows[0].n));
  await saver.end();
});
