// An agent that may lose its host at any moment: the next process resumes with one request, each call of a tool is durable
// before it runs, and messages and state are committed together. The model is a fake that streams.
//
//	coppice serve --store /tmp/store &
//	npm --prefix ../../clients/typescript ci && npm --prefix ../../clients/typescript run build && npm install
//	node agent.ts http://127.0.0.1:7070 agent-1
import { argv } from "node:process";
import { pathToFileURL } from "node:url";
import { Store, toolResult } from "coppice-client";

/** The agent's own state: with it each prompt is asked once and answered once, wherever a host stopped. */
export interface State { asked: number; answered: number }
export interface Call { type: "toolCall"; id: string; name: string; arguments: unknown }
export interface Reply { role: "assistant"; content: ({ type: "text"; text: string } | Call)[] }

/** The parts that differ between agents. The key identifies a call: a tool can use it to do its work once. */
export interface World {
  model(messages: unknown[], streamed: (soFar: Reply) => void): Promise<Reply>;
  tool(key: string, call: Call): Promise<string>;
}

// persistence: begin
/** Answers one prompt that no earlier process has answered; false = all are answered. */
export async function answer(store: Store, id: string, prompts: string[], { model, tool }: World): Promise<boolean> {
  const receipt = await store.session(id).turn<State>(async (t) => { // one request: state and context
    if (t.state.answered === prompts.length) return;
    if (t.state.asked === t.state.answered) t.append({ role: "user", content: prompts[t.state.asked++] });
    for (;;) {
      const reply = await model(t.messages, (soFar) => void t.session.partial(soFar));
      t.append(reply);
      const calls = reply.content.filter((block) => block.type === "toolCall");
      if (calls.length === 0) return void t.state.answered++;
      const { commit } = await t.commit({ reason: "intent" }); // durable before the first side effect
      for (const c of calls) t.append(toolResult(c.id, c.name, await tool(`${commit}/${c.id}`, c)));
    }
  }, { initial: { asked: 0, answered: 0 }, create: () => store.create(id) });
  return receipt !== undefined;
}
// persistence: end

/** Replaces a provider: a prompt makes it call a tool, a result makes it answer. */
export const fake: World = {
  async model(messages, streamed) {
    const last = messages.at(-1) as { role: string };
    const call: Call = { type: "toolCall", id: `call-${messages.length}`, name: "bash", arguments: { command: "ls" } };
    if (last.role !== "toolResult") return { role: "assistant", content: [call] };
    let text = "";
    for (const word of ["There ", "are ", "two."]) {
      text += word;
      streamed({ role: "assistant", content: [{ type: "text", text }] });
    }
    return { role: "assistant", content: [{ type: "text", text }] };
  },
  tool: async () => "go.mod\nmain.go",
};

if (import.meta.url === pathToFileURL(argv[1] ?? "").href) {
  const store = new Store(argv[2] ?? "http://127.0.0.1:7070");
  while (await answer(store, argv[3] ?? "agent-1", ["list the files", "and again"], fake)) console.log("a turn is stored");
}
