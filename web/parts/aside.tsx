// What programs wrote between messages: a line each, which opens where there is more to read.
import type { JSX } from "preact";
import type { Entry } from "../api/client.ts";
import { clock } from "../model/format.ts";
import type { Item } from "../model/path.ts";
import { eventName, eventWords, runText, type Aside } from "../model/program.ts";
import { Markdown } from "../text/markdown.tsx";
import { Plain } from "../text/plain.tsx";
import { Fold } from "./fold.tsx";
import { rest } from "../model/notes.ts";

/** Asides shows texts of programs. id is unique in the page. */
export function Asides({ list, id }: { list: readonly Aside[]; id: string }): JSX.Element {
  return <>{list.map((a, i) => <One key={i} aside={a} id={id + "/" + i} />)}</>;
}

function One({ aside, id }: { aside: Aside; id: string }): JSX.Element {
  const { look, title, text } = aside;
  if (!text) return <p class={"aside " + look}>{title}</p>;
  return (
    <Fold kind="aside" id={id} class={look} head={<span class="argument">{title}</span>}
      body={() => (look === "output" || look === "command" ? <Plain text={text} /> : <Markdown text={text} />)} />
  );
}

/** AsideItem shows an entry that a program wrote. */
export function AsideItem({ item, now }: { item: Item; now: Date }): JSX.Element {
  const { entry } = item;
  return (
    <div class="annotation">
      <div class="asides"><Asides list={item.asides!} id={entry.id} /></div>
      <time dateTime={entry.timestamp}>{clock(entry.timestamp, now)}</time>
    </div>
  );
}

/** mostEvents bounds the events of a run that are listed. */
const mostEvents = 100;

/** Run shows events that follow each other as one line. */
export function Run({ entries, now }: { entries: readonly Entry[]; now: Date }): JSX.Element {
  const first = entries[0]!;
  return (
    <div class="annotation run">
      <Fold kind="aside" id={first.id} head={<span class="argument">{runText(entries)}</span>}
        body={() => (
          <>
            {entries.slice(0, mostEvents).map((e) => (
              <Fold key={e.id} kind="aside" id={"event " + e.id}
                head={<><b>{eventName(e)}</b><span class="argument">{eventWords(e)}</span>
                  <time dateTime={e.timestamp}>{clock(e.timestamp, now)}</time></>}
                body={() => <Plain text={rest(e)} language="json" />} />
            ))}
            {entries.length > mostEvents && <p class="quiet">{entries.length - mostEvents} more are not shown here.</p>}
          </>
        )} />
    </div>
  );
}
