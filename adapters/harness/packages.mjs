// The adapters of this folder: those with a package.json.
import { readdirSync, existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("..", import.meta.url));
export const packages = readdirSync(root).filter((name) => name !== "node_modules" && existsSync(`${root}/${name}/package.json`));
