// Program text, in colours once their bundle is loaded.
import type { Root } from "hast";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { code } from "../model/lazy.ts";
import { elements } from "./hast.tsx";

/** mostSpans bounds the elements of one coloured text; one that would have more is shown without colours. */
const mostSpans = 400;

/** Coloured shows a text in the colours of a language; "" or one that is not known = in none. */
export function Coloured({ text, language }: { text: string; language: string }): JSX.Element {
  const [root, setRoot] = useState<Root | null>(null);
  useEffect(() => {
    let current = true;
    setRoot(null);
    if (language !== "") {
      code().then(({ colour }) => {
        const found = colour(language, text);
        if (current && found && spans(found) <= mostSpans) setRoot(found);
      }).catch(() => {}); // without colours it can be read too
    }
    return () => {
      current = false;
    };
  }, [text, language]);
  if (!root) return <code>{text}</code>;
  return <code>{elements(root)}</code>;
}

/** spans counts the elements of a tree. */
function spans(node: { children?: readonly unknown[] }): number {
  let n = 0;
  const rest: { children?: readonly unknown[] }[] = [node];
  for (let one = rest.pop(); one; one = rest.pop()) {
    n++;
    for (const child of one.children ?? []) {
      if ((child as { type?: string }).type === "element") rest.push(child as { children?: readonly unknown[] });
    }
  }
  return n - 1;
}
