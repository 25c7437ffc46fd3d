// A process of the example's agent that kills itself before its nth external call: a request, the model, a word of
// it, or a tool. Between two calls nothing visible to others changes, so these are all the moments at which it can die.
// argv: URL, session, n (0 = never), file of the effects of the tool. It prints its calls.
import { appendFileSync, writeSync } from "node:fs";
import { Store } from "coppice-client";
import { answer, fake, type World } from "../../../examples/typescript/agent.js";
import { quick } from "./service.js";

const [, , url, id, n, effects] = process.argv as [string, string, string, string, string, string];
let left = Number(n);
const meet = (what: string): void => {
  writeSync(1, `${what}\n`);
  if (--left === 0) process.kill(process.pid, "SIGKILL");
};
const counted: typeof fetch = async (input, init) => {
  meet(`${init?.method} ${new URL(String(input)).pathname.split("/").at(-1)}`);
  return fetch(input, init);
};
const world: World = {
  async model(messages, streamed) {
    meet("model");
    return fake.model(messages, (soFar) => (meet("word"), streamed(soFar)));
  },
  async tool(key, call) {
    meet("tool");
    appendFileSync(effects, `${key}\n`);
    return fake.tool(key, call);
  },
};
const store = new Store(url, { ...quick, fetch: counted });
while (await answer(store, id, ["list the files"], world));
