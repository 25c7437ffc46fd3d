import { required, StoreOperations, type Schemas } from "./generated/operations.js";
import { encode, object } from "./json.js";
import { hex, uuidv7 } from "./requests.js";
import { Session } from "./session.js";
import { type Request, type StoreOptions, Transport } from "./transport.js";

/** Options of a creation: the description of the session, and the Idempotency-Key (default 128 random bits). */
export interface CreateOptions extends Readonly<Schemas["NewSession"]> { key?: string; signal?: AbortSignal | undefined }
/** Options of an import: the parameters of the request, and how long to wait for its answer (default 600,000 ms). */
export interface ImportOptions { query?: Request<unknown>["query"]; timeout?: number; signal?: AbortSignal | undefined }

/** The store that a service serves at an address, base path included. It holds no connection: nothing has to be closed. */
export class Store extends StoreOperations {
  constructor(address: string, options: StoreOptions = {}) { super(new Transport(address, options), []); }

  /** A handle of a session, without a request: resume it before a write. */
  session(id: string): Session { return new Session(this.transport, id); }

  /** Creates a session, once however often it is sent; without an id under a new one. An id that is taken is "exists". */
  async create(id: string = uuidv7(), o: CreateOptions = {}): Promise<Session> {
    const { key = hex(16), signal, ...session } = o;
    const { etag } = await this.transport.send({
      method: "PUT",
      path: ["sessions", id],
      headers: { "If-None-Match": "*" },
      body: encode(session),
      key,
      signal,
      status: 201,
      etag: true,
      read: (text) => object(text, required.Created, id),
    });
    return new Session(this.transport, id, etag);
  }

  /** Imports a session file of another program. The same bytes again store nothing. */
  async import(file: string | Uint8Array, o: ImportOptions = {}): Promise<Schemas["Import"]> {
    const { query = {}, timeout = 600_000, signal } = o;
    const { value } = await this.transport.send({
      method: "POST",
      path: ["import"],
      query,
      headers: { "Content-Type": "application/octet-stream" },
      body: file,
      timeout,
      signal,
      read: (text) => object<Schemas["Import"]>(text, required.Import),
    });
    return value;
  }
}
