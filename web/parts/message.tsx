// The content of a message: text, thinking, calls with their results, images.
import type { JSX } from "preact";
import { isRepeated, type Agent } from "../model/agents.ts";
import { clock, count } from "../model/format.ts";
import type { Item, Result } from "../model/path.ts";
import type { Part } from "../model/message.ts";
import { noteOf } from "../model/notes.ts";
import { asidesOf } from "../model/program.ts";
import { secondsOf, took } from "../model/tools.ts";
import { Markdown } from "../text/markdown.tsx";
import { Plain } from "../text/plain.tsx";
import { AgentCards } from "./agent.tsx";
import { Asides } from "./aside.tsx";
import { Fold } from "./fold.tsx";
import { Picture } from "./picture.tsx";
import { Tool } from "./tool.tsx";

/** mostParts bounds the parts of one message that are shown. */
const mostParts = 60;

/** Body shows the parts of a message. Calls that follow each other are shown side by side: they were made at once. */
export function Body({ item, agents }: { item: Item; agents: readonly Agent[] }): JSX.Element {
  const { entry, message, parts } = item;
  const view = (i: number, longest: number) => (
    <PartView key={i} part={parts[i]!} item={item} id={entry.id + i} agents={agents} longest={longest} />
  );
  return (
    <div class="body">
      {runsOf(parts.slice(0, mostParts)).map((run) => {
        if (run.length === 1) return view(run[0]!, 0);
        const longest = Math.max(...run.map((i) => secondsOf(entry, resultOf(item, parts[i]!)?.entry)));
        return <div key={run[0]} class="calls">{run.map((i) => <div key={i}>{view(i, longest)}</div>)}</div>;
      })}
      {parts.length > mostParts && <p class="quiet">{parts.length - mostParts} more parts are not shown.</p>}
      {message?.failed && <p class="failed">{message.failed}</p>}
    </div>
  );
}

/** runsOf returns the indices of parts, those of calls that follow each other together. */
function runsOf(parts: readonly Part[]): number[][] {
  const runs: number[][] = [];
  parts.forEach((p, i) => {
    if (p.kind === "call" && parts[i - 1]?.kind === "call") runs.at(-1)!.push(i);
    else runs.push([i]);
  });
  return runs;
}

function resultOf(item: Item, part: Part): Result | null {
  return part.kind === "call" ? item.results.get(part.id) ?? null : null;
}

interface PartProps {
  part: Part;
  item: Item;
  id: string;
  agents: readonly Agent[];
  longest: number; // of the calls next to it, in seconds; 0 = there are none
}

function PartView({ part, item, id, agents, longest }: PartProps): JSX.Element | null {
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
    case "call": {
      const result = resultOf(item, part);
      const started = agents.filter((a) => a.call === part.id);
      const repeated = started.length === 1 && isRepeated(started[0]!.session, part.args, result?.part.text);
      return (
        <>
          {!repeated && <Tool id={id} call={part} result={result} entry={item.entry} longest={longest} />}
          <AgentCards of={started} time={repeated ? took(item.entry, result?.entry) : ""} />
        </>
      );
    }
    case "result":
      return <Tool id={id} call={null} result={{ part, entry: item.entry }} entry={item.entry} longest={0} />;
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
