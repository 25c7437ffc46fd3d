import { InvalidArgument } from "./errors.js";

/** JSON text that is sent unchanged: all digits of its numbers and the order of its members are kept. */
export class RawJSON {
  readonly text: string;
  constructor(text: string) {
    JSON.parse(text); // throws SyntaxError here, not at the service
    this.text = text.replace(/\p{Surrogate}/gu, (half) => `\\u${half.charCodeAt(0).toString(16)}`); // no lone surrogates
  }
}

/** The depth of JSON that the service accepts. */
const maxDepth = 500;

/** Returns the JSON text of a value, as JSON.stringify does, but RawJSON stays as it is and a bigint keeps its digits. A value
 * that JSON does not have (NaN, Infinity, a Map, a function) is refused: JSON.stringify makes it null or {}. */
export function encode(value: unknown): string {
  return new Encoder(true).encode(value);
}

/** Returns a text for comparing values. It accepts NaN and Infinity, which JSON.parse returns for 1e400. */
export function fingerprint(value: unknown): string {
  return new Encoder(false).encode(value);
}

class Encoder {
  /** The names of the members in which the value is, from the outside in. */
  private readonly path: string[] = [];
  constructor(private readonly finite: boolean) {}

  encode(value: unknown): string {
    switch (typeof value) {
      case "string":
      case "boolean":
        return JSON.stringify(value);
      case "bigint":
        return String(value);
      case "number":
        if (this.finite && !Number.isFinite(value)) this.refuse(String(value));
        return String(value);
      case "object":
        return value === null ? "null" : this.object(value);
      default:
        return this.refuse(typeof value);
    }
  }

  private object(value: object): string {
    if (value instanceof RawJSON) return value.text;
    if (this.path.length > maxDepth) this.refuse(`nesting of more than ${maxDepth}`);
    if (value instanceof Date && Number.isNaN(value.getTime())) this.refuse("invalid Date"); // its toJSON returns null
    if ("toJSON" in value && typeof value.toJSON === "function") return this.member("toJSON()", value.toJSON());
    if (Array.isArray(value)) return `[${Array.from(value, (item, i) => this.member(String(i), item)).join(",")}]`;
    const kind = Object.prototype.toString.call(value);
    if (kind !== "[object Object]") this.refuse(kind.slice("[object ".length, -1)); // Map, Set, Uint8Array, Error, ...
    const members: string[] = [];
    for (const [name, member] of Object.entries(value)) {
      if (member !== undefined) members.push(`${JSON.stringify(name)}:${this.member(name, member)}`);
    }
    return `{${members.join(",")}}`;
  }

  private member(name: string, value: unknown): string {
    this.path.push(name);
    const text = this.encode(value);
    this.path.pop();
    return text;
  }

  private refuse(what: string): never {
    const place = this.path.slice(0, 20).join(".") || "the value";
    throw new InvalidArgument(`${place}: JSON has no ${what}`);
  }
}

/** The types of members, if a document has them. */
const members: Record<string, (value: unknown) => boolean> = {
  branch: (value) => typeof value === "string" && value !== "",
  commit: (value) => typeof value === "string" && value !== "",
  deleted: (value) => value === true,
  entries: (value) => Array.isArray(value) || Number.isSafeInteger(value), // or their number
  seq: (value) => Number.isSafeInteger(value) && (value as number) >= 0,
  session: (value) => typeof value === "string" && value !== "",
};

/** Parses an object, and checks that it has the members that its type promises; session = the one that it has to name. */
export function object<T>(text: string, required: readonly string[], session?: string): T {
  const doc = JSON.parse(text) as Record<string, unknown> | null;
  if (typeof doc !== "object" || doc === null || Array.isArray(doc)) throw new Error("it is not an object");
  for (const name of required) {
    if (!Object.hasOwn(doc, name)) throw new Error(`it has no member ${name}`);
    if (members[name]?.(doc[name]) === false) throw new Error(`its ${name} is ${JSON.stringify(doc[name]).slice(0, 100)}`);
    if (name === "session" && session !== undefined && doc[name] !== session) throw new Error("it is of another session");
  }
  return doc as T;
}

/** The members of a JSON object, by name, each as its text. */
export const rawMembers = (text: string): Map<string, string> => new Map(parts(text));
/** The items of a JSON array, each as its text. */
export const rawItems = (text: string): string[] => [...parts(text)].map(([, raw]) => raw);

/** Yields the members of an object or array. The text is valid JSON: outside of strings only punctuation counts. */
function* parts(text: string): Generator<[name: string, raw: string]> {
  let depth = 0, start = 0, name = "";
  for (const { 0: mark, index } of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{},:]/g)) {
    const opens = mark === "[" || mark === "{", closes = mark === "]" || mark === "}";
    if (opens && ++depth === 1) start = index + 1;
    if (closes) depth--;
    if (depth === 1 && mark === ":") [name, start] = [JSON.parse(text.slice(start, index)) as string, index + 1];
    if ((depth === 1 && mark === ",") || (depth === 0 && closes)) {
      const raw = text.slice(start, index).trim();
      if (raw) yield [name, raw];
      start = index + 1;
    }
  }
}
