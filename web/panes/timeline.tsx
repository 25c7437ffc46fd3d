// The commits of the session as a line in time, with the cursor. Dragging it moves state, context and conversation.
import { computed } from "@preact/signals";
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Commit } from "../api/client.ts";
import { readOnly } from "../model/access.ts";
import { useActions } from "../model/actions.ts";
import { commitText } from "../model/commits.ts";
import { costAt } from "../model/costs.ts";
import { isLive, live } from "../model/cursor.ts";
import { askRollBack, openHelp } from "../model/dialogs.ts";
import { cost } from "../model/format.ts";
import { go, view } from "../model/nav.ts";
import { alive } from "../model/resource.ts";
import type { OpenSession } from "../model/session.ts";
import { meanings, type Mark, type Span } from "../model/ticks.ts";
import { MoveDialogs, Moves } from "../parts/moves.tsx";
import { say } from "../parts/toast.tsx";
import { useSession } from "../parts/use-session.ts";
import { Axis, type Scale } from "./axis.tsx";
import { TurnAt, turnScale } from "./turnline.tsx";

/** rollBackFrom asks whether to roll back to the commit that is shown; null = none is yet. */
function rollBackFrom({ id, head }: OpenSession, seq: number | null): void {
  if (seq === head.peek()?.seq) say("This is the head: go to an earlier commit first, by , or on the timeline.");
  else if (seq !== null) askRollBack(id, seq);
}

/** Timeline shows the commits, and moves the cursor. */
export function Timeline(): JSX.Element {
  const s = useSession();
  const { shown, commit } = s.cursor;
  const byTurns = s.turns.imported.value === true && (s.turns.list.value.value?.length ?? 0) > 1;
  const scale = useMemo(() => (byTurns ? turnScale(s) : commitScale(s)), [byTurns]);
  const step = (by: number) => () => {
    const at = scale.at.peek();
    if (at !== null) void scale.moveTo(Math.max(0, Math.min(scale.newest.peek(), at + by)), "step");
  };
  useActions({
    "previous-commit": step(-1), "next-commit": step(1),
    "previous-snapshot": () => toSnapshot(s, -1), "next-snapshot": () => toSnapshot(s, 1),
    ...(readOnly.value ? {} : { "roll-back": () => rollBackFrom(s, shown.peek()) }),
  });
  const c = commit.value;
  return (
    <footer class="rail" aria-label="Timeline">
      {byTurns ? <TurnAt /> : (
        <div class="rail-at">
          <strong>seq {shown.value ?? "…"}</strong> of {Math.max(0, s.head.value?.seq ?? 0)}
          {spentAt(s, shown.value)}
          <span>{c && commitText(c, s.branches)}</span>
        </div>
      )}
      <Axis key={scale.label} scale={scale} />
      <div class="rail-moves">
        <button class="legend" title="What the marks and colours mean" onClick={openHelp}>Legend</button>
        <Moves seq={shown.value} />
        <button class="live" aria-pressed={isLive.value} title="Go to the newest commit, and follow what comes" onClick={() => live()}>
          live
        </button>
      </div>
      <MoveDialogs />
    </footer>
  );
}

function toSnapshot({ cursor }: OpenSession, by: 1 | -1): void {
  const at = cursor.shown.peek();
  if (at === null) return;
  const all = cursor.snapshots.peek();
  const next = by > 0 ? all.find((s) => s.seq > at) : all.findLast((s) => s.seq < at);
  if (next) void cursor.moveTo(next.seq);
  else say(by > 0 ? "There is no later snapshot." : "There is no earlier snapshot.");
}

/** spentAt returns what the session had cost at a commit, in words. */
function spentAt({ cursor }: OpenSession, seq: number | null): JSX.Element | null {
  const sum = seq === null ? 0 : costAt(cursor.costs.value, seq);
  return sum > 0 ? <span class="spent" title="what the session had cost here, all branches">{cost(sum)}</span> : null;
}

/** textOf returns where the cursor is, for screen readers. */
function textOf(seq: number, c: Commit | null, { branches }: OpenSession): string {
  return c ? `seq ${seq}, ${commitText(c, branches)}` : `seq ${seq}`;
}

/** failedSeqs returns the commits that stored a failure, each once, in order. */
function failedSeqs({ failures }: OpenSession): number[] {
  return [...new Set(failures.value.value?.list.map((f) => f.seq))];
}

/** Hover shows which commit is under the pointer. */
function Hover({ seq }: { seq: number }): JSX.Element {
  const s = useSession();
  const { arrived, log, snapshots } = s.cursor;
  void arrived.value;
  const c = log.value?.get(seq);
  const marks = snapshots.value.filter((one) => one.seq === seq).map((one) => (one.tag ? `snapshot "${one.tag}"` : "snapshot"));
  const mark = [...(log.value?.marks() ?? [])].find((m) => m.seq === seq)?.mark;
  if (mark) marks.push(meanings.find((m) => m.mark === mark)!.means);
  if (failedSeqs(s).includes(seq)) marks.push("a call or an answer failed");
  const entries = c && (c.entries === 1 ? "1 entry" : c.entries + " entries");
  return (
    <>
      <strong>seq {seq}</strong> {c ? commitText(c, s.branches) + " · " + entries : "…"}
      {marks.length > 0 && <em> {marks.join(", ")}</em>}
    </>
  );
}

/** commitScale has a tick for each commit of a session. */
function commitScale(s: OpenSession): Scale {
  const { arrived, commit, costs, log, noted, scrubbed, shown, snapshots } = s.cursor;
  const newest = computed(() => s.head.value?.seq ?? -1);
  const failed = computed(() => failedSeqs(s));
  return {
    label: "Commit", newest, at: shown, scrubbed, seen: computed(() => s.cursor.seenAt(s.conversation.sight.value)), moveTo: (seq, how) => s.cursor.moveTo(seq, how),
    ticks() {
      const marks: { seq: number; mark: Mark }[] = [...(log.value?.marks() ?? [])];
      for (const one of snapshots.value) marks.push({ seq: one.seq, mark: "S" });
      void arrived.value;
      return {
        get: (seq) => log.value?.get(seq)?.entries, marks, costs: costs.value, failed: failed.value, noted: noted.value,
        compare: seqOf(view.value.compare),
      };
    },
    textOf: (seq) => textOf(seq, commit.value, s),
    hover: (seq) => <Hover seq={seq} />,
    compare: (a, b) => void s.cursor.moveTo(b).then(() => go({ compare: "seq:" + a, pane: "compare" })),
    want({ from, to }: Span) { // the headers that a span lacks
      void newest.value;
      void alive.value;
      log.value?.want(from, to, scrubbed.peek() ?? shown.peek() ?? to);
    },
  };
}

/** seqOf returns the commit that a comparison names; null = it names no commit by its seq. */
function seqOf(compare: string | null): number | null {
  const m = /^seq:(\d{1,15})$/.exec(compare ?? "");
  return m ? Number(m[1]) : null;
}
