// Kills an agent at every place where it can die, has a second process finish the work, and counts what went wrong:
// node kill.mjs langgraph|openai
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const which = process.argv[2];

function process1(dir, kill) {
  const env = { ...process.env, KILL: String(kill), EFFECTS: join(dir, "effects") };
  const p = spawnSync(process.execPath, ["once.mjs", which, join(dir, "store")], { env, encoding: "utf8" });
  if (p.status !== 0 && p.signal !== "SIGKILL") throw new Error(p.stderr);
  return p.stdout;
}

function inFolder(f) {
  const dir = mkdtempSync(join(tmpdir(), "compare-"));
  try { return f(dir); } finally { rmSync(dir, { recursive: true }); }
}

const { steps } = JSON.parse(inFolder(dir => process1(dir, 0)));
const found = { "a prompt lost or doubled": 0, "a call without its result": 0, "state and messages differ": 0,
  "the model asked again": 0, "a tool run again": 0 };

for (let kill = 1; kill <= steps; kill++) inFolder(dir => {
  process1(dir, kill);
  const end = JSON.parse(process1(dir, 0));
  const used = readFileSync(join(dir, "effects"), "utf8").split("\n");
  const count = what => used.filter(w => w === what).length;
  found["a prompt lost or doubled"] += end.asked !== 2 || end.answered !== 2;
  found["a call without its result"] += end.calls !== end.results;
  found["state and messages differ"] += end.tools !== end.results;
  found["the model asked again"] += count("model") > 4;
  found["a tool run again"] += count("tool") > 2;
});
console.log(`${which}: killed at ${steps} places`);
console.table(found);
