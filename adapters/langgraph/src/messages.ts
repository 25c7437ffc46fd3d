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
  for (const call of m.tool_calls ?? []) content.push({ type: "toolCall", id: call.id ?? "", name: call.name, arguments: call.args });
  const model = m.response_metadata?.model_name ?? m.response_metadata?.model, { input_tokens, output_tokens } = m.usage_metadata ?? {};
  const usage = m.usage_metadata && { input: input_tokens ?? 0, output: output_tokens ?? 0, totalTokens: (input_tokens ?? 0) + (output_tokens ?? 0) };
  return { role, content, ...(model !== undefined && { model }), ...(usage && { usage }) };
}

function texts(content: unknown): object[] {
  if (typeof content === "string") return content ? [{ type: "text", text: content }] : [];
  if (!Array.isArray(content)) return [];
  return content.filter((part) => part?.type === "text" && typeof part.text === "string").map(({ text }) => ({ type: "text", text }));
}
