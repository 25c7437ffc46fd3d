// A process of writers: each commits turns with a text of its own to the given sessions, one after the other, until
// standard input ends. It prints a line for each turn that was acknowledged, and fails if one was not.
//
//	node writer.mjs MODULE URL NAME WRITERS SEED SESSION...
import { pathToFileURL } from "node:url";

const [module, url, name, writers, seed, ...sessions] = process.argv.slice(2);
const { Conflict, OutcomeUnknown, Store } = await import(pathToFileURL(module).href);
const maxRounds = 20; // of one turn: each is as many tries as the store allows

let over = false;
process.stdin.on("end", () => (over = true)).resume();

/** Numbers below n that every run repeats. */
function numbers(seed) {
  return (n) => (seed = (seed * 48271) % 2147483647) % n;
}

/** Makes a write until it is acknowledged: as a branch if another writer was first, and again if it is not known. */
async function acknowledged(write) {
  for (let round = 1; ; round++) {
    try {
      return await write();
    } catch (e) {
      const next = e instanceof Conflict ? e.keepBoth : e instanceof OutcomeUnknown ? e.retry : undefined;
      if (!next || round === maxRounds) throw e;
      write = next;
    }
  }
}

async function write(who) {
  const store = new Store(url, { timeout: 1500 }), next = numbers(Number(seed) + who + 1);
  const handles = sessions.map((id) => store.session(id));
  for (let n = 0; !over; n++) {
    const session = handles[next(handles.length)], text = `${name}${who}.${n}`;
    if (!session.base) await session.resume();
    const base = next(8) ? { base: "*" } : {}; // else on what it has seen last, which is mostly an older commit
    const receipt = await acknowledged(() => session.commit([{ role: "user", content: text }], { ...base, state: { text } }));
    const { commit, repeated = false, kept = "" } = receipt;
    console.log(JSON.stringify({ session: session.id, text, commit, repeated, kept }));
  }
}

await Promise.all(Array.from({ length: Number(writers) }, (_, who) => write(who)));
