// LangGraph's own suite: 718 cases, and 8 for channels that are stored as deltas. The second run has a new saver for each
// call, which knows nothing of the calls before.
import { randomUUID } from "node:crypto";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { deltaChannelHistoryTests, validate } from "@langchain/langgraph-checkpoint-validation";
import { afterAll, beforeAll } from "vitest";
import { Service } from "../../../clients/typescript/test/service.ts";
import { CoppiceSaver } from "../src/index.ts";

let url = "";
const ends: (() => Promise<void>)[] = [];
beforeAll(async () => {
  const after = (end: () => Promise<void>) => void ends.push(end);
  url = (await Service.start({ after } as unknown as Parameters<typeof Service.start>[0])).url;
});
afterAll(async () => { for (const end of ends) await end(); });

/** A saver that makes each call as another process would. */
function forgetful(scope: string): BaseCheckpointSaver {
  return new Proxy(new CoppiceSaver(url, { scope }), {
    get: (target, name) => {
      const value = Reflect.get(target, name) as unknown;
      return typeof value === "function" ? value.bind(new CoppiceSaver(url, { scope })) : value;
    },
  });
}
const inits = [
  { checkpointerName: "coppice", createCheckpointer: () => new CoppiceSaver(url, { scope: randomUUID() }) as BaseCheckpointSaver },
  { checkpointerName: "coppice, a saver for each call", createCheckpointer: () => forgetful(randomUUID()) },
];
for (const init of inits) {
  validate(init);
  deltaChannelHistoryTests(init);
}
