// What keys and buttons do: panes register actions by the names of keys.ts, and the one that registered last acts.
import { useLayoutEffect } from "preact/hooks";
import { nameOf, press } from "./keys.ts";

const registered = new Map<string, (() => void)[]>();

/** register makes f what an action does, until the function that it returns is called. */
export function register(action: string, f: () => void): () => void {
  const list = registered.get(action) ?? [];
  list.push(f);
  registered.set(action, list);
  return () => {
    list.splice(list.lastIndexOf(f), 1);
  };
}

/** useActions registers actions while a component is shown. They see the props of its newest rendering. */
export function useActions(actions: Record<string, () => void>): void {
  useLayoutEffect(() => {
    const ends = Object.entries(actions).map(([name, f]) => register(name, f));
    return () => ends.forEach((end) => end());
  });
}

/** can reports whether there is an action: it depends on what is shown, and on what the page may do. */
export function can(action: string): boolean {
  return (registered.get(action)?.length ?? 0) > 0;
}

/** act does an action, and reports whether there was one. */
export function act(action: string): boolean {
  const f = registered.get(action)?.at(-1);
  f?.();
  return f !== undefined;
}

let pending = "";

/** listen acts on the keys of the page, except in fields that take text; in one for a search that is empty, ? is for help. */
export function listen(target: EventTarget): void {
  target.addEventListener("keydown", (event) => {
    const e = event as KeyboardEvent;
    const inField = e.composedPath().some((x) => x instanceof HTMLElement &&
      (x.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(x.tagName)));
    const name = nameOf(e);
    const asks = name === "?" && (e.target as Element).matches("[type=search]:placeholder-shown");
    if (inField && !asks && name !== "Escape" && !name.startsWith("Mod+")) return;
    if (name === "Enter" && e.composedPath().some((x) => x instanceof HTMLElement &&
      ["BUTTON", "A", "SUMMARY"].includes(x.tagName))) return; // Enter is theirs
    if (name === "Escape" && document.querySelector("dialog[open]")) return; // the browser closes it
    const next = press(pending, name);
    pending = next.pending;
    if (next.action && act(next.action)) e.preventDefault();
  });
}
