// The list of sessions, newest activity first, each with the agents that it started.
import { signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { nameOf, type Session } from "../api/client.ts";
import { ago, cost, grouped } from "../model/format.ts";
import { sessionId, view } from "../model/nav.ts";
import { list, nest, readMore, sessions, sums, unread, wanted, type Nested } from "../model/sessions.ts";
import { SessionLink } from "../parts/link.tsx";
import { useResource } from "../parts/use-resource.ts";

const minute = signal(0); // grows with each, for texts with the time since something was

/** Sessions shows the list. */
export function Sessions(): JSX.Element {
  const { error, busy } = list;
  const [pages, setPages] = useState(0);
  const more = useResource(pages || null, (_, signal) => readMore(signal));
  useEffect(() => {
    const timer = setInterval(() => minute.value++, 60_000);
    return () => clearInterval(timer);
  }, []);
  return (
    <nav class="sessions" aria-label="Sessions">
      <input type="search" class="sessions-search" placeholder="Find a session" aria-label="Find a session"
        value={wanted.value} onInput={(e) => (wanted.value = e.currentTarget.value)} autoFocus={sessionId.value === null} />
      {(error.value || more.error.value) && <p role="alert" class="failed">{error.value || more.error.value}</p>}
      <ul>{nest(sessions.value).map((n) => <Item key={n.session.id} n={n} depth={0} />)}</ul>
      {sessions.value.length === 0 && !busy.value && !error.value && <p class="quiet">{wanted.value
        ? "No session contains these words." : "No sessions yet. Commit one over HTTP, or import a file: coppice import FILE."}</p>}
      {list.value.value?.next && <button class="more" disabled={more.busy.value} onClick={() => setPages(pages + 1)}>More</button>}
    </nav>
  );
}

/** deepest is the depth from which sessions are no longer indented further. */
const deepest = 6;

function Item({ n, depth }: { n: Nested; depth: number }): JSX.Element {
  const s = n.session;
  const current = view.value.session === s.id;
  const inside = contains(n, view.value.session);
  const opened = useSignal(false);
  const show = opened.value || inside;
  return (
    <li style={{ paddingLeft: depth > 0 && depth < deepest ? "12px" : "0" }}>
      <Link s={s} current={current} />
      {n.children.length > 0 && (
        <button class="agents" aria-expanded={show} onClick={() => (opened.value = !opened.value)}>
          {show ? "▾" : "▸"} {startedOf(n)}
        </button>
      )}
      {show && n.children.length > 0 && <ul>{n.children.map((c) => <Item key={c.session.id} n={c} depth={depth + 1} />)}</ul>}
    </li>
  );
}

/** startedOf returns how many agents and forks a session has, in words. */
function startedOf(n: Nested): string {
  const forks = n.children.filter((c) => c.session.relation === "fork").length;
  const of = (k: number, what: string) => (k === 0 ? "" : k === 1 ? "1 " + what : `${k} ${what}s`);
  return [of(n.children.length - forks, "agent"), of(forks, "fork")].filter(Boolean).join(", ");
}

function contains(n: Nested, id: string | null): boolean {
  return id !== null && n.children.some((c) => c.session.id === id || contains(c, id));
}

function Link({ s, current }: { s: Session; current: boolean }): JSX.Element {
  void minute.value;
  const sum = sums.value.get(s.id);
  const agents = sum && sum.agents > 0 && sum.all > sum.own ? ` (${cost(sum.all)} with agents)` : "";
  const name = nameOf(s);
  return (
    <SessionLink to={s.id} current={current} title={s.cwd || undefined}>
      <strong>{unread(s) && <span class="unread" role="img" aria-label="new since you looked">●</span>}{name}</strong>
      <span class="line">{name === s.preview ? s.cause : s.preview || s.cause}</span>
      <span class="facts">
        {s.damaged || sum?.damaged ? "damaged" : s.status && <em class={"status " + s.status}>{s.status}</em>}
        {sum && sum.failed > 0 && <em class="status failed">{grouped(sum.failed)} failed</em>}
        <time dateTime={s.updated}>{ago(s.updated, new Date())}</time>
        {sum && sum.own > 0 && <span>{cost(sum.own)}{agents}</span>}
        {s.relation && <span>{s.relation}</span>}
      </span>
    </SessionLink>
  );
}
