// What changes the session as a whole: roll back, and snapshot. Where the server refuses writes it is not there.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { api, call, type Commit } from "../api/client.ts";
import { readOnly } from "../model/access.ts";
import { changes, type Changes } from "../model/changes.ts";
import { live } from "../model/cursor.ts";
import { asked, askRollBack } from "../model/dialogs.ts";
import { clock, count, shorten } from "../model/format.ts";
import { view } from "../model/nav.ts";
import { isOwn, type Head } from "../model/session.ts";
import { Buttons, Since } from "./ask.tsx";
import { ChangeList } from "./changelist.tsx";
import { Dialog } from "./dialog.tsx";
import { say } from "./toast.tsx";
import { done, rollBack } from "./undo.ts";
import { useResource } from "./use-resource.ts";
import { useSession } from "./use-session.ts";
import { useWrite, type Attempt } from "./write.ts";

/** Moves shows the buttons for a commit. */
export function Moves({ seq }: { seq: number | null }): JSX.Element | null {
  const { id, head } = useSession();
  if (readOnly.value) return null;
  return (
    <span class="moves">
      <button onClick={() => (asked.value = { session: id, to: "snapshot" })}>Snapshot…</button>
      <button disabled={seq === null || seq === head.value?.seq} onClick={() => seq !== null && askRollBack(id, seq)}>Roll back…</button>
    </span>
  );
}

/** MoveDialogs shows the dialog that is open. */
export function MoveDialogs(): JSX.Element | null {
  const { id } = useSession();
  const close = () => (asked.value = null);
  if (asked.value?.session !== id) return null;
  const { to } = asked.value;
  return to === "snapshot" ? <Snapshot close={close} /> : <RollBack key={to} to={to} close={close} />;
}

/** Effect is what a rollback would do, on a head. */
interface Effect {
  on: Head;
  commit: Commit;
  changed: Changes; // of the state
  leave: number; // entries that leave the line
  join: number; // entries of other lines that come to it
}

/** Bounds: of a state that is compared, in characters, and of changes that are counted. */
const maxCompared = 8 << 20;
const maxChanges = 200;

async function effectOf(id: string, to: number, on: Head, signal: AbortSignal): Promise<Effect> {
  const base = "/v1/sessions/" + encodeURIComponent(id);
  const state = async (target: string) => (await (await call(`${base}/state?at=${target}`, { signal })).text()).trim();
  const query = { a: "seq:" + on.seq, b: "seq:" + to, limit: 1 };
  const [now, then, diff, commit] = await Promise.all([
    state("seq:" + on.seq), state("seq:" + to),
    api.GET("/v1/sessions/{id}/diff", { params: { path: { id }, query }, signal }),
    api.GET("/v1/sessions/{id}/commits/{seq}", { params: { path: { id, seq: String(to) } }, signal }),
  ]);
  const m = diff.data!.messages;
  return {
    on, commit: commit.data!, leave: (m.onlyA?.length ?? 0) + (m.moreA ?? 0), join: (m.onlyB?.length ?? 0) + (m.moreB ?? 0),
    changed: now.length + then.length > maxCompared ? { list: [], more: now !== then } : changes(now, then, maxChanges),
  };
}

/** reading is how long figures that changed are shown before they can be confirmed, in ms: what was read were the others. */
const reading = 1_000;

/** RollBack shows what a rollback does, and does it when it is confirmed. */
function RollBack({ to, close }: { to: number; close: () => void }): JSX.Element {
  const s = useSession();
  const { head } = s;
  const [opened] = useState(head.peek()?.seq ?? 0);
  const changed = useRef(-Infinity); // when the figures changed under the eyes of a person
  const [again, setAgain] = useState(false);
  const { write, trouble, busy, unknown } = useWrite(close);
  const sent = useSignal(false);
  useEffect(() => void (sent.value = busy || unknown), [busy, unknown]);
  const on = useRef(head.value); // what is on its way has the figures that were confirmed
  if (!sent.value) on.current = head.value;
  const { value, error } = useResource(on.current && on.current.commit, async (_, signal) => {
    const e = await effectOf(s.id, to, on.current!, signal);
    if (value.peek()) changed.current = performance.now();
    return e;
  }, true);
  const e = value.value;
  const ready = e !== null && (unknown || e.on.commit === head.value?.commit); // the figures are those of the newest commit
  const confirm = () => {
    if (!ready) return;
    const late = performance.now() - changed.current < reading;
    setAgain(late);
    if (!late) write(send, `"${e.on.commit}"`);
  };
  const send = async (a: Attempt) => {
    const left = s.branches.titleOf(e!.on.branch);
    const made = await rollBack(s, to, a);
    live();
    done(s, `Rolled back to seq ${to}. The line that was left stays as the branch ${left}.`, e!.on.seq, made);
  };
  return (
    <Dialog title={`Roll back to seq ${to}`} class="roll-back" onClose={close}>
      <form class="ask" onSubmit={(ev) => { ev.preventDefault(); confirm(); }}>
        {error.value && <p role="alert" class="failed">{error.value}</p>}
        {!e && !error.value && <p class="quiet">Comparing it with the newest commit…</p>}
        {e && <Consequences e={e} to={to} />}
        {!unknown && <Since seq={opened} />}
        {again && <p class="failed" role="alert">The figures changed just before you confirmed. Look at them, and confirm again.</p>}
        {!unknown && <Others />}
        <p>Files on disk do not change.</p>
        <Buttons act={`Roll back to seq ${to}`} busy={busy || !ready} trouble={trouble} close={close} />
      </form>
    </Dialog>
  );
}

function Consequences({ e, to }: { e: Effect; to: number }): JSX.Element {
  const { branches } = useSession();
  const { at } = view.value;
  const n = e.changed.list.length;
  const values = e.changed.more ? (n > 0 ? `more than ${n} values change` : "it changes; it is too large to be compared here")
    : n === 0 ? "no value changes" : n === 1 ? "1 value changes" : `${n} values change`;
  return (
    <>
      <p>State, context and head become what they were at seq {to} ({e.commit.reason}, {clock(e.commit.time, new Date())},{" "}
        {branches.titleOf(e.commit.branch)}). This is a new commit on a new branch: nothing is deleted, and it can be
        undone.</p>
      {at !== null && at !== e.commit.head && (
        <p class="warn">The message that you look at is not the last one of this commit. To go on from the message itself, use its “continue”.</p>
      )}
      <h3>State: {values}</h3>
      <ChangeList changed={e.changed} most={12} />
      <h3>Messages: {e.leave === 0 ? "none leaves the line"
        : entries(e.leave) + " on the branch " + branches.titleOf(e.on.branch)}</h3>
      {e.join > 0 && <p>{count(e.join)} of another line {e.join === 1 ? "comes" : "come"} to it.</p>}
    </>
  );
}

function entries(n: number): string {
  return n === 1 ? "1 entry leaves the line and stays" : `${count(n)} entries leave the line and stay`;
}

/** maxOthers bounds the writers that are named, and recent how long ago they committed, in s. */
const maxOthers = 3;
const recent = 600;

/** Others names who else is writing. */
function Others(): JSX.Element | null {
  const { cursor, head, writers } = useSession();
  const now = Date.now();
  const newest = cursor.log.value?.get(head.value?.seq ?? -1);
  const seen = new Map<string, string>();
  for (const w of [...writers.value, ...(newest ? [newest] : [])]) if (!seen.has(w.writer) && !isOwn(w.commit)) seen.set(w.writer, w.time);
  const list = [...seen].map(([writer, time]) => ({ writer, s: Math.max(0, Math.round((now - Date.parse(time)) / 1000)) }))
    .filter((w) => w.s < recent).slice(0, maxOthers);
  if (list.length === 0) return null;
  return (
    <ul class="others">
      {list.map((w) => (
        <li key={w.writer}><code>{shorten(w.writer, 80)}</code> committed {w.s < 10 ? "just now" : w.s < 120 ? `${w.s} s ago` : `${Math.round(w.s / 60)} min ago`}:
          if it is at work, it is told. Its next commit on the old head is a conflict.</li>
      ))}
    </ul>
  );
}

/** maxTag is the longest tag, in characters. */
const maxTag = 128;

function Snapshot({ close }: { close: () => void }): JSX.Element {
  const { id, cursor, head } = useSession();
  const [tag, setTag] = useState("");
  const { write, trouble, busy } = useWrite(close, false);
  const send = async ({ header }: Attempt) => {
    const { data } = await api.POST("/v1/sessions/{id}/snapshot", {
      params: { path: { id }, header }, body: tag.trim() ? { tag: tag.trim() } : {},
    });
    void cursor.readSnapshots();
    say(`Snapshot of seq ${data!.seq}${data!.tag ? `, tag ${data!.tag}` : ""}.`);
  };
  return (
    <Dialog title="Snapshot" onClose={close}>
      <form class="ask" onSubmit={(ev) => { ev.preventDefault(); write(send); }}>
        <p>Stores the state of the newest commit, seq {head.value?.seq}, as a snapshot. A snapshot can be rolled back to, compared and
          named by its tag. It is no commit: nothing moves.</p>
        <label>Tag
          <input value={tag} maxLength={maxTag} placeholder="may be empty" onInput={(ev) => setTag(ev.currentTarget.value)} />
        </label>
        <Buttons act="Take a snapshot" busy={busy} trouble={trouble} close={close} />
      </form>
    </Dialog>
  );
}
