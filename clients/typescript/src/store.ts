import { StoreOperations, type Schemas } from "./generated/operations.js";
import { encode } from "./json.js";
import { hex, parse, uuidv7 } from "./requests.js";
import { Session } from "./session.js";
import { type Request, type StoreOptions, Transport } from "./transport.js";

/** The store that a service serves at an address, base path included. It holds no connection: nothing has to be closed. */
export class Store extends StoreOperations {
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
    const r = { method: "POST", query, body: file, headers: { "Content-Type": "application/octet-stream" }, timeout };
    return parse((await this.transport.send("/import", r)).text);
  }
}
