import { required, StoreOperations, type Schemas } from "./generated/operations.js";
import { encode, object } from "./json.js";
import { hex, octets, uuidv7 } from "./requests.js";
import { Session } from "./session.js";
import { type Request, type StoreOptions, Transport } from "./transport.js";

/** Options of a creation: the description of the session, and the Idempotency-Key (default 128 random bits). */
export interface CreateOptions extends Readonly<Schemas["NewSession"]> { key?: string; signal?: AbortSignal | undefined }
/** Options of an import: the parameters of the request, and how long to wait for its answer (default 600,000 ms). */
export interface ImportOptions { query?: Request<unknown>["query"]; timeout?: number; signal?: AbortSignal | undefined }

/** The store that a service serves at an address, base path included. It holds no connection, so it needs no close. */
export class Store extends StoreOperations {
  constructor(address: string, options: StoreOptions = {}) { super(new Transport(address, options), []); }

  /** Returns the handle of a session. No request is made. Call resume() before writing. */
  session(id: string): Session { return new Session(this.transport, id); }

  /** Creates a session, by default under a new id. It is retried with one idempotency key, so made at most once. Throws
   * Exists if the id is taken. */
  async create(id: string = uuidv7(), o: CreateOptions = {}): Promise<Session> {
    const { key = hex(16), signal, ...session } = o;
    const request = { method: "PUT", path: ["sessions", id], status: 201, etag: true, body: encode(session), key, signal } as const;
    const read = (text: string) => object(text, required.Created, id);
    const { etag } = await this.transport.send({ ...request, headers: { "If-None-Match": "*" }, read });
    return new Session(this.transport, id, etag);
  }

  /** Imports a session file of another program. The same bytes again store nothing. */
  async importFile(file: string | Uint8Array, o: ImportOptions = {}): Promise<Schemas["Import"]> {
    const { query = {}, timeout = 600_000, signal } = o;
    const read = (text: string) => object<Schemas["Import"]>(text, required.Import);
    const request = { method: "POST", path: ["import"], query, headers: octets, body: file, timeout, signal, read } as const;
    return (await this.transport.send(request)).value;
  }
}
