// The list of sessions, newest activity first, each with the agents that it started.
import { effect, signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { nameOf, type Session } from "../api/client.ts";
import { ago, cost, grouped } from "../model/format.ts";
import { base, open, session, view } from "../model/nav.ts";
import { alive } from "../model/resource.ts";
import { loading, more, nest, read, readSpent, sessions, sums, unread, wanted, type Nested } from "../model/sessions.ts";

const minute = signal(0); // grows with each, for what says how long ago something was

/** retries is how long after a failed read the list is read again, in ms. */
const retries = 4_000;

/** Sessions shows the list. */
export function Sessions(): JSX.Element {
  const failed = useSignal("");
  const again = useSignal(0);
  useEffect(() => {
    let abort = new AbortController();
    let first = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = effect(() => {
      void wanted.value;
      void again.value;
      abort.abort();
      clearTimeout(timer);
      const mine = (abort = new AbortController());
      void read(false, mine.signal).then(() => {
        failed.value = "";
        if (first) void readSpent(mine.signal).catch(() => {}); // the list is there without the costs
        first = false;
      }).catch((err: unknown) => {
        if (mine.signal.aborted) return;
        failed.value = err instanceof Error ? err.message : String(err);
        timer = setTimeout(() => again.value++, retries);
      });
    });
    const stopRetry = effect(() => {
      void alive.value;
      if (failed.peek() !== "") again.value = again.peek() + 1;
    });
    return () => {
      stop();
      stopRetry();
      clearTimeout(timer);
      abort.abort();
    };
  }, []);
  useEffect(() => {
    const timer = setInterval(() => minute.value++, 60_000);
    return () => clearInterval(timer);
  }, []);
  return (
    <nav class="sessions" aria-label="Sessions">
      <input type="search" class="sessions-search" placeholder="Find a session" aria-label="Find a session"
        value={wanted.value} onInput={(e) => (wanted.value = e.currentTarget.value)} autoFocus={session.value === null} />
      {failed.value && <p role="alert" class="failed">{failed.value}</p>}
      <ul>{nest(sessions.value).map((n) => <Item key={n.session.id} n={n} depth={0} />)}</ul>
      {sessions.value.length === 0 && !loading.value && !failed.value && <p class="quiet">{wanted.value
        ? "No session contains these words." : "No sessions yet. Commit one over HTTP, or import a file: coppice import FILE."}</p>}
      {more.value && <button class="more" onClick={() => void read(true)}>More</button>}
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

/** startedOf says how many agents and forks a session has. */
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
    <a href={base + "/s/" + encodeURIComponent(s.id)} aria-current={current ? "page" : undefined} title={s.cwd || undefined}
      onClick={(e) => {
        if (e.metaKey || e.ctrlKey || e.shiftKey) return;
        e.preventDefault();
        open(s.id);
      }}>
      <strong>{unread(s) && <span class="unread" role="img" aria-label="new since you looked">●</span>}{name}</strong>
      <span class="line">{name === s.preview ? s.cause : s.preview || s.cause}</span>
      <span class="facts">
        {s.damaged || sum?.damaged ? "damaged" : s.status && <em class={"status " + s.status}>{s.status}</em>}
        {sum && sum.failed > 0 && <em class="status failed">{grouped(sum.failed)} failed</em>}
        <time dateTime={s.updated}>{ago(s.updated, new Date())}</time>
        {sum && sum.own > 0 && <span>{cost(sum.own)}{agents}</span>}
        {s.relation && <span>{s.relation}</span>}
      </span>
    </a>
  );
}
