// A hast tree, which a sanitizer or a highlighter made, as elements of the page.
import type { Element, Root } from "hast";
import { h, type ComponentChildren, type ComponentType } from "preact";

/** Components are shown in place of elements, by their tag names. They get the attributes, and the element as `node`. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Components = Record<string, ComponentType<any>>;

/** elements returns the children of a node. What is neither text nor an element is left out: a sanitizer leaves no other. */
export function elements(node: Root | Element, components: Components = {}): ComponentChildren[] {
  return node.children.map((child, i) => {
    if (child.type === "text") return child.value;
    if (child.type !== "element") return null;
    const own = components[child.tagName];
    return h((own ?? child.tagName) as string, {
      ...attributes(child.properties), key: i, ...(own ? { node: child } : {}),
    }, elements(child, components));
  });
}

/** attributes returns properties under their names in HTML. Handlers, styles and HTML of a node are none. */
export function attributes(properties: Record<string, unknown>): Record<string, string | number | boolean> {
  const out: Record<string, string | number | boolean> = {};
  for (const [name, value] of Object.entries(properties)) {
    if (value == null || value === false || /^on|^style$|html$/i.test(name)) continue;
    out[nameOf(name)] = Array.isArray(value) ? value.join(" ") : value as string | number | boolean;
  }
  return out;
}

function nameOf(name: string): string {
  if (name === "className") return "class";
  if (name === "htmlFor") return "for";
  if (/^aria[A-Z]/.test(name)) return "aria-" + name.slice(4).toLowerCase();
  return /^data[A-Z]/.test(name) ? name.replace(/[A-Z]/g, (c) => "-" + c.toLowerCase()) : name.toLowerCase();
}
