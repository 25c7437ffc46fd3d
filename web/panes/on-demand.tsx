// A component of panes/panes.tsx, which is loaded once one of them is shown.
import { signal } from "@preact/signals";
import type { ComponentType, JSX } from "preact";
import { useEffect } from "preact/hooks";
import type * as Panes from "./panes.tsx";

const panes = signal<typeof Panes | null>(null);
const failed = signal(false);

/** Props are the properties of a component. */
type Props<F> = F extends (props: infer P extends object) => unknown ? P : object;

/** later returns a component that shows another one as soon as it is loaded, and until then an element in its place. */
export function later<Name extends keyof typeof Panes, P extends object = Props<(typeof Panes)[Name]>>(
  name: Name, Place: "section" | "footer" = "section", of = "",
): (props: P) => JSX.Element {
  return function Later(props: P): JSX.Element {
    useEffect(() => {
      if (panes.peek()) return;
      failed.value = false;
      import("./panes.tsx").then((m) => (panes.value = m), () => (failed.value = true));
    }, []);
    const Pane = panes.value?.[name] as ComponentType<P> | undefined;
    if (Pane) return <Pane {...props} />;
    return (
      <Place class={of} aria-busy={!failed.value}>
        {failed.value && <p role="alert">This part of the page could not be loaded.</p>}
      </Place>
    );
  };
}
