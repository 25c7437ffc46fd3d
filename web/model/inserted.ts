// What programs insert into messages of a user, by the table of internal/message, as message.Apart there. Pure.
import { media, tags, texts } from "../../internal/message/inserted.json";

const quoted = (s: string) => s.replace(/[[\]()]/g, "\\$&");
const names = `<(${Object.values(tags).flat().join("|")})(?: [^>]*)?>`;
const pairs = Object.values({ ...texts, m: Object.values(media).flat() }).flat().map((p) => p.map(quoted).join("[^]*?")).join("|");
const front = new RegExp(`^(?:[ \\t\\r\\n]*(?:${names}[^]*?</\\1>|${pairs}))+[ \\t\\r\\n]*`);
const back = new RegExp(`(?:(?:^|[ \\t\\r\\n]*\\n)${names}(?:(?!<\\1)[^])*?</\\1>)+[ \\t\\r\\n]*$`);

/** apart returns what programs put before a text, what a person wrote, and what programs put after it. */
export function apart(text: string): [string, string, string] {
  const before = front.exec(text)?.[0] ?? "";
  const rest = text.slice(before.length);
  const after = back.exec(rest)?.[0] ?? "";
  const typed = rest.slice(0, rest.length - after.length);
  return typed.trim() === "" && typed !== text ? [text, "", ""] : [before, typed, after];
}
