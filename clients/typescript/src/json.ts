/** JSON text that is sent as it is: all digits of its numbers and the order of its members are kept. */
export class RawJSON {
  constructor(readonly text: string) {
    JSON.parse(text); // throws SyntaxError here, not at the service
  }
}

/** The JSON text of a value, as JSON.stringify returns it, but RawJSON stays as it is and a bigint keeps its digits. */
export function encode(value: unknown): string {
  if (value instanceof RawJSON) return value.text;
  if (typeof value === "bigint") return String(value);
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  if ("toJSON" in value && typeof value.toJSON === "function") return encode(value.toJSON());
  if (Array.isArray(value)) return `[${value.map(encode).join(",")}]`;
  const members = Object.entries(value).filter(([, v]) => v !== undefined && typeof v !== "function");
  return `{${members.map(([name, v]) => `${JSON.stringify(name)}:${encode(v)}`).join(",")}}`;
}

/** The members of a JSON object, by name, each as its text. */
export const rawMembers = (text: string): Map<string, string> => new Map(parts(text));
/** The items of a JSON array, each as its text. */
export const rawItems = (text: string): string[] => [...parts(text)].map(([, raw]) => raw);

/** Yields what an object or array holds. The text is valid JSON: beside strings only punctuation counts. */
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
