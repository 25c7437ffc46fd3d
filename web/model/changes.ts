// What differs between two JSON texts, value by value. Numbers are compared as they are written, so 1.10 and 1.1 differ,
// and so do integers beyond 2^53. White space and the order of keys do not count. Pure.
import { hasMembers, members, step, valueIn, type Member, type Value } from "./json.ts";

/** A Change is a value that another text adds, replaces or removes. before and after are texts of JSON. */
export interface Change {
  op: "add" | "replace" | "remove";
  path: string; // in the newer text; of what was removed, in the older one
  before: string | null;
  after: string | null;
}

/** Changes are at most so many differences; more = there are others. */
export interface Changes {
  list: Change[];
  more: boolean;
}

/** changes returns the differences from a text to another; null is the value that was never set. At most `most`. */
export function changes(a: string | null, b: string | null, most: number): Changes {
  const found: Changes = { list: [], more: false };
  if (a === b) return found;
  const compare = new Comparison(a ?? "null", b ?? "null", most, found);
  compare.values("", valueIn(a ?? "null"), valueIn(b ?? "null"));
  return found;
}

class Comparison {
  constructor(readonly a: string, readonly b: string, readonly most: number, readonly found: Changes) {}

  private add(op: Change["op"], path: string, before: Value | null, after: Value | null): void {
    if (this.found.list.length === this.most) {
      this.found.more = true;
      return;
    }
    this.found.list.push({
      op, path, before: before && this.a.slice(before.start, before.end), after: after && this.b.slice(after.start, after.end),
    });
  }

  private same(x: Value, y: Value): boolean {
    return x.end - x.start === y.end - y.start && this.a.slice(x.start, x.end) === this.b.slice(y.start, y.end);
  }

  values(path: string, x: Value, y: Value): void {
    if (this.found.more || this.same(x, y)) return;
    if (x.kind !== y.kind || !hasMembers(x)) this.add("replace", path, x, y);
    else if (x.kind === "object") this.objects(path, members(this.a, x), members(this.b, y));
    else this.arrays(path, members(this.a, x), members(this.b, y));
  }

  private objects(path: string, xs: Member[], ys: Member[]): void {
    const before = new Map(xs.map((m) => [m.key, m])); // of a repeated key the last one counts
    const after = new Map(ys.map((m) => [m.key, m]));
    for (const [key, y] of after) {
      const x = before.get(key);
      if (x) this.values(step(path, key), x, y);
      else this.add("add", step(path, key), null, y);
    }
    for (const [key, x] of before) {
      if (!after.has(key)) this.add("remove", step(path, key), x, null);
    }
  }

  /** arrays compares what is left without the equal elements at both ends, place by place. */
  private arrays(path: string, xs: Member[], ys: Member[]): void {
    let head = 0;
    while (head < xs.length && head < ys.length && this.same(xs[head]!, ys[head]!)) head++;
    let x = xs.length;
    let y = ys.length;
    while (x > head && y > head && this.same(xs[x - 1]!, ys[y - 1]!)) {
      x--;
      y--;
    }
    for (let i = head; i < Math.max(x, y) && !this.found.more; i++) {
      const at = step(path, String(i));
      if (i < x && i < y) this.values(at, xs[i]!, ys[i]!);
      else if (i < y) this.add("add", at, null, ys[i]!);
      else this.add("remove", at, xs[i]!, null);
    }
  }
}

/** parentOf returns the pointer to what a value is in. */
export function parentOf(pointer: string): string {
  return pointer.slice(0, pointer.lastIndexOf("/"));
}
