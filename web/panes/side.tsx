// The column next to the conversation: one of its panes at a time, by tabs.
import type { JSX } from "preact";
import { useActions } from "../model/actions.ts";
import { go, href, view } from "../model/nav.ts";
import type { OpenSession } from "../model/session.ts";
import type { Pane } from "../model/url.ts";
import { useSession } from "../parts/use-session.ts";
import { later } from "./on-demand.tsx";
import { plain } from "../parts/link.tsx";
import { say } from "../parts/toast.tsx";

const tabs: { pane: Pane; label: string; show: (props: object) => JSX.Element }[] = [
  { pane: "map", label: "Map", show: later("MapPane") },
  { pane: "state", label: "State", show: later("StatePane") },
  { pane: "context", label: "Model saw", show: later("ContextPane") },
  { pane: "compare", label: "Compare", show: later("ComparePane") },
  { pane: "usage", label: "Usage", show: later("UsagePane") },
];

/** compare marks the cursor, or compares it with what is marked. */
function compare(s: OpenSession): void {
  if (view.peek().compare !== null) {
    go({ pane: "compare" });
    return;
  }
  go({ compare: s.cursor.marked() });
  say("This point is marked. Go to another one and press c to compare them.");
}

/** out leaves what is open, one thing at a time: a field, the history of a value, a comparison, the marks of a search. */
function out(): void {
  const { path, compare: point, search } = view.peek();
  const field = document.activeElement;
  if (field instanceof HTMLElement && field.matches("input, textarea, select")) field.blur();
  else if (path !== null) go({ path: null }, "replace");
  else if (point !== null) go({ compare: null }, "replace");
  else if (search !== "") go({ search: "" }, "replace");
}

/** Side shows the pane that the view names. A pane that is not shown costs nothing. */
export function Side(): JSX.Element | null {
  const s = useSession();
  const show = (pane: Pane) => () => go({ pane: view.peek().pane === pane ? "none" : pane });
  useActions({
    "pane-map": show("map"), "pane-state": show("state"), "pane-context": show("context"), "pane-usage": show("usage"),
    ...(view.value.pane === "map" ? {} : { "next-hit": show("map"), "previous-hit": show("map") }),
    compare: () => compare(s), out, find: () => {
      go({ pane: "map" }, "replace");
      requestAnimationFrame(() => document.querySelector<HTMLInputElement>(".map-search")?.focus()); // it is drawn by then
    },
  });
  const tab = tabs.find((t) => t.pane === view.value.pane);
  return (
    <aside class="side">
      <nav class="tabs" aria-label="Panes">
        {tabs.map((t) => (
          <a key={t.pane} href={href({ pane: t.pane })} aria-current={t === tab ? "true" : undefined}
            onClick={plain(() => go({ pane: t.pane }))}>{t.label}</a>
        ))}
      </nav>
      {tab && <tab.show />}
    </aside>
  );
}
