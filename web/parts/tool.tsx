// A call of a tool with its result, as one line until it is opened.
import type { JSX } from "preact";
import type { Entry } from "../api/client.ts";
import { bytes, shorten } from "../model/format.ts";
import { said, type Line, type Result } from "../model/path.ts";
import type { Part } from "../model/message.ts";
import { editsOf, languageOf, mainArgument, secondsOf, took } from "../model/tools.ts";
import { Plain } from "../text/plain.tsx";
import { Fold } from "./fold.tsx";
import { Picker } from "./picker.tsx";
import { Picture } from "./picture.tsx";
import { TextDiff } from "./text-diff.tsx";
import { useSession } from "./use-session.ts";

type Call = Extract<Part, { kind: "call" }>;

export interface ToolProps {
  id: string;
  call: Call | null; // null = it is not among the entries that are loaded
  result: Result | null; // null = there is none yet
  entry: Entry;
  longest: number; // of the calls next to it, in seconds; 0 = there are none
}

/** Tool shows what was called with what, and how it ended. */
export function Tool({ id, call, result, entry, longest }: ToolProps): JSX.Element {
  const { line } = useSession().conversation;
  const part = result?.part;
  const mark = result && result.entry !== entry ? line.value.marks.get(result.entry.id) : undefined;
  const share = longest > 0 ? secondsOf(entry, result?.entry) / longest : 0;
  const failed = part?.failed || (part?.exit ?? 0) !== 0;
  return (
    <>
      <Fold kind="tool" id={id} class={failed ? "failed" : ""}
        head={
          <>
            <b>{call?.name || part?.name || "result"}</b>
            <span class="argument">{call && shorten(mainArgument(call.args), 160)}</span>
            <span class="outcome">{outcome(result, call !== null, isPending(line.value, entry))}</span>
            <span class="quiet">{[part ? bytes(part.text.length) : "", took(entry, result?.entry)].filter(Boolean).join(" · ")}</span>
            {share > 0 && <i class="bar" aria-hidden="true" style={{ width: `calc((100% - 30px) * ${share.toFixed(3)})` }} />}
          </>
        }
        body={() => (
          <>
            {call && <Arguments call={call} />}
            {part && <Plain text={part.text} language={call ? languageOf(call.args, part.text) : ""} />}
            {part?.parts.map((p, i) => p.kind === "image" && <Picture key={i} type={p.type} data={p.data} />)}
          </>
        )} />
      {mark && mark.of > 1 && <div class="at-result">versions of this result <Picker mark={mark} /></div>}
    </>
  );
}

function outcome(result: Result | null, called: boolean, pending: boolean): string {
  const part = result?.part;
  if (!part) return !called ? "" : pending ? "no result yet" : "no result";
  const images = part.parts.length > 0 ? part.parts.length + (part.parts.length > 1 ? " images" : " image") : "";
  if (part.exit) return "exit " + part.exit;
  return part.failed ? "failed" : images;
}

/** isPending reports whether nothing but results follows an entry on its line up to here. */
function isPending({ entries, newer }: Line, entry: Entry): boolean {
  const at = entries.indexOf(entry);
  return at >= 0 && !newer && entries.slice(at + 1).every((e) => said(e)?.parts.every((p) => p.kind === "result") ?? true);
}

function Arguments({ call }: { call: Call }): JSX.Element | null {
  const edits = editsOf(call.args);
  if (edits.length > 0) return <TextDiff edits={edits} />;
  const args = call.args;
  if (typeof args === "string") return <Plain text={args} />;
  if (typeof args === "object" && args !== null) {
    const values = Object.entries(args);
    if (values.length === 0) return null;
    const command = (args as { command?: unknown }).command;
    if (values.length === 1 && typeof command === "string") return <Plain text={command} language="bash" />;
  }
  return <Plain text={JSON.stringify(args, null, 2)} language="json" />;
}
