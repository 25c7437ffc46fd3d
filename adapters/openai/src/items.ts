// Items of the OpenAI Agents SDK as messages of OpenAI's Responses API, so that search, tree and context show them.

/** An entry as far as an item is made of it. */
export interface Entry {
  parentId: string | null;
  message?: { role?: string; content?: string | Part[] };
  original?: unknown;
}
interface Part { type?: string; text?: string; image?: unknown }

/** Returns the message that shows an item. Of a type without a counterpart here it is the item. */
export function shown(item: any): object {
  switch (item.type ?? "message") {
    case "message":
      return { type: "message", role: item.role, content: parts(item.content) };
    case "function_call":
      return { type: "function_call", call_id: item.callId, name: item.name, arguments: item.arguments };
    case "function_call_result":
      return { type: "function_call_output", call_id: item.callId, output: output(item.output) };
    case "reasoning":
      return { type: "reasoning", summary: item.content.map(({ text }: Part) => ({ type: "summary_text", text })) };
  }
  return item as object;
}

function part(p: Part): object {
  return p.type === "input_image" && typeof p.image === "string" ? { type: "input_image", image_url: p.image } : p;
}
function parts(content: string | Part[]): unknown { return Array.isArray(content) ? content.map(part) : content; }
function output(o: string | Part | Part[]): unknown {
  return typeof o === "string" || Array.isArray(o) ? parts(o) : (o.text ?? JSON.stringify(o));
}

/** Returns the item of an entry: as it was stored, or a text that another program has written; undefined = neither. */
export function itemOf({ original, message }: Entry): unknown {
  if (original !== undefined) return original;
  const { role, content } = message ?? {};
  const text = typeof content === "string" ? content : (content ?? []).map((p) => p.text ?? "").join("");
  if (text === "" || (role !== "user" && role !== "assistant")) return undefined;
  if (role === "user") return { type: "message", role, content: text };
  return { type: "message", role, status: "completed", content: [{ type: "output_text", text }] };
}
