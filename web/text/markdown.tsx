// Markdown as elements. Links lead only to http, https and mailto. Images of other sites are shown as links, because the
// policy of the page loads none.
import type { Element, Root } from "hast";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useReducer, useState } from "preact/hooks";
import { bytes } from "../model/format.ts";
import { copy } from "../parts/copy.ts";
import { Icon } from "../parts/icon.tsx";
import { Coloured } from "./code.tsx";
import { elements } from "./hast.tsx";
import { mostElements, parse, type Read } from "./parse.ts";
import { pieces } from "./pieces.ts";
import { cut } from "./plain.tsx";

/** longest is the longest text that is read as Markdown, in characters; of a longer one the start is. */
const longest = 40_000;

const components = {
  a: ({ href, children }: { href?: string; children?: ComponentChildren }) => <Link to={href}>{children}</Link>,
  img: ({ src, alt }: { src?: string; alt?: string }) => <Link to={src}>[image{alt ? ": " + alt : ""}]</Link>,
  pre: ({ node }: { node: Element }) => {
    const inner = node.children[0];
    const names = inner?.type === "element" ? inner.properties.className : null;
    const name = Array.isArray(names) ? names.map(String).find((n) => n.startsWith("language-")) : undefined;
    const text = textOf(node);
    return (
      <div class="code">
        <pre tabIndex={0}><Coloured text={text} language={name?.slice("language-".length) ?? ""} /></pre>
        <button type="button" aria-label="copy this code" title="copy this code" onClick={() => copy(text, "The code")}>
          <Icon name="copy" />
        </button>
      </div>
    );
  },
};

/** Link leads to another site, in a page of its own. What leads nowhere else is text: a path would lead into this page. */
function Link({ to, children }: { to: string | undefined; children: ComponentChildren }): JSX.Element {
  if (!/^(https?|mailto):/i.test(to ?? "")) return <span>{children}</span>;
  return <a href={to} target="_blank" rel="noopener noreferrer nofollow">{children}</a>;
}

function textOf(node: Element): string {
  return node.children.map((c) => (c.type === "text" ? c.value : c.type === "element" ? textOf(c) : "")).join("");
}

/** Markdown shows a text that may contain anything. */
export function Markdown({ text }: { text: string }): JSX.Element {
  const [all, showAll] = useState(false);
  const [, again] = useReducer((n: number) => n + 1, 0);
  const { list, whole: uncut } = useMemo(() => {
    const start = cut(text, longest, Infinity);
    return { list: pieces(start), whole: start.length === text.length };
  }, [text]);
  const { shown, next, whole } = readSoFar(list);
  useEffect(() => (next === null ? undefined : readLater(next, () => again(undefined))), [next]);
  if (all || shown === null) return <pre class="plain" tabIndex={0}>{text}</pre>;
  return (
    <div class="md">
      {shown.map((root, i) => <Piece key={i} root={root} />)}
      {next !== null && <p class="unread">{next}</p>}
      {!(whole && uncut) && next === null && (
        <button type="button" class="link" onClick={() => showAll(true)}>show all {bytes(text.length)} as plain text</button>
      )}
    </div>
  );
}

function Piece({ root }: { root: Root }): JSX.Element {
  return useMemo(() => <>{elements(root, components)}</>, [root]);
}

/**
 * readSoFar returns the pieces of a text that were read, up to mostElements, and the first that was not: it is shown as it is
 * until its turn comes. shown null: the text can be shown only as it is.
 */
function readSoFar(list: readonly string[]): { shown: Root[] | null; next: string | null; whole: boolean } {
  const shown: Root[] = [];
  let left = mostElements;
  for (const piece of list) {
    const r = known.get(piece) ?? (piece.length <= budget ? read(piece) : null);
    if (r === null) return { shown, next: piece, whole: true };
    if (r.root === null) return { shown: null, next: null, whole: true };
    if (r.elements > left && shown.length > 0) return { shown, next: null, whole: false };
    left -= r.elements;
    shown.push(r.root);
    if (!r.whole) return { shown, next: null, whole: false };
  }
  return { shown, next: null, whole: true };
}

/** known are the pieces that were read last, for they are shown again when one scrolls back. At most maxKnown. */
const known = new Map<string, Read>();
const maxKnown = 400;

/**
 * perTask is how much is read at once, in characters; what is over it is read a piece at a time, in between of which the
 * page answers. Where it is slow, reading takes 6 to 8 ms for 1,000 characters.
 */
const perTask = 6_000;
let budget = perTask;

/** read reads a piece now. */
function read(piece: string): Read {
  if (budget === perTask) setTimeout(() => (budget = perTask), 0); // when this task has ended
  budget -= piece.length;
  const r = parse(piece);
  known.set(piece, r);
  if (known.size > maxKnown) known.delete(known.keys().next().value!);
  return r;
}

/** waiting are those who wait for a piece, which are read in this order, one in a task. */
const waiting = new Map<string, Set<() => void>>();

/** readLater reads a piece when its turn comes, and calls f; not if the function that it returns is called before. */
function readLater(piece: string, f: () => void): () => void {
  if (waiting.size === 0) setTimeout(readNext, 0);
  const all = waiting.get(piece) ?? new Set();
  waiting.set(piece, all.add(f));
  return () => {
    all.delete(f);
    if (all.size === 0 && waiting.get(piece) === all) waiting.delete(piece);
  };
}

function readNext(): void {
  const next = waiting.entries().next().value;
  if (!next) return;
  const [piece, all] = next;
  waiting.delete(piece);
  if (!known.has(piece)) read(piece);
  for (const f of all) f();
  if (waiting.size > 0) setTimeout(readNext, 0);
}
