import { errorOf, type CoppiceError } from "./errors.js";
import type { Problem } from "./generated/operations.js";
import { encode, object, rawItems, rawMembers, RawJSON } from "./json.js";
import type { Answer, Request, Transport } from "./transport.js";

type Path = readonly string[];
type Query = NonNullable<Request<unknown>["query"]>;
/** Options of a read. Once the signal is aborted, the read rejects with its reason. */
export interface ReadOptions { signal?: AbortSignal | undefined }
/** Options of a write: the commit on which it is based (default that of the handle; "*" = the newest). A signal that
 * is aborted after the write was sent makes it OutcomeUnknown. */
export interface WriteOptions { base?: string; signal?: AbortSignal | undefined }
/** Options of a write that has an Idempotency-Key, by default 128 random bits. The service remembers the last 1,024 commits
 * of a session that have one: until then the same write with the same key is that commit. */
export interface KeyedOptions extends WriteOptions { key?: string }

/** A page of a list, the cursors of the pages around it (after and before of a query), and its ETag. */
export interface Page<T> { items: T[]; next: string | undefined; prev: string | undefined; etag?: string | undefined }
/** A page that may be cut short after its first item. */
type Part<T> = Page<T> & { error: CoppiceError | undefined };
/** Yields the items of all pages, or with limit "all" those of one answer. page() reads the one page of the query. */
export type List<T> = AsyncGenerator<T, void> & { page(): Promise<Page<T>> };

/** Reads below a path, used by the generated operations. */
export abstract class Requests {
  /** The ETag of the last read. If that read the newest commit, a write can name it as its base. */
  seen: string | undefined;
  constructor(protected readonly transport: Transport, protected readonly path: Path) {}

  /** Reads and checks a document. */
  protected async read<T>(path: Path, query: Query, o: ReadOptions, read: (text: string) => T): Promise<T> {
    return (await this.ask(path, query, o, read)).value;
  }
  private async ask<T>(path: Path, query: Query, o: ReadOptions, read: (text: string) => T): Promise<Answer<T>> {
    const answer = await this.transport.send({ path: [...this.path, ...path], query, signal: o.signal, read });
    this.seen = answer.etag;
    return answer;
  }
  /** Reads an object with the members that its type promises. */
  protected get<T>(required: Path, path: Path, query: Query, o: ReadOptions): Promise<T> {
    return this.read(path, query, o, (text) => object<T>(text, required, this.path[1]));
  }
  /** Sends a POST without a base. It is retried, as a second one does no harm. */
  protected async post<T>(required: Path, path: Path, body: object, status: number, o: ReadOptions): Promise<T> {
    const request = { method: "POST", path: [...this.path, ...path], body: encode(body), status, signal: o.signal } as const;
    return (await this.transport.send({ ...request, read: (text) => object<T>(text, required, this.path[1]) })).value;
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
  /** The items of a list; raw = each as its text, back = before of a query is a cursor. */
  protected pages<T>(list: string, path: Path, query: Query, o: ReadOptions, raw = false, back = true): List<T> {
    const one = (q: Query) => this.page<T>(list, path, q, o, raw);
    const items = query["limit"] === "all" ? this.lines<T>(path, query, o, raw) : all(one, query, back);
    const page = async () => {
      const { error, ...page } = await one(query);
      if (error) throw error;
      return page;
    };
    return Object.assign(items, { page });
  }
  private async page<T>(list: string, path: Path, query: Query, o: ReadOptions, raw: boolean): Promise<Part<T>> {
    const { value, etag } = await this.ask<Part<T>>(path, query, o, (text) => {
      const doc = object<{ [list: string]: T[] } & { error?: Problem; next?: string; prev?: string }>(text, [list]);
      if (!Array.isArray(doc[list])) throw new Error(`${list} is not a list`);
      const items = raw ? rawItems(rawMembers(text).get(list)!).map((item) => new RawJSON(item) as T) : doc[list];
      return { items, next: doc.next, prev: doc.prev, error: doc.error && errorOf(doc.error, "not-applied") };
    });
    return { ...value, etag };
  }
  /** Yields the items of a list in one answer, as they arrive. */
  private async *lines<T>(path: Path, query: Query, o: ReadOptions, raw: boolean): AsyncGenerator<T, void> {
    for await (const line of this.transport.lines({ path: [...this.path, ...path], query, signal: o.signal })) {
      const last = line.startsWith('{"error":') ? (JSON.parse(line) as { error: Problem }) : undefined;
      if (last && Object.keys(last).length === 1) throw errorOf(last.error, "not-applied");
      yield (raw ? new RawJSON(line) : JSON.parse(line)) as T;
    }
  }
}

/** Yields the items of a page and all later ones. */
async function* all<T>(page: (query: Query) => Promise<Part<T>>, query: Query, back: boolean): AsyncGenerator<T, void> {
  for (let at = query; ; ) {
    const { items, error, next } = await page(at);
    yield* items;
    if (error) throw error;
    if (!next || next === at["after"]) return;
    at = { ...query, ...(back && { before: undefined }), after: next };
  }
}
/** The headers of a body that is bytes. */
export const octets = { "Content-Type": "application/octet-stream" };
/** Random bytes in hexadecimal. */
export function hex(bytes: number): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (b) => b.toString(16).padStart(2, "0")).join("");
}
/** A new id, ordered by time (RFC 9562, version 7). */
export function uuidv7(): string {
  const time = Date.now().toString(16).padStart(12, "0"), random = hex(9);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-8${random.slice(3, 6)}-${random.slice(6)}`;
}
