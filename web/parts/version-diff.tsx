// What one version of a message says that another one does not, word by word.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Run } from "../lazy/difference.ts";
import { difference } from "../model/lazy.ts";
import { cut } from "../text/plain.tsx";
import { Dialog } from "./dialog.tsx";

/** A Version is the text of one of the versions of a message. number is that of the picker, from 1. */
export interface Version {
  number: number;
  text: string;
}

/** longest is the longest text that is compared, in characters. */
const longest = 100_000;

/** VersionDiff shows two versions as one text: what only the first has is struck out, what only the second has is marked. */
export function VersionDiff({ a, b, onClose }: { a: Version; b: Version; onClose: () => void }): JSX.Element {
  const [runs, setRuns] = useState<Run[] | null>(null);
  const [before, after] = [cut(a.text, longest, Infinity), cut(b.text, longest, Infinity)];
  useEffect(() => {
    let current = true;
    difference().then(({ words }) => current && setRuns(words(before, after))).catch(() => {});
    return () => {
      current = false;
    };
  }, [before, after]);
  const shown: Run[] = runs ?? [{ kind: "removed", text: before }, { kind: "added", text: after }];
  const whole = before.length === a.text.length && after.length === b.text.length;
  return (
    <Dialog title={`Version ${a.number} and version ${b.number}`} class="versions" onClose={onClose}>
      <p class="quiet">
        <del>only in {a.number}</del> <ins>only in {b.number}</ins>
        {before === after && " The words are the same."}{!whole && " The beginning of both."}
      </p>
      <div class="words" tabIndex={0}>
        {shown.map((r, i) => (r.kind === "same" ? r.text : r.kind === "added" ? <ins key={i}>{r.text}</ins> : <del key={i}>{r.text}</del>))}
      </div>
    </Dialog>
  );
}
