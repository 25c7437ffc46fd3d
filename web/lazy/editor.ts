// JSON and differences, drawn by CodeMirror in a shadow root: in the document it would insert a style element, which
// the policy of the page refuses.
import { json } from "@codemirror/lang-json";
import { defaultHighlightStyle, foldGutter, syntaxHighlighting } from "@codemirror/language";
import { MergeView } from "@codemirror/merge";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";

function extensions(): Extension[] {
  return [json(), lineNumbers(), foldGutter(), syntaxHighlighting(defaultHighlightStyle), EditorState.readOnly.of(true),
    EditorView.lineWrapping];
}

function shadow(host: HTMLElement): { root: ShadowRoot; parent: HTMLElement } {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const parent = document.createElement("div");
  root.replaceChildren(parent);
  return { root, parent };
}

/** showJSON shows a JSON text in host, and returns a function that takes it away. */
export function showJSON(host: HTMLElement, text: string): () => void {
  const { root, parent } = shadow(host);
  const view = new EditorView({ doc: text, extensions: extensions(), parent, root });
  return () => view.destroy();
}

/** showMerge shows two JSON texts side by side with their differences, equal stretches folded. */
export function showMerge(host: HTMLElement, a: string, b: string): () => void {
  const { root, parent } = shadow(host);
  const view = new MergeView({
    a: { doc: a, extensions: extensions() }, b: { doc: b, extensions: extensions() }, parent, root,
    collapseUnchanged: { margin: 3, minSize: 6 }, gutter: true,
  });
  return () => view.destroy();
}
