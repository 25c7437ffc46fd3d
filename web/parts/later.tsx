// A component of panes/later.tsx, which is loaded once one of them is shown.
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type * as Panes from "../panes/later.tsx";

const panes = signal<typeof Panes | null>(null);
const failed = signal(false);

/** later returns a component that shows another one as soon as it is loaded, and until then an element in its place. */
export function later(name: keyof typeof Panes, Place: "section" | "footer" = "section", of = ""): () => JSX.Element {
  return function Later(): JSX.Element {
    useEffect(() => {
      if (panes.peek()) return;
      failed.value = false;
      import("../panes/later.tsx").then((m) => (panes.value = m), () => (failed.value = true));
    }, []);
    const Pane = panes.value?.[name] as (() => JSX.Element) | undefined;
    if (Pane) return <Pane />;
    return (
      <Place class={of} aria-busy={!failed.value}>
        {failed.value && <p role="alert">This part of the page could not be loaded.</p>}
      </Place>
    );
  };
}
