// The sessions that this one started: agents, each shown where it was started.
import { computed, signal } from "@preact/signals";
import { api, type Schemas, type Session } from "../api/client.ts";
import { sessionPage } from "../api/pages.ts";
import { view } from "./nav.ts";
import { said, type Item } from "./path.ts";
import type { Resource } from "./resource.ts";
import type { OpenSession } from "./session.ts";

/** most bounds the agents of a session that are shown in its conversation. */
const most = 500;

/** An Agent is a session at the call that started it; call "" = none is known. */
export interface Agent {
  session: Session;
  call: string;
}

/** starts reports whether a tool of this name starts agents. */
export function starts(name: string): boolean {
  return /agent|^task$|delegate|spawn/i.test(name);
}

/**
 * place returns where agents are shown: at the call that the agent's metadata names, and nowhere if that call is not
 * loaded; else at the call whose result has the agent's id in its details; else at the call that starts agents and has
 * the id in its arguments or its text. Without either, time is the hint: the first call that starts agents, and
 * is not known to have started another one, of the last message before the agent that has such a call; else the last
 * answer before it. ended = the line is not that of the head: an agent of another line would be at its last answer, so only
 * calls count.
 */
export function place(
  list: readonly Item[], sessions: readonly Session[], older: boolean, newer: boolean, ended = false,
): Map<string, Agent[]> {
  const found = new Map<string, Agent[]>();
  const taken = new Set<string>();
  const add = (item: Item, session: Session, call: string) => {
    found.set(item.entry.id, [...(found.get(item.entry.id) ?? []), { session, call }]);
    taken.add(call);
  };
  const answers = list.filter((item) => item.message !== null && item.entry.timestamp);
  const calls = new Map(list.flatMap((item) => callsOf(item).filter((c) => c.id).map((c) => [c.id, item] as const)));
  const told = toldBy(list);
  const rest: Session[] = [];
  for (const s of sessions.toSorted((a, b) => Date.parse(a.created) - Date.parse(b.created))) {
    if (s.relation === "fork") continue;
    if (s.meta?.call) {
      const item = calls.get(s.meta.call);
      if (item) add(item, s, s.meta.call);
      continue; // else it was started on another line, or where nothing is loaded
    }
    const named = told.get(s.id) ?? naming(answers, s.id);
    if (named) add(named.item, s, named.call);
    else rest.push(s);
  }
  for (const s of rest) {
    const before = answers.filter((item) => Date.parse(item.entry.timestamp!) <= Date.parse(s.created));
    const last = before.at(-1);
    if (!last && older || newer && before.length === answers.length) continue; // started where nothing is loaded
    const free = (item: Item) => callsOf(item).find((c) => starts(c.name) && !taken.has(c.id));
    const item = before.findLast(free) ?? (ended ? undefined : last ?? answers[0]);
    if (item) add(item, s, free(item)?.id ?? "");
  }
  return found;
}

/** begins reports whether a text begins with the words of a shortened one. */
function begins(text: string, short: string | undefined): boolean {
  const words = (s: string) => s.replace(/\s+/g, " ").trim();
  const start = words(short ?? "").replace(/…$/, "");
  return start !== "" && words(text).startsWith(start);
}

/** isRepeated reports whether an agent's conversation begins with the prompt of its call, and ends with the result. */
export function isRepeated(agent: Session, args: unknown, result: string | undefined): boolean {
  const texts = typeof args === "object" && args !== null ? Object.values(args) : [args];
  return texts.some((t) => typeof t === "string" && begins(t, agent.first)) &&
    (result === undefined || begins(result, agent.preview));
}

interface Place {
  item: Item;
  call: string;
}

/** toldBy returns the calls whose results have the id of a session in their details, by that id. */
function toldBy(list: readonly Item[]): Map<string, Place> {
  const found = new Map<string, Place>();
  for (const item of list) {
    for (const [call, result] of item.results) if (result.part.agent) found.set(result.part.agent, { item, call });
  }
  return found;
}

function callsOf(item: Item): { id: string; name: string; args: unknown }[] {
  return item.parts.filter((p) => p.kind === "call");
}

function naming(list: readonly Item[], id: string): Place | null {
  for (const item of list) {
    for (const c of callsOf(item)) {
      if (!starts(c.name)) continue;
      if (item.results.get(c.id)?.part.text.includes(id) || JSON.stringify(c.args).includes(id)) {
        return { item, call: c.id };
      }
    }
  }
  return null;
}

/** Agents are those that one session started. They are read when its first messages are there, and when one was started or ended. */
export class Agents {
  readonly list: Resource<readonly Session[]>;
  /** costs are the costs of agents, of all their branches, without the agents that they started. */
  readonly costs: Resource<ReadonlyMap<string, number>>;

  constructor(private readonly s: OpenSession) {
    const talks = computed(() => s.conversation.line.value.entries.length > 0);
    const turn = signal(0);
    this.list = s.resource(() => (talks.value ? turn.value : null), (_, signal) => agentsOf(s.id, signal), true);
    this.costs = s.resource(() => ((this.list.value.value?.length ?? 0) > 0 ? turn.value : null), (_, signal) => costsOf(s.id, signal), true);
    s.effect(() => {
      const parts = s.change.value?.entries.flatMap((e) => said(e)?.parts ?? []) ?? [];
      if (parts.some((p) => (p.kind === "call" || p.kind === "result") && starts(p.name))) turn.value = turn.peek() + 1;
    });
  }

  /** startedAt has the agents by the id of the article at which they are shown. */
  readonly startedAt = computed(() => {
    const { items, line } = this.s.conversation;
    return place(items.value, this.list.value.value ?? [], line.value.older, line.value.newer, view.value.line !== null);
  });
}

/** agentsOf returns the sessions that a session started, at most 500, the newest activity first. */
export async function agentsOf(id: string, signal?: AbortSignal): Promise<readonly Session[]> {
  return (await sessionPage({ parent: id, limit: most }, signal)).sessions;
}

async function costsOf(id: string, signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
  const { data } = await api.GET("/v1/usage", { params: { query: { parent: id, limit: most } }, signal });
  return new Map((data as Schemas["UsageList"]).sessions.map((u) => [u.session, u.usage.cost]));
}
