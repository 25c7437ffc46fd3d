// Converts messages of Strands to messages of a session, so that search, tree, context and usage can show them.

interface Block {
  text?: string;
  toolUse?: { name: string; toolUseId: string; input: unknown };
  toolResult?: { toolUseId: string; status: string; content: { text?: string; json?: unknown }[] };
  reasoning?: { text?: string };
}
/** A message in a snapshot of Strands. */
export interface MessageData {
  role: string;
  content: Block[];
  metadata?: { usage?: { inputTokens?: number; outputTokens?: number; totalTokens?: number } };
}

/** Reports whether a value is a message of Strands. */
export function isMessage(value: unknown): value is MessageData {
  const m = value as Partial<MessageData> | null;
  return typeof m === "object" && m !== null && (m.role === "user" || m.role === "assistant") && Array.isArray(m.content);
}

/** Returns the messages of a session for one message of Strands: one for each tool result in it, and one for the
 * rest. */
export function shown({ role, content, metadata }: MessageData): object[] {
  const results = content.flatMap(({ toolResult: r }) => (r ? [{
    role: "toolResult", toolCallId: r.toolUseId, toolName: "", isError: r.status === "error",
    content: r.content.map((c) => ({ type: "text", text: c.text ?? JSON.stringify(c.json ?? null) })),
  }] : []));
  const parts = content.flatMap(({ text, toolUse, reasoning }): object[] => {
    if (typeof text === "string") return [{ type: "text", text }];
    if (typeof reasoning?.text === "string") return [{ type: "thinking", thinking: reasoning.text }];
    return toolUse ? [{ type: "toolCall", id: toolUse.toolUseId, name: toolUse.name, arguments: toolUse.input }] : [];
  });
  const u = role === "assistant" ? metadata?.usage : undefined;
  const usage = u && { input: u.inputTokens ?? 0, output: u.outputTokens ?? 0, totalTokens: u.totalTokens ?? 0 };
  if (results.length && !parts.length) return results;
  return [...results, { role, content: parts, ...(usage && { usage }) }];
}
