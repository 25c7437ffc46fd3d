// Two lists of messages side by side: what both have is in one row. Pure.
import type { Item } from "./path.ts";

/** A Pair is a row: what A has, what B has, or both. */
export type Pair<T> = [T | null, T | null];

/** keyOf returns what makes two items the same: the calls, by tool and arguments, or else role and words. */
export function keyOf({ message, parts }: Pick<Item, "message" | "parts">): string {
  const calls = parts.flatMap((p) => (p.kind === "call" ? [[p.name, p.args]] : []));
  if (calls.length > 0) return JSON.stringify(calls);
  return JSON.stringify([message?.role ?? "", parts.map((p) => (p.kind === "text" ? p.text : p.kind))]);
}

/** align pairs elements of two lists that have equal keys, in the longest common order. The elements between two
 * such pairs are paired by their place. */
export function align<T>(a: readonly T[], b: readonly T[], key: (x: T) => string): Pair<T>[] {
  const [ka, kb] = [a.map(key), b.map(key)];
  const width = b.length + 1;
  const longest = new Uint16Array((a.length + 1) * width); // of what follows; lists have at most maxEntries
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      longest[i * width + j] = ka[i] === kb[j] ? longest[(i + 1) * width + j + 1]! + 1
        : Math.max(longest[(i + 1) * width + j]!, longest[i * width + j + 1]!);
    }
  }
  const pairs: Pair<T>[] = [];
  let [onlyA, onlyB]: [T[], T[]] = [[], []];
  const flush = () => {
    for (let k = 0; k < Math.max(onlyA.length, onlyB.length); k++) pairs.push([onlyA[k] ?? null, onlyB[k] ?? null]);
    [onlyA, onlyB] = [[], []];
  };
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (i < a.length && j < b.length && ka[i] === kb[j]) {
      flush();
      pairs.push([a[i++]!, b[j++]!]);
    } else if (j >= b.length || i < a.length && longest[(i + 1) * width + j]! >= longest[i * width + j + 1]!) {
      onlyA.push(a[i++]!);
    } else onlyB.push(b[j++]!);
  }
  flush();
  return pairs;
}
