// What is around the agent: a model and a tool that note each use, and the places where the process can die.
import { appendFileSync } from "node:fs";

let at = 0;
const kill = Number(process.env.KILL ?? 0);

// step is one such place; at that with the number KILL the process ends as if by kill -9.
export function step() {
  if (++at === kill) process.kill(process.pid, "SIGKILL");
}

export const steps = () => at;

// watched makes every call of these methods of a store two such places: before it and after it.
export function watched(store, ...methods) {
  for (const name of methods) {
    const call = store[name].bind(store);
    store[name] = async (...args) => {
      step();
      const result = await call(...args);
      step();
      return result;
    };
  }
  return store;
}

const note = what => appendFileSync(process.env.EFFECTS, what + "\n");

// model replaces a provider: a user's message makes it call a tool, a result makes it answer.
export function model(messages) {
  step();
  note("model");
  step();
  if (messages.at(-1).role === "tool") return { text: "There are two files." };
  return { call: { id: `call-${messages.length}`, name: "bash", args: { command: "ls" } } };
}

export function tool() {
  step();
  note("tool");
  step();
  return "go.mod\nmain.go";
}
