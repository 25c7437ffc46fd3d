import { errorOf } from "./errors.js";
import type { Problem } from "./generated/operations.js";
import { object, rawItems, rawMembers, RawJSON } from "./json.js";
import type { Request, Transport } from "./transport.js";

type Path = readonly string[];
type Query = NonNullable<Request<unknown>["query"]>;
/** Options of a read. Once the signal is aborted, the read rejects with its reason. */
export interface ReadOptions { signal?: AbortSignal | undefined }
/** Options of a write: the commit that it was made on (default that of the handle; "*" = whatever is newest). A signal that
 * is aborted after the write was sent makes it OutcomeUnknown. */
export interface WriteOptions { base?: string; signal?: AbortSignal | undefined }
/** Options of a write that has an Idempotency-Key, by default 128 random bits. The service remembers the last 1,024 commits
 * of a session that have one: until then the same write with the same key is that commit. */
export interface KeyedOptions extends WriteOptions { key?: string }

/** Reads below a path: what the generated operations are made of. */
export abstract class Requests {
  constructor(protected readonly transport: Transport, protected readonly path: Path) {}

  /** Reads and checks a document. */
  protected async read<T>(path: Path, query: Query, o: ReadOptions, read: (text: string) => T): Promise<T> {
    const { value } = await this.transport.send({ path: [...this.path, ...path], query, signal: o.signal, read });
    return value;
  }
  /** Reads an object with the members that its type promises. */
  protected get<T>(required: Path, path: Path, query: Query, o: ReadOptions): Promise<T> {
    return this.read(path, query, o, (text) => object<T>(text, required, this.path[1]));
  }
  /** Reads JSON as its text. */
  protected raw(path: Path, query: Query, o: ReadOptions): Promise<RawJSON> {
    return this.read(path, query, o, (text) => new RawJSON(text.trim()));
  }
  /** Reads a file of one of the types. The caller reads its body. */
  protected async file(types: Path, path: Path, query: Query, o: ReadOptions): Promise<Response> {
    const { response } = await this.transport.send({ path: [...this.path, ...path], query, signal: o.signal, types });
    return response;
  }
  /** Yields the items of a list, page after page; raw = each as its text. */
  protected async *pages<T>(list: string, path: Path, query: Query, o: ReadOptions, raw = false): AsyncGenerator<T, void> {
    for (let after = query["after"]; ; ) {
      const { items, error, next } = await this.read(path, { ...query, after }, o, (text) => {
        const page = object<{ [list: string]: T[] } & { error?: Problem; next?: string }>(text, [list]);
        if (!Array.isArray(page[list])) throw new Error(`${list} is not a list`);
        const items = raw ? rawItems(rawMembers(text).get(list)!).map((item) => new RawJSON(item) as T) : page[list];
        return { items, error: page.error, next: page.next };
      });
      yield* items;
      if (error) throw errorOf(error, "not-applied"); // it came after the first item
      if (!next || next === after) return;
      after = next;
    }
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
