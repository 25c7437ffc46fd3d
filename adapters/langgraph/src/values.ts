// How values are stored: JSON as JSON, so that a commit stores what changed of them, and other bytes as base64.
import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { RawJSON } from "coppice-client";
import { base64, unbase64 } from "../../shared/index.js";

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
