// The examples of README.md are one program, those of docs/http.md and of the project's README two others: they are
// compiled, run, and print what their comments have.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { limit, test } from "./limit.js";
import { here, Service } from "./service.js";

test("the examples of the READMEs and of the guide run, and print what their comments have", async (t) => {
  const service = await Service.start(t), dir = join(here, "build/readme");
  const blocks = (page: string) => [...readFileSync(join(here, page), "utf8").matchAll(/^```ts\n(.*?)^```$/gms)].map((m) => m[1]!);
  const readme = blocks("README.md"), guide = blocks("../../docs/http.md").slice(0, 1); // the rest is examples/typescript
  const project = blocks("../../README.md");
  assert.ok(readme.length >= 7 && guide.length === 1 && project.length === 1);
  assert.equal(project[0]!.trim().split("\n").length, 6);
  const programs = { readme: readme.join("\n"), guide: guide.join("\n"), project: project[0]! };
  mkdirSync(dir, { recursive: true });
  for (const [name, text] of Object.entries(programs)) writeFileSync(join(dir, `${name}.mts`), text.replaceAll("http://127.0.0.1:7070", service.url));
  const config = { extends: "../../tsconfig.test.json", compilerOptions: { rootDir: ".", outDir: "out", noUnusedLocals: false, paths: { "coppice-client": ["../../dist/index.d.ts"] } }, include: ["*.mts"] };
  writeFileSync(join(dir, "tsconfig.json"), JSON.stringify(config));
  execFileSync(process.execPath, [join(here, "node_modules/typescript/bin/tsc"), "-p", dir], { stdio: "inherit", timeout: limit });
  for (const [name, text] of Object.entries(programs)) {
    const says = [...text.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)].map((m) => m[1]!.replace(/, with .*/, ""));
    const printed = execFileSync(process.execPath, [join(dir, "out", `${name}.mjs`)], { encoding: "utf8", timeout: limit }).split("\n");
    for (const line of says) assert.ok(printed.includes(line), `${line} is not printed: ${printed.join("\n")}`);
    assert.ok(says.length >= { readme: 5, guide: 1, project: 0 }[name]!);
  }
});

test("the library has at most 960 lines, without blank ones", () => {
  const lines = readdirSync(join(here, "src"), { withFileTypes: true }).filter((f) => f.isFile())
    .flatMap((f) => readFileSync(join(here, "src", f.name), "utf8").split("\n")).filter((l) => l.trim());
  assert.ok(lines.length <= 960, `${lines.length} lines that are not blank`);
});
