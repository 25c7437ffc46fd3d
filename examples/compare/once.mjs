// One process of an agent: node once.mjs langgraph|openai FILE
import { steps } from "./world.mjs";

const [, , which, file] = process.argv;
const { work } = await import(`./${which}.mjs`);
const end = await work(file, "agent-1", ["list the files", "and again"]);
console.log(JSON.stringify({ ...end, steps: steps() }));
