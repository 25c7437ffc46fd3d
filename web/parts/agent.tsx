// An agent where it was started: how it is doing and what it cost; its conversation inline, or as a page of its own.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Session } from "../api/client.ts";
import { entryPage } from "../api/pages.ts";
import { agentsOf, place, type Agent } from "../model/agents.ts";
import { clock, cost, count, shorten } from "../model/format.ts";
import { itemsOf } from "../model/path.ts";
import { noteOf } from "../model/notes.ts";
import { Fold } from "./fold.tsx";
import { SessionLink } from "./link.tsx";
import { Body } from "./message.tsx";
import { useResource } from "./use-resource.ts";
import { useSession } from "./use-session.ts";

/** mostCards bounds the agents that are shown at one message, perPage the entries of an agent that are shown inline. */
const mostCards = 20;
const perPage = 12;

/** AgentCards shows agents as cards. time is how long the call took that a card is shown in place of. */
export function AgentCards({ of, time = "" }: { of: readonly Agent[]; time?: string }): JSX.Element | null {
  if (of.length === 0) return null;
  return (
    <div class="agents">
      {of.slice(0, mostCards).map((a) => <Card key={a.session.id} of={a.session} time={time} />)}
      {of.length > mostCards && <p class="quiet">{of.length - mostCards} more agents: see the list of sessions.</p>}
    </div>
  );
}

function Card({ of, time }: { of: Session; time: string }): JSX.Element {
  const { agents, folds } = useSession();
  const spent = agents.costs.value.value?.get(of.id);
  const figures = [of.entries > 0 ? count(of.entries) + " entries" : "", spent ? cost(spent) : "", time];
  return (
    <div class={"agent-card " + (of.status ?? "")}>
      <Fold kind="agent" id={of.id}
        head={
          <>
            <span class="quiet">agent</span>
            <b>{shorten(of.title || of.first || of.id, 80)}</b>
            <span class="outcome">{of.status}</span>
            <span class="quiet">{figures.filter(Boolean).join(" · ")}</span>
          </>
        }
        body={() => <Inline key={of.id} id={of.id} />} />
      {of.preview && !folds.isOpen("agent", of.id) && <p class="quiet">{shorten(of.preview, 140)}</p>}
      <SessionLink to={of.id}>as a page</SessionLink>
    </div>
  );
}

/** Inline shows a page of an agent's conversation, with the agents that it started. */
function Inline({ id }: { id: string }): JSX.Element {
  const [turns, setTurns] = useState<string[]>([]); // the cursors of the older pages that were turned to
  const { value, error } = useResource(turns.at(-1) ?? "", (after, signal) => read(id, after, signal), true);
  const page = value.value;
  if (error.value) return <p class="failed" role="alert">{error.value}</p>;
  if (!page) return <p class="quiet">reading…</p>;
  const items = itemsOf(page.entries);
  const placed = place(items, page.agents, page.next !== "", turns.length > 0);
  const now = new Date();
  return (
    <div class="inline">
      {page.next && <button type="button" class="link" onClick={() => setTurns([...turns, page.next])}>older</button>}
      {items.map((item) => (
        <div key={item.entry.id} class={"entry role-" + (item.message?.role === "user" ? "user" : "other")}>
          <header>
            <span class="role">{item.message?.role ?? noteOf(item.entry).text}</span>
            <time dateTime={item.entry.timestamp}>{clock(item.entry.timestamp, now)}</time>
          </header>
          {item.message && <Body item={item} agents={placed.get(item.entry.id) ?? []} />}
          <AgentCards of={(placed.get(item.entry.id) ?? [])
            .filter((a) => !item.parts.some((p) => p.kind === "call" && p.id === a.call))} />
        </div>
      ))}
      {turns.length > 0 && <button type="button" class="link" onClick={() => setTurns(turns.slice(0, -1))}>newer</button>}
    </div>
  );
}

async function read(id: string, after: string, signal: AbortSignal) {
  const [page, agents] = await Promise.all([
    entryPage(id, { order: "desc", limit: perPage, ...(after ? { after } : {}) }, signal), agentsOf(id, signal),
  ]);
  return { entries: page.entries.toReversed(), next: page.next ?? "", agents };
}
