// The content of a message: text, thinking, calls with their results, images.
import type { JSX } from "preact";
import type { Agent } from "../model/agents.ts";
import { clock, count } from "../model/format.ts";
import type { Item } from "../model/path.ts";
import type { Part } from "../model/message.ts";
import { noteOf } from "../model/notes.ts";
import { asidesOf } from "../model/program.ts";
import { Markdown } from "../text/markdown.tsx";
import { Plain } from "../text/plain.tsx";
import { AgentCards } from "./agent.tsx";
import { Asides } from "./aside.tsx";
import { Fold } from "./fold.tsx";
import { Picture } from "./picture.tsx";
import { Tool } from "./tool.tsx";

/** mostParts bounds the parts of one message that are shown. */
const mostParts = 60;

/** Body shows the parts of a message. */
export function Body({ item, agents }: { item: Item; agents: readonly Agent[] }): JSX.Element {
  const { entry, message, parts } = item;
  return (
    <div class="body">
      {parts.slice(0, mostParts).map((p, i) => (
        <PartView key={i} part={p} item={item} id={entry.id + i} agents={agents} />
      ))}
      {parts.length > mostParts && <p class="quiet">{parts.length - mostParts} more parts are not shown.</p>}
      {message?.failed && <p class="failed">{message.failed}</p>}
    </div>
  );
}

interface PartProps {
  part: Part;
  item: Item;
  id: string;
  agents: readonly Agent[];
}

function PartView({ part, item, id, agents }: PartProps): JSX.Element | null {
  switch (part.kind) {
    case "text":
      if (!part.inserted) return <Markdown text={part.text} />;
      return <Asides list={asidesOf(part.text)} id={id} />;
    case "thinking":
      if (!part.text) return item.parts.length > 1 ? null : <p class="quiet">thinking, which the provider did not return</p>;
      return (
        <Fold kind="thinking" id={id} head={<>thinking <span class="quiet">{count(part.text.length)} characters</span></>}
          body={() => <Markdown text={part.text} />} />
      );
    case "call":
      return (
        <>
          <Tool id={id} call={part} result={item.results.get(part.id) ?? null} entry={item.entry} />
          <AgentCards of={agents.filter((a) => a.call === part.id)} />
        </>
      );
    case "result":
      return <Tool id={id} call={null} result={{ part, entry: item.entry }} entry={item.entry} />;
    case "image":
      return <Picture type={part.type} data={part.data} />;
    default:
      return <Fold kind="tool" id={id} head="other content" body={() => <Plain text={JSON.stringify(part.value, null, 2)} />} />;
  }
}

/** ItemView shows an entry with its results, without what can be done about it. */
export function ItemView({ item, now }: { item: Item; now: Date }): JSX.Element {
  const { entry } = item;
  return (
    <>
      <header>
        <span class="role">{item.message?.role ?? noteOf(entry).text}</span>
        <time dateTime={entry.timestamp}>{clock(entry.timestamp, now)}</time>
      </header>
      {item.message && <Body item={item} agents={[]} />}
    </>
  );
}
