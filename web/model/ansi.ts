// Output of terminals: colours and styles of ANSI escape sequences as stretches, other sequences left out. Pure.

/** A Stretch is a text in one style; style is the names of classes, "" = none. */
export interface Stretch {
  text: string;
  style: string;
}

const hues = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/** Sequences of a terminal: CSI with its parameters and final byte, OSC up to its end, and those of two characters. */
const escapes = /\x1b(?:\[([0-9;:?<=>]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])/g;

/** hasEscapes reports whether a text has such sequences, or lines that were written over. */
export function hasEscapes(text: string): boolean {
  return text.includes("\x1b") || /\r(?!\n)/.test(text);
}

/** mostStretches bounds the stretches of a text; the rest of one with more is the last. */
const mostStretches = 400;

/** stretches returns a text in its styles, without the sequences. */
export function stretches(text: string): Stretch[] {
  const list: Stretch[] = [];
  const style = { hue: "", bold: false, dim: false, italic: false, underline: false };
  let end = 0;
  const add = (piece: string) => {
    if (!piece) return;
    const name = [style.hue && "ansi-" + style.hue, style.bold && "ansi-bold", style.dim && "ansi-dim",
      style.italic && "ansi-italic", style.underline && "ansi-underline"].filter(Boolean).join(" ");
    const last = list.at(-1);
    if (last && (last.style === name || list.length >= mostStretches)) last.text += piece;
    else list.push({ text: piece, style: name });
  };
  const lines = overwritten(text);
  for (const m of lines.matchAll(escapes)) {
    add(lines.slice(end, m.index));
    end = m.index + m[0].length;
    if (m[2] === "m") select(style, m[1]!);
  }
  add(lines.slice(end));
  return list;
}

/** overwritten returns a text whose lines are as they were last: a carriage return begins a line again. */
function overwritten(text: string): string {
  return text.replace(/\r+\n/g, "\n").replace(/[^\n]*\r(?=[^\n])/g, (before) => before.match(escapes)?.join("") ?? "").replaceAll("\r", "");
}

type Style = { hue: string; bold: boolean; dim: boolean; italic: boolean; underline: boolean };

/** select changes a style by the parameters of "select graphic rendition". Backgrounds are left out. */
function select(style: Style, parameters: string): void {
  const codes = parameters.split(/[;:]/).map(Number);
  for (let i = 0; i < codes.length; i++) {
    const n = codes[i]!;
    if (n === 0) Object.assign(style, { hue: "", bold: false, dim: false, italic: false, underline: false });
    else if (n === 1) style.bold = true;
    else if (n === 2) style.dim = true;
    else if (n === 3) style.italic = true;
    else if (n === 4) style.underline = true;
    else if (n === 22) style.bold = style.dim = false;
    else if (n === 23) style.italic = false;
    else if (n === 24) style.underline = false;
    else if (n === 39) style.hue = "";
    else if (n >= 30 && n <= 37) style.hue = hues[n - 30]!;
    else if (n >= 90 && n <= 97) style.hue = hues[n - 90]!;
    else if (n === 38 || n === 48) {
      const hue = codes[i + 1] === 5 ? ofPalette(codes[i + 2] ?? 0) : ofRGB(codes[i + 2] ?? 0, codes[i + 3] ?? 0, codes[i + 4] ?? 0);
      if (n === 38) style.hue = hue;
      i += codes[i + 1] === 5 ? 2 : 4;
    }
  }
}

/** ofPalette returns the hue of one of 256 colours. */
function ofPalette(n: number): string {
  if (n < 16) return hues[n % 8]!;
  if (n >= 232) return "";
  const part = (k: number) => (Math.floor((n - 16) / k) % 6) * 51;
  return ofRGB(part(36), part(6), part(1));
}

/** ofRGB returns the hue that is nearest to a colour; "" = it is a grey. */
function ofRGB(r: number, g: number, b: number): string {
  const most = Math.max(r, g, b);
  if (most - Math.min(r, g, b) < 48) return "";
  const has = (x: number) => Number(x > most * 0.6);
  return hues[has(r) + 2 * has(g) + 4 * has(b)]!;
}
