// Entries that are no messages: one quiet line each, in words.
import type { JSX } from "preact";
import type { Entry } from "../api/client.ts";
import { bytes, clock, count } from "../model/format.ts";
import { go } from "../model/nav.ts";
import { contextAfter, noteOf } from "../model/notes.ts";
import { Markdown } from "../text/markdown.tsx";
import { Plain } from "../text/plain.tsx";
import { Fold } from "./fold.tsx";
import { useSession } from "./use-session.ts";

/** Note shows an entry that is no message. */
export function Note({ entry, now }: { entry: Entry; now: Date }): JSX.Element {
  const { line } = useSession().conversation;
  const time = <time dateTime={entry.timestamp}>{clock(entry.timestamp, now)}</time>;
  const summary = typeof entry.summary === "string" ? entry.summary : "";
  if (entry.type === "compaction") {
    const before = typeof entry.tokensBefore === "number" ? count(entry.tokensBefore) : "";
    const next = contextAfter(line.value.entries, entry);
    const after = next > 0 ? count(next) : "";
    const figures = before && after ? `${before} → ${after} tokens` : before ? before + " tokens before" : "";
    return (
      <>
        <Cut name="compacted" entry={entry} summary={summary} figures={figures} time={time} />
        <Kept first={entry.firstKeptEntryId} />
      </>
    );
  }
  if (entry.type === "branch_summary") {
    return <Cut name="what the line that was left did" entry={entry} summary={summary} figures="" time={time} />;
  }
  const { text, detail } = noteOf(entry);
  return (
    <p class="annotation">
      <span>{text}</span> {time}
      {detail !== "" && <Fold kind="summary" id={entry.id} head="details" body={() => <Plain text={detail} language="json" />} />}
    </p>
  );
}

/** Kept shows from where on the model still got the messages. */
function Kept({ first }: { first: unknown }): JSX.Element | null {
  if (typeof first !== "string" || first === "") return null;
  return (
    <p class="quiet">From here on the model got the summary, and the messages from{" "}
      <button type="button" class="link" onClick={() => go({ at: first, seq: null })}>this one</button> on. Those before it are no longer
      in its context.</p>
  );
}

interface CutProps {
  name: string;
  entry: Entry;
  summary: string;
  figures: string;
  time: JSX.Element;
}

function Cut({ name, entry, summary, figures, time }: CutProps): JSX.Element {
  return (
    <div class={"cut " + entry.type}>
      <p class="rule"><b>{name}</b> {figures && <span class="figures">{figures}</span>} {time}</p>
      {summary && (
        <Fold kind="summary" id={entry.id} head={<>summary <span class="quiet">{bytes(summary.length)}</span></>}
          body={() => <Markdown text={summary} />} />
      )}
    </div>
  );
}
