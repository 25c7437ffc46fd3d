// A page in Chromium, over the pipe of its DevTools protocol: it needs no other package.
import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { onTestFinished } from "vitest";

interface Answer { id?: number; error?: object; result?: any; sessionId?: string }

/** A tab of a browser, which ends with the test. */
export class Page {
  private constructor(private readonly call: (method: string, params: object) => Promise<any>) {}

  static async open(url: string): Promise<Page> {
    const dir = mkdtempSync(join(tmpdir(), "coppice-chromium-"));
    const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions", "--disable-component-update"];
    const browser = spawn(process.env["CHROMIUM"] ?? "chromium", [...flags, `--user-data-dir=${dir}`, "--remote-debugging-pipe"], {
      detached: true, // a group of its own
      stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
    });
    const ended = new Promise((done) => browser.on("exit", done).on("error", done));
    const waiting = new Map<number, { done(result: any): void; failed(e: Error): void }>();
    onTestFinished(async () => {
      try {
        if (browser.pid) process.kill(-browser.pid, "SIGKILL"); // its helpers too: they write into the folder
      } catch {} // it has ended
      await ended;
      await rm(dir, { recursive: true, force: true, maxRetries: 20 }).catch(() => undefined); // one that left the group
    });
    void ended.then(() => waiting.forEach((w) => w.failed(new Error("the browser ended"))));
    let rest = Buffer.alloc(0);
    (browser.stdio[4] as Readable).on("data", (more: Buffer) => {
      rest = Buffer.concat([rest, more]);
      for (let end = rest.indexOf(0); end >= 0; end = rest.indexOf(0)) {
        const answer = JSON.parse(rest.toString("utf8", 0, end)) as Answer, w = waiting.get(answer.id ?? 0);
        rest = rest.subarray(end + 1);
        waiting.delete(answer.id ?? 0);
        if (answer.error) w?.failed(new Error(JSON.stringify(answer.error)));
        else w?.done(answer.result);
      }
    });
    let id = 0;
    const call = (method: string, params: object, sessionId?: string) => new Promise<any>((done, failed) => {
      waiting.set(++id, { done, failed });
      (browser.stdio[3] as Writable).write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
    const { targetId } = await call("Target.createTarget", { url });
    const { sessionId } = await call("Target.attachToTarget", { targetId, flatten: true });
    return new Page((method, params) => call(method, params, sessionId));
  }

  /** The value of an expression in the page, a promise's too. */
  async value(expression: string): Promise<any> {
    const { result, exceptionDetails: e } = await this.call("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (e) throw new Error(e.exception?.description ?? e.text);
    return result.value;
  }
  /** Waits until an expression is true, also in a page that is loaded meanwhile. */
  async until(expression: string): Promise<void> {
    const look = `new Promise((done) => { const look = () => { try { if (${expression}) return done(); } catch {} setTimeout(look, 5); }; look(); })`;
    for (let loads = 0; ; loads++) {
      try {
        return void (await this.value(look));
      } catch (e) {
        if (loads === 10 || !/context/.test((e as Error).message)) throw e;
      }
    }
  }
  /** Types a text where the focus is. */
  type(text: string): Promise<unknown> { return this.call("Input.insertText", { text }); }
  /** Loads the page again. */
  async reload(): Promise<void> {
    await this.value("window.old = true");
    await this.call("Page.reload", {});
  }
}
