import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));

export default defineConfig({
  resolve: { alias: { "coppice-client": path("../clients/typescript/dist/index.js") } },
  test: {
    include: [process.env["BENCH"] ? "bench/*.ts" : "*/test/*.test.ts"],
    env: { COPPICE_BIN: process.env["COPPICE_BIN"] ?? path("../bin/coppice") },
    globals: true, // a suite of a framework expects it
    testTimeout: 120_000, // it only ends a hang
    hookTimeout: 120_000,
    server: { deps: { inline: [/langgraph-checkpoint/] } },
  },
});
