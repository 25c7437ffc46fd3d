// One entry of the conversation.
import type { JSX } from "preact";
import type { Entry } from "../api/client.ts";
import { clock, cost, count } from "../model/format.ts";
import { messageOf, type Message, type Part } from "../model/message.ts";
import { Markdown } from "../text/markdown.tsx";

/** EntryView shows an entry, whatever its type is. */
export function EntryView({ entry, now }: { entry: Entry; now: Date }): JSX.Element {
  const m = messageOf(entry);
  if (!m) return <Annotation entry={entry} />;
  return (
    <>
      <header>
        <span class="role">{m.role}</span>
        <time dateTime={entry.timestamp}>{clock(entry.timestamp, now)}</time>
        <Figures m={m} />
      </header>
      {m.parts.map((p, i) => <PartView key={i} part={p} />)}
      {m.failed && <p class="failed">{m.failed}</p>}
    </>
  );
}

function Figures({ m }: { m: Message }): JSX.Element | null {
  const said = [m.model, m.tokens ? count(m.tokens) + " tok" : "", cost(m.cost)].filter(Boolean);
  return said.length > 0 ? <span class="figures">{said.join(" · ")}</span> : null;
}

/** PartView shows a part of a message. */
export function PartView({ part }: { part: Part }): JSX.Element {
  switch (part.kind) {
    case "text":
      return <Markdown text={part.text} />;
    case "thinking":
      return <details class="thinking"><summary>thinking</summary><Markdown text={part.text} /></details>;
    case "call":
      return <details class="call"><summary>{part.name}</summary><pre>{JSON.stringify(part.args, null, 2)}</pre></details>;
    case "result":
      return (
        <details class={part.failed ? "result failed" : "result"}>
          <summary>{part.name || "result"}</summary><pre>{part.text}</pre>
        </details>
      );
    case "image":
      return <span class="image">[image {part.type}]</span>;
    default:
      return <pre class="other">{JSON.stringify(part.value, null, 2)}</pre>;
  }
}

function Annotation({ entry }: { entry: Entry }): JSX.Element {
  return <p class="annotation">{entry.type}</p>;
}
