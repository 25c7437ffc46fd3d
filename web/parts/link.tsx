// Links within the page. A click with a modifier is the browser's.
import type { ComponentChildren, JSX } from "preact";
import { base } from "../api/base.ts";
import { open } from "../model/nav.ts";

/** plain returns a handler for clicks of a link that shows something in this page. */
export function plain(show: () => void): (e: MouseEvent) => void {
  return (e) => {
    if (e.metaKey || e.ctrlKey || e.shiftKey || e.button !== 0) return;
    e.preventDefault();
    show();
  };
}

interface LinkProps {
  to: string | null; // null = the list of sessions
  children: ComponentChildren;
  class?: string;
  title?: string | undefined;
  current?: boolean;
}

/** SessionLink leads to a session. */
export function SessionLink({ to, current, children, ...rest }: LinkProps): JSX.Element {
  return (
    <a {...rest} href={base + (to === null ? "/" : "/s/" + encodeURIComponent(to))} aria-current={current ? "page" : undefined}
      onClick={plain(() => open(to))}>{children}</a>
  );
}
