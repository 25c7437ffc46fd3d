// A Markdown text as a tree of elements that are safe to show. There is no HTML string anywhere: HTML in a text is shown as
// the text that it is, for a model read `<T>`, a tag or a comment like every other word. Pure.
import type { Element, ElementContent, Root, Text } from "hast";
import type { Definition, Html, Nodes, Parents } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmAutolinkLiteralFromMarkdown } from "mdast-util-gfm-autolink-literal";
import { gfmStrikethroughFromMarkdown } from "mdast-util-gfm-strikethrough";
import { gfmTableFromMarkdown } from "mdast-util-gfm-table";
import { toHast } from "mdast-util-to-hast";
import { gfmAutolinkLiteral } from "micromark-extension-gfm-autolink-literal";
import { gfmStrikethrough } from "micromark-extension-gfm-strikethrough";
import { gfmTable } from "micromark-extension-gfm-table";
import { defaultSchema, sanitize } from "hast-util-sanitize";

/** mostElements bounds the elements of one text. What has more is cut, and shown as plain text on request. */
export const mostElements = 300;

/** deepest bounds how deep elements are nested. */
const deepest = 40;

// Of GitHub's Markdown: tables, strikethrough and bare links. Footnotes are 3 KB, and models write none.
const extensions = [gfmTable(), gfmStrikethrough(), gfmAutolinkLiteral()];
const mdastExtensions = [gfmTableFromMarkdown(), gfmStrikethroughFromMarkdown(), gfmAutolinkLiteralFromMarkdown()];

/** asWritten is the class of a paragraph that shows a part of the text as it was written. */
const asWritten = "as-written";

const schema = {
  ...defaultSchema,
  attributes: { ...defaultSchema.attributes, p: [["className", asWritten] as [string, string]] },
  clobberPrefix: "md-",
  protocols: { href: ["http", "https", "mailto"] },
  tagNames: defaultSchema.tagNames!.filter((name) => name !== "input"),
};

/** A Read is a text as elements; null: it is nested deeper than the stack. whole = nothing was cut. */
export interface Read {
  root: Root | null;
  elements: number;
  whole: boolean;
}

/** parse returns the elements of a text, of which mostElements at most are nested no deeper than deepest. */
export function parse(text: string): Read {
  const written = (value: string): Element => (
    { type: "element", tagName: "p", properties: { className: [asWritten] }, children: [{ type: "text", value }] }
  );
  const handlers = {
    html(_: unknown, node: Html, parent: Parents | undefined): ElementContent {
      const inline: Text = { type: "text", value: node.value };
      return flow.has(parent?.type ?? "root") ? written(node.value) : inline;
    },
    definition(_: unknown, node: Definition): ElementContent {
      return written(text.slice(node.position!.start.offset, node.position!.end.offset));
    },
  };
  try {
    const tree = fromMarkdown(text, { extensions, mdastExtensions });
    tick(tree);
    const root = sanitize(toHast(tree, { handlers }), schema) as Root;
    const left = { n: mostElements };
    const whole = shorten(root, left);
    return { root, elements: mostElements - left.n, whole };
  } catch {
    return { root: null, elements: 0, whole: true };
  }
}

/** tick makes the items of task lists begin with a box, and marks them, so that they need no bullet. */
function tick(node: Nodes): void {
  if (!("children" in node)) return;
  if (node.type === "listItem") {
    const block = node.children[0];
    const first = block?.type === "paragraph" ? block.children[0] : undefined;
    const box = first?.type === "text" ? /^\[([ xX])\][ \t\n]/.exec(first.value) : null;
    if (box && first?.type === "text") {
      first.value = (box[1] === " " ? "☐ " : "☑ ") + first.value.slice(box[0].length);
      node.data = { ...node.data, hProperties: { className: ["task-list-item"] } };
    }
  }
  for (const child of node.children) tick(child);
}

/** flow are the nodes whose children are blocks. */
const flow = new Set(["root", "blockquote", "listItem"]);

/** shorten takes from a tree what is over mostElements or deepest, and reports whether that was nothing. */
function shorten(node: Root | Element, left: { n: number }, depth = 0): boolean {
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
