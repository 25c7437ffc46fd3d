// The commits of the session as a line in time, with the cursor. Dragging it moves state, context and conversation.
import { computed, useComputed, useSignalEffect, untracked } from "@preact/signals";
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { readOnly } from "../model/access.ts";
import { useActions } from "../model/actions.ts";
import { mapped } from "../model/begun.ts";
import { commitText } from "../model/commits.ts";
import { arrived, costs, Cursor, isLive, live, log, moveTo, noted, scrubbed, shown, shownCommit, snapshots } from "../model/cursor.ts";
import { costAt } from "../model/costs.ts";
import { failures } from "../model/failures.ts";
import { clock, cost } from "../model/format.ts";
import { go, view } from "../model/nav.ts";
import { alive } from "../model/resource.ts";
import { change, generation, head } from "../model/session.ts";
import { meanings, type Mark, type Span } from "../model/ticks.ts";
import { imported, turns } from "../model/turns.ts";
import { MoveDialogs, Moves } from "../parts/moves.tsx";
import { say } from "../parts/toast.tsx";
import { rollBackTo } from "../parts/undo.ts";
import { Axis, type Scale } from "./axis.tsx";
import { TurnAt, turnScale } from "./turnline.tsx";
import type { Commit } from "../api/client.ts";

/** headSeq is the seq of the newest commit; -1 = not known yet. */
const headSeq = computed(() => head.value?.seq ?? -1);

/** failedSeqs are the commits that stored a failure, each once, in order. */
const failedSeqs = computed(() => [...new Set(failures.value.value?.list.map((f) => f.seq))]);

/** rollBackFrom asks whether to roll back to the commit that is shown; null = none is yet. */
function rollBackFrom(seq: number | null): void {
  if (seq === headSeq.peek()) say("This is the head: go to an earlier commit first, by , or on the timeline.");
  else if (seq !== null) rollBackTo(seq);
}

/** Timeline shows the commits, and moves the cursor. */
export function Timeline(): JSX.Element {
  const id = view.value.session!;
  useCursor(id);
  const byTurns = imported.value === true && (turns.value.value?.length ?? 0) > 1;
  const scale = byTurns ? turnScale : commitScale;
  const step = (by: number) => () => {
    const at = scale.at.peek();
    if (at !== null) void scale.moveTo(Math.max(0, Math.min(scale.newest.peek(), at + by)), "step");
  };
  useActions({
    "previous-commit": step(-1), "next-commit": step(1),
    "previous-snapshot": () => toSnapshot(-1), "next-snapshot": () => toSnapshot(1),
    ...(readOnly.value ? {} : { "roll-back": () => rollBackFrom(shown.peek()) }),
  });
  const c = shownCommit.value;
  return (
    <footer class="rail" aria-label="Timeline">
      {byTurns ? <TurnAt /> : (
        <div class="rail-at">
          <strong>seq {shown.value ?? "…"}</strong> of {Math.max(0, headSeq.value)}
          {spentAt(shown.value)}
          <span>{c && commitText(c)}</span>
        </div>
      )}
      <Axis key={scale.label} scale={scale} {...(byTurns ? {} : { want: wantCommits })} />
      <div class="rail-moves">
        <Moves seq={shown.value} />
        <button class="live" aria-pressed={isLive.value} title="Go to the newest commit, and follow what comes" onClick={() => live()}>
          live
        </button>
      </div>
      <MoveDialogs />
    </footer>
  );
}

/** useCursor keeps the signals of model/cursor.ts for a session while the timeline is shown. */
function useCursor(id: string): void {
  const cursor = useRef<Cursor | null>(null);
  const ready = useComputed(() => head.value !== null);
  useSignalEffect(() => {
    void generation.value;
    if (!ready.value) return;
    const abort = new AbortController();
    cursor.current = new Cursor(id, head.peek()!, abort.signal);
    return () => {
      abort.abort();
      cursor.current = null;
    };
  });
  useSignalEffect(() => {
    const { seq, at, line } = view.value;
    void log.value;
    void alive.value; // what could not be read is read when the server answers again
    cursor.current?.follow(seq, at ?? line, headSeq.value);
  });
  useSignalEffect(() => {
    if (log.value && (mapped.value || view.value.pane !== "map")) void cursor.current?.readCosts();
  });
  useSignalEffect(() => {
    const c = change.value;
    if (c) untracked(() => cursor.current?.add(c));
  });
}

function toSnapshot(by: 1 | -1): void {
  const at = shown.peek();
  if (at === null) return;
  const all = snapshots.peek();
  const next = by > 0 ? all.find((s) => s.seq > at) : all.findLast((s) => s.seq < at);
  if (next) void moveTo(next.seq);
  else say(by > 0 ? "There is no later snapshot." : "There is no earlier snapshot.");
}

/** spentAt says what the session had cost at a commit. */
function spentAt(seq: number | null): JSX.Element | null {
  const sum = seq === null ? 0 : costAt(costs.value, seq);
  return sum > 0 ? <span class="spent" title="what the session had cost here, all branches">{cost(sum)}</span> : null;
}

/** textOf says where the cursor is, for people who hear it. */
function textOf(seq: number, c: Commit | null): string {
  return c ? `seq ${seq}, ${c.reason}, ${clock(c.time, new Date())}, ${c.branch}` : `seq ${seq}`;
}

/** Hover shows which commit is under the pointer. */
function Hover({ seq }: { seq: number }): JSX.Element {
  void arrived.value;
  const c = log.value?.get(seq);
  const marks = snapshots.value.filter((s) => s.seq === seq).map((s) => (s.tag ? `snapshot "${s.tag}"` : "snapshot"));
  const mark = [...(log.value?.marks() ?? [])].find((m) => m.seq === seq)?.mark;
  if (mark) marks.push(meanings.find((m) => m.mark === mark)!.means);
  if (failedSeqs.value.includes(seq)) marks.push("a call or an answer failed");
  const entries = c && (c.entries === 1 ? "1 entry" : c.entries + " entries");
  return (
    <>
      <strong>seq {seq}</strong> {c ? commitText(c) + " · " + entries : "…"}
      {marks.length > 0 && <em> {marks.join(", ")}</em>}
    </>
  );
}

/** commitScale has a tick for each commit. */
const commitScale: Scale = {
  label: "Commit", newest: headSeq, at: shown, scrubbed, moveTo,
  ticks() {
    const marks: { seq: number; mark: Mark }[] = [...(log.value?.marks() ?? [])];
    for (const s of snapshots.value) marks.push({ seq: s.seq, mark: "S" });
    void arrived.value;
    return {
      get: (seq) => log.value?.get(seq)?.entries, marks, costs: costs.value, failed: failedSeqs.value, noted: noted.value,
      compare: seqOf(view.value.compare),
    };
  },
  textOf: (seq) => textOf(seq, shownCommit.value),
  hover: (seq) => <Hover seq={seq} />,
  compare: compareStretch,
};

/** wantCommits reads the headers that a span lacks. */
function wantCommits({ from, to }: Span): void {
  void headSeq.value;
  void alive.value;
  log.value?.want(from, to, scrubbed.peek() ?? shown.peek() ?? to);
}

/** seqOf returns the commit that a comparison names; null = it names no commit by its seq. */
function seqOf(compare: string | null): number | null {
  const m = /^seq:(\d{1,15})$/.exec(compare ?? "");
  return m ? Number(m[1]) : null;
}

function compareStretch(a: number, b: number): void {
  void moveTo(b).then(() => go({ compare: "seq:" + a, pane: "compare" }));
}
