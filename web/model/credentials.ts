// The credentials of the session that is open: how many the server finds, and in which entries. Never the credentials.
import { api } from "../api/client.ts";
import type { Resource } from "./resource.ts";
import { go, view } from "./nav.ts";
import type { OpenSession } from "./session.ts";
import { panesReady } from "./startup.ts";

/** Credentials are those of all branches when the session was opened. */
export interface Credentials {
  count: number;
  entries: readonly string[]; // that have one, in the order of appending
  more: boolean; // not all of the session was looked at
}

/** mostPages bounds the requests for one session; each looks at up to 2,000 entries. */
const mostPages = 20;

/** credentialsOf reads how many credentials a session has, after what the page shows was read. */
export function credentialsOf(s: OpenSession): Resource<Credentials> {
  return s.resource(
    () => (panesReady.value && s.head.value !== null && (s.mapped.value || view.value.pane !== "map") ? s.generation.value : null),
    async (_, signal): Promise<Credentials> => {
      const entries: string[] = [];
      let [count, after] = [0, ""];
      for (let page = 0; page < mostPages; page++) {
        const params = { path: { id: s.id }, query: after ? { after } : {} };
        const { data } = await api.GET("/v1/sessions/{id}/secrets", { params, signal });
        for (const found of data!.secrets) {
          count += found.count;
          if (found.entry && entries.at(-1) !== found.entry) entries.push(found.entry);
        }
        after = data!.next ?? "";
        if (!after) break;
      }
      return { count, entries, more: after !== "" };
    });
}

/** wordsOf returns the number of credentials in words; "" = none is known. Pure. */
export function wordsOf(c: Credentials | null): string {
  if (!c || c.count === 0) return "";
  return c.more ? `${c.count} credentials or more` : c.count === 1 ? "1 credential" : `${c.count} credentials`;
}

/** toNextCredential moves the cursor to the next entry that has a credential. After the last one comes the first. */
export function toNextCredential({ credentials }: OpenSession): void {
  const list = credentials.value.peek()?.entries ?? [];
  const next = list[(list.indexOf(view.peek().at ?? "") + 1) % list.length];
  if (next) go({ at: next, seq: null }, "step");
}
