// Messages of LangChain as messages of a session, so that search, tree, context and usage show a thread. They are a view: a
// checkpoint is read from the state.

/** The members of a LangChain message that are used. */
interface Message {
  getType?: () => string;
  content: unknown;
  name?: string;
  tool_calls?: { id?: string; name: string; args: unknown }[];
  tool_call_id?: string;
  status?: string;
  usage_metadata?: { input_tokens?: number; output_tokens?: number };
  response_metadata?: { model_name?: string; model?: string };
}

const roles: Record<string, string> = { human: "user", ai: "assistant", tool: "toolResult", system: "system" };

/** Returns the message of a value; undefined = it is none that readers of sessions know. */
export function messageOf(value: unknown): object | undefined {
  const m = value as Message | null, role = typeof m?.getType === "function" ? roles[m.getType()] : undefined;
  if (!m || !role) return undefined;
  const content: object[] = texts(m.content);
  if (role === "toolResult") {
    return { role, toolCallId: m.tool_call_id ?? "", toolName: m.name ?? "", content, isError: m.status === "error" };
  }
  if (role !== "assistant") return { role, content };
  for (const { id = "", name, args } of m.tool_calls ?? []) content.push({ type: "toolCall", id, name, arguments: args });
  const model = m.response_metadata?.model_name ?? m.response_metadata?.model;
  const { input_tokens: input = 0, output_tokens: output = 0 } = m.usage_metadata ?? {};
  const usage = m.usage_metadata && { usage: { input, output, totalTokens: input + output } };
  return { role, content, ...(model !== undefined && { model }), ...usage };
}

function texts(content: unknown): object[] {
  if (typeof content === "string") return content ? [{ type: "text", text: content }] : [];
  if (!Array.isArray(content)) return [];
  const parts = content as ({ type?: string; text?: unknown } | null)[];
  return parts.flatMap((p) => (p?.type === "text" && typeof p.text === "string" ? [{ type: "text", text: p.text }] : []));
}
