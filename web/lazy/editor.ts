// JSON and differences, drawn by CodeMirror in a shadow root: in the document it would insert a style element, which
// the policy of the page refuses.
import { json } from "@codemirror/lang-json";
import { defaultHighlightStyle, foldGutter, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { MergeView } from "@codemirror/merge";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";

/** colours are the page's, which change with light and dark, in place of the editor's, which are for light alone. */
const colours = HighlightStyle.define(defaultHighlightStyle.specs.map((s) => {
  if (!s.color) return s;
  return { ...s, color: s.color === "#a11" ? "var(--accent)" : s.color === "#164" ? "var(--text)" : "var(--warn)" };
}));

const theme = EditorView.theme({
  ".cm-gutters": { backgroundColor: "var(--bg-sunken)", color: "var(--text-soft)", borderRight: "1px solid var(--line)" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-collapsedLines": { background: "var(--bg-sunken)", color: "var(--text-soft)" },
  ".cm-collapsedLines::before, .cm-collapsedLines::after": { content: "none" }, // a sign that few fonts have
});

function extensions(): Extension[] {
  return [json(), lineNumbers(), foldGutter(), syntaxHighlighting(colours), theme, EditorState.readOnly.of(true),
    EditorView.lineWrapping, EditorView.contentAttributes.of({ "aria-label": "JSON" })];
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
