// Two processes in one: B does a whole turn while A waits for its model. What does the thread hold afterwards?
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { AIMessage, HumanMessage } from "@langchain/core/messages";

const dir = mkdtempSync(join(tmpdir(), "compare-"));
const config = { configurable: { thread_id: "t" }, durability: "sync" };

function agent(name, meanwhile) {
  const ask = async () => {
    await meanwhile();
    return { messages: [new AIMessage(`answer of ${name}`)] };
  };
  const graph = new StateGraph(MessagesAnnotation).addNode("ask", ask).addEdge(START, "ask").addEdge("ask", END);
  const app = graph.compile({ checkpointer: SqliteSaver.fromConnString(join(dir, "store")) });
  return { ask: text => app.invoke({ messages: [new HumanMessage(text)] }, config), state: () => app.getState(config) };
}

const b = agent("B", () => {});
await b.ask("before");
const a = agent("A", () => b.ask("of B"));
await a.ask("of A");
const { values } = await b.state();
console.log("langgraph: no error;", values.messages.map(m => m.content));
rmSync(dir, { recursive: true });
