// The agent over LangGraph with its SQLite checkpointer.
import { Annotation, END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { model, tool, watched } from "./world.mjs";

const State = Annotation.Root({
  ...MessagesAnnotation.spec, asked: Annotation(), turns: Annotation(), tools: Annotation(),
});

function ask(state) {
  const { text, call } = model(state.messages.map(m => ({ role: m.getType(), content: m.content })));
  if (call) return { messages: [new AIMessage({ content: "", tool_calls: [{ ...call, type: "tool_call" }] })] };
  return { messages: [new AIMessage(text)], turns: (state.turns ?? 0) + 1 };
}

function run(state) {
  const calls = state.messages.at(-1).tool_calls;
  return {
    messages: calls.map(c => new ToolMessage({ content: tool(c.name, c.args), tool_call_id: c.id, name: c.name })),
    tools: (state.tools ?? 0) + calls.length,
  };
}

const graph = new StateGraph(State)
  .addNode("ask", ask).addNode("run", run)
  .addEdge(START, "ask").addEdge("run", "ask")
  .addConditionalEdges("ask", s => s.messages.at(-1).tool_calls?.length ? "run" : END);

export async function work(file, id, prompts) {
  const checkpointer = watched(SqliteSaver.fromConnString(file), "put", "putWrites");
  const app = graph.compile({ checkpointer });
  const config = { configurable: { thread_id: id }, durability: "sync" };
  for (;;) {
    const { values, tasks } = await app.getState(config);
    const asked = values.asked ?? 0;
    if (tasks.length) await app.invoke(null, config); // a process died in the middle; `next` does not always say so
    else if (asked < prompts.length) {
      await app.invoke({ messages: [new HumanMessage(prompts[asked])], asked: asked + 1 }, config);
    } else return summary(values);
  }
}

function summary(values) {
  const count = f => values.messages.filter(f).length;
  return {
    asked: count(m => m.getType() === "human"),
    answered: count(m => m.getType() === "ai" && !m.tool_calls.length),
    calls: count(m => m.tool_calls?.length),
    results: count(m => m.getType() === "tool"),
    tools: values.tools,
  };
}
