// One article of the conversation: an entry with what belongs to it, and what can be done about it.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren, JSX } from "preact";
import type { Entry } from "../api/client.ts";
import { clock, cost, count } from "../model/format.ts";
import type { Folds, Kind } from "../model/folds.ts";
import { itemsOf, type Item } from "../model/path.ts";
import { read, type Message } from "../model/message.ts";
import { runText } from "../model/program.ts";
import { Actions } from "./actions.tsx";
import { AgentCards } from "./agent.tsx";
import { AsideItem, Run } from "./aside.tsx";
import { Icon } from "./icon.tsx";
import { Body } from "./message.tsx";
import { later } from "../panes/on-demand.tsx";
import { Note } from "./note.tsx";
import { offset, Picker } from "./picker.tsx";
import { onSwipe } from "./swipe.ts";
import { useSession } from "./use-session.ts";

const Asked = later("Asked");

export interface ArticleProps {
  item: Item;
  at: boolean; // the cursor is here
  place: number; // from 1
  of: number; // -1 = not known
  day: string; // the date above it; "" = the date of the article before it
}

/** Article shows an entry, whatever its type is. */
export function Article({ item, at, place, of, day }: ArticleProps): JSX.Element {
  const { agents: started, asking, conversation, versions } = useSession();
  const now = new Date(item.entry.timestamp ?? Date.now()); // times within the day of the article need no date
  const [pointed, point] = useState(false);
  const box = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    if (at && conversation.takeFocus(item.ids)) box.current!.focus({ preventScroll: true });
  });
  const { entry } = item;
  const message = item.asides ? null : item.message;
  const mark = conversation.line.value.marks.get(entry.id);
  const label = mark?.label ?? "";
  const agents = started.startedAt.value.get(entry.id) ?? [];
  const question = asking.value?.entry === entry.id ? asking.value.what : null;
  const actions = (at || pointed) && !question && <Actions item={item} />;
  return (
    <article ref={box} id={"e-" + entry.id} data-key={entry.id} tabIndex={at ? 0 : -1} aria-posinset={place} aria-setsize={of}
      aria-current={at ? "true" : undefined} aria-label={nameOf(item, new Date(), mark?.version ?? 0, mark?.of ?? 0)}
      class={"entry " + (message ? "role-" + roleClass(message.role) : "note") + (at ? " at" : "") + (mark && mark.of > 1 ? " swiped" : "") +
        (message?.failed || [...item.results.values()].some((r) => r.part.failed) ? " has-failed" : "")}
      onClick={(e) => clicked(e) && conversation.moveTo(entry.id)} onFocusIn={() => point(true)}
      onPointerEnter={() => point(true)} onPointerLeave={() => point(false)}
      {...(mark && mark.of > 1 ? onSwipe((by, e) => void versions.choose(mark, by, offset(e))) : {})}>
      {day && <p class="day">{day}</p>}
      {message
        ? (
          <Header message={message} entry={entry} now={now}>
            {actions}
            {mark?.amendedBy && <span class="quiet" title={"by entry " + mark.amendedBy}>amended</span>}
            {label && <span class="label">{label}</span>}
            {mark && mark.children > 1 && (
              <span class="fork" title={mark.children + " lines go on from here"}
                aria-label={mark.children + " lines go on from here"} role="img"><Icon name="fork" /> {mark.children}</span>
            )}
            {mark && mark.of > 1 && <Picker mark={mark} />}
          </Header>
        )
        : item.run ? <Run entries={item.run} now={now} />
        : item.asides ? <AsideItem item={item} now={now} /> : <Note entry={entry} now={now} />}
      {!message && mark && mark.of > 1 && <div class="at-note"><Picker mark={mark} /></div>}
      {message && question !== "edit" && <Body item={item} agents={agents} />}
      <AgentCards of={message ? agents.filter((a) => !item.parts.some((p) => p.kind === "call" && p.id === a.call)) : agents} />
      {question && <Asked what={question} item={item} label={label} />}
      {!message && actions}
    </article>
  );
}

function roleClass(role: string): string {
  return role === "user" || role === "assistant" ? role : "other";
}

/** clicked reports whether a click is on the article itself. */
function clicked(e: MouseEvent): boolean {
  if (e.target instanceof Element && e.target.closest("a, button, input, textarea, dialog")) return false;
  return getSelection()?.isCollapsed !== false; // else text is being selected
}

/** nameOf returns what a screen reader calls an article. */
function nameOf(item: Item, now: Date, version: number, of: number): string {
  const who = item.run ? runText(item.run) : item.asides ? item.asides[0]?.title ?? "a program"
    : item.message?.role ?? item.entry.type.replaceAll("_", " ");
  return [who, clock(item.entry.timestamp, now), of > 1 ? `version ${version} of ${of}` : ""].filter(Boolean).join(", ");
}

function Header(
  { message, entry, now, children }: { message: Message; entry: Entry; now: Date; children?: ComponentChildren },
): JSX.Element {
  const said = [message.model, message.tokens ? count(message.tokens) + " tok" : "", cost(message.cost)].filter(Boolean);
  return (
    <header>
      <span class="role">{message.role === "bashExecution" ? "user, in the shell" : message.role}</span>
      <time dateTime={entry.timestamp}>{clock(entry.timestamp, now)}</time>
      {said.length > 0 && <span class="figures">{said.join(" · ")}</span>}
      <span class="space" />
      {children}
    </header>
  );
}

/** Streaming shows a message that is being written. */
export function Streaming({ message }: { message: unknown }): JSX.Element | null {
  if (typeof message !== "object" || message === null) return null;
  const outer = message as { message?: unknown };
  const inner = (typeof outer.message === "object" && outer.message !== null ? outer.message : message) as Message;
  const m = read(inner as unknown as Record<string, unknown>);
  const entry = { type: "message", id: "streaming", parentId: null, message: inner };
  const item = itemsOf([entry])[0]!;
  return (
    <div class="entry role-assistant streaming" aria-busy="true">
      <Header message={m} entry={entry} now={new Date()}><span class="writing">is writing…</span></Header>
      <Body item={item} agents={[]} />
    </div>
  );
}

/** turnItem opens all that an article folds, or folds it if all is open. */
export function turnItem(all: Folds, item: Item): void {
  const { entry, parts } = item;
  const folds: [Kind, string][] = item.run ? [["aside", entry.id]] : item.asides
    ? item.asides.flatMap((a, i) => (a.text ? [["aside", entry.id + "/" + i] as [Kind, string]] : []))
    : item.message ? [] : [["summary", entry.id]];
  parts.forEach((p, i) => {
    if (p.kind === "call" || p.kind === "result") folds.push(["tool", entry.id + i]);
    if (p.kind === "thinking") folds.push(["thinking", entry.id + i]);
  });
  const open = folds.every(([kind, key]) => all.isOpen(kind, key));
  for (const [kind, key] of folds) if (all.isOpen(kind, key) === open) all.turn(kind, key);
}
