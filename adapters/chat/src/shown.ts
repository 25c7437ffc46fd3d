// Messages of user interfaces as messages of a session, so that search, tree and context show a chat.

interface Part {
  type?: string;
  text?: unknown; content?: unknown; reasoning?: unknown;
  toolName?: string; name?: string;
  args?: unknown; input?: unknown; arguments?: unknown;
  result?: unknown; output?: unknown; errorText?: unknown;
}
interface Message {
  role?: string;
  content?: unknown; parts?: unknown;
  toolCalls?: { id: string; function: { name: string; arguments: string } }[]; toolCallId?: string;
}

const text = (...of: unknown[]): string => of.find((value) => typeof value === "string") as string | undefined ?? "";

/** Returns the message that shows one of a user interface. A call of a tool that has its result in it is a text. */
export function shown(value: unknown): object {
  const m = value as Message, found = m.parts ?? m.content, parts = Array.isArray(found) ? (found as Part[]) : [{ type: "text", text: found }];
  const content = parts.flatMap(blockOf);
  if (m.role === "tool") return { role: "toolResult", toolCallId: m.toolCallId ?? "", toolName: "", content };
  for (const { id, function: f } of m.toolCalls ?? []) content.push({ type: "toolCall", id, name: f.name, arguments: parsed(f.arguments) });
  const role = m.role === "assistant" || m.role === "system" ? m.role : "user";
  return { role, content };
}

function blockOf(part: Part): object[] {
  const type = part.type ?? "";
  if (type === "text") return text(part.text, part.content) ? [{ type: "text", text: text(part.text, part.content) }] : [];
  if (type === "reasoning" || type === "thinking") return [{ type: "thinking", thinking: text(part.text, part.content, part.reasoning) }];
  if (type !== "tool-call" && type !== "dynamic-tool" && !type.startsWith("tool-")) return [];
  if (type === "tool-result") return [];
  const name = part.toolName ?? part.name ?? type.slice("tool-".length), input = part.args ?? part.input ?? part.arguments ?? {};
  const output = part.result ?? part.output ?? part.errorText;
  const call = `${name}(${typeof input === "string" ? input : JSON.stringify(input)})`;
  return [{ type: "text", text: output === undefined ? call : `${call} -> ${typeof output === "string" ? output : JSON.stringify(output)}` }];
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return { text: json };
  }
}
