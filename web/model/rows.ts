// The rows of the drawn tree, loaded in chunks around what is on screen. A view pins head, filter and search, so that
// positions mean the same in every request; the server forgets old views (410), and then the rows are asked for again
// around the entry that was in the middle. Pure but for the `load` that it is given.

/** A Stretch is an answer of `rows`. */
export interface Stretch<R> {
  view: string;
  total: number;
  from: number;
  rows: R[];
  at?: number; // the row of the entry that was asked for with `around`
}

export interface Ask {
  view?: string;
  from?: number;
  count: number;
  around?: string;
}

/** chunk is the number of rows of a request, maxChunks what is kept: 4,000 rows. */
export const chunk = 200;
const maxChunks = 20;

/** Gone is thrown by load when the server no longer has the view. */
export class Gone extends Error {}

/** Rows are the rows of one drawn tree. */
export class Rows<R extends { id: string }> {
  view = "";
  total = 0;
  private chunks = new Map<number, R[]>(); // by number; the one used last is last
  private loading = new Map<number, Promise<void>>();

  constructor(private readonly load: (ask: Ask, signal: AbortSignal) => Promise<Stretch<R>>,
    private readonly signal: AbortSignal) {}

  /**
   * start asks for the newest rows, around an entry if one is given, and returns the position of that entry (of its nearest
   * visible ancestor), or null. Positions of another view mean nothing: if the view is another one, what was loaded goes.
   */
  async start(around: string | null): Promise<number | null> {
    const s = await this.load({ count: chunk, ...(around === null ? { from: 0 } : { around }) }, this.signal);
    if (s.view !== this.view) {
      this.view = s.view;
      this.total = s.total;
      this.chunks.clear();
      this.loading.clear();
    }
    this.keep(s);
    return s.at ?? null;
  }

  /** at returns the row at a position, if it is loaded. */
  at(position: number): R | undefined {
    return this.chunks.get(Math.floor(position / chunk))?.[position % chunk];
  }

  /** indexOf returns the position of an entry among the rows that are loaded; -1 = it is not. */
  indexOf(id: string): number {
    for (const [n, rows] of this.chunks) {
      const i = rows.findIndex((r) => r?.id === id);
      if (i >= 0) return n * chunk + i;
    }
    return -1;
  }

  /**
   * find returns the position of an entry, and loads the rows around it if it must: the newest ones, for the entry may be
   * newer than the view.
   */
  async find(id: string): Promise<number | null> {
    const at = this.indexOf(id);
    return at >= 0 ? at : this.start(id);
  }

  /** ensure loads the rows of a range of positions, and reports whether something had to be loaded. */
  async ensure(from: number, count: number): Promise<boolean> {
    const waits: Promise<void>[] = [];
    for (let n = Math.floor(from / chunk); n * chunk < Math.min(from + count, this.total); n++) {
      if (this.complete(n)) this.touch(n);
      else waits.push(this.loading.get(n) ?? this.fetch(n));
    }
    await Promise.all(waits);
    return waits.length > 0;
  }

  private complete(n: number): boolean {
    const rows = this.chunks.get(n);
    const wanted = Math.min(chunk, this.total - n * chunk);
    if (rows === undefined || rows.length < wanted) return false;
    for (let i = 0; i < wanted; i++) if (rows[i] === undefined) return false;
    return true;
  }

  private touch(n: number): void {
    const rows = this.chunks.get(n)!;
    this.chunks.delete(n);
    this.chunks.set(n, rows);
  }

  private fetch(n: number): Promise<void> {
    const p = this.load({ view: this.view, from: n * chunk, count: chunk }, this.signal).then((s) => {
      if (s.view === this.view) this.keep(s);
    }).finally(() => {
      if (this.loading.get(n) === p) this.loading.delete(n);
    });
    this.loading.set(n, p);
    return p;
  }

  /** keep stores rows, which may begin within a chunk, and drops those used the longest time ago. */
  private keep(s: Stretch<R>): void {
    s.rows.forEach((row, i) => {
      const n = Math.floor((s.from + i) / chunk);
      const rows = this.chunks.get(n) ?? [];
      rows[(s.from + i) % chunk] = row;
      this.chunks.delete(n);
      this.chunks.set(n, rows);
    });
    for (const n of this.chunks.keys()) {
      if (this.chunks.size <= maxChunks) break;
      this.chunks.delete(n);
    }
  }
}

/**
 * tallest is the height of the list at most, in px: browsers clamp tall elements (Firefox at 17.9 million). A longer list
 * is scaled: a pixel of the scroll bar is then more than a pixel of rows.
 */
export const tallest = 8_000_000;

/** heightOf returns the height of the element for so many rows, in px. */
export function heightOf(total: number, rowHeight: number): number {
  return Math.min(total * rowHeight, tallest);
}

/** firstRow returns the row at the upper edge of a window of a height that is scrolled to an offset. */
export function firstRow(offset: number, windowHeight: number, total: number, rowHeight: number): number {
  const height = heightOf(total, rowHeight);
  const most = Math.max(0, height - windowHeight);
  if (most === 0) return 0;
  const last = Math.max(0, total - windowHeight / rowHeight);
  return Math.min(1, Math.max(0, offset / most)) * last;
}

/** offsetOf returns the offset at which a row is at the upper edge: firstRow(offsetOf(row)) is row. */
export function offsetOf(row: number, windowHeight: number, total: number, rowHeight: number): number {
  const most = Math.max(0, heightOf(total, rowHeight) - windowHeight);
  const last = Math.max(1, total - windowHeight / rowHeight);
  return Math.min(1, Math.max(0, row / last)) * most;
}
