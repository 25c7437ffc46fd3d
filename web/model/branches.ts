// The branches of the open session and their titles. The server makes the titles, by the rule of `coppice tree`: the
// first words of the branch's own first prompt in place of a generated name; no title without a message of its own.
import { computed } from "@preact/signals";
import { api, type Schemas } from "../api/client.ts";
import type { OpenSession } from "./session.ts";
import { panesReady } from "./startup.ts";

/** An End is where branches end, with what they are called. */
export interface End {
  entry: string;
  name: string;
}

/** maxEnds bounds the ends that are listed. */
const maxEnds = 200;

/** endsOf returns where branches end: the head first, if it is known. Pure. */
export function endsOf(
  list: readonly Schemas["Branch"][], head: { entry: string | null; branch: string } | null,
): End[] {
  const names = new Map<string, string[]>();
  for (const b of list) {
    if (b.head !== null && b.title) names.set(b.head, [...(names.get(b.head) ?? []), b.title]);
  }
  const at = head?.entry ?? null;
  const ends = [...names].filter(([entry]) => entry !== at).map(([entry, all]) => ({ entry, name: all.join(", ") }));
  const first = at === null ? [] : [{ entry: at, name: names.get(at)?.join(", ") ?? head!.branch }];
  return [...first, ...ends].slice(0, maxEnds);
}

/** Branches are those of a session. */
export class Branches {
  private readonly read;
  /** ends is where they end, the head first. */
  readonly ends;

  constructor(s: OpenSession) {
    this.read = s.resource(() => (panesReady.value && s.head.value ? s.head.value.seq : null), async (_, signal) => {
      const { data } = await api.GET("/v1/sessions/{id}/branches", { params: { path: { id: s.id } }, signal });
      return data!.branches ?? [];
    }, true);
    this.ends = computed(() => endsOf(this.read.value.value ?? [], s.head.value));
  }

  /** titleOf returns the title of a branch; without one, the title of a branch with the same end, or its name. */
  titleOf(name: string): string {
    const b = this.read.value.value?.find((x) => x.name === name);
    return b?.title ?? this.ends.value.find((e) => e.entry === b?.head)?.name ?? name;
  }
}
