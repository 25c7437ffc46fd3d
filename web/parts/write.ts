// A write until its outcome is known. Each names the commit on which it was made: if another writer was first nothing was stored, and
// the page shows who it was. If the answer is lost it reports that, and trying again finds out.
import { useRef, useState } from "preact/hooks";
import { Failure } from "../api/client.ts";
import type { OpenSession } from "../model/session.ts";
import { useSession } from "./use-session.ts";

/**
 * An Attempt is a write until its outcome is known: it is sent again with the same key and on the same commit, and is stored once,
 * whether it is a person who tries again or a browser whose connection ended.
 */
export interface Attempt {
  header: { "If-Match": string; "Idempotency-Key": string };
  back: number; // the seq of the commit that it was made on
}

/** attempt returns one that is made on a commit, or on the newest one that this page has shown. */
export function attempt(s: OpenSession, match = s.ifMatch()): Attempt {
  const key = [...crypto.getRandomValues(new Uint8Array(16))].map((n) => n.toString(16).padStart(2, "0")).join("");
  return { header: { "If-Match": match, "Idempotency-Key": key }, back: s.head.peek()!.seq };
}

export interface Write {
  /** write writes, unless that is under way. match: the commit on which it is made, by default the newest one. */
  write: (f: (a: Attempt) => Promise<void>, match?: string) => void;
  trouble: string; // what went wrong the last time; "" = nothing did
  busy: boolean;
  unknown: boolean; // the last one may be stored
}

/** useWrite returns how a form writes, and the outcome. once: a write that is sent again is stored once. */
export function useWrite(close: () => void, once = true): Write {
  const s = useSession();
  const [trouble, setTrouble] = useState("");
  const [busy, setBusy] = useState(false);
  const sending = useRef(false); // busy comes with the next drawing, and a key that is held does not wait for that
  const made = useRef<Attempt | null>(null); // its outcome is not known
  const write: Write["write"] = (f, match) => {
    if (sending.current) return;
    sending.current = true;
    setBusy(true);
    setTrouble("");
    made.current ??= attempt(s, match);
    f(made.current).then(close).catch(async (err: unknown) => {
      if (!isUnknown(err)) made.current = null;
      setTrouble(await reason(s, err, once));
      setBusy(false);
    }).finally(() => (sending.current = false));
  };
  return { write, trouble, busy, unknown: made.current !== null };
}

/** isUnknown reports whether what failed may be stored all the same: there was no answer, or not that of the server. */
function isUnknown(err: unknown): boolean {
  return err instanceof Failure && err.problem.code !== "busy" &&
    [0, 502, 503, 504].includes(err.status);
}

/** reason returns why a write failed. After a lost race the newest commit is read, so that trying again can work. */
export async function reason(s: OpenSession, err: unknown, once = true): Promise<string> {
  if (!(err instanceof Failure)) return String(err);
  if (err.problem.code === "key-reused") return "It was stored as it was before your last change. Close this, and look.";
  if (isUnknown(err)) return `${sentence(err.message)} It may be stored all the same.${once ? " Trying again does not store it twice." : ""}`;
  if (err.status !== 412) return err.message;
  const w = err.problem.winner;
  await s.refresh().catch(() => {});
  const who = w ? `${w.writer} was first: commit ${w.seq} on ${w.branch || "another branch"}.` : "Another writer was first.";
  return who + " Nothing was stored. Try again?";
}

function sentence(text: string): string {
  return text[0]!.toUpperCase() + text.slice(1).replace(/\.?$/, ".");
}
