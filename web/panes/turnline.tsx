// The timeline of a session that was imported: a tick for each message of the user.
import { computed } from "@preact/signals";
import type { JSX } from "preact";
import { live } from "../model/cursor.ts";
import { clock } from "../model/format.ts";
import { go } from "../model/nav.ts";
import type { OpenSession } from "../model/session.ts";
import { failedTurns, turnAt } from "../model/turns.ts";
import { useSession } from "../parts/use-session.ts";
import type { Scale } from "./axis.tsx";

/** tall is how high a tick is drawn, in entries: turns are all as high, for how many entries they have is not known. */
const tall = 6;

/** turnScale has a tick for each turn of a session. */
export function turnScale({ conversation, turns, failures }: OpenSession): Scale {
  const { list, scrubbed, shown } = turns;
  const turn = (n: number) => list.value.value?.[n];
  const failed = computed(() => failedTurns(list.value.value ?? [], failures.value.value?.list ?? []));
  return {
    label: "Turn", newest: computed(() => (list.value.value?.length ?? 0) - 1), at: computed(() => scrubbed.value ?? shown.value), scrubbed,
    seen: computed(() => turns.of(conversation.sight.value)),
    async moveTo(n, how) {
      const t = turn(n);
      if (t) go({ at: t.entry, seq: null }, how);
      else live(how);
    },
    ticks: () => ({ get: () => tall, marks: [], costs: [], failed: failed.value, noted: [], compare: null }),
    textOf: (n) => `turn ${n + 1}, ${clock(turn(n)?.time, new Date())}, ${turn(n)?.words ?? ""}`,
    hover: (n) => <Hover n={n} />,
  };
}

function Hover({ n }: { n: number }): JSX.Element {
  const { turns, failures } = useSession();
  const list = turns.list.value.value ?? [];
  const t = list[n];
  const k = (failures.value.value?.list ?? []).filter((f) => turnAt(list, f.time) === n).length;
  return (
    <>
      <strong>turn {n + 1}</strong> {clock(t?.time, new Date())} · {t?.words}
      {t && !t.onPath && <em> on another line</em>}
      {k > 0 && <em class="failed"> {k} failed</em>}
    </>
  );
}

/** TurnAt shows which turn the cursor is in. */
export function TurnAt(): JSX.Element {
  const { list, scrubbed, shown } = useSession().turns;
  const n = scrubbed.value ?? shown.value;
  const t = n === null ? undefined : list.value.value?.[n];
  return (
    <div class="rail-at">
      <strong>turn {n === null ? "…" : n + 1}</strong> of {list.value.value?.length ?? 0}
      <span title={t?.words}>{clock(t?.time, new Date())} · {t?.words}</span>
    </div>
  );
}
