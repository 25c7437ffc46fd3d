// What an edit changes, line by line.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Run } from "../lazy/difference.ts";
import { difference } from "../model/lazy.ts";
import type { Edit } from "../model/tools.ts";
import { Plain } from "../text/plain.tsx";

/** mostRuns bounds the runs of a difference that are shown. */
const mostRuns = 120;

/** TextDiff shows edits of files. */
export function TextDiff({ edits }: { edits: readonly Edit[] }): JSX.Element {
  return (
    <>
      {edits.map((e, i) => (
        <figure key={i} class="text-diff">
          {e.path && <figcaption>{e.path}</figcaption>}
          {"patch" in e ? <Plain text={e.patch} language="diff" /> : <Runs before={e.before} after={e.after} />}
        </figure>
      ))}
    </>
  );
}

function Runs({ before, after }: { before: string; after: string }): JSX.Element {
  const [runs, setRuns] = useState<Run[] | null>(null);
  useEffect(() => {
    let current = true;
    difference().then(({ lines }) => current && setRuns(lines(before, after))).catch(() => {});
    return () => {
      current = false;
    };
  }, [before, after]);
  const shown = runs ?? [{ kind: "removed", text: before }, { kind: "added", text: after }] satisfies Run[];
  return (
    <pre class="plain" tabIndex={0}>
      {shown.slice(0, mostRuns).map((r, i) => r.text && <span key={i} class={r.kind}>{prefixed(r)}</span>)}
      {shown.length > mostRuns && `… ${shown.length - mostRuns} more changes`}
    </pre>
  );
}

const signs = { same: "  ", added: "+ ", removed: "- " };

/** longest is the longest run that is shown, in characters. */
const longest = 20_000;

function prefixed(r: Run): string {
  const body = r.text.slice(0, longest).replace(/\n$/, "");
  return body.split("\n").map((l) => signs[r.kind] + l).join("\n") + (r.text.length > longest ? "\n…" : "") + "\n";
}
