// Compiles the packages, and checks the types of their tests.
import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { packages, root } from "./packages.mjs";

for (const name of packages) rmSync(`${root}/${name}/dist`, { recursive: true, force: true });
for (const config of [...packages, "tsconfig.test.json"]) {
  execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", config], { cwd: root, stdio: "inherit" });
}
