// Writes src/generated from docs/openapi.json: the types, and a method for each operation that is only a request. Those
// with a behaviour of their own (commit, resume, follow, ...) are written by hand. --check only compares.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const source = new URL("../../../docs/openapi.json", import.meta.url);
const target = new URL("../src/generated/", import.meta.url);
const doc = JSON.parse(await readFile(source, "utf8"));
const note = "// Generated from docs/openapi.json by scripts/generate.mjs: run `npm run generate` to change it.\n\n";

const byHand = new Set(["commit", "createSession", "events", "fork", "import", "metrics", "openapi", "partial", "resume"]);
const byMeta = new Set(["listSessions", "allUsage"]); // parameters with any name cannot be described
const names = { allUsage: "usage", changeSession: "setInfo", context: "contextAt", getCommit: "getCommit", getEntry: "entry",
  deleteSession: "delete", getSession: "info", listCommits: "commits", listEntries: "entries", listSessions: "sessions", state: "stateAt" };

/** The method of a GET. A document without a schema of its own, such as an entry or a state, is RawJSON; a file a Response. */
function read(op, path, schema) {
  const inPath = op.parameters?.filter((p) => p.in === "path" && p.name !== "id") ?? [];
  const query = op.parameters?.filter((p) => p.in === "query") ?? [];
  const need = query.some((p) => p.required) ? "" : " = {}";
  const args = [...inPath.map((p) => `${p.name}: ${p.schema.type === "string" ? "string" : "number"}`),
    ...(query.length ? [`query: Query<"${op.operationId}">${byMeta.has(op.operationId) ? " & ByMeta" : ""}${need}`] : [])].join(", ");
  const template = path.replace(/\{(\w+)\}/g, "${encodeURIComponent($1)}");
  const at = `${inPath.length ? `\`${template}\`` : `"${path}"`}${query.length ? ", query" : ""}`;
  const name = schema?.$ref?.split("/").at(-1), properties = doc.components.schemas[name]?.properties ?? {};
  if (!schema) return `(${args}): Promise<Response> { return this.stream(${at}); }`;
  if (!name) return `(${args}): Promise<RawJSON> { return this.raw(${at}); }`;
  const list = properties.next && Object.keys(properties).find((p) => properties[p].type === "array" && p !== "problems");
  if (!list) return `(${args}): Promise<Schemas["${name}"]> { return this.get(${at}); }`;
  if (!Object.keys(properties[list].items).length) return `(${args}): AsyncGenerator<RawJSON> { return this.pages("${list}", ${at}, (raw) => new RawJSON(raw)); }`;
  return `(${args}): AsyncGenerator<Schemas["${name}"]["${list}"][number]> { return this.pages("${list}", ${at}); }`;
}

/** The method of a write on If-Match. */
function write(op, method, path, schema) {
  const body = op.requestBody?.content["application/json"].schema.$ref.split("/").at(-1);
  const args = body === "NoBody" ? [] : body ? [`body: Schemas["${body}"]`] : [];
  const query = op.parameters.filter((p) => p.in === "query").map((p) => p.name); // of a deletion, which has no body
  const at = query.length ? `o.trash ? "${path}?trash=1" : "${path}"` : `"${path}"`;
  const options = query.length ? "o: WriteOptions & { trash?: boolean } = {}" : "o: WriteOptions = {}";
  return `(${[...args, options].join(", ")}): Promise<Schemas["${schema.$ref.split("/").at(-1)}"]> ` +
    `{ return this.move("${method.toUpperCase()}", ${at}, ${args.length ? "body" : "{}"}, o); }`;
}

const methods = { Session: [], Store: [] };
for (const [path, operations] of Object.entries(doc.paths)) {
  for (const [method, op] of Object.entries(operations)) {
    if (byHand.has(op.operationId)) continue;
    const on = path.startsWith("/v1/sessions/{id}") ? "Session" : "Store";
    const at = path.replace(on === "Session" ? "/v1/sessions/{id}" : "/v1", "");
    const json = (content) => content?.["application/json"]?.schema;
    if (method !== "get" && !op.parameters?.some((p) => p.name === "If-Match")) continue; // verify: a command's work
    const done = json(op.responses["200"].content);
    const text = method === "get" ? read(op, at, done) : write(op, method, at, done);
    methods[on].push(`  /** ${op.summary}. */\n  ${names[op.operationId] ?? op.operationId}${text}`);
  }
}

const operations = `${note}import { RawJSON } from "../json.js";
import { Requests, type WriteOptions } from "../requests.js";
import type { components, operations } from "./openapi.js";

/** The documents of the service, by the names of docs/openapi.json. */
export type Schemas = components["schemas"];
/** What a commit did. */
export type Receipt = Schemas["Committed"];
/** The document of an error. */
export type Problem = Partial<Schemas["Problem"]>;
type Query<Op extends keyof operations> = NonNullable<operations[Op]["parameters"]["query"]>;
type ByMeta = { [name: \`meta.\${string}\`]: string };

/** The operations on a session that are one request. */
export abstract class SessionOperations extends Requests {
  /** Makes a write that is no commit of entries. */
  protected abstract move<T>(method: string, operation: string, body: object, o: WriteOptions): Promise<T>;
${methods.Session.join("\n")}
}

/** The operations on a store that are one request. */
export abstract class StoreOperations extends Requests {
${methods.Store.join("\n")}
}
`;

await mkdir(target, { recursive: true });
let drifted = false;
for (const [name, text] of Object.entries({ "openapi.ts": note + astToString(await openapiTS(doc)), "operations.ts": operations })) {
  const file = new URL(name, target);
  if (!process.argv.includes("--check")) await writeFile(file, text);
  else if ((await readFile(file, "utf8").catch(() => "")) !== text) {
    console.error(`src/generated/${name} is not what docs/openapi.json describes: npm run generate`);
    drifted = true;
  }
}
process.exitCode = drifted ? 1 : 0;
