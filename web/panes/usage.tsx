// Tokens and cost of the session: by model, and with its agents; and of all sessions over time.
import { Fragment, type JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { api, type Schemas } from "../api/client.ts";
import { cost, count } from "../model/format.ts";
import { chart } from "../model/lazy.ts";
import { overTime, sums } from "../model/sessions.ts";
import { useResource } from "../parts/use-resource.ts";
import { useSession } from "../parts/use-session.ts";

/** UsagePane shows the figures. Reading them takes the server a pass over the session, so that it is asked once. */
export function UsagePane(): JSX.Element {
  const { id } = useSession();
  const usage = useResource(id, async (of, signal) => {
    const { data } = await api.GET("/v1/sessions/{id}/usage", { params: { path: { id: of } }, signal });
    return data!;
  });
  const u = usage.value.value;
  const sum = sums.value.get(id);
  return (
    <section class="usage" aria-label="Usage">
      {usage.error.value && <p role="alert" class="failed">{usage.error.value}</p>}
      {usage.busy.value && <p class="quiet" role="status">Adding up…</p>}
      {u && <Table u={u} />}
      {u?.inherited && (
        <p>Copied from other sessions, and counted there: {answers(u.inherited.answers)}, {count(u.inherited.total)} tokens
          {u.inherited.cost > 0 && ", " + cost(u.inherited.cost)}.</p>
      )}
      {sum && sum.agents > 0 && (
        <p>With its {sum.agents === 1 ? "agent" : sum.agents + " agents, those of agents included"}: {cost(sum.all)}, {count(sum.allTokens)} tokens.</p>
      )}
      <p class="quiet">All branches count: a branch that was left cost money, too.</p>
      <OverTime />
    </section>
  );
}

function answers(n: number): string {
  return n === 1 ? "1 answer" : count(n) + " answers";
}

function Table({ u }: { u: Schemas["Usage"] }): JSX.Element {
  const rows = [...u.models.map((m) => ({ name: m.model ?? "no model", t: m.usage })), { name: "all", t: u.usage }];
  return (
    <table>
      <thead><tr><th scope="col">answers</th><th scope="col">input</th><th scope="col">cached</th>
        <th scope="col">output</th><th scope="col">cost</th></tr></thead>
      <tbody>
        {rows.map(({ name, t }) => (
          <Fragment key={name}>
            <tr class="model"><th scope="rowgroup" colSpan={5}>{name}</th></tr>
            <tr><td>{count(t.answers)}</td><td>{count(t.input + t.cacheWrite)}</td><td>{count(t.cacheRead)}</td>
              <td>{count(t.output)}</td><td>{cost(t.cost)}</td></tr>
          </Fragment>
        ))}
      </tbody>
    </table>
  );
}

/** OverTime shows what the sessions of the list cost, by the day of the answer. */
export function OverTime(): JSX.Element | null {
  const host = useRef<HTMLDivElement>(null);
  const days = overTime.value;
  const empty = days.length < 2 || days.every((d) => d.cost === 0);
  useEffect(() => {
    if (empty) return;
    let end = () => {};
    let gone = false;
    void chart().then((m) => {
      if (gone || !host.current) return;
      const stroke = getComputedStyle(host.current).getPropertyValue("--accent");
      end = m.bars(host.current, days.map((d) => d.time), [{ label: "cost", stroke, values: days.map((d) => d.cost) }], 140, "$");
    });
    return () => {
      gone = true;
      end();
    };
  }, [days]);
  if (empty) return null;
  return (
    <>
      <h3>Cost by day, all sessions that were read</h3>
      <div ref={host} class="chart" role="img"
        aria-label={days.map((d) => `${new Date(d.time * 1000).toDateString()}: ${cost(d.cost) || "$0"}`).join(", ")} />
    </>
  );
}
