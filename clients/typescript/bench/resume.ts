// The cost of the client's resume compared with a bare fetch of the same bytes, on a session of 50 messages of 400 bytes
// and on one of 500. The two are measured alternately, in one process, against one server; printed are medians and the
// median of the ratios.
import { performance } from "node:perf_hooks";
import { Store } from "coppice-client";
import { Service } from "../test/service.js";

const rounds = 300, warm = 50;
const ends: (() => unknown)[] = [];
const service = await Service.start({ after: (f: () => unknown) => ends.push(f) } as never);
const median = (list: number[]): number => list.sort((a, b) => a - b)[list.length >> 1]!;
const timed = async (f: () => Promise<unknown>): Promise<number> => {
  const began = performance.now();
  await f();
  return (performance.now() - began) * 1000;
};

for (const messages of [50, 500]) {
  const s = await new Store(service.url).create();
  await s.commit(Array.from({ length: messages }, (_, i) => ({ role: i % 2 ? "assistant" : "user", content: `${i} `.padEnd(360, "x") })), { state: { i: 1 } });
  const url = `${service.url}/v1/sessions/${s.id}/resume`, bytes = (await (await fetch(url)).arrayBuffer()).byteLength;
  const bare = async (): Promise<void> => void (await (await fetch(url)).arrayBuffer());
  const resume = async (): Promise<void> => void (await s.resume()).context.length;
  const sides: [number[], number[]] = [[], []], ratios: number[] = [];
  for (let i = -warm; i < rounds; i++) {
    const first = i & 1, took = [0, 0]; // each is first in every other round
    for (const side of [first, 1 - first]) took[side] = await timed(side ? resume : bare);
    if (i >= 0) for (const side of [0, 1] as const) sides[side].push(took[side]!);
    if (i >= 0) ratios.push(took[1]! / took[0]!);
  }
  console.log(`resume of ${messages} messages, ${bytes} bytes: bare fetch ${median(sides[0]).toFixed(0)} us, client ${median(sides[1]).toFixed(0)} us, ` +
    `median ratio ${median(ratios).toFixed(2)} of ${rounds} pairs`);
}
for (const end of ends) await end();
