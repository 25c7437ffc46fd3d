// How many credentials the session has.
import type { JSX } from "preact";
import { toNextCredential, wordsOf } from "../model/credentials.ts";
import { useSession } from "./use-session.ts";

/** CredentialsMark shows how many were found, on all lines, and leads to the next one; nothing where none was. */
export function CredentialsMark(): JSX.Element | null {
  const s = useSession();
  const words = wordsOf(s.credentials.value.value ?? null);
  if (!words) return null;
  return (
    <button type="button" class="badge failed" title="Texts that look like keys, tokens or passwords. Go to the next one"
      onClick={() => toNextCredential(s)}>{words}</button>
  );
}
