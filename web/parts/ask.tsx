// Edit, label and continue: what a person is asked before something is written. Every write says on which commit it was
// made; if another writer was first, nothing was stored, and the page says who it was.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { api, Failure } from "../api/client.ts";
import { asking, type Question } from "../model/asking.ts";
import type { Item } from "../model/line.ts";
import { go, session } from "../model/nav.ts";
import { head, ifMatch, own, refresh } from "../model/session.ts";
import { Dialog } from "./dialog.tsx";
import { done } from "./undo.ts";

/** Asked shows the question that is open about an entry. */
export function Asked({ what, item, label }: { what: Question["what"]; item: Item; label: string }): JSX.Element {
  const close = () => (asking.value = null);
  switch (what) {
    case "edit": return <Edit item={item} close={close} />;
    case "label": return <Label entry={item.entry.id} now={label} close={close} />;
    case "continue": return <Continue entry={item.entry.id} close={close} />;
  }
}

/** useWrite returns a function that writes, and what went wrong the last time; "" = nothing did. */
export function useWrite(close: () => void): { write: (f: () => Promise<void>) => void; trouble: string; busy: boolean } {
  const [trouble, setTrouble] = useState("");
  const [busy, setBusy] = useState(false);
  const write = (f: () => Promise<void>) => {
    setBusy(true);
    setTrouble("");
    f().then(close).catch(async (err: unknown) => {
      setTrouble(await reason(err));
      setBusy(false);
    });
  };
  return { write, trouble, busy };
}

/** reason returns why a write failed. After a lost race the newest commit is read, so that trying again can work. */
export async function reason(err: unknown): Promise<string> {
  if (!(err instanceof Failure)) return String(err);
  if (err.status !== 412) return err.message;
  const w = err.problem.winner;
  await refresh(session.peek()!).catch(() => {});
  const who = w ? `${w.writer} was first: commit ${w.seq} on ${w.branch || "another branch"}.` : "Another writer was first.";
  return who + " Nothing was stored. Try again?";
}

/** useField puts the focus into the field of a form, and the whole form in sight. */
function useField(field: { current: HTMLInputElement | HTMLTextAreaElement | null }): void {
  useEffect(() => {
    field.current!.focus();
    if (field.current instanceof HTMLInputElement) field.current.select();
    field.current!.form!.scrollIntoView({ block: "nearest" });
  }, []);
}

/** left says which name the line that was left got, if it had none. */
function left(kept: string | undefined): string {
  return kept ? ` The line that was left stays as the branch ${kept}.` : "";
}

function path(): { path: { id: string }; header: { "If-Match": string } } {
  return { path: { id: session.peek()! }, header: { "If-Match": ifMatch() } };
}

export function Buttons({ act, busy, trouble, close }: { act: string; busy: boolean; trouble: string; close: () => void }): JSX.Element {
  return (
    <>
      {trouble && <p class="failed" role="alert">{trouble}</p>}
      <p class="buttons">
        <button type="submit" class="primary" disabled={busy}>{trouble ? "Try again" : act}</button>
        <button type="button" onClick={close}>Cancel</button>
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
  const said = item.parts.filter((p) => p.kind === "text").map((p) => p.text).join("\n\n");
  const images = item.parts.filter((p) => p.kind === "image").length;
  const [text, setText] = useState(said);
  const field = useRef<HTMLTextAreaElement>(null);
  const { write, trouble, busy } = useWrite(close);
  useField(field);
  const send = async () => {
    const content = [{ type: "text", text }, ...(images > 0 ? await imagesOf(item.entry.id) : [])];
    const back = head.peek()!.seq;
    const { data, response } = await api.POST("/v1/sessions/{id}/edit", {
      params: path(), body: { entry: item.entry.id, message: { role: "user", content } },
    });
    go({ line: null, at: data!.head ?? null, seq: null });
    done("The new version is the head. The other one stays: ‹ › goes to it." + left(data!.kept), back, own(response));
  };
  return (
    <form class="ask" onKeyDown={onKey(close)} onSubmit={(e) => { e.preventDefault(); write(send); }}>
      <label>New version
        <textarea ref={field} rows={Math.min(14, text.split("\n").length + 2)} value={text}
          onInput={(e) => setText(e.currentTarget.value)} />
      </label>
      <p class="quiet">This version stays, with all that follows it. The head moves to the new one, with the state in force before
        it, so an agent goes on from there. Files on disk do not change.{images > 0 && ` ${images > 1 ? "The images are" : "The image is"} kept.`}</p>
      <Buttons act="Add this version" busy={busy} trouble={trouble} close={close} />
    </form>
  );
}

/** imagesOf returns the images of a message as they are stored. */
async function imagesOf(entry: string): Promise<unknown[]> {
  const { data } = await api.GET("/v1/sessions/{id}/entries/{entry}", {
    params: { path: { id: session.peek()!, entry }, query: { images: "inline" } },
  });
  const content = (data as { message?: { content?: unknown } }).message?.content;
  const isText = (c: unknown) => ["text", "input_text"].includes(String((c as { type?: unknown } | null)?.type));
  return Array.isArray(content) ? content.filter((c) => typeof c === "object" && !isText(c)) : [];
}

/** maxLabel bounds a label that is entered here, in characters. */
const maxLabel = 200;

function Label({ entry, now, close }: { entry: string; now: string; close: () => void }): JSX.Element {
  const [text, setText] = useState(now);
  const field = useRef<HTMLInputElement>(null);
  const { write, trouble, busy } = useWrite(close);
  useField(field);
  const send = async () => {
    own((await api.POST("/v1/sessions/{id}/label", { params: path(), body: { entry, label: text.trim() } })).response);
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
  const { write, trouble, busy } = useWrite(close);
  const send = async () => {
    const back = head.peek()!.seq;
    const { data, response } = await api.POST("/v1/sessions/{id}/branch", { params: path(), body: { entry } });
    go({ line: null, at: entry, seq: null });
    done("The head is here now." + left(data!.kept), back, own(response));
  };
  return (
    <Dialog title="Continue from here" onClose={close}>
      <form class="ask" onSubmit={(e) => { e.preventDefault(); write(send); }}>
        <p>The head moves to this message, with the state in force there: what is said next begins a branch. What follows
          it now stays. An agent at work is told that the head moved. Files on disk do not change.</p>
        <Buttons act="Move the head here" busy={busy} trouble={trouble} close={close} />
      </form>
    </Dialog>
  );
}
