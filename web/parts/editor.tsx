// A JSON text in the editor, which the page loads when it is first needed.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { editor } from "../model/lazy.ts";

/** Editor shows a text. Until the editor is loaded it is there without colours. */
export function Editor({ text, load }: { text: string; load: typeof editor }): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let end: (() => void) | undefined;
    let over = false;
    void load().then((e) => {
      if (!over && host.current) end = e.showJSON(host.current, text);
    }).catch(() => {
      if (!over && host.current) host.current.textContent = text;
    });
    return () => {
      over = true;
      end?.();
    };
  }, [text]);
  return <div class="editor" ref={host} />;
}
