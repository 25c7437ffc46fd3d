// Markdown as elements. There is no HTML string anywhere: raw HTML of a message is dropped, and links lead only to
// http, https and mailto. Images of other sites are shown as links, because the policy of the page loads none.
import type { Element, Root } from "hast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmAutolinkLiteralFromMarkdown } from "mdast-util-gfm-autolink-literal";
import { gfmStrikethroughFromMarkdown } from "mdast-util-gfm-strikethrough";
import { gfmTableFromMarkdown } from "mdast-util-gfm-table";
import { toHast } from "mdast-util-to-hast";
import { gfmAutolinkLiteral } from "micromark-extension-gfm-autolink-literal";
import { gfmStrikethrough } from "micromark-extension-gfm-strikethrough";
import { gfmTable } from "micromark-extension-gfm-table";
import { defaultSchema, sanitize } from "hast-util-sanitize";
import type { ComponentChildren, JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { bytes } from "../model/format.ts";
import { Coloured } from "./code.tsx";
import { elements } from "./hast.tsx";
import { cut } from "./plain.tsx";

/** longest is the longest text that is read as Markdown, in characters; of a longer one the start is. */
const longest = 40_000;

/** mostElements bounds the elements of one text. What has more is cut, and shown as plain text if somebody wants it all. */
const mostElements = 300;

/** deepest bounds how deep elements are nested. */
const deepest = 40;

// Of GitHub's Markdown: tables, strikethrough and bare links. Footnotes are 3 KB, and models write none.
const extensions = [gfmTable(), gfmStrikethrough(), gfmAutolinkLiteral()];
const mdastExtensions = [gfmTableFromMarkdown(), gfmStrikethroughFromMarkdown(), gfmAutolinkLiteralFromMarkdown()];

const schema = {
  ...defaultSchema,
  clobberPrefix: "md-",
  protocols: { href: ["http", "https", "mailto"] },
  tagNames: defaultSchema.tagNames!.filter((name) => name !== "input"),
};

const components = {
  a: ({ href, children }: { href?: string; children?: ComponentChildren }) => <Link to={href}>{children}</Link>,
  img: ({ src, alt }: { src?: string; alt?: string }) => <Link to={src}>[image{alt ? ": " + alt : ""}]</Link>,
  pre: ({ node }: { node: Element }) => {
    const inner = node.children[0];
    const names = inner?.type === "element" ? inner.properties.className : null;
    const name = Array.isArray(names) ? names.map(String).find((n) => n.startsWith("language-")) : undefined;
    return <pre tabIndex={0}><Coloured text={textOf(node)} language={name?.slice("language-".length) ?? ""} /></pre>;
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
  const { body, whole } = useMemo(() => known(text), [text]);
  if (all || body === null) return <pre class="plain" tabIndex={0}>{text}</pre>;
  return (
    <div class="md">
      {body}
      {!whole && (
        <button type="button" class="link" onClick={() => showAll(true)}>show all {bytes(text.length)} as plain text</button>
      )}
    </div>
  );
}

/** parsed are the texts that were shown last, for they are shown again when one scrolls back. At most maxParsed. */
const parsed = new Map<string, ReturnType<typeof parse>>();
const maxParsed = 100;

/** known returns the elements of a text; null: it is nested deeper than the stack. whole = nothing was cut. */
function known(text: string): { body: ComponentChildren | null; whole: boolean } {
  let p = parsed.get(text);
  if (!p) {
    p = parse(text);
    parsed.set(text, p);
    if (parsed.size > maxParsed) parsed.delete(parsed.keys().next().value!);
  }
  return { body: p.root && elements(p.root, components), whole: p.whole };
}

function parse(text: string): { root: Root | null; whole: boolean } {
  const start = cut(text, longest, Infinity);
  try {
    const tree = fromMarkdown(start, { extensions, mdastExtensions });
    const root = sanitize(toHast(tree), schema) as Root;
    return { root, whole: shorten(root) && start.length === text.length };
  } catch {
    return { root: null, whole: true };
  }
}

/** shorten takes from a tree what is over mostElements or deepest, and reports whether that was nothing. */
function shorten(node: Root | Element, left = { n: mostElements }, depth = 0): boolean {
  if (depth === deepest && node.children.length > 0) {
    node.children = [];
    return false;
  }
  let whole = true;
  for (const [i, child] of node.children.entries()) {
    if (child.type !== "element") continue;
    if (left.n <= 0) {
      node.children.length = i;
      return false;
    }
    left.n--;
    whole = shorten(child, left, depth + 1) && whole;
  }
  return whole;
}
