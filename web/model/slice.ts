// Which of many articles of different heights are drawn: arithmetic only. Heights are in CSS pixels. Pure.

/** A Slice is the articles from..to-1, with the heights of what is not drawn above and below them. */
export interface Slice {
  from: number;
  to: number;
  above: number;
  below: number;
}

/** An Anchor keeps an article where it is: its upper edge is offset below that of the view. */
export interface Anchor {
  key: string;
  offset: number;
  loose?: boolean; // where little is below it, it may be lower: no room is made below the end
}

/** sliceAt returns what is drawn for a view of a height whose upper edge is at top, and over pixels around it. */
export function sliceAt(heights: readonly number[], top: number, view: number, over: number): Slice {
  const s: Slice = { from: 0, to: heights.length, above: 0, below: 0 };
  let y = 0;
  let i = 0;
  for (; i < heights.length - 1 && y + heights[i]! < top - over; i++) y += heights[i]!;
  s.from = i;
  s.above = y;
  for (; i < heights.length && (y < top + view + over || i === s.from); i++) y += heights[i]!;
  s.to = i;
  for (; i < heights.length; i++) s.below += heights[i]!;
  return s;
}

/** covers reports whether a slice has all that a view shows, and half of what is drawn around it. */
export function covers(s: Slice, heights: readonly number[], top: number, view: number, over: number): boolean {
  let bottom = s.above;
  for (let i = s.from; i < s.to; i++) bottom += heights[i]!;
  return (s.from === 0 || s.above <= top - over / 2) && (s.to >= heights.length || bottom >= top + view + over / 2);
}

/** anchorAt returns the article at a height; offset is from there. */
export function anchorAt(keys: readonly string[], heights: readonly number[], top: number): Anchor | null {
  let y = 0;
  for (let i = 0; i < keys.length; i++) {
    if (y + heights[i]! > top || i === keys.length - 1) return { key: keys[i]!, offset: y - top };
    y += heights[i]!;
  }
  return null;
}

/** topOf returns the height at which the view's upper edge is, so that an anchor holds; null: it is not among the keys. */
export function topOf(keys: readonly string[], heights: readonly number[], anchor: Anchor): number | null {
  const at = keys.indexOf(anchor.key);
  if (at < 0) return null;
  let y = 0;
  for (let i = 0; i < at; i++) y += heights[i]!;
  return y - anchor.offset;
}
