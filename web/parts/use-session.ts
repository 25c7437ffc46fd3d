// How components get the OpenSession that the page shows.
import { useSignalEffect } from "@preact/signals";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { OpenSession } from "../model/session.ts";

/** SessionContext provides the session that the page shows; null = the page shows the list of sessions. */
export const SessionContext = createContext<OpenSession | null>(null);

/** useSessionOrNull returns the session that the page shows; null = the page shows the list of sessions. */
export function useSessionOrNull(): OpenSession | null {
  return useContext(SessionContext);
}

/** useSession returns the session that a pane shows. Panes are keyed by its id, so it is never null and never
 * changes. */
export function useSession(): OpenSession {
  return useContext(SessionContext)!;
}

/** useSessionEffect runs f as OpenSession.effect does, while a component is shown. */
export function useSessionEffect(f: () => void | (() => void)): void {
  const s = useSession();
  useSignalEffect(() => (s.isShown() ? f() : undefined));
}
