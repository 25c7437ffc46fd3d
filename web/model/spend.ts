// What sessions cost, with and without the agents that they started. Pure.

/** A Spent is what one session used, all of its branches: answers that it received itself, and no copies. */
export interface Spent {
  session: string;
  parent?: string;
  relation?: string;
  usage: { total: number; cost: number; output: number };
  days?: { day: string; usage: { cost: number } }[]; // parts of usage by the UTC date of the answer
  failed?: number; // entries that are failures
  damaged?: boolean; // what it used is not known
}

export interface Sum {
  own: number; // cost
  all: number; // with agents, at any depth
  tokens: number;
  allTokens: number;
  agents: number;
  failed: number; // without agents
  damaged: boolean;
}

/** rollUp returns the sums of each session. Forks are not agents. A chain of parents that leads back to itself ends there. */
export function rollUp(list: Spent[]): Map<string, Sum> {
  const sums = new Map<string, Sum>();
  const byID = new Map(list.map((s) => [s.session, s]));
  for (const s of list) {
    sums.set(s.session, { own: s.usage.cost, all: s.usage.cost, tokens: s.usage.total, allTokens: s.usage.total, agents: 0,
      failed: s.failed ?? 0, damaged: s.damaged === true });
  }
  for (const s of list) {
    const seen = new Set([s.session]);
    for (let at: Spent | undefined = s; at && at.parent && at.relation !== "fork" && !seen.has(at.parent);) {
      seen.add(at.parent);
      const sum = sums.get(at.parent);
      if (sum) {
        sum.all += s.usage.cost;
        sum.allTokens += s.usage.total;
        sum.agents++;
      }
      at = byID.get(at.parent);
    }
  }
  return sums;
}

/** A Day is what the answers of a day cost, in all sessions. time is its start, seconds since 1970. */
export interface Day {
  time: number;
  cost: number;
}

/** maxDays bounds the days of a chart: the newest are kept. */
const maxDays = 366;

/** byDay returns the days on which there were answers, oldest first. Days are those of UTC. */
export function byDay(list: Spent[]): Day[] {
  const days = new Map<number, number>();
  for (const { day, usage } of list.flatMap((s) => s.days ?? [])) {
    const t = Date.parse(day) / 1000;
    if (!Number.isNaN(t)) days.set(t, (days.get(t) ?? 0) + usage.cost);
  }
  return [...days].map(([time, cost]) => ({ time, cost })).sort((a, b) => a.time - b.time).slice(-maxDays);
}

/** spend returns the list after a session received answers. Of an answer without a time the day stays unknown. */
export function spend(
  list: Spent[], session: string, answers: { time?: string | undefined; cost: number }[], failed = 0,
): Spent[] {
  return list.map((s) => {
    if (s.session !== session) return s;
    const days = new Map((s.days ?? []).map((d) => [d.day, d.usage.cost]));
    let cost = s.usage.cost;
    for (const a of answers) {
      cost += a.cost;
      const t = Date.parse(a.time ?? "");
      const day = Number.isNaN(t) ? "" : new Date(t).toISOString().slice(0, 10);
      if (day) days.set(day, (days.get(day) ?? 0) + a.cost);
    }
    return { ...s, failed: (s.failed ?? 0) + failed, usage: { ...s.usage, cost }, days: [...days].map(([day, cost]) => ({ day, usage: { cost } })) };
  });
}
