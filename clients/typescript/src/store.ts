import { StoreOperations } from "./generated/operations.js";
import { encode } from "./json.js";
import { hex, parse, uuidv7 } from "./requests.js";
import { type Schemas, Session } from "./session.js";
import { type Request, type StoreOptions, Transport } from "./transport.js";

/** The store that a service serves. It holds no connection: nothing has to be closed. */
export class Store extends StoreOperations {
  /** base is the address of the service, such as http://127.0.0.1:7070, with its base path if it has one. */
  constructor(base: string, options: StoreOptions = {}) { super(new Transport(base, options), ""); }

  /** A handle of a session, without a request: resume it before a write. */
  session(id: string): Session { return new Session(this.transport, id); }
  /** Creates a session, once however often it is sent; without an id under a new one. An id that is taken is "exists". */
  async create(id: string = uuidv7(), o: Schemas["NewSession"] & { key?: string } = {}): Promise<Session> {
    const { key = hex(16), ...body } = o, path = `/sessions/${encodeURIComponent(id)}`;
    const r = { method: "PUT", body: encode(body), key, headers: { "If-None-Match": "*" } };
    return new Session(this.transport, id, (await this.transport.send(path, r)).etag);
  }
  /** Imports a session file of another program. The same bytes again store nothing. timeout is in milliseconds. */
  async import(file: string | Uint8Array, query: Request["query"] = {}, timeout = 600_000): Promise<Schemas["Import"]> {
    const body = typeof file === "string" ? new TextEncoder().encode(file) : file;
    const headers = { "Content-Type": "application/octet-stream" };
    return parse((await this.transport.send("/import", { method: "POST", query, body, headers, timeout })).text);
  }
}
