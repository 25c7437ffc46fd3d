// How the cost of a session grew from commit to commit. Pure.

/** A CostAt is what a session had cost at a commit, all branches. */
export interface CostAt {
  seq: number;
  cost: number;
}

/** maxPoints bounds what is kept; beyond that every second point goes. The server sends at most 512. */
const maxPoints = 2000;

/** grown returns points with the cost of a newer commit; the same ones if it cost nothing. */
export function grown(points: readonly CostAt[], seq: number, cost: number): readonly CostAt[] {
  const last = points.at(-1);
  if (!(cost > 0) || (last && last.seq >= seq)) return points;
  const kept = points.length < maxPoints ? points : points.filter((_, i) => i % 2 === 1);
  return [...kept, { seq, cost: (last?.cost ?? 0) + cost }];
}

/** costAt returns the sum up to and with a commit, as far as the points have it. */
export function costAt(points: readonly CostAt[], seq: number): number {
  let low = 0;
  let high = points.length; // the first point after seq is in low..high
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle]!.seq <= seq) low = middle + 1;
    else high = middle;
  }
  return points[low - 1]?.cost ?? 0;
}
