// The session that is open, for the components of the page.
import { useSignalEffect } from "@preact/signals";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { OpenSession } from "../model/session.ts";

/** Opened has the session that the page shows; null = it shows the list. */
export const Opened = createContext<OpenSession | null>(null);

/** useOpened returns the session that the page shows; null = it shows the list. */
export function useOpened(): OpenSession | null {
  return useContext(Opened);
}

/** useSession returns the session that a pane is of. A pane is drawn with one alone, and never with another one. */
export function useSession(): OpenSession {
  return useContext(Opened)!;
}

/** useSessionEffect runs f as OpenSession.effect does, while a component is shown. */
export function useSessionEffect(f: () => void | (() => void)): void {
  const s = useSession();
  useSignalEffect(() => (s.isShown() ? f() : undefined));
}
