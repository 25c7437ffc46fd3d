// examples/chat-ui in a browser: what a person edits and switches to is there after a reload.
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { build, preview, type InlineConfig } from "vite";
import { Page } from "../../harness/chromium.ts";
import { root } from "../../harness/packages.mjs";
import { Counted, serve } from "../../harness/service.ts";

const example = fileURLToPath(new URL("../../../examples/chat-ui", import.meta.url));
const missing = (() => {
  try {
    execFileSync(process.env["CHROMIUM"] ?? "chromium", ["--version"], { stdio: "ignore" });
    return false;
  } catch {
    return process.env["REQUIRE_CHROMIUM"] !== "1";
  }
})();

/** Builds the page, and serves it with the service behind it. */
async function show(service: string): Promise<string> {
  const config: InlineConfig = {
    configFile: false, root: example, logLevel: "error", mode: "development",
    build: { outDir: `${root}/build/chat-ui`, emptyOutDir: true, minify: false },
    resolve: { alias: { "coppice-chat": `${root}/chat/dist/chat/src/index.js`, "coppice-client": `${root}/../clients/typescript/dist/index.js` } },
    plugins: [{
      name: "packages", enforce: "pre", // are not installed in the folder of the example
      resolveId(id, from) { return from?.startsWith(example) && /^[@\w]/.test(id) ? this.resolve(id, `${root}/index.js`) : null; },
    }],
  };
  await build(config);
  const server = await preview({ ...config, preview: { port: 0, host: "127.0.0.1", proxy: { "/v1": service } } });
  onTestFinished(() => server.close());
  return server.resolvedUrls!.local[0]!;
}

test.skipIf(missing)("edit, switch, reload: the page shows the same version", async () => {
  const { url } = await serve(), page = await Page.open(await show(url));
  const session = new Counted(url).store.session("chat-first");
  const view = () => page.value("document.querySelector('#chat ol').innerText") as Promise<string>;
  const stored = async () => {
    const last = (await page.value("[...document.querySelectorAll('li')].at(-1).dataset.id")) as string;
    await expect.poll(async () => (await session.info()).head, { timeout: 60_000 }).toBe(last);
  };
  const say = async (label: string, text: string) => {
    const field = `document.querySelector('[aria-label="${label}"]')`;
    await page.until(field);
    await page.value(`${field}.focus(), ${field}.select()`);
    await page.type(text);
    await page.value(`${field}.form.requestSubmit()`);
    await page.until(`document.body.innerText.includes(${JSON.stringify(`You said: ${text}`)})`);
    await stored();
  };
  const press = (name: string) => page.value(`[...document.querySelectorAll('button')].find((b) => b.ariaLabel === "${name}" || b.innerText === "${name}").click()`);
  const reloaded = async () => {
    const before = await view();
    await page.reload();
    await page.until("!window.old && document.querySelectorAll('li').length");
    expect(await view()).toBe(before);
    return before;
  };
  await say("Say something", "Where to?");
  await press("Edit");
  await say("Edit the message", "Where not to?");
  expect(await reloaded()).toMatch(/Where not to\?[^]*2\/2[^]*You said: Where not to\?/);
  await press("Previous version");
  await page.until("document.body.innerText.includes('1/2')");
  await stored();
  expect(await reloaded()).toMatch(/Where to\?[^]*1\/2[^]*You said: Where to\?/);
  await say("Say something", "And when?"); // below the version that is shown
  expect(await reloaded()).toMatch(/1\/2[^]*You said: And when\?/);
  expect((await session.info()).entries).toBe(6);
});
