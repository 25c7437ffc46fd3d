// How values are stored: JSON as JSON, so that a commit stores what changed of them, and other bytes as base64.
import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { RawJSON } from "coppice-client";

/** A value: JSON, as it is to be sent or as it was read, or other bytes with their type. */
export type Stored = { json: unknown } | { type: string; bytes: string };

export async function dump(serde: SerializerProtocol, value: unknown): Promise<Stored> {
  const [type, bytes] = await serde.dumpsTyped(value);
  const text = type === "json" ? new TextDecoder().decode(bytes) : undefined;
  return text !== undefined && isJSON(text) ? { json: new RawJSON(text) } : { type, bytes: base64(bytes) };
}

export function load<T>(serde: SerializerProtocol, stored: Stored): Promise<T> {
  if ("bytes" in stored) return serde.loadsTyped(stored.type, unbase64(stored.bytes)) as Promise<T>;
  const text = stored.json instanceof RawJSON ? stored.json.text : JSON.stringify(stored.json);
  return serde.loadsTyped("json", text) as Promise<T>;
}

function isJSON(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function base64(bytes: Uint8Array): string {
  let text = "";
  for (const b of bytes) text += String.fromCharCode(b);
  return btoa(text);
}

const unbase64 = (text: string): Uint8Array => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

export async function hash(...parts: string[]): Promise<string> {
  const sum = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(JSON.stringify(parts)));
  return Array.from(new Uint8Array(sum), (b) => b.toString(16).padStart(2, "0")).join("");
}
