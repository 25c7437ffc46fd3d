// Marks of a search in what is drawn, which change no element of the page.
import { split } from "../model/search.ts";

/** most bounds the marks. */
const most = 1000;

/** highlight marks the words of a search in an element, in place of the marks before; "" = none. */
export function highlight(box: Element, search: string): void {
  if (!("highlights" in CSS)) return; // a browser that is older than 2024
  const marks = new Highlight();
  const texts = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
  for (let node = search ? texts.nextNode() : null; node && marks.size < most; node = texts.nextNode()) {
    let at = 0;
    for (const { text, hit } of split(node.nodeValue ?? "", search)) {
      if (hit) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, at + text.length);
        marks.add(range);
      }
      at += text.length;
    }
  }
  CSS.highlights.set("hits", marks);
}
