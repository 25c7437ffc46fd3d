// Drawing the timeline: a tick per commit, as tall as it has entries, and marks that differ by letter and shape.
import { costAt, type CostAt } from "../model/costs.ts";
import { columns, flags, hasOne, xOf, type Flag, type Mark, type Span } from "../model/ticks.ts";

export interface Rail {
  span: Span;
  width: number; // px
  newest: number;
  get: (n: number) => number | undefined; // entries of a tick; undefined = not known yet
  marks: { seq: number; mark: Mark }[];
  costs: readonly CostAt[];
  /** failed are commits that stored a failure, in order. */
  failed: readonly number[];
  /** noted are commits that a pane points at: short ticks below the line. */
  noted: number[];
  /** marked is the stretch that is being selected. */
  marked: { from: number; to: number } | null;
  /** compare is the commit that the cursor is compared with. */
  compare: number | null;
}

/** beside is the room for half a mark at each end, in px. The canvas is so much wider than its parent. */
const beside = 8;

/** drawRail draws the timeline on a canvas as high as its parent. */
export function drawRail(c: HTMLCanvasElement, r: Rail): void {
  const height = c.parentElement!.clientHeight;
  const scale = devicePixelRatio || 1;
  c.width = Math.round((r.width + 2 * beside) * scale);
  c.height = Math.round(height * scale);
  const g = c.getContext("2d")!;
  g.scale(scale, scale);
  g.translate(beside, 0);
  const style = getComputedStyle(c);
  const colour = (name: string) => style.getPropertyValue(name);
  const base = height - (height > 40 ? 8 : 4); // the line on which ticks are
  const tall = base - (height > 40 ? 18 : 13); // room for ticks, below the letters
  stretch(g, r, height, colour);
  spent(g, r, base, tall, colour("--line"));
  g.fillStyle = colour("--line");
  g.fillRect(0, base, xOf(r.newest, r.span, r.width) + 4, 1);
  const ticks = columns(r.span, r.width, r.newest, r.get);
  const most = Math.log(2 + ticks.reduce((n, t) => Math.max(n, t.entries), 8));
  for (const t of ticks) {
    const h = t.known ? 4 + (Math.log(1 + t.entries) / most) * (tall - 4) : 3;
    g.fillStyle = colour(hasOne(r.failed, t.first, t.count) ? "--bad" : t.known ? "--text-soft" : "--line");
    g.fillRect(Math.round(t.x - 0.5), base - h, 1, h);
  }
  g.fillStyle = colour("--accent");
  for (const seq of r.noted) g.fillRect(Math.round(xOf(seq, r.span, r.width)) - 1, base + 1, 3, height - base - 1);
  g.font = `600 ${height > 40 ? 10 : 9}px ${style.getPropertyValue("--mono") || "monospace"}`;
  g.textAlign = "center";
  g.textBaseline = "middle";
  for (const f of flags(r.span, r.width, r.marks)) flag(g, f, base, colour);
}

/** spent shows what the session had cost at each commit, as an area that grows to the height of the tallest tick. */
function spent(g: CanvasRenderingContext2D, r: Rail, base: number, tall: number, fill: string): void {
  const total = r.costs.at(-1)?.cost ?? 0;
  if (total === 0) return;
  g.fillStyle = fill;
  g.beginPath();
  g.moveTo(0, base);
  const end = Math.min(r.width, xOf(r.newest, r.span, r.width));
  for (let x = 0; x <= end; x++) {
    const seq = Math.floor(r.span.from + (x / r.width) * (r.span.to - r.span.from));
    g.lineTo(x, base - (costAt(r.costs, seq) / total) * tall);
  }
  g.lineTo(end, base);
  g.fill();
}

/** stretch shows what is being selected, or what the cursor is compared with. */
function stretch(g: CanvasRenderingContext2D, r: Rail, height: number, colour: (name: string) => string): void {
  const edge = (seq: number, name: string) => {
    const x = xOf(seq, r.span, r.width);
    g.fillStyle = colour("--warn");
    g.fillRect(x - 1, 0, 2, height);
    g.font = "600 10px sans-serif";
    g.fillText(name, x + 4, height - 8);
  };
  if (r.marked) {
    const [a, b] = [Math.min(r.marked.from, r.marked.to), Math.max(r.marked.from, r.marked.to)];
    g.fillStyle = colour("--accent-soft");
    g.fillRect(xOf(a, r.span, r.width), 0, xOf(b, r.span, r.width) - xOf(a, r.span, r.width), height);
    edge(a, "A");
    edge(b, "B");
  } else if (r.compare !== null) edge(r.compare, "A");
}

const colours: Record<Mark, string> = {
  S: "--accent", C: "--warn", R: "--bad", x: "--bad", F: "--text-soft", "+": "--text-soft",
};

/** flag draws a mark: its letter above a shape of its own on the line. */
function flag(g: CanvasRenderingContext2D, f: Flag, base: number, colour: (name: string) => string): void {
  g.fillStyle = g.strokeStyle = colour(colours[f.mark]);
  g.fillText(f.mark, f.x, 7);
  if (f.count > 1) g.fillRect(f.x - 3, 13, 6, 1); // more than one
  const y = base - 3;
  g.beginPath();
  switch (f.mark) {
    case "S":
      g.rect(f.x - 3, y - 3, 6, 6);
      break;
    case "C":
      g.moveTo(f.x, y - 4);
      g.lineTo(f.x + 4, y);
      g.lineTo(f.x, y + 4);
      g.lineTo(f.x - 4, y);
      break;
    case "R":
      g.moveTo(f.x - 4, y);
      g.lineTo(f.x + 3, y - 4);
      g.lineTo(f.x + 3, y + 4);
      break;
    case "x":
      g.lineWidth = 2;
      g.moveTo(f.x - 3, y - 3);
      g.lineTo(f.x + 3, y + 3);
      g.moveTo(f.x + 3, y - 3);
      g.lineTo(f.x - 3, y + 3);
      g.stroke();
      return;
    default:
      g.lineWidth = 1.5;
      g.arc(f.x, y, 3, 0, 2 * Math.PI);
      g.stroke();
      return;
  }
  g.fill();
}
