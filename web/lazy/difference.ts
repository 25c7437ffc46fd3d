// Differences of texts, by lines.
import { diffLines } from "diff";

/** A Run is a stretch of lines that are in both texts, or only in one of them. */
export interface Run {
  kind: "same" | "added" | "removed";
  text: string;
}

/** lines returns the runs of the difference of two texts; null: they differ too much to be compared in reasonable time. */
export function lines(before: string, after: string): Run[] | null {
  const parts = diffLines(before, after, { maxEditLength: 5_000, timeout: 500 });
  return parts?.map((p) => ({ kind: p.added ? "added" : p.removed ? "removed" : "same", text: p.value })) ?? null;
}
