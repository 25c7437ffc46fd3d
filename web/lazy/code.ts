// The colours of program text: classes on spans, as a tree of elements.
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { createLowlight } from "lowlight";
import type { Root } from "hast";

const lowlight = createLowlight({
  bash, c, diff, go, java, javascript, json, python, rust, sql, typescript, xml, yaml,
});

/** longest is the longest text that is coloured, in characters. */
const longest = 100_000;

/** colour returns a text in colours; null for languages it does not know and for long texts. */
export function colour(language: string, text: string): Root | null {
  return text.length <= longest && lowlight.registered(language) ? lowlight.highlight(language, text) : null;
}
