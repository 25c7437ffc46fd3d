// Markdown as elements. There is no HTML string anywhere: raw HTML of a message is dropped, and links lead only to
// http, https and mailto. Images of other sites are shown as links, because the policy of the page loads none.
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmFromMarkdown } from "mdast-util-gfm";
import { toHast } from "mdast-util-to-hast";
import { gfm } from "micromark-extension-gfm";
import { defaultSchema, sanitize } from "hast-util-sanitize";
import { toJsxRuntime } from "hast-util-to-jsx-runtime";
import { Fragment, type ComponentChildren, type JSX } from "preact";
import { jsx, jsxs } from "preact/jsx-runtime";

/** longest is the longest text that is read as Markdown, in characters; a longer one is shown as plain text. */
const longest = 200_000;

const schema = {
  ...defaultSchema,
  clobberPrefix: "md-",
  protocols: { href: ["http", "https", "mailto"] },
  tagNames: defaultSchema.tagNames!.filter((name) => name !== "input"),
};

const components = {
  a: ({ href, children }: { href?: string; children?: ComponentChildren }) => (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">{children}</a>
  ),
  img: ({ src, alt }: { src?: string; alt?: string }) => (
    <a href={/^https?:/i.test(src ?? "") ? src : undefined} target="_blank" rel="noopener noreferrer nofollow">
      [image{alt ? ": " + alt : ""}]
    </a>
  ),
};

/** Markdown shows a text that may contain anything. */
export function Markdown({ text }: { text: string }): JSX.Element {
  if (text.length > longest) return <pre class="plain">{text}</pre>;
  let body: ComponentChildren;
  try {
    const tree = fromMarkdown(text, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] });
    const hast = sanitize(toHast(tree), schema);
    body = toJsxRuntime(hast as Parameters<typeof toJsxRuntime>[0], {
      Fragment, jsx: jsx as never, jsxs: jsxs as never, components: components as never, elementAttributeNameCase: "html",
      ignoreInvalidStyle: true,
    }) as ComponentChildren;
  } catch {
    return <pre class="plain">{text}</pre>; // nested deeper than the stack
  }
  return <div class="md">{body}</div>;
}
