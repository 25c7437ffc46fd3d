// How much two texts have in common. Pure.
import type { Run } from "../lazy/difference.ts";

/** alike returns the part of the characters of both texts that they share, from 0 to 1. */
export function alike(runs: readonly Run[]): number {
  let same = 0;
  let all = 0;
  for (const { kind, text } of runs) {
    const n = text.replace(/\s+/g, "").length * (kind === "same" ? 2 : 1);
    all += n;
    if (kind === "same") same += n;
  }
  return all === 0 ? 1 : same / all;
}
