// A tree of HTML elements as elements of the page. Only what is named here becomes an attribute, so that a text cannot
// bring a style, an id or a handler into the page.
import type { Element, Root } from "hast";
import { h, type ComponentChild, type ComponentChildren } from "preact";

/** attributes are the properties that are kept. className is for the colours of program text. */
const attributes: Record<string, string> = { className: "class", title: "title", align: "align", start: "start" };

/** elements returns the children of a tree. special is what becomes of elements of these names. */
export function elements(
  node: Root | Element, special: Record<string, (e: Element) => ComponentChild> = {},
): ComponentChildren {
  return node.children.map((child) => {
    if (child.type === "text") return child.value;
    if (child.type !== "element") return null;
    const own = special[child.tagName];
    if (own) return own(child);
    const props: Record<string, string | number> = {};
    for (const [name, value] of Object.entries(child.properties)) {
      const attribute = attributes[name];
      if (attribute === undefined || value == null || typeof value === "boolean") continue;
      props[attribute] = Array.isArray(value) ? value.join(" ") : value;
    }
    return h(child.tagName, props, elements(child, special));
  });
}
