// Writes the licences of all packages whose code is in the bundles: node third-party.mjs OUT METAFILE...
// A package without a licence file, or with a licence that is not on the list, ends it with an error.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const allowed = ["MIT", "ISC", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "0BSD"];
const [out, ...metafiles] = process.argv.slice(2);
const dirs = new Set();
for (const file of metafiles) {
  for (const input of Object.keys(JSON.parse(readFileSync(file, "utf8")).inputs)) {
    const m = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input);
    if (m) dirs.add(m[1]);
  }
}
const packages = [...dirs].map((dir) => ({ dir, ...JSON.parse(readFileSync(join(dir, "package.json"), "utf8")) }))
  .sort((a, b) => (a.name < b.name ? -1 : 1));
const groups = new Map(); // licences that differ in the lines of their copyrights alone are written once
for (const p of packages) {
  if (!allowed.includes(p.license)) throw new Error(`${p.name}: licence ${p.license} is not allowed`);
  const file = readdirSync(p.dir).find((name) => /^licen[cs]e/i.test(name));
  const words = file && existsSync(join(p.dir, file)) ? readFileSync(join(p.dir, file), "utf8").trim() : `Licence: ${p.license}`;
  const lines = words.replaceAll("\r\n", "\n").split("\n");
  const own = (line) => /^\s*(?:copyright\b|\(c\))/i.test(line);
  const text = lines.filter((line) => !own(line)).join("\n").trim();
  const key = text.replace(/\s+/g, " ");
  const group = groups.get(key) ?? { text, names: [] };
  group.names.push([`${p.name} ${p.version} (${p.license})`, ...lines.filter(own).map((line) => `  ${line.trim()}`)].join("\n"));
  groups.set(key, group);
}
let text = "The viewer contains code of these packages.\n";
for (const { text: licence, names } of groups.values()) {
  text += `\n${"-".repeat(80)}\n${names.join("\n")}\n\n${licence}\n`;
}
writeFileSync(out, text);
