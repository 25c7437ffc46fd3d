// A text in which what was searched for is marked.
import type { JSX } from "preact";
import { split } from "../model/search.ts";

/** Hits shows a text with the words of a search marked. */
export function Hits({ text, search }: { text: string; search: string }): JSX.Element {
  return <>{split(text, search).map((s, i) => (s.hit ? <mark key={i}>{s.text}</mark> : s.text))}</>;
}
