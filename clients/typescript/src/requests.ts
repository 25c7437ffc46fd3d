import { CoppiceError } from "./errors.js";
import { rawItems, rawMembers, RawJSON } from "./json.js";
import type { Request, Transport } from "./transport.js";

type Query = NonNullable<Request["query"]>;
/** Options of a write: the commit that it was made on (default that of the handle; "*" = whatever is newest). */
export interface WriteOptions { base?: string; signal?: AbortSignal }

/** Reads below a path: what the generated operations are made of. */
export abstract class Requests {
  constructor(protected readonly transport: Transport, protected readonly path: string) {}
  private ask(path: string, query?: Query, stream = false) { return this.transport.send(this.path + path, { query, stream }); }
  protected async text(path: string, query?: Query): Promise<string> { return (await this.ask(path, query)).text.trim(); }
  protected async get<T>(path: string, query?: Query): Promise<T> { return parse(await this.text(path, query)); }
  protected async stream(path: string, query?: Query): Promise<Response> { return (await this.ask(path, query, true)).response; }
  protected async raw(path: string, query?: Query): Promise<RawJSON> { return new RawJSON(await this.text(path, query)); }
  /** Yields the items of a list, page after page. */
  protected async *pages<T>(name: string, path: string, query: Query, item: (raw: string) => T = parse): AsyncGenerator<T, void> {
    for (let after = query["after"]; ; ) {
      const members = rawMembers(await this.text(path, { ...query, after }));
      for (const raw of rawItems(members.get(name) ?? "[]")) yield item(raw);
      const error = members.get("error"), next = parse<string | null>(members.get("next") ?? "null");
      if (error) throw new CoppiceError(parse(error)); // it came after the first item
      if (!next || next === after) return;
      after = next;
    }
  }
}

/** The value of an answer, which has to be JSON. */
export function parse<T>(text: string): T {
  try {
    return JSON.parse(text) as T;
  } catch (e) {
    throw new CoppiceError({ code: "answer", detail: "the answer is not JSON: is this the service?" }, "unknown", e);
  }
}
/** Random bytes in hexadecimal. */
export function hex(bytes: number): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (b) => b.toString(16).padStart(2, "0")).join("");
}
/** A new id, ordered by time (RFC 9562, version 7). */
export function uuidv7(): string {
  const time = Date.now().toString(16).padStart(12, "0"), random = hex(9);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-8${random.slice(3, 6)}-${random.slice(6)}`;
}
