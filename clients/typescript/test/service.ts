// A coppice serve that a test starts, and a proxy before it that breaks connections.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { TestContext } from "node:test";

/** The folder clients/typescript. */
export const here = join(import.meta.dirname, "../../../..");
export const repository = join(here, "../..");

export const temporary = (): string => mkdtempSync(join(tmpdir(), "coppice-client-"));

/** The command: COPPICE_BIN, or one that is built now: before the tests, whose time is limited. */
const command = process.env["COPPICE_BIN"] ?? build();

function build(): string {
  const dir = temporary(), built = join(dir, "coppice");
  process.on("exit", () => rmSync(dir, { recursive: true, force: true }));
  execFileSync("go", ["build", "-buildvcs=false", "-o", built, "./cmd/coppice"], { cwd: repository, stdio: "inherit" });
  return built;
}

/** A server on a store of its own. */
export class Service {
  url = "";
  private process: ChildProcess | undefined;
  private constructor(private readonly dir: string, private readonly flags: string[]) {}

  /** Starts a server, which ends with the test. */
  static async start(t: TestContext, flags: string[] = []): Promise<Service> {
    const dir = temporary(), s = new Service(dir, flags);
    t.after(async () => {
      await s.kill();
      rmSync(dir, { recursive: true, force: true });
    });
    await s.start();
    return s;
  }

  /** Starts the server again, at the address that it had. */
  async start(): Promise<void> {
    const address = this.url ? new URL(this.url).host : "127.0.0.1:0";
    const env = { ...process.env, COPPICE_STATE: this.dir, XDG_CACHE_HOME: this.dir, COPPICE_HISTORY: "off" };
    const p = spawn(command, ["serve", "--store", join(this.dir, "store"), "--addr", address, ...this.flags],
      { env, stdio: ["ignore", "pipe", "ignore"] });
    this.process = p;
    for await (const line of createInterface({ input: p.stdout! })) {
      const [, url] = /^serving (\S+)/.exec(line) ?? [];
      if (url) {
        this.url = url;
        p.stdout!.resume();
        return;
      }
    }
    throw new Error("the server ended before it served");
  }

  /** Kills the server at once, with SIGKILL, and waits until it is gone. */
  async kill(): Promise<void> {
    const p = this.process;
    this.process = undefined;
    if (!p || p.exitCode !== null || p.signalCode !== null) return;
    const gone = new Promise((resolve) => p.once("exit", resolve));
    p.kill("SIGKILL");
    await gone;
  }
}

/** The fate of a request: it does not arrive; its answer is cut after a number of bytes; or ends after a text. */
export interface Fault { request?: boolean; answerBytes?: number; endAfter?: string }

/** A TCP proxy before a server. decide is called for every request and returns the fate of its connection. */
export class Proxy {
  requests = 0;
  private readonly open = new Set<Socket>();
  private constructor(private readonly server: Server, readonly url: string) {}

  static async start(t: TestContext, service: Service, decide: (request: string, n: number) => Fault | undefined): Promise<Proxy> {
    const to = new URL(service.url);
    const server = createServer((client) => {
      const upstream = connect(Number(to.port), to.hostname);
      let left = Infinity, end: string | undefined;
      for (const s of [client, upstream]) {
        proxy.open.add(s);
        s.on("error", () => undefined); // it broke: as planned
        s.on("close", () => (client.destroy(), upstream.destroy(), proxy.open.delete(s)));
      }
      client.on("data", (chunk) => {
        const head = chunk.toString("latin1");
        if (/^(GET|POST|PUT|PATCH|DELETE) /.test(head)) {
          const fault = decide(head.slice(0, head.indexOf("\r\n")), ++proxy.requests);
          left = fault?.answerBytes ?? Infinity;
          end = fault?.endAfter;
          if (fault?.request === false) return void client.destroy();
        }
        upstream.write(chunk);
      });
      upstream.on("data", (chunk) => {
        if (end !== undefined && chunk.includes(end)) return void client.end(chunk);
        if (chunk.length <= left) client.write(chunk);
        else if (left > 0) client.end(chunk.subarray(0, left));
        if (chunk.length > left) setImmediate(() => client.destroy());
        left -= chunk.length;
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const proxy: Proxy = new Proxy(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    t.after(() => proxy.close());
    return proxy;
  }

  /** Breaks all connections. */
  cut(): void {
    for (const s of this.open) s.destroy();
  }
  private async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

/** Options of a store in tests: short waits, so that many tries cost little. */
export const quick = { sleep: (ms: number) => new Promise<void>((done) => setTimeout(done, Math.min(ms, 20))) };
