// What programs insert into messages of a user, by the table of internal/message: the same functions as there. Pure.
import table from "../../internal/message/inserted.json";

interface Mark {
  begin: string;
  end: string;
}

const blank = /^[ \t\r\n]+/;

/** spans are the texts of programs whose end is known: a tag without one ends with its closing tag. */
const spans: Mark[] = Object.values(table as Record<string, { user?: string[][] }>).flatMap((roles) => roles.user ?? [])
  .map(([begin = "", end = ""]) => ({ begin, end: end || (/^<.*>$/.test(begin) ? "</" + begin.slice(1) : "") }))
  .filter((m) => m.end.length > 1 || (m.end !== "" && m.begin.startsWith("[")))
  .sort((a, b) => (a.begin + a.end < b.begin + b.end ? -1 : 1));

/** Apart is what programs put before a text, what a person wrote, and what programs put after it. */
interface Apart {
  before: string;
  typed: string;
  after: string;
}

/** apart takes a text apart. One of programs alone is before. */
export function apart(text: string): Apart {
  if (!/^[\s<#[CW]/.test(text) && !/[\s>]$/.test(text)) return { before: "", typed: text, after: "" };
  let start = 0;
  for (let n = spanAt(text); n > 0; n = spanAt(text.slice(start))) start += n;
  let typed = text.slice(start);
  if (start > 0) {
    typed = typed.replace(blank, "");
    start = text.length - typed.length;
  }
  const cut = cutSpans(typed);
  if (cut.replace(blank, "") === "" && (start > 0 || cut.length < typed.length)) return { before: text, typed: "", after: "" };
  return { before: text.slice(0, start), typed: cut, after: typed.slice(cut.length) };
}

/** spanAt returns the length of the text of a program at the beginning of a text; 0 = there is none. */
function spanAt(text: string): number {
  const rest = text.replace(blank, "");
  for (const m of spans) {
    if (rest.slice(0, m.begin.length).toLowerCase() !== m.begin.toLowerCase()) continue;
    const i = rest.indexOf(m.end, m.begin.length);
    if (i >= 0) return text.length - rest.length + i + m.end.length;
  }
  return 0;
}

/** cutSpans returns a text without the elements that programs put on lines of their own at its end. */
function cutSpans(text: string): string {
  for (;;) {
    const rest = text.replace(/[ \t\r\n]+$/, "");
    const of = spans.find((m) => {
      const i = m.begin.startsWith("<") && rest.endsWith(m.end) ? rest.lastIndexOf(m.begin) : -1;
      return i === 0 || (i > 0 && rest[i - 1] === "\n");
    });
    if (!of) return text;
    text = text.slice(0, rest.lastIndexOf(of.begin)).replace(/[ \t\r\n]+$/, "");
  }
}
