// Reading JSON text in place. Nothing is decoded but what is shown, so digits, order of keys, repeated keys and escapes
// stay as they were stored: JSON.parse would round numbers beyond 2^53 and drop the zero of 1.10. Pure.

export type Kind = "object" | "array" | "string" | "number" | "literal";

/** A Value is a stretch of a text. */
export interface Value {
  start: number;
  end: number;
  kind: Kind;
}

/** A Member is an element of an object or array. key is the decoded name, or the index. */
export interface Member extends Value {
  key: string;
}

const space = /[ \t\n\r]*/y;
const scalar = /[^\s,\]}:"[{]+/y;

function afterSpace(text: string, at: number): number {
  space.lastIndex = at;
  space.test(text);
  return space.lastIndex;
}

function bad(at: number): SyntaxError {
  return new SyntaxError(`no JSON at character ${at}`);
}

function afterString(text: string, at: number): number {
  for (let end = at + 1; ; end++) {
    end = text.indexOf('"', end);
    if (end < 0) throw bad(at);
    let slashes = 0;
    while (text[end - 1 - slashes] === "\\") slashes++;
    if (slashes % 2 === 0) return end + 1;
  }
}

function afterScalar(text: string, at: number): number {
  scalar.lastIndex = at;
  if (!scalar.test(text)) throw bad(at);
  return scalar.lastIndex;
}

/** afterNested returns the end of the object or array at a place. It does not recurse, so depth has no limit. */
function afterNested(text: string, at: number): number {
  let depth = 0;
  for (let i = at; i < text.length;) {
    switch (text[i]) {
      case '"':
        i = afterString(text, i);
        continue;
      case "{": case "[":
        depth++;
        break;
      case "}": case "]":
        if (--depth === 0) return i + 1;
    }
    i++;
  }
  throw bad(at);
}

function kindOf(first: string | undefined): Kind {
  switch (first) {
    case "{": return "object";
    case "[": return "array";
    case '"': return "string";
    case "t": case "f": case "n": return "literal";
    default: return "number";
  }
}

/** valueIn returns the value that begins at a place of a text, after white space. */
export function valueIn(text: string, at = 0): Value {
  const start = afterSpace(text, at);
  const kind = kindOf(text[start]);
  let end: number;
  if (kind === "object" || kind === "array") end = afterNested(text, start);
  else end = kind === "string" ? afterString(text, start) : afterScalar(text, start);
  return { start, end, kind };
}

/** hasMembers reports whether a value is an object or array. */
export function hasMembers(v: Value): boolean {
  return v.kind === "object" || v.kind === "array";
}

/** members returns the elements of an object or array, in their order; at most so many. Other values have none. */
export function members(text: string, v: Value, most = Infinity): Member[] {
  const list: Member[] = [];
  if (!hasMembers(v)) return list;
  let i = afterSpace(text, v.start + 1);
  while (i < v.end - 1 && list.length < most) {
    let key = String(list.length);
    if (v.kind === "object") {
      if (text[i] !== '"') throw bad(i);
      const end = afterString(text, i);
      key = decode(text.slice(i, end));
      i = afterSpace(text, end);
      if (text[i] !== ":") throw bad(i);
      i++;
    }
    const item = valueIn(text, i);
    list.push({ ...item, key });
    i = afterSpace(text, item.end);
    if (text[i] === ",") i = afterSpace(text, i + 1);
    else if (i !== v.end - 1) throw bad(i);
  }
  return list;
}

/** decode returns the text that a JSON string has; what is no JSON string, as it is. */
export function decode(raw: string): string {
  try {
    return JSON.parse(raw) as string;
  } catch {
    return raw;
  }
}

/** step returns the JSON pointer (RFC 6901) to a member of what a pointer names. */
export function step(pointer: string, key: string): string {
  return pointer + "/" + key.replaceAll("~", "~0").replaceAll("/", "~1");
}

/** steps returns the keys of a pointer. */
export function steps(pointer: string): string[] {
  return pointer.split("/").slice(1).map((s) => s.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** at returns the value to which a pointer leads; null = none. Of a repeated key the last one counts, as for the server. */
export function at(text: string, pointer: string): Value | null {
  let v = valueIn(text);
  for (const key of steps(pointer)) {
    const next = members(text, v).findLast((m) => m.key === key);
    if (!next) return null;
    v = next;
  }
  return v;
}
