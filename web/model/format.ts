// Numbers and times as people read them. Pure.

/** count returns a number in few characters: 950, 4.1k, 2.3M. */
export function count(n: number): string {
  if (n < 1000) return String(n);
  if (n < 999_950) return trim(n / 1e3) + "k";
  return trim(n / 1e6) + "M";
}

function trim(n: number): string {
  return n.toFixed(n < 100 ? 1 : 0).replace(/\.0$/, "");
}

/** grouped returns a whole number with its thousands apart: 1,000,000. */
export function grouped(n: number): string {
  return String(n).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** bytes returns a size: 812 B, 4.1 KB, 2.3 MB. */
export function bytes(n: number): string {
  if (n < 1000) return n + " B";
  if (n < 999_950) return trim(n / 1e3) + " KB";
  return trim(n / 1e6) + " MB";
}

/** cost returns an amount of the currency in which the program counted; "" for none. */
export function cost(n: number): string {
  if (!n) return "";
  return "$" + (n < 0.01 ? n.toFixed(4) : n.toFixed(2));
}

// Without Intl: the first formatter that a page makes takes 25 to 75 ms, a third of the time to the first message.
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** hour returns the time of day where the reader is: 09:13. */
export function hour(t: Date): string {
  return String(t.getHours()).padStart(2, "0") + ":" + String(t.getMinutes()).padStart(2, "0");
}

/** date returns the date where the reader is: 2 Mar 2026. */
export function date(t: Date): string {
  return `${t.getDate()} ${months[t.getMonth()]} ${t.getFullYear()}`;
}

/** dayOf returns the date of a time; "" = there is none. */
export function dayOf(time: string | undefined): string {
  const t = new Date(time ?? "");
  return Number.isNaN(t.getTime()) ? "" : date(t);
}

/** clock returns the time of day, with the date if it is another day than now. */
export function clock(time: string | undefined, now: Date): string {
  if (!time) return "";
  const t = new Date(time);
  if (Number.isNaN(t.getTime())) return "";
  return t.toDateString() === now.toDateString() ? hour(t) : date(t) + " " + hour(t);
}

/** ago returns how long ago a time was: now, 4 min, 2 h, 3 d, else the date. */
export function ago(time: string, now: Date): string {
  const s = (now.getTime() - new Date(time).getTime()) / 1000;
  if (Number.isNaN(s)) return "";
  if (s < 60) return "now";
  if (s < 3600) return Math.floor(s / 60) + " min";
  if (s < 86400) return Math.floor(s / 3600) + " h";
  if (s < 30 * 86400) return Math.floor(s / 86400) + " d";
  return date(new Date(time));
}

/** shorten cuts a text at a length, with a mark. */
export function shorten(text: string, most: number): string {
  return text.length <= most ? text : text.slice(0, most - 1) + "…";
}
