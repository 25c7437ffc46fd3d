// The words that a person looks for, and where they are in a text. Pure.

/** words returns the words of a search, in lower case. */
export function words(text: string): string[] {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

/** split cuts a text into stretches that are a word of the search and stretches that are not. */
export function split(text: string, search: string): { text: string; hit: boolean }[] {
  const wanted = words(search);
  const lower = text.toLowerCase();
  if (wanted.length === 0 || lower.length !== text.length) return [{ text, hit: false }];
  const out: { text: string; hit: boolean }[] = [];
  let from = 0;
  while (from < text.length) {
    let at = -1;
    let length = 0;
    for (const w of wanted) {
      const i = lower.indexOf(w, from);
      if (i >= 0 && (at < 0 || i < at)) [at, length] = [i, w.length];
    }
    if (at < 0) break;
    if (at > from) out.push({ text: text.slice(from, at), hit: false });
    out.push({ text: text.slice(at, at + length), hit: true });
    from = at + length;
  }
  if (from < text.length) out.push({ text: text.slice(from), hit: false });
  return out;
}
