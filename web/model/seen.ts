// Which commits of which session this browser has shown, so that the list can mark what is new.

/** maxSeen bounds the sessions that are remembered. */
const maxSeen = 500;
const key = "coppice-seen";

/** markSeen returns the table after a session was shown up to a commit: the one shown last is last. Pure. */
export function markSeen(table: [string, number][], session: string, seq: number): [string, number][] {
  const before = table.find(([id]) => id === session)?.[1] ?? -1;
  const rest = table.filter(([id]) => id !== session);
  rest.push([session, Math.max(before, seq)]);
  return rest.slice(-maxSeen);
}

/** isNew reports whether a session that was shown before has commits that were not. Pure. */
export function isNew(table: [string, number][], session: string, seq: number): boolean {
  const seen = table.find(([id]) => id === session)?.[1];
  return seen !== undefined && seq > seen;
}

/** readSeen returns what this browser remembers; nothing if it may not or cannot. */
export function readSeen(): [string, number][] {
  try {
    const table: unknown = JSON.parse(localStorage.getItem(key) ?? "[]");
    return Array.isArray(table) ? table as [string, number][] : [];
  } catch {
    return [];
  }
}

/** writeSeen remembers a table. */
export function writeSeen(table: [string, number][]): void {
  try {
    localStorage.setItem(key, JSON.stringify(table));
  } catch {
    // storage is full or forbidden: nothing is marked
  }
}
