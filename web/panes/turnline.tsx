// The timeline of a session that was imported: a tick for each message of the user.
import { computed, signal } from "@preact/signals";
import type { JSX } from "preact";
import { failures } from "../model/failures.ts";
import { clock } from "../model/format.ts";
import { live } from "../model/cursor.ts";
import { go, type How } from "../model/nav.ts";
import { failedTurns, shownTurn, turnAt, turns } from "../model/turns.ts";
import type { Scale } from "./axis.tsx";

const scrubbed = signal<number | null>(null);
const failed = computed(() => failedTurns(turns.value.value ?? [], failures.value.value?.list ?? []));

/** tall is how high a tick is drawn, in entries: turns are all as high, for how many entries they have is not known. */
const tall = 6;

function turn(n: number) {
  return turns.value.value?.[n];
}

/** moveToTurn shows the message that begins a turn. */
async function moveToTurn(n: number, how: How): Promise<void> {
  const t = turns.value.peek()?.[n];
  if (t) go({ at: t.entry, seq: null }, how);
  else live(how);
}

/** turnScale has a tick for each turn. */
export const turnScale: Scale = {
  label: "Turn", newest: computed(() => (turns.value.value?.length ?? 0) - 1), at: computed(() => scrubbed.value ?? shownTurn.value),
  scrubbed, moveTo: moveToTurn,
  ticks: () => ({ get: () => tall, marks: [], costs: [], failed: failed.value, noted: [], compare: null }),
  textOf: (n) => `turn ${n + 1}, ${clock(turn(n)?.time, new Date())}, ${turn(n)?.words ?? ""}`,
  hover: (n) => <Hover n={n} />,
};

function Hover({ n }: { n: number }): JSX.Element {
  const t = turn(n);
  const k = (failures.value.value?.list ?? []).filter((f) => turnAt(turns.value.value ?? [], f.time) === n).length;
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
  const n = turnScale.at.value;
  const t = n === null ? undefined : turn(n);
  return (
    <div class="rail-at">
      <strong>turn {n === null ? "…" : n + 1}</strong> of {turns.value.value?.length ?? 0}
      <span title={t?.words}>{clock(t?.time, new Date())} · {t?.words}</span>
    </div>
  );
}
