// The words that a person looks for, and where they are in a text. Pure.

/** others are letters that fold to others than Unicode takes them apart into. */
const others: Record<string, string> = {
  ß: "ss", ſ: "s", ς: "σ", ı: "i", ł: "l", ø: "o", đ: "d", ħ: "h", ŧ: "t", æ: "ae", œ: "oe", µ: "μ",
};

/** dropped are the marks that do not count, and what is not seen. */
const dropped = new RegExp("[\\u00ad\\u0300-\\u0337\\u0339-\\u036f\\u0591-\\u05bd\\u05bf\\u05c1\\u05c2\\u05c7" +
  "\\u064b-\\u0655\\u0670\\u200b-\\u200d\\u2060\\ufe00-\\ufe0f\\ufeff]", "g");

/** fold returns a letter as it is compared, as internal/fold of the service does. */
function fold(letter: string): string {
  if (letter < "\u0080") return letter.toLowerCase();
  const wide = letter >= "\ufb00" && letter <= "\ufb06" || letter >= "\uff01" && letter <= "\uff9f";
  const apart = letter.normalize(wide ? "NFKD" : "NFD").toLowerCase().normalize("NFD").replace(dropped, "");
  return [...apart].map((c) => others[c] ?? c).join("");
}

/** words returns the words of a search, folded. */
function words(text: string): string[] {
  return [...text].map(fold).join("").split(/\s+/).filter(Boolean);
}

/** split cuts a text into stretches that are a word of the search and stretches that are not. */
export function split(text: string, search: string): { text: string; hit: boolean }[] {
  const wanted = words(search);
  if (wanted.length === 0) return [{ text, hit: false }];
  let folded = "";
  const starts: number[] = []; // of each unit of folded: where its letter begins in the text
  let place = 0;
  for (const letter of text) {
    const f = fold(letter);
    for (let i = 0; i < f.length; i++) starts.push(place);
    folded += f;
    place += letter.length;
  }
  starts.push(text.length);
  /** after returns where the letter ends that has a unit of folded, with the marks on it. */
  const after = (unit: number): number => {
    let next = unit + 1;
    while (starts[next]! <= starts[unit]!) next++;
    return starts[next]!;
  };
  const out: { text: string; hit: boolean }[] = [];
  let shown = 0;
  for (let from = 0; from < folded.length;) {
    let at = -1;
    let length = 0;
    for (const w of wanted) {
      const i = folded.indexOf(w, from);
      if (i >= 0 && (at < 0 || i < at)) [at, length] = [i, w.length];
    }
    if (at < 0) break;
    const begin = Math.max(shown, starts[at]!);
    const end = after(at + length - 1);
    if (begin > shown) out.push({ text: text.slice(shown, begin), hit: false });
    if (end > begin) out.push({ text: text.slice(begin, end), hit: true });
    shown = Math.max(shown, end);
    from = at + length;
  }
  if (shown < text.length) out.push({ text: text.slice(shown), hit: false });
  return out;
}
