// Writes src/generated from docs/openapi.json: the types, and a method for each operation that is only a request. Those
// with a behaviour of their own (commit, resume, follow, ...) are written by hand. --check only compares.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const source = new URL("../../../docs/openapi.json", import.meta.url);
const target = new URL("../src/generated/", import.meta.url);
const doc = JSON.parse(await readFile(source, "utf8"));
const note = "// Generated from docs/openapi.json by scripts/generate.mjs: run `npm run generate` to change it.\n\n";

const byHand = new Set(["commit", "createSession", "erase", "events", "export", "fork", "import", "metrics", "openapi", "partial", "resume", "upload",
  "runRetention", "setRetention"]); // of an administrator: with the command, or a plain request
// Parameters with any name cannot be described.
const free = { listSessions: " & ByMeta", allUsage: " & ByMeta", listEntries: " & ByMatch", queryEntries: " & ByMeta & ByMatch" };
const names = { allUsage: "usages", changeSession: "setInfo", context: "contextAt", getCommit: "commitAt", getDoc: "doc", getEntry: "entry", queryEntries: "entries",
  deleteSession: "delete", getSession: "info", listCommits: "commits", listEntries: "entries", listSessions: "sessions", state: "stateAt" };
const used = new Set(["Committed", "Created", "Erased", "Fork", "Import", "Resume"]); // schemas of which the client checks an answer

const quoted = (list) => `[${list.map((s) => `"${s}"`).join(", ")}]`;

/** The segments of a path, as code: a parameter is its name. */
function segments(path) {
  const list = path.split("/").filter(Boolean).map((s) => /^\{(\w+)\}$/.exec(s)?.[1] ?? `"${s}"`);
  return `[${list.join(", ")}]`;
}

/** The name of a schema. */
function nameOf(schema) {
  return schema?.$ref?.split("/").at(-1);
}

/** The method of a GET. A document without a schema of its own, such as an entry or a state, is RawJSON; a file a Response. */
function read(op, path, content) {
  const inPath = op.parameters?.filter((p) => p.in === "path" && p.name !== "id") ?? [];
  const inQuery = op.parameters?.filter((p) => p.in === "query") ?? [];
  const args = inPath.map((p) => `${p.name}: ${p.schema.type === "string" ? "string" : "number"}`);
  if (inQuery.length) {
    const type = `Query<"${op.operationId}">${free[op.operationId] ?? ""}`;
    args.push(`query: ${type}${inQuery.some((p) => p.required) ? "" : " = {}"}`);
  }
  const method = (result, call) => `(${[...args, "o: ReadOptions = {}"].join(", ")}): ${result} { return this.${call}; }`;
  const request = `${segments(path)}, ${inQuery.length ? "query" : "{}"}, o`;
  const schema = content["application/json"]?.schema;
  if (!schema) return method("Promise<Response>", `file(${quoted(Object.keys(content))}, ${request})`);
  const name = nameOf(schema);
  if (!name) return method("Promise<RawJSON>", `raw(${request})`);
  const { properties } = doc.components.schemas[name];
  const list = name !== "Context" && properties.next && Object.keys(properties).find((p) => properties[p].type === "array" && p !== "problems");
  if (list) {
    const raw = Object.keys(properties[list].items).length === 0;
    if (raw) return method("List<RawJSON>", `pages("${list}", ${request}, true)`);
    const filter = inQuery.some((p) => p.name === "before") && !properties.prev ? ", false, false" : ""; // it is no cursor
    return method(`List<Schemas["${name}"]["${list}"][number]>`, `pages("${list}", ${request}${filter})`);
  }
  used.add(name);
  return method(`Promise<Schemas["${name}"]>`, `get(required.${name}, ${request})`);
}

/** The method of a write on If-Match. */
function write(op, method, path, content) {
  const body = nameOf(op.requestBody?.content["application/json"].schema);
  const has = (place, name) => op.parameters.some((p) => p.in === place && p.name === name);
  const keyed = has("header", "Idempotency-Key");
  const args = body && body !== "NoBody" ? [`body: Schemas["${body}"]`] : [];
  const members = [`method: "${method.toUpperCase()}"`, `path: ${segments(path)}`];
  if (body) members.push(args.length ? "body" : "body: {}");
  if (has("query", "trash")) members.push("query: { trash: o.trash ? 1 : undefined, children: o.children ? 1 : undefined }");
  const flags = " & { trash?: boolean; children?: boolean }";
  const options = keyed ? "KeyedOptions" : `WriteOptions${has("query", "trash") ? flags : ""}`;
  const result = nameOf(content["application/json"].schema);
  used.add(result);
  return `(${[...args, `o: ${options} = {}`].join(", ")}): Promise<Schemas["${result}"]> ` +
    `{ return this.move({ ${members.join(", ")} }, required.${result}, o, ${keyed}); }`;
}

/** The method of a POST without a base, of which a second one does no harm. */
function post(op, path, content, status) {
  const body = nameOf(op.requestBody.content["application/json"].schema), result = nameOf(content["application/json"].schema);
  used.add(result);
  return `(body: Schemas["${body}"] = {}, o: ReadOptions = {}): Promise<Schemas["${result}"]> ` +
    `{ return this.post(required.${result}, ${segments(path)}, body, ${status}, o); }`;
}

const methods = { Session: [], Store: [] };
for (const [path, operations] of Object.entries(doc.paths)) {
  for (const [method, op] of Object.entries(operations)) {
    if (byHand.has(op.operationId)) continue;
    const on = path.startsWith("/v1/sessions/{id}") ? "Session" : "Store";
    const at = path.replace(on === "Session" ? "/v1/sessions/{id}" : "/v1", "");
    const status = Object.keys(op.responses).find((s) => s.startsWith("2"));
    const { content } = op.responses[status];
    const onBase = op.parameters?.some((p) => p.name === "If-Match");
    const text = method === "get" ? read(op, at, content) : onBase ? write(op, method, at, content) : post(op, at, content, status);
    methods[on].push(`  /** ${op.summary}. */\n  ${names[op.operationId] ?? op.operationId}${text}`);
  }
}
const required = [...used].sort().map((name) => `  ${name}: ${quoted(doc.components.schemas[name].required)},`);

const operations = `${note}import { RawJSON } from "../json.js";
import { Requests, type KeyedOptions, type List, type ReadOptions, type WriteOptions } from "../requests.js";
import type { Move } from "../session.js";
import type { components, operations } from "./openapi.js";

/** The documents of the service, by the names of docs/openapi.json. */
export type Schemas = components["schemas"];
/** What a commit did. */
export type Receipt = Schemas["Committed"];
/** The document of an error. */
export type Problem = Partial<Schemas["Problem"]>;
/** The parameters of an operation. */
export type Query<Op extends keyof operations> =
  operations[Op] extends { parameters: { query?: infer Q } } ? NonNullable<Q> : never;
type ByMeta = { [name: \`meta.\${string}\`]: string };
/** Members of an entry by their dotted path, each with the JSON that it has to be: {"match.data.source": '"loop"'}. */
type ByMatch = { [name: \`match.\${string}\`]: string };

/** The members that a document always has. */
export const required = {
${required.join("\n")}
} satisfies { [name in keyof Schemas]?: string[] };

/** The operations on a session that are one request. */
export abstract class SessionOperations extends Requests {
  /** Makes a write that is no commit of entries. keyed = it is made once, under a key. */
  protected abstract move<T>(move: Move, required: readonly string[], o: KeyedOptions, keyed: boolean): Promise<T>;
${methods.Session.join("\n")}
}

/** The operations on a store that are one request. */
export abstract class StoreOperations extends Requests {
${methods.Store.join("\n")}
}
`;

// Without the errors of each operation: all of them are Problem.
const types = structuredClone(doc);
types.components.responses = {};
for (const op of Object.values(types.paths).flatMap(Object.values)) {
  op.responses = Object.fromEntries(Object.entries(op.responses).filter(([, r]) => !r.$ref));
}
// And without parts that are never present, or are always the same.
const described = astToString(await openapiTS(types)).replace(/^ +\w+\?: never;\n/gm, "")
  .replace(/^ +headers: \{\n +\[name: string\]: unknown;\n +\};\n/gm, "").replace(/^ +parameters: \{\n +\};\n/gm, "");

await mkdir(target, { recursive: true });
let drifted = false;
for (const [name, text] of Object.entries({ "openapi.ts": note + described, "operations.ts": operations })) {
  const file = new URL(name, target);
  if (!process.argv.includes("--check")) await writeFile(file, text);
  else if ((await readFile(file, "utf8").catch(() => "")) !== text) {
    console.error(`src/generated/${name} is not what docs/openapi.json describes: npm run generate`);
    drifted = true;
  }
}
process.exitCode = drifted ? 1 : 0;
