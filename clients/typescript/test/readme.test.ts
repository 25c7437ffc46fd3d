// The examples of README.md are one program, that of docs/http.md another: they are compiled, run, and print what their
// comments say.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { here, Service } from "./service.js";

for (const [name, page, least] of [["README", "README.md", 7], ["guide", "../../docs/http.md", 1]] as const) {
  test(`the examples of the ${name} run, and print what they say`, async (t) => {
    const service = await Service.start(t);
    const blocks = [...readFileSync(join(here, page), "utf8").matchAll(/^```ts\n(.*?)^```$/gms)].map((m) => m[1]!);
    assert.ok(blocks.length >= least);
    const shown = name === "guide" ? blocks.slice(0, 1) : blocks; // the rest is examples/typescript
    const program = shown.join("\n"), says = [...program.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)].map((m) => m[1]!.replace(/, with .*/, ""));
    const dir = join(here, "build", name), file = join(dir, "readme.mts"), out = join(dir, "out");
    mkdirSync(dir, { recursive: true });
    writeFileSync(file, program.replaceAll("http://127.0.0.1:7070", service.url));
    const config = { extends: "../../tsconfig.test.json", compilerOptions: { rootDir: ".", outDir: "out", noUnusedLocals: false, paths: { "coppice-client": ["../../dist/index.d.ts"] } }, include: ["readme.mts"] };
    writeFileSync(join(dir, "tsconfig.json"), JSON.stringify(config));
    execFileSync(process.execPath, [join(here, "node_modules/typescript/bin/tsc"), "-p", dir], { stdio: "inherit" });
    const printed = execFileSync(process.execPath, [join(out, "readme.mjs")], { encoding: "utf8" }).split("\n");
    for (const line of says) assert.ok(printed.includes(line), `${line} is not printed: ${printed.join("\n")}`);
    assert.ok(says.length > 0);
  });
}

test("the library has at most 500 lines, without blank ones", () => {
  const lines = readdirSync(join(here, "src"), { withFileTypes: true }).filter((f) => f.isFile())
    .flatMap((f) => readFileSync(join(here, "src", f.name), "utf8").split("\n")).filter((l) => l.trim());
  assert.ok(lines.length <= 500, `${lines.length} lines that are not blank`);
});
