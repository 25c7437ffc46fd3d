// What one version of a message has and another one has not, word by word.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Run } from "../lazy/difference.ts";
import { alike } from "../model/alike.ts";
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

/** least is the part of both texts that they have to share, to be shown as one. */
const least = 0.4;

/** VersionDiff shows two versions as one text, if they are alike: what only the first has is struck out, what only the second has is marked. */
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
  const unrelated = runs !== null && alike(runs) < least;
  const whole = before.length === a.text.length && after.length === b.text.length;
  return (
    <Dialog title={`Version ${a.number} and version ${b.number}`} class="versions" onClose={onClose}>
      <p class="quiet">
        {unrelated ? "They have little in common: they are shown side by side."
          : <><del>only in {a.number}</del> <ins>only in {b.number}</ins></>}
        {before === after && " The words are the same."}{!whole && " The beginning of both."}
      </p>
      {unrelated || runs === null ? <Sides of={[{ ...a, text: before }, { ...b, text: after }]} /> : <div class="words" tabIndex={0}>
        {runs.map((r, i) => (r.kind === "same" ? r.text : r.kind === "added" ? <ins key={i}>{r.text}</ins> : <del key={i}>{r.text}</del>))}
      </div>}
    </Dialog>
  );
}

/** Sides shows versions side by side, as they are. */
function Sides({ of }: { of: Version[] }): JSX.Element {
  return (
    <div class="version-sides">
      {of.map((v) => <section key={v.number} aria-label={`Version ${v.number}`}><h3>Version {v.number}</h3><div class="words" tabIndex={0}>{v.text}</div></section>)}
    </div>
  );
}
