// Rolling back, and the way back from what moved the head.
import { signal } from "@preact/signals";
import { api, Failure } from "../api/client.ts";
import { readOnly } from "../model/access.ts";
import { open, session } from "../model/nav.ts";
import { own } from "../model/session.ts";
import { reason } from "./ask.tsx";
import { say } from "./toast.tsx";

/** asked is what a person wants to do: roll back to a commit, or a snapshot; null = no dialog is open. */
export const asked = signal<{ to: number } | "snapshot" | null>(null);

/** rollBackTo opens the dialog. */
export function rollBackTo(seq: number): void {
  if (!readOnly.value) asked.value = { to: seq };
}

/** rollBack restores a commit, if match names the newest one, and returns what names the new one. */
export async function rollBack(id: string, to: number, match: string): Promise<string> {
  const { response } = await api.POST("/v1/sessions/{id}/rollback", {
    params: { path: { id }, header: { "If-Match": match } }, body: { to: "seq:" + to },
  });
  return own(response);
}

/**
 * done says what was done, and offers the way back to a commit. Where another commit came meanwhile, that is a rollback like any
 * other: the dialog says what it would do now.
 */
export function done(text: string, back: number, made: string): void {
  const id = session.peek()!;
  const again = () => {
    if (session.peek() !== id) open(id);
    rollBackTo(back);
  };
  const undo = { label: "Undo", run: () => void rollBack(id, back, made).then(
    () => say(`Undone: the session is as it was at seq ${back}.`),
    async (err: unknown) => {
      const lost = err instanceof Failure && err.status === 412;
      const why = "Not undone. " + (await reason(err)).replace(" Try again?", "");
      say(why, lost ? { label: `Roll back to seq ${back}…`, run: again } : undo);
    }) };
  say(text, undo);
}
