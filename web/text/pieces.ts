// A long Markdown text as pieces that can be read one at a time, so that no text keeps the page busy for long, unless
// it is one block of code. Pure.

/** enough is the length from which a piece ends at the next place where it may, most where it ends anywhere, in characters. */
const enough = 3_000;
const most = 8_000;

/** What opens or closes a fenced block of code, and what continues the list, quotation or table before a blank line. */
const fence = /^ {0,3}(`{3,}|~{3,})/;
const goesOn = /^(\s|>|\||[-*+] |\d{1,9}[.)] )/;

/**
 * pieces returns the pieces of a text, which joined are the text. A piece ends after a blank line, before a new
 * block, never within a block of code; a text without such lines is cut at the end of a line, or where it is too long. A
 * reference and its definition can be in two pieces: then the reference is shown as it was written.
 */
export function pieces(text: string): string[] {
  const list: string[] = [];
  let start = 0;
  let open = ""; // the fence of the block of code that is open
  for (let at = 0, blank = false; at < text.length; ) {
    const end = text.indexOf("\n", at) + 1 || text.length;
    const line = text.slice(at, end);
    const length = at - start;
    const block = blank && length >= enough && !goesOn.test(line);
    if (open === "" && length > 0 && (block || end - start > most)) {
      list.push(text.slice(start, at));
      start = at;
    }
    const mark = fence.exec(line)?.[1] ?? "";
    blank = line.trim() === "";
    at = end;
    if (open === "") open = mark;
    else if (mark.startsWith(open) && line.trim() === mark) {
      open = "";
      if (at - start > most) { // the block alone may be as long
        list.push(text.slice(start, at));
        start = at;
      }
    }
    while (open === "" && at - start > most) {
      list.push(text.slice(start, start + most));
      start += most;
    }
  }
  if (start < text.length) list.push(text.slice(start));
  return list;
}
