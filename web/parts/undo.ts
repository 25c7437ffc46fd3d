// Rolling back, and the way back from what moved the head.
import { api, Failure } from "../api/client.ts";
import { askRollBack } from "../model/dialogs.ts";
import { go, open, sessionId, view } from "../model/nav.ts";
import { own, type OpenSession } from "../model/session.ts";
import type { View } from "../model/url.ts";
import { attempt, reason, type Attempt } from "./write.ts";
import { say } from "./toast.tsx";

/** rollBack restores a commit, if an attempt is made on the newest one, and returns what names the new one. */
export async function rollBack(s: OpenSession, to: number, { header }: Attempt): Promise<string> {
  const { response } = await api.POST("/v1/sessions/{id}/rollback", { params: { path: { id: s.id }, header }, body: { to: "seq:" + to } });
  return own(response, s.ifMatch());
}

/**
 * done shows what was done, and offers the way back to a commit, after which the page shows from, if that is given. Where
 * another commit came meanwhile, that is a rollback like any other: the dialog shows what it would do now.
 */
export function done(s: OpenSession, text: string, back: number, made: string, from?: Partial<View>): void {
  const { id } = s;
  const shown = view.peek().at;
  const again = () => {
    if (sessionId.peek() !== id) open(id);
    askRollBack(id, back);
  };
  const way = attempt(s, made); // however often it is tried
  const undo = { label: "Undo", run: () => void rollBack(s, back, way).then(
    () => {
      say(`Undone: the session is as it was at seq ${back}.`);
      if (from && sessionId.peek() === id && view.peek().at === shown) go(from); // else the person is elsewhere by now
    },
    async (err: unknown) => {
      const lost = err instanceof Failure && err.status === 412;
      const why = "Not undone. " + (await reason(s, err)).replace(" Try again?", "");
      say(why, lost ? { label: `Roll back to seq ${back}…`, run: again } : undo);
    }) };
  say(text, undo);
}
