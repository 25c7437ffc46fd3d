// A text as it is, in a fixed-width font. A long one is cut until all of it is asked for.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { hasEscapes, stretches } from "../model/ansi.ts";
import { bytes } from "../model/format.ts";
import { Coloured } from "./code.tsx";

/** A text longer than this is cut: characters, lines. */
const mostText = 8_000;
const mostLines = 60;

/** Plain shows a text. */
export function Plain({ text, language = "" }: { text: string; language?: string }): JSX.Element | null {
  const [all, showAll] = useState(false);
  const start = cut(text, mostText, mostLines);
  const lines = start.length < text.length && !all ? count(text) : 0;
  if (text === "") return <p class="quiet">no output</p>;
  return (
    <>
      <pre class="plain" tabIndex={0}>{hasEscapes(start) ? <Terminal text={all ? text : start} />
        : <Coloured text={all ? text : start} language={language} />}</pre>
      {lines > 0 && (
        <button type="button" class="link" onClick={() => showAll(true)}>
          show all: {lines} lines, {bytes(text.length)}
        </button>
      )}
    </>
  );
}

/** Terminal shows the output of a terminal in its colours. */
function Terminal({ text }: { text: string }): JSX.Element {
  return <code>{stretches(text).map((s, i) => (s.style ? <span key={i} class={s.style}>{s.text}</span> : s.text))}</code>;
}

/** cut returns the start of a text: whole lines, at most so many, or as many characters of a longer one. */
export function cut(text: string, characters: number, lines: number): string {
  let end = 0;
  for (let n = 0; n < lines && end < text.length; n++) {
    const next = text.indexOf("\n", end) + 1 || text.length;
    if (next > characters) break;
    end = next;
  }
  return text.slice(0, end === 0 ? characters : end);
}

function count(text: string): number {
  let n = 1;
  for (let i = text.indexOf("\n"); i >= 0; i = text.indexOf("\n", i + 1)) n++;
  return n;
}
