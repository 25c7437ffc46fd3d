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
  const m = value as Message, found = m.parts ?? m.content;
  const content = (Array.isArray(found) ? (found as Part[]) : [{ type: "text", text: found }]).flatMap(blockOf);
  if (m.role === "tool") return { role: "toolResult", toolCallId: m.toolCallId ?? "", toolName: "", content };
  for (const { id, function: f } of m.toolCalls ?? []) {
    content.push({ type: "toolCall", id, name: f.name, arguments: parsed(f.arguments) });
  }
  const role = m.role === "assistant" || m.role === "system" ? m.role : "user";
  return { role, content };
}

function blockOf(part: Part): object[] {
  const type = part.type ?? "";
  const words = text(part.text, part.content, part.reasoning);
  if (type === "text") return words ? [{ type: "text", text: words }] : [];
  if (type === "reasoning" || type === "thinking") return [{ type: "thinking", thinking: words }];
  if (type === "tool-result" || (type !== "dynamic-tool" && !type.startsWith("tool-"))) return [];
  const name = part.toolName ?? part.name ?? type.slice("tool-".length);
  const call = `${name}(${json(part.args ?? part.input ?? part.arguments ?? {})})`;
  const output = part.result ?? part.output ?? part.errorText;
  return [{ type: "text", text: output === undefined ? call : `${call} -> ${json(output)}` }];
}

const json = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return { text: json };
  }
}
