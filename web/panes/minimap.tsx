// All entries of the session on one canvas: a line of pixels for each stretch of rows. It is drawn from at most 2,048
// buckets that the server counts, so that a million entries cost what a hundred do.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useResized } from "../parts/resized.ts";

/** A Bucket is a stretch of rows, counted by the server. */
export interface Bucket {
  from: number;
  count: number;
  forks: number;
  onPath: number;
  indent: number;
  hits?: number;
  labels?: number;
  failed?: number;
  head?: boolean;
}

export interface MinimapProps {
  buckets: Bucket[];
  total: number;
  /** the rows on screen: the first one, and how many. */
  first: number;
  shown: number;
  /** the row of the cursor; -1 = it is not among them. */
  cursor: number;
  /** the row of what is in sight of the conversation; -1 = none. */
  seen: number;
  /** onSeek is called with the row that should be in the middle. */
  onSeek: (row: number) => void;
}

const width = 44; // px

/** Minimap shows the buckets, what of them is on screen, and where the cursor is. Dragging it scrolls. */
export function Minimap(p: MinimapProps): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const seek = (e: PointerEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    p.onSeek(((e.clientY - box.top) / box.height) * p.total);
  };
  const last = useRef(p); // what a change of size draws again
  last.current = p;
  useEffect(() => draw(canvas.current!, p));
  useResized([canvas], () => draw(canvas.current!, last.current));
  return (
    <canvas ref={canvas} class="minimap" role="slider" tabIndex={0} aria-label="Position in the tree"
      aria-orientation="vertical" aria-valuemin={0} aria-valuemax={p.total} aria-valuenow={Math.round(p.first)}
      aria-valuetext={`row ${Math.round(p.first) + 1} of ${p.total}`}
      onPointerDown={(e) => {
        e.currentTarget.setPointerCapture(e.pointerId);
        seek(e);
      }}
      onPointerMove={(e) => e.currentTarget.hasPointerCapture(e.pointerId) && seek(e)}
      onKeyDown={(e) => {
        const step = { ArrowUp: -1, ArrowDown: 1, PageUp: -p.shown, PageDown: p.shown }[e.key];
        if (step !== undefined) p.onSeek(p.first + p.shown / 2 + step);
        else if (e.key === "Home") p.onSeek(0);
        else if (e.key === "End") p.onSeek(p.total);
        else return;
        e.preventDefault();
      }} />
  );
}

function draw(c: HTMLCanvasElement, p: MinimapProps): void {
  const scale = devicePixelRatio || 1;
  const height = c.clientHeight;
  if (height === 0) return;
  c.width = width * scale;
  c.height = height * scale;
  const g = c.getContext("2d")!;
  g.scale(scale, scale);
  const style = getComputedStyle(c);
  const colour = (name: string) => style.getPropertyValue(name);
  const y = (row: number) => (row / Math.max(1, p.total)) * height;
  const [line, accent, warn, bad, text] = ["--line", "--accent", "--warn", "--bad", "--text"].map(colour) as [string, string, string, string, string];
  for (const b of p.buckets) {
    const top = y(b.from);
    const tall = Math.max(1, y(b.from + b.count) - top);
    const left = 4;
    if (b.count > b.onPath) { // what hangs on the line of the head
      g.fillStyle = line;
      g.fillRect(left + 10, top, 4 + Math.min(b.indent, 6) * 2, tall);
    }
    if (b.onPath > 0) {
      g.fillStyle = accent;
      g.globalAlpha = 0.35 + 0.4 * (b.onPath / b.count);
      g.fillRect(left, top, 8, tall);
      g.globalAlpha = 1;
    }
    if (b.forks > 0) {
      g.fillStyle = text;
      g.fillRect(left + 13, top, 3, Math.min(tall, 2));
    }
    if (b.labels) {
      g.fillStyle = accent;
      g.fillRect(width - 14, top, 6, 2);
    }
    if (b.failed) {
      g.fillStyle = bad;
      g.fillRect(left, top, 16, Math.max(2, Math.min(tall, 4)));
    }
    if (b.hits) {
      g.fillStyle = warn;
      g.fillRect(width - 7, top, 7, Math.max(2, tall));
    }
    if (b.head) {
      g.fillStyle = text;
      g.fillRect(0, top, width, 2);
    }
  }
  g.strokeStyle = text;
  g.globalAlpha = 0.6;
  g.strokeRect(0.5, y(p.first) + 0.5, width - 1, Math.max(6, y(p.shown)) - 1);
  g.globalAlpha = 1;
  if (p.seen >= 0) {
    g.fillStyle = text;
    g.fillRect(0, y(p.seen) - 1, 8, 3);
  }
  if (p.cursor >= 0) {
    g.fillStyle = accent;
    g.fillRect(0, y(p.cursor) - 1, width, 3);
  }
}
