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

// Made once: toLocaleTimeString makes a formatter for each call, which was most of the time of drawing a conversation.
const hourOf = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const dayOf = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric" });

/** clock returns the time of day, with the date if it is another day than now. */
export function clock(time: string | undefined, now: Date): string {
  if (!time) return "";
  const t = new Date(time);
  if (Number.isNaN(t.getTime())) return "";
  const hour = hourOf.format(t);
  if (t.toDateString() === now.toDateString()) return hour;
  return dayOf.format(t) + " " + hour;
}

/** ago returns how long ago a time was: now, 4 min, 2 h, 3 d, else the date. */
export function ago(time: string, now: Date): string {
  const s = (now.getTime() - new Date(time).getTime()) / 1000;
  if (Number.isNaN(s)) return "";
  if (s < 60) return "now";
  if (s < 3600) return Math.floor(s / 60) + " min";
  if (s < 86400) return Math.floor(s / 3600) + " h";
  if (s < 30 * 86400) return Math.floor(s / 86400) + " d";
  return dayOf.format(new Date(time));
}

/** shorten cuts a text at a length, with a mark. */
export function shorten(text: string, most: number): string {
  return text.length <= most ? text : text.slice(0, most - 1) + "…";
}
