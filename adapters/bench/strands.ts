// A resume and a turn of Strands Agents on S3: this adapter and the SDK's own S3Storage, in one run. By hand:
//
//	make s3server build
//	npm install --no-save @aws-sdk/client-s3@3.1175.0
//	BENCH=1 npx vitest run bench/strands
//
// Requests and bytes are those that S3 gets and sends: of a resume by a service that has just started, without a cache.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { AddressInfo } from "node:net";
import { S3Storage, type Storage } from "@strands-agents/sdk/storage";
import { expect, onTestFinished, test } from "vitest";
import { Counted, serve } from "../harness/service.ts";
import { CoppiceStorage } from "../strands/src/index.ts";

const key = "session/s/scopes/agent/a/snapshots/snapshot_latest.json", account = "bench", secret = "bench-secret";
const message = (i: number, text = `message ${i} `.padEnd(430, "abcdefghijklmnopqrstuvwxyz ")) => ({ role: i % 2 ? "assistant" : "user", content: [{ text }], trackingId: `id${i}` });
const range = (n: number) => Array.from({ length: n }, (_, i) => message(i));
const snapshot = (messages: unknown[]) => new TextEncoder().encode(JSON.stringify({ scope: "agent", schemaVersion: "1.0", createdAt: "2026-01-01T00:00:00.000Z", data: { messages, state: { step: messages.length } }, appData: {} }));
const messagesOf = (data: Uint8Array | null) => (JSON.parse(new TextDecoder().decode(data!)) as { data: { messages: { content: { text: string }[] }[] } }).data.messages;

/** What went through a proxy. */
class Traffic {
  requests: string[] = [];
  up = 0;
  down = 0;
  async of(f: () => Promise<unknown>): Promise<string> {
    [this.requests, this.up, this.down] = [[], 0, 0];
    await f();
    const counts = new Map<string, number>();
    for (const r of this.requests) counts.set(r, (counts.get(r) ?? 0) + 1);
    return `${[...counts].map(([r, n]) => `${n} ${r}`).join(", ")} | ${this.up} | ${this.down}`;
  }
}

/** An S3 server, and a proxy before it. */
async function s3(): Promise<{ endpoint: string; traffic: Traffic }> {
  const dir = mkdtempSync(join(tmpdir(), "coppice-bench-")), traffic = new Traffic();
  const command = process.env["S3SERVER"] ?? "../bin/s3server";
  const free = createServer();
  await new Promise<void>((done) => free.listen(0, "127.0.0.1", done));
  const { port } = free.address() as AddressInfo, host = "127.0.0.1";
  await new Promise((done) => free.close(done));
  const server = spawn(command, ["-addr", `${host}:${port}`, "-dir", dir], {
    env: { ...process.env, ROOT_ACCESS_KEY: account, ROOT_SECRET_KEY: secret }, stdio: ["ignore", "pipe", "inherit"],
  });
  for await (const line of createInterface({ input: server.stdout })) if (line.startsWith("ready ")) break;
  server.stdout.resume();
  const proxy = createServer((q, r) => {
    traffic.requests.push(q.url!.includes("list-type") ? "LIST" : q.method!);
    const on = request({ host, port, method: q.method, path: q.url, headers: q.headers }, (a) => {
      r.writeHead(a.statusCode!, a.headers);
      a.on("data", (p: Buffer) => (traffic.down += p.length));
      a.pipe(r);
    });
    q.on("data", (p: Buffer) => (traffic.up += p.length));
    q.pipe(on);
  });
  await new Promise<void>((done) => proxy.listen(0, "127.0.0.1", done));
  onTestFinished(() => {
    server.kill("SIGKILL");
    proxy.close();
    proxy.closeAllConnections();
    rmSync(dir, { recursive: true, force: true });
  });
  return { endpoint: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, traffic };
}

test("resume and turn", { timeout: 3_600_000 }, async () => {
  const { endpoint, traffic } = await s3();
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: account, AWS_SECRET_ACCESS_KEY: secret, AWS_REGION: "us-east-1" });
  const { S3Client, CreateBucketCommand } = await import("@aws-sdk/client-s3" as string);
  const s3Client = new S3Client({ endpoint, forcePathStyle: true });
  await s3Client.send(new CreateBucketCommand({ Bucket: "bench" }));
  const service = await serve(["--store", `s3://bench/coppice?endpoint=${endpoint}&path-style=true`]);
  const sides: [string, (n: number) => Storage, () => Promise<unknown>][] = [
    ["S3Storage", (n) => new S3Storage("bench", { prefix: `own/${n}/`, s3Client }), async () => undefined],
    ["coppice-strands", (n) => new CoppiceStorage(service.url, { scope: `${n}` }), () => service.kill().then(() => service.start())],
  ];
  console.log("| messages | storage | | requests | up | down |");
  for (const n of [10, 1000, 10_000]) {
    for (const [name, storage, restart] of sides) {
      const writer = storage(n);
      for (let m = Math.max(n - 20, 2); m <= n; m += 2) await writer.write(key, snapshot(range(m)));
      await restart();
      const host = storage(n);
      const resume = await traffic.of(async () => expect(messagesOf(await host.read(key)).length).toBe(n));
      const turn = await traffic.of(() => host.write(key, snapshot(range(n + 2))));
      console.log(`| ${n} | ${name} | resume | ${resume} |\n| ${n} | ${name} | turn | ${turn} |`);
    }
  }
  for (const [name, storage] of sides) {
    const hosts = [storage(10), storage(10)], before = range(12);
    for (const h of hosts) await h.read(key);
    for (const [i, h] of hosts.entries()) await h.write(key, snapshot([...before, message(12, `of host ${i}`)]));
    const kept = JSON.stringify(messagesOf(await hosts[0]!.read(key)));
    console.log(`two hosts, ${name}: the snapshot has ${kept.match(/of host ./g)!.join()}`);
  }
  const { store } = new Counted(service.url), session = store.session(await new CoppiceStorage(store, { scope: "10" }).id(key));
  let all = "";
  for await (const e of session.entries({ path: "all" })) all += e.text;
  console.log(`the session has ${["of host 0", "of host 1"].filter((t) => all.includes(t)).join()}, and ${(await session.branches()).branches.length} branches`);
});
