// A JSON text as the rows of a tree. Rows are made for what is open, so a closed value costs one row whatever its size.
// Pure.
import { parentOf, type Change, type Changes } from "./changes.ts";
import { hasMembers, members, step, valueIn, type Kind, type Value } from "./json.ts";

/** A Row is a line of the tree. */
export interface Row {
  path: string;
  key: string; // "" = the root
  depth: number; // from 0
  kind: Kind;
  text: string; // the value as it is stored, cut at `longest` characters; of an open one ""
  size: number; // characters of the value
  count: number; // elements; -1 = not counted, because it is long
  open: boolean;
  mark: Change["op"] | null;
  before: string | null; // the value that it replaced
  inside: number; // changes of values below
  more: number; // > 0: this row is in place of so many elements that are not shown
}

/** Bounds: of a value in its row, of a value whose elements are counted, of elements that are shown, of rows. */
export const longest = 300;
const counted = 1 << 20;
export const chunk = 500;
const maxRows = 20_000;

/** Opened is what a person has opened and closed, and how many elements of a long value are shown. */
export interface Opened {
  open: ReadonlyMap<string, boolean>;
  shown: ReadonlyMap<string, number>;
}

/** small is the length of a text, in characters, of which everything is open at first. */
const small = 3_000;

/** rows returns the rows of a text with the marks of what changed in it; of at most 20,000 rows. */
export function rows(text: string, changed: Changes, opened: Opened): Row[] {
  const list = new Rows(text, changed, opened);
  list.add("", "", 0, valueIn(text));
  return list.rows;
}

class Rows {
  readonly rows: Row[] = [];
  private readonly marks = new Map<string, Change>();
  private readonly removed = new Map<string, Change[]>(); // by the path of what they were in
  private readonly inside = new Map<string, number>();

  constructor(private readonly text: string, changed: Changes, private readonly opened: Opened) {
    for (const c of changed.list) {
      if (c.op === "remove") this.removed.set(parentOf(c.path), [...(this.removed.get(parentOf(c.path)) ?? []), c]);
      else this.marks.set(c.path, c);
      for (let p = c.path; p !== "";) {
        p = parentOf(p);
        this.inside.set(p, (this.inside.get(p) ?? 0) + 1);
      }
    }
  }

  add(path: string, key: string, depth: number, v: Value): void {
    if (this.rows.length >= maxRows) return;
    const change = this.marks.get(path);
    const inside = this.inside.get(path) ?? 0;
    const nested = hasMembers(v);
    const open = nested && (this.opened.open.get(path) ?? (depth === 0 || inside > 0 || this.text.length <= small));
    const size = v.end - v.start;
    const all = nested && (open || size <= counted) ? members(this.text, v) : [];
    this.rows.push({
      path, key, depth, kind: v.kind, size, open, inside, more: 0,
      text: open ? "" : this.text.slice(v.start, Math.min(v.end, v.start + longest)),
      count: nested && !open && size > counted ? -1 : all.length, mark: change?.op ?? null, before: change?.before ?? null,
    });
    if (!open) return;
    const shown = this.opened.shown.get(path) ?? chunk;
    for (const m of all.slice(0, shown)) this.add(step(path, m.key), m.key, depth + 1, m);
    if (all.length > shown) this.push({ path, key: "", depth: depth + 1, more: all.length - shown });
    for (const c of this.removed.get(path) ?? []) {
      const was = c.before ?? "";
      this.push({
        path: c.path, key: c.path.slice(path.length + 1).replaceAll("~1", "/").replaceAll("~0", "~"), depth: depth + 1,
        kind: valueIn(was).kind, text: was.slice(0, longest), size: was.length, mark: "remove", before: was, count: -1,
      });
    }
  }

  private push(row: Pick<Row, "path" | "key" | "depth"> & Partial<Row>): void {
    this.rows.push({
      kind: "literal", text: "", size: 0, count: 0, open: false, mark: null, before: null, inside: 0, more: 0, ...row,
    });
  }
}
