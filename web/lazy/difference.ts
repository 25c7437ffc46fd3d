// Differences of texts, by lines and by words.
import { diffLines, diffWordsWithSpace, type ChangeObject } from "diff";

/** A Run is a stretch of lines or words that are in both texts, or only in one of them. */
export interface Run {
  kind: "same" | "added" | "removed";
  text: string;
}

/** lines returns the runs of the difference of two texts; null: they differ too much to be compared in reasonable time. */
export function lines(before: string, after: string): Run[] | null {
  return runs(diffLines(before, after, bounds));
}

/** words returns the same by words; spaces count. */
export function words(before: string, after: string): Run[] | null {
  return runs(diffWordsWithSpace(before, after, bounds));
}

/** bounds are of one comparison: changes, and milliseconds. */
const bounds = { maxEditLength: 5_000, timeout: 500 };

function runs(parts: ChangeObject<string>[] | undefined): Run[] | null {
  return parts?.map((p) => ({ kind: p.added ? "added" : p.removed ? "removed" : "same", text: p.value })) ?? null;
}
