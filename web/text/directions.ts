// Marks that turn the direction of a text around are shown, whatever text of the page they are in: "\u202eexe.gnp" would
// read "png.exe". Letters that are written from the right stay as they are.
import { options } from "preact";

const mark = /[\u202a-\u202e\u2066-\u2069]/g;

/** withMarks returns children with their marks escaped, as JSON writes them. */
function withMarks(children: unknown): unknown {
  if (Array.isArray(children)) return children.map(withMarks);
  return typeof children === "string" ? children.replace(mark, (c) => "\\u" + c.charCodeAt(0).toString(16)) : children;
}

/** showMarks makes every text that is put into the page show its marks. It is called once, before anything is drawn. */
export function showMarks(): void {
  const before = options.vnode;
  options.vnode = (v) => {
    const props = v.props as { children?: unknown };
    if (props.children) props.children = withMarks(props.children);
    before?.(v);
  };
}
