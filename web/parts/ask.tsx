// Edit, label and continue: what a person is asked before something is written.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../api/client.ts";
import { drafts, keepDraft, type Question } from "../model/asking.ts";
import { shorten } from "../model/format.ts";
import type { Item } from "../model/path.ts";
import { go, view } from "../model/nav.ts";
import { own, type OpenSession } from "../model/session.ts";
import { Dialog } from "./dialog.tsx";
import { done } from "./undo.ts";
import { useSession } from "./use-session.ts";
import { useWrite, type Attempt } from "./write.ts";

/** Asked shows the question that is open about an entry. */
export function Asked({ what, item, label }: { what: Question["what"]; item: Item; label: string }): JSX.Element {
  const { asking } = useSession();
  const close = () => (asking.value = null);
  switch (what) {
    case "edit": return <Edit item={item} close={close} />;
    case "label": return <Label entry={item.entry.id} now={label} close={close} />;
    case "continue": return <Continue entry={item.entry.id} close={close} />;
  }
}

/** Since shows what was committed since a form was opened: it is on the line that the write leaves. */
export function Since({ seq }: { seq: number }): JSX.Element | null {
  const { head, writers } = useSession();
  const now = head.value;
  if (now === null || now.seq <= seq) return null;
  const n = now.seq - seq;
  const who = writers.value[0]?.writer;
  return (
    <p class="warn" role="status">{n === 1 ? "A commit came" : `${n} commits came`} since you opened this{who && `, the newest by ${shorten(who, 80)}`}.
      What it added stays on the line that is left.</p>
  );
}

/** useField puts the focus into the field of a form, and the whole form in sight. */
function useField(field: { current: HTMLInputElement | HTMLTextAreaElement | null }): void {
  useEffect(() => {
    field.current!.focus();
    if (field.current instanceof HTMLInputElement) field.current.select();
    field.current!.form!.scrollIntoView({ block: "nearest" });
  }, []);
}

/** left returns where the line that was left is, if it got a name. */
function left(kept: string | undefined): string {
  return kept ? " The line that was left stays, in the list of branches." : "";
}

interface ButtonsProps {
  act: string;
  busy: boolean;
  trouble: string;
  close: () => void;
  children?: ComponentChildren; // next to them
}

export function Buttons({ act, busy, trouble, close, children }: ButtonsProps): JSX.Element {
  return (
    <>
      {trouble && <p class="failed" role="alert">{trouble}</p>}
      <p class="buttons">
        <button type="submit" class="primary" disabled={busy}>{trouble ? "Try again" : act}</button>
        <button type="button" onClick={close}>Cancel</button>
        {children}
      </p>
    </>
  );
}

/** onKey makes Escape close a form, and Ctrl-Enter send it. */
function onKey(close: () => void) {
  return (e: KeyboardEvent) => {
    if (e.key === "Escape") close();
    else if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) (e.currentTarget as HTMLFormElement).requestSubmit();
    else return;
    e.preventDefault();
    e.stopPropagation();
  };
}

function Edit({ item, close }: { item: Item; close: () => void }): JSX.Element {
  const s = useSession();
  const said = item.parts.flatMap((p) => (p.kind === "text" && !p.inserted ? [p.text] : [])).join("\n\n");
  const images = item.parts.filter((p) => p.kind === "image").length;
  const [text, setText] = useState(drafts.get(item.entry.id) ?? said);
  const [opened] = useState(s.head.peek()!.seq);
  const field = useRef<HTMLTextAreaElement>(null);
  const { write, trouble, busy, unknown } = useWrite(close);
  const change = (value: string) => {
    keepDraft(item.entry.id, value === said ? null : value);
    setText(value);
  };
  useField(field);
  const send = async ({ header, back }: Attempt) => {
    const content = [{ type: "text", text }, ...(images > 0 ? await imagesOf(s, item.entry.id) : [])];
    const { data, response } = await api.POST("/v1/sessions/{id}/edit", {
      params: { path: { id: s.id }, header }, body: { entry: item.entry.id, message: { role: "user", content } },
    });
    const { line, at, seq } = view.peek();
    keepDraft(item.entry.id, null);
    go({ line: null, at: data!.head ?? null, seq: null });
    done(s, "The new version is the head. The other one stays: ‹ › goes to it." + left(data!.kept), back, own(response, s.ifMatch()), { line, at, seq });
  };
  const empty = text.trim() === "" && images === 0;
  return (
    <form class="ask" onKeyDown={onKey(close)} onSubmit={(e) => { e.preventDefault(); if (!empty) write(send); }}>
      <label>New version
        <textarea ref={field} rows={Math.min(14, text.split("\n").length + 2)} value={text} onInput={(e) => change(e.currentTarget.value)} />
      </label>
      <p class="quiet">This version stays, with all that follows it. The head moves to the new one, with the state in force before
        it, so an agent goes on from there. Files on disk do not change.{images > 0 && ` ${images > 1 ? "The images are" : "The image is"} kept.`}</p>
      {!unknown && <Since seq={opened} />}
      <Buttons act="Add this version" busy={busy || empty} trouble={trouble} close={close}>
        {text !== said && <button type="button" class="link" onClick={() => change(said)}>start from the text as it is</button>}
      </Buttons>
    </form>
  );
}

/** imagesOf returns the images of a message as they are stored. */
async function imagesOf({ id }: OpenSession, entry: string): Promise<unknown[]> {
  const { data } = await api.GET("/v1/sessions/{id}/entries/{entry}", {
    params: { path: { id, entry }, query: { images: "inline" } },
  });
  const content = (data as { message?: { content?: unknown } }).message?.content;
  const isText = (c: unknown) => ["text", "input_text"].includes(String((c as { type?: unknown } | null)?.type));
  return Array.isArray(content) ? content.filter((c) => typeof c === "object" && !isText(c)) : [];
}

/** maxLabel bounds a label that is entered here, in characters. */
const maxLabel = 200;

function Label({ entry, now, close }: { entry: string; now: string; close: () => void }): JSX.Element {
  const s = useSession();
  const [text, setText] = useState(now);
  const field = useRef<HTMLInputElement>(null);
  const { write, trouble, busy } = useWrite(close, false);
  useField(field);
  const send = async ({ header }: Attempt) => {
    own((await api.POST("/v1/sessions/{id}/label", { params: { path: { id: s.id }, header }, body: { entry, label: text.trim() } })).response);
  };
  return (
    <form class="ask" onKeyDown={onKey(close)} onSubmit={(e) => { e.preventDefault(); write(send); }}>
      <label>Label
        <input ref={field} value={text} maxLength={maxLabel} placeholder="empty removes it"
          onInput={(e) => setText(e.currentTarget.value)} />
      </label>
      <Buttons act={text.trim() || !now ? "Set the label" : "Remove the label"} busy={busy} trouble={trouble} close={close} />
    </form>
  );
}

function Continue({ entry, close }: { entry: string; close: () => void }): JSX.Element {
  const s = useSession();
  const { write, trouble, busy, unknown } = useWrite(close);
  const [opened] = useState(s.head.peek()!.seq);
  const send = async ({ header, back }: Attempt) => {
    const { data, response } = await api.POST("/v1/sessions/{id}/branch", { params: { path: { id: s.id }, header }, body: { entry } });
    go({ line: null, at: entry, seq: null });
    done(s, "The head is here now." + left(data!.kept), back, own(response, s.ifMatch()));
  };
  return (
    <Dialog title="Continue from here" onClose={close}>
      <form class="ask" onSubmit={(e) => { e.preventDefault(); write(send); }}>
        <p>The head moves to this message, with the state in force there: what is said next begins a branch. What follows
          it now stays. An agent at work is told that the head moved. Files on disk do not change.</p>
        {!unknown && <Since seq={opened} />}
        <Buttons act="Move the head here" busy={busy} trouble={trouble} close={close} />
      </form>
    </Dialog>
  );
}
