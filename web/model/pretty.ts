// JSON text for people to read, with every token as it was stored. Pure.

/** pretty breaks JSON text into lines, without touching a token of it. */
export function pretty(text: string): string {
  let out = "";
  let depth = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    if (inString) {
      out += c;
      if (c === "\\") out += text[++i] ?? "";
      else if (c === '"') inString = false;
    } else if (c === '"') {
      inString = true;
      out += c;
    } else if (c === "{" || c === "[") {
      const close = /^\s*[}\]]/.exec(text.slice(i + 1, i + 40));
      if (close) {
        out += c + close[0].trim();
        i += close[0].length;
      } else out += c + "\n" + "  ".repeat(++depth);
    } else if (c === "}" || c === "]") out += "\n" + "  ".repeat(--depth) + c;
    else if (c === ",") out += ",\n" + "  ".repeat(depth);
    else if (c === ":") out += ": ";
    else if (!/\s/.test(c)) out += c;
  }
  return out;
}
