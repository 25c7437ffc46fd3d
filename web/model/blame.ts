// The history of one value of the state, as the API returns it, with values as they are stored. Pure.
import type { Commit } from "../api/client.ts";
import { at, members, valueIn } from "./json.ts";

/** A Past is a commit that gave a value another one. value and before are texts of JSON; null = there was none. */
export interface Past {
  commit: Commit;
  value: string | null;
  /** before is what the value was until then; undefined = that is on the next page. */
  before: string | null | undefined;
}

/** A Page is some of a history, newest first. next is the cursor of the older ones; null = these are the oldest. */
export interface Page {
  list: Past[];
  next: string | null;
}

/** pageOf returns the page that an answer of the API has. */
export function pageOf(text: string): Page {
  const list: Past[] = [];
  const all = at(text, "/changes");
  for (const item of all ? members(text, all) : []) {
    const value = members(text, item).find((m) => m.key === "value");
    const whole = text.slice(item.start, item.end);
    list.push({
      commit: JSON.parse(whole) as Commit, value: value ? text.slice(value.start, value.end) : null, before: undefined,
    });
  }
  const cursor = members(text, valueIn(text)).find((m) => m.key === "next");
  const next = cursor ? (JSON.parse(text.slice(cursor.start, cursor.end)) as string) : null;
  list.forEach((p, i) => {
    const older = list[i + 1];
    p.before = older ? older.value : next === null ? null : undefined;
  });
  return { list, next };
}
