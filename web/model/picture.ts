// Images of messages: where their bytes are, and whether a browser shows them. Pure.

/** A Source is where the bytes of an image are. bytes is their number. */
export type Source = { kind: "blob"; sha256: string; bytes: number } | { kind: "inline"; base64: string; bytes: number };

/** sourceOf returns where the bytes of an image are; null: nowhere. Text that only looks like a reference is none. */
export function sourceOf(data: string): Source | null {
  const m = /^coppice-blob:sha256:([0-9a-f]{64}):(\d{1,15})$/.exec(data);
  if (m) return { kind: "blob", sha256: m[1]!, bytes: Number(m[2]) };
  if (data === "" || /[^A-Za-z0-9+/=\s_-]/.test(data.slice(0, 200))) return null;
  return { kind: "inline", base64: data, bytes: Math.floor((data.length * 3) / 4) };
}

/** rasterType returns the type of the image formats that are shown, by their first bytes; null: none of them. */
export function rasterType(b: Uint8Array): string | null {
  const is = (at: number, ...want: number[]) => want.every((w, i) => b[at + i] === w);
  if (is(0, 0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)) return "image/png";
  if (is(0, 0xff, 0xd8, 0xff)) return "image/jpeg";
  if (is(0, 0x47, 0x49, 0x46, 0x38)) return "image/gif";
  if (is(0, 0x52, 0x49, 0x46, 0x46) && is(8, 0x57, 0x45, 0x42, 0x50)) return "image/webp";
  return null;
}
