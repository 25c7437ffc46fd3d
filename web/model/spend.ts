// What sessions cost, with and without the agents that they started. Pure.

/** A Spent is what one session used, all of its branches. */
export interface Spent {
  session: string;
  parent?: string;
  relation?: string;
  updated?: string;
  usage: { total: number; cost: number; output: number };
  damaged?: boolean; // what it used is not known
}

export interface Sum {
  own: number; // cost
  all: number; // with agents, at any depth
  tokens: number;
  allTokens: number;
  agents: number;
  damaged: boolean;
}

/**
 * rollUp returns the sums of each session. Forks are not agents: what they share with their parent is not counted twice,
 * because they are not counted for it at all. A chain of parents that leads back to itself ends there.
 */
export function rollUp(list: Spent[]): Map<string, Sum> {
  const sums = new Map<string, Sum>();
  const byID = new Map(list.map((s) => [s.session, s]));
  for (const s of list) {
    sums.set(s.session, { own: s.usage.cost, all: s.usage.cost, tokens: s.usage.total, allTokens: s.usage.total, agents: 0,
      damaged: s.damaged === true });
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

/** A Day is what the sessions whose newest activity was on a day cost together. time is its start, seconds since 1970. */
export interface Day {
  time: number;
  cost: number;
}

/** maxDays bounds the days of a chart: the newest are kept. */
const maxDays = 366;

/** byDay returns the days on which there was activity, oldest first. Days are those of UTC. */
export function byDay(list: Spent[]): Day[] {
  const days = new Map<number, number>();
  for (const s of list) {
    const t = Date.parse(s.updated ?? "");
    if (Number.isNaN(t)) continue;
    const day = Math.floor(t / 86_400_000) * 86_400;
    days.set(day, (days.get(day) ?? 0) + s.usage.cost);
  }
  return [...days].map(([time, cost]) => ({ time, cost })).sort((a, b) => a.time - b.time).slice(-maxDays);
}
