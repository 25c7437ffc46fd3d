// A coppice serve for the tests of adapters, and a client that counts its requests.
import { Store, type StoreOptions } from "coppice-client";
import { onTestFinished } from "vitest";
import { Proxy, Service, type Fault } from "../../clients/typescript/test/service.ts";

type Context = Parameters<typeof Service.start>[0];
const context = { after: onTestFinished } as unknown as Context;

/** Starts a service with an empty store, which ends with the test. */
export const serve = (flags: string[] = []): Promise<Service> => Service.start(context, flags);
/** Starts a proxy before a service, which breaks the requests that decide names. */
export const breaking = (service: Service, decide: (request: string, n: number) => Fault | undefined): Promise<Proxy> =>
  Proxy.start(context, service, decide);

/** Starts a proxy before a service. Of every so many requests one is stored and its answer lost, and before another one the
 * service is killed, and started again. */
export async function unreliable(service: Service, every: number): Promise<Proxy> {
  let restarted = Promise.resolve();
  const proxy = await breaking(service, (_, n) => {
    if (n % every === 3) return { answerBytes: 0 };
    if (n % every !== every - 1) return undefined;
    restarted = restarted.then(() => service.kill()).then(() => service.start());
    return { request: false };
  });
  onTestFinished(() => restarted); // before the service ends
  return proxy;
}

/** A client, what it has sent, and the bytes of both directions since reset. */
export class Counted {
  requests: string[] = [];
  up = 0;
  down = 0;
  readonly store: Store;
  constructor(readonly url: string, o: StoreOptions = {}) {
    const sleep = (ms: number) => new Promise<void>((done) => setTimeout(done, Math.min(ms, 20)));
    this.store = new Store(url, { sleep, ...o, fetch: this.fetch });
  }
  private readonly fetch: typeof fetch = async (url, init) => {
    const answer = await fetch(url, init), path = new URL(String(url)).pathname.replace(/^\/v1/, "").replace(/^\/sessions\/[^/]+/, "/sessions/ID");
    this.requests.push(`${init?.method ?? "GET"} ${path}`);
    this.up += Buffer.byteLength(String(init?.body ?? ""));
    this.down += (await answer.clone().arrayBuffer()).byteLength;
    return answer;
  };
  /** Does something, and returns what it sent. */
  async of(f: () => Promise<unknown>): Promise<{ requests: string[]; up: number; down: number }> {
    [this.requests, this.up, this.down] = [[], 0, 0];
    await f();
    return { requests: [...this.requests], up: this.up, down: this.down };
  }
}
