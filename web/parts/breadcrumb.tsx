// The sessions above an agent's: who started it, and who started that one.
import type { JSX } from "preact";
import { api, nameOf, type Session } from "../api/client.ts";
import { shorten } from "../model/format.ts";
import { SessionLink } from "./link.tsx";
import { useResource } from "./use-resource.ts";
import { useSession } from "./use-session.ts";

/** maxDepth bounds the sessions that are read upwards; shownLast those that are shown. */
const maxDepth = 100;
const shownLast = 4;

/** Breadcrumb shows the way from the session that no other one started to this one; nothing where that is this one. */
export function Breadcrumb(): JSX.Element | null {
  const now = useSession().summary.value;
  const named = now?.parent ?? "";
  const parent = /[/\\]/.test(named) ? "" : named; // other programs name a file
  const chain = useResource(parent || null, ancestors).value.value ?? [];
  if (!parent || chain.length === 0) return null;
  return (
    <nav class="breadcrumb" aria-label="Started by">
      {chain.length > shownLast && <span class="quiet">{chain.length - shownLast} more ›</span>}
      {chain.slice(-shownLast).map((s) => (
        <span key={s.id}>
          <SessionLink to={s.id}>{shorten(nameOf(s), 40)}</SessionLink> ›
        </span>
      ))}
      <span aria-current="page">{shorten(now!.title || now!.first || now!.id, 40)}</span>
    </nav>
  );
}

/** ancestors returns the sessions from the first one down to this one. One that cannot be read ends the way up. */
async function ancestors(id: string, signal: AbortSignal): Promise<Session[]> {
  const chain: Session[] = [];
  for (let next: string | undefined = id; next && chain.length < maxDepth && !chain.some((s) => s.id === next); ) {
    try {
      const { data }: { data?: Session } = await api.GET("/v1/sessions/{id}", { params: { path: { id: next } }, signal });
      chain.unshift(data!);
      next = data!.parent;
    } catch {
      break;
    }
  }
  return chain;
}
