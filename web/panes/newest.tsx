// The newest sessions of the home page, by day.
import { useSignal, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import { nameOf } from "../api/client.ts";
import { cost, grouped, hour } from "../model/format.ts";
import {
  daysOf, drawing, folderOf, isRunning, programOf, shownKinds, twigsOf, valuesOf, type Shown,
} from "../model/home.ts";
import { nest, sessions, sums, type Nested } from "../model/sessions.ts";
import { copy } from "../parts/copy.ts";
import { SessionLink } from "../parts/link.tsx";

const command = "coppice import";

/** Empty shows how sessions come into a store. */
export function Empty(): JSX.Element {
  return (
    <section class="empty-store">
      <p>This store is empty. This command imports the sessions of Claude Code, Codex, pi and omp on this machine:</p>
      <pre><code>{command}</code> <button type="button" onClick={() => copy(command, "The command")}>Copy</button></pre>
    </section>
  );
}

/** Newest shows the newest sessions, each with what it started, by the day of its newest activity. */
export function Newest(): JSX.Element {
  const shown = useSignal<Shown>("all");
  const folder = useSignal("");
  const program = useSignal("");
  const now = new Date();
  const all = nest(sessions.value);
  const kinds: Record<Shown, (n: Nested) => boolean> = {
    all: () => true, running: (n) => isRunning(n.session, now),
    failed: ({ session: s }) => (sums.value.get(s.id)?.failed ?? 0) > 0 || s.status === "failed",
  };
  const list = all.filter((n) => kinds[shown.value](n) && (folder.value === "" || n.session.cwd === folder.value) &&
    (program.value === "" || programOf(n) === program.value));
  return (
    <section class="newest" aria-label="Newest sessions">
      <div class="filters" role="group" aria-label="Filters">
        {shownKinds.map((kind) => (
          <button key={kind} type="button" aria-pressed={shown.value === kind} onClick={() => (shown.value = kind)}>
            {kind} {all.filter(kinds[kind]).length}
          </button>
        ))}
        <Choice name="Folder" all="all folders" chosen={folder} list={valuesOf(all, (n) => n.session.cwd)} text={folderOf} />
        <Choice name="Program" all="all programs" chosen={program} list={valuesOf(all, programOf)} text={(p) => p} />
      </div>
      {list.length === 0 && <p class="quiet">None of the sessions that are listed.</p>}
      {daysOf(list, now).map((day) => (
        <section key={day.name}>
          <h2>{day.name}</h2>
          <ul>{day.sessions.map((n) => <li key={n.session.id}><Card n={n} now={now} /></li>)}</ul>
        </section>
      ))}
    </section>
  );
}

interface ChoiceProps {
  name: string;
  all: string;
  chosen: Signal<string>; // "" = all
  list: readonly string[];
  text: (value: string) => string;
}

/** Choice narrows the sessions to one of several values. */
function Choice({ name, all, chosen, list, text }: ChoiceProps): JSX.Element | null {
  if (list.length < 2) return null;
  return (
    <select aria-label={name} value={chosen.value} onChange={(e) => (chosen.value = e.currentTarget.value)}>
      <option value="">{all}</option>
      {list.map((v) => <option key={v} value={v} title={v}>{text(v)}</option>)}
    </select>
  );
}

function Card({ n, now }: { n: Nested; now: Date }): JSX.Element {
  const { session: s } = n;
  const sum = sums.value.get(s.id);
  return (
    <SessionLink to={s.id}>
      <Drawing n={n} />
      <strong>{nameOf(s)}</strong>
      <span class="line">{s.preview}</span>
      <span class="facts">
        {isRunning(s, now) && <em class="status working">running</em>}
        {sum && sum.failed > 0 && <em class="status failed">{grouped(sum.failed)} failed</em>}
        {s.damaged && <em class="status failed">damaged</em>}
        {programOf(n) && <span>{programOf(n)}</span>}
        {s.cwd && <span title={s.cwd}>{folderOf(s.cwd)}</span>}
        <time dateTime={s.updated}>{hour(new Date(s.updated))}</time>
        <span>{s.entries === 1 ? "1 entry" : grouped(s.entries) + " entries"}</span>
        {sum && sum.all > 0 && <span>{cost(sum.all)}</span>}
      </span>
    </SessionLink>
  );
}

/** Drawing shows a session as a line, and its agents and forks as lines that leave it. */
function Drawing({ n }: { n: Nested }): JSX.Element {
  const { width, height } = drawing;
  return (
    <svg class="twigs" width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
      <path d={`M0 ${height - 3}H${width}`} />
      {twigsOf(n).map((t, i) => <path key={i} class={t.fork ? "fork" : "agent"} d={t.d} />)}
    </svg>
  );
}
