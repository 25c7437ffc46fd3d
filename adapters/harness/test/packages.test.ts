// Each package installs from its tarball in an empty folder, offline, and the example of its README runs there.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { packages, root } from "../packages.mjs";
import { serve } from "../service.ts";

const read = (path: string) => readFileSync(join(root, path), "utf8");
const npm = (cwd: string, ...args: string[]) => execFileSync("npm", args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
const pack = (from: string, to: string) => join(to, npm(from, "pack", "--silent", "--ignore-scripts", "--pack-destination", to).trim());
let client: string;
beforeAll(() => {
  mkdirSync(join(root, "build"), { recursive: true });
  client = pack(join(root, "../clients/typescript"), join(root, "build"));
});

test.each(packages)("%s installs offline in an empty folder, and its example runs", async (name) => {
  const dir = join(root, "build", name), manifest = JSON.parse(read(`${name}/package.json`));
  expect([manifest.license, manifest.dependencies]).toEqual(["Apache-2.0", { "coppice-client": "0.1.0" }]);
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, "package.json"), '{ "private": true, "type": "module" }');
  // What the framework is comes from the folder above: it is not ours to install.
  npm(dir, "install", "--offline", "--legacy-peer-deps", "--no-audit", "--no-fund", "--loglevel=error", client, pack(join(root, name), dir));
  const blocks = [...read(`${name}/README.md`).matchAll(/^```ts\n(.*?)^```$/gms)].map((m) => m[1]!);
  const program = blocks.join("\n"), says = [...program.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)].map((m) => m[1]!);
  expect(says.length).toBeGreaterThan(0);
  const { url } = await serve();
  writeFileSync(join(dir, "example.mjs"), program.replaceAll("http://127.0.0.1:7070", url));
  const printed = execFileSync(process.execPath, ["example.mjs"], { cwd: dir, encoding: "utf8", timeout: 60_000 });
  for (const line of says) expect(printed.split("\n")).toContain(line);
});

test("versions are exact, and the lock file names no registry", () => {
  for (const version of Object.values(JSON.parse(read("package.json")).devDependencies)) expect(version).toMatch(/^\d+\.\d+\.\d+$/);
  expect(read("package-lock.json")).not.toMatch(/"resolved": "http/);
});
