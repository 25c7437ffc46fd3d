// The published package: the files, and that they need only what every runtime has.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { limit, test } from "./limit.js";
import { here, Service } from "./service.js";

test("the library uses no module of Node, and no global that only Node has", () => {
  for (const name of readdirSync(join(here, "dist"), { recursive: true, encoding: "utf8" }).filter((f) => f.endsWith(".js"))) {
    const text = readFileSync(join(here, "dist", name), "utf8");
    for (const [, from] of text.matchAll(/(?<!")\b(?:from|import)\s*\(?"([^"]+)"/g)) assert.match(from!, /^\.\.?\//, name);
    assert.doesNotMatch(text, /\b(process|Buffer|require|globalThis\.process|setImmediate)\b[.(]/, name);
  }
});

test("the bundle for browsers is one file of the size that the README has, and a client", async (t) => {
  const file = join(here, "dist/coppice-client.min.js"), bundle = readFileSync(file);
  assert.ok(!/(^|[;}])import\s*["{*]|[}*]\s*from\s*"/.test(bundle.toString()), "it imports something");
  const kb = (bytes: number) => (bytes / 1000).toFixed(0);
  const size = `${kb(bundle.length)} KB, ${kb(gzipSync(bundle, { level: 9 }).length)} KB compressed`;
  assert.ok(readFileSync(join(here, "README.md"), "utf8").includes(size), `the README does not have ${size}`);
  const { Store } = (await import(pathToFileURL(file).href)) as typeof import("coppice-client");
  const session = await new Store((await Service.start(t)).url).create("s");
  await session.commit([{ role: "user", content: "hello" }], { state: 1 });
  assert.deepEqual((await session.resume()).state, 1);
});

test("every test has a time limit: that of limit.ts", () => {
  const sources = join(here, "test"), tests = readdirSync(sources).filter((name) => name.endsWith(".test.ts"));
  for (const name of tests) assert.match(readFileSync(join(sources, name), "utf8"), /^import \{.*\btest\b.*\} from "\.\/limit\.js";$/m, name);
  for (const name of tests) assert.doesNotMatch(readFileSync(join(sources, name), "utf8"), /^import \{.*\b(test|it|suite|describe|before)\b.*\} from "node:test"/m, name);
});

test("the package has the library, its types, README and licence, and no dependencies", () => {
  const env = { ...process.env, npm_config_ignore_scripts: "true" };
  const [pack] = JSON.parse(execFileSync("npm", ["pack", "--dry-run", "--json"], { cwd: here, env, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], timeout: limit }));
  const files = (pack.files as { path: string }[]).map((f) => f.path);
  for (const f of ["dist/index.js", "dist/index.d.ts", "README.md", "LICENSE", "package.json"]) assert.ok(files.includes(f), f);
  assert.deepEqual(files.filter((f) => !/^(dist\/|README.md$|LICENSE$|package.json$)/.test(f)), []);
  const manifest = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
  assert.deepEqual([manifest.dependencies, manifest.peerDependencies, manifest.license], [undefined, undefined, "Apache-2.0"]);
  for (const version of Object.values(manifest.devDependencies as object)) assert.match(version, /^\d+\.\d+\.\d+$/);
  const lock = readFileSync(join(here, "package-lock.json"), "utf8");
  assert.doesNotMatch(lock, /"resolved"/);
});
