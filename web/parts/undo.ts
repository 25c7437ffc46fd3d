// Rolling back, and the way back from what moved the head.
import { signal } from "@preact/signals";
import { api, Failure } from "../api/client.ts";
import { readOnly } from "../model/access.ts";
import { go, open, session, view } from "../model/nav.ts";
import { own } from "../model/session.ts";
import type { View } from "../model/url.ts";
import { attempt, reason, type Attempt } from "./write.ts";
import { say } from "./toast.tsx";

/** asked is what a person wants to do: roll back to a commit, or a snapshot; null = no dialog is open. */
export const asked = signal<{ to: number } | "snapshot" | null>(null);

/** rollBackTo opens the dialog. */
export function rollBackTo(seq: number): void {
  if (!readOnly.value) asked.value = { to: seq };
}

/** rollBack restores a commit, if an attempt is made on the newest one, and returns what names the new one. */
export async function rollBack(id: string, to: number, { header }: Attempt): Promise<string> {
  const { response } = await api.POST("/v1/sessions/{id}/rollback", { params: { path: { id }, header }, body: { to: "seq:" + to } });
  return own(response);
}

/**
 * done says what was done, and offers the way back to a commit, after which the page shows from, if that is given. Where
 * another commit came meanwhile, that is a rollback like any other: the dialog says what it would do now.
 */
export function done(text: string, back: number, made: string, from?: Partial<View>): void {
  const id = session.peek()!;
  const shown = view.peek().at;
  const again = () => {
    if (session.peek() !== id) open(id);
    rollBackTo(back);
  };
  const way = attempt(made); // however often it is tried
  const undo = { label: "Undo", run: () => void rollBack(id, back, way).then(
    () => {
      say(`Undone: the session is as it was at seq ${back}.`);
      if (from && session.peek() === id && view.peek().at === shown) go(from); // else the person is elsewhere by now
    },
    async (err: unknown) => {
      const lost = err instanceof Failure && err.status === 412;
      const why = "Not undone. " + (await reason(err)).replace(" Try again?", "");
      say(why, lost ? { label: `Roll back to seq ${back}…`, run: again } : undo);
    }) };
  say(text, undo);
}
