// The edges of the drawn tree: the line of the head goes straight down the left edge, and what left it hangs on it. Pure.
import type { Row } from "../api/client.ts";

/** laneWidth is the distance of lanes, in px; mostLanes those that are drawn side by side. */
export const laneWidth = 12;
const mostLanes = 12;

type Placed = Pick<Row, "indent" | "versions" | "children">;

/** laneX returns the middle of a lane, in px. */
export function laneX(indent: number): number {
  return (Math.min(indent, mostLanes) + 0.5) * laneWidth;
}

/** begins reports whether a row begins a lane next to that of its parent. before is the row above it, if it is loaded. */
export function begins(row: Placed, before: Placed | undefined): boolean {
  return row.indent > 0 && row.versions > 1 && before !== undefined && before.indent <= row.indent;
}

/**
 * edges returns what is drawn to the left of a row of a height, as the path of an SVG, without the lane of the head. A lane
 * left of a row always continues below it: what leaves a line is drawn before the line continues.
 */
export function edges(row: Placed, before: Placed | undefined, height: number): string {
  const x = laneX(row.indent);
  const middle = height / 2;
  let d = "";
  for (let lane = 1; lane < Math.min(row.indent, mostLanes); lane++) d += `M${laneX(lane)} 0V${height}`;
  if (begins(row, before)) d += `M${laneX(row.indent - 1)} 0Q${laneX(row.indent - 1)} ${middle} ${x} ${middle}`;
  else if (before) d += `M${x} 0V${middle}`;
  if (row.children > 0) d += `M${x} ${middle}V${height}`;
  return d;
}

/** A Kind is what an entry is, as its icon shows it. */
export type Kind = "prompt" | "answer" | "tool" | "other";

/** kindOf returns the kind of a row. */
export function kindOf(row: Pick<Row, "role" | "type">): Kind {
  if (row.role === "user") return "prompt";
  if (row.role === "assistant") return "answer";
  return /tool|bash|result/i.test(row.role || row.type) ? "tool" : "other";
}

/** least is the fewest entries between two rows that are told. */
const least = 5;

/** foldedBetween returns how many entries the filter folds between a row and the next one of its line; 0 = few, or not known. */
export function foldedBetween(row: Pick<Row, "id" | "ordinal" | "children">, next: Pick<Row, "parentId" | "ordinal"> | undefined): number {
  const n = next && row.children === 1 && next.parentId === row.id ? next.ordinal - row.ordinal - 1 : 0;
  return n < least ? 0 : n;
}
