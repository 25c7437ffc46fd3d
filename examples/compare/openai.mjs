// The agent over the OpenAI Agents SDK. Its JavaScript package has a session in memory and one at OpenAI; a session in
// a file is the program's own, and so is what it knows beside the messages.
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { Agent, Runner, Usage, setTracingDisabled, tool as define } from "@openai/agents-core";
import { model, tool, watched } from "./world.mjs";

setTracingDisabled(true);

class FileSession {
  constructor(file, id) { Object.assign(this, { file, id }); }
  async getSessionId() { return this.id; }
  async getItems(limit) {
    try { return JSON.parse(readFileSync(this.file)).slice(limit ? -limit : 0); } catch (e) {
      if (e.code === "ENOENT") return [];
      throw e;
    }
  }
  async save(items) {
    writeFileSync(`${this.file}.tmp`, JSON.stringify(items));
    renameSync(`${this.file}.tmp`, this.file);
  }
  async addItems(items) { await this.save([...await this.getItems(), ...items]); }
  async popItem() {
    const items = await this.getItems(), last = items.pop();
    await this.save(items);
    return last;
  }
  async clearSession() { await this.save([]); }
}

const fake = {
  async getResponse({ input }) {
    const { text, call } = model(input.map(i => ({ role: i.type === "function_call_result" ? "tool" : i.role })));
    const output = call
      ? { type: "function_call", callId: call.id, name: call.name, arguments: JSON.stringify(call.args), status: "completed" }
      : { type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text }] };
    return { usage: new Usage(), output: [output] };
  },
};

const agent = new Agent({
  name: "agent",
  model: fake,
  tools: [define({
    name: "bash", description: "runs a command", strict: false, execute: args => tool("bash", args),
    parameters: { type: "object", properties: { command: { type: "string" } }, required: [], additionalProperties: true },
  })],
});

export async function work(file, id, prompts) {
  const session = watched(new FileSession(file, id), "save");
  for (;;) {
    const items = await session.getItems();
    const answered = items.filter(i => i.role === "assistant").length;
    if (answered >= prompts.length) return summary(items);
    await new Runner().run(agent, prompts[answered], { session });
  }
}

function summary(items) {
  const count = f => items.filter(f).length;
  const results = count(i => i.type === "function_call_result");
  return {
    asked: count(i => i.role === "user"),
    answered: count(i => i.role === "assistant"),
    calls: count(i => i.type === "function_call"),
    results,
    tools: results,
  };
}
