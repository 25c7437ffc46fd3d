// TLS, tokens and tenants. A child process trusts the certificate by NODE_EXTRA_CA_CERTS, which Node reads at its start.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Store, Unauthorized } from "coppice-client";
import { before, limit, test } from "./limit.js";
import { quick, Service, temporary } from "./service.js";

const dir = temporary(), cert = join(dir, "cert.pem"), key = join(dir, "key.pem"), tokens = join(dir, "tokens");
let service: Service;
before(async (t) => {
  const suite = t as never as { after(f: () => void): void };
  suite.after(() => rmSync(dir, { recursive: true, force: true }));
  execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-keyout", key,
    "-out", cert, "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"], { stdio: "ignore", timeout: limit });
  const line = (token: string, tenant: string, rights: string) => `${createHash("sha256").update(token).digest("hex")} ${tenant} ${rights}\n`;
  writeFileSync(tokens, line("all", "-", "read,write") + line("acme", "acme", "read,write,issue") + line("reader", "acme", "read"));
  service = await Service.start(t as never, ["--tenants", "--token-file", tokens, "--tls-cert", cert, "--tls-key", key]);
});

/** Runs a body in a process that trusts the certificate, with store(token, tenant); returns what it prints. */
function trusting(body: string): string {
  const script = `import { Store, Unauthorized, NotFound } from "coppice-client";
    const store = (token, tenant) => new Store(${JSON.stringify(service.url)}, { token, tenant, maxTries: 2 });
    const name = (p) => p.then(() => "done", (e) => e.name + " " + e.code);
    ${body}`;
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: cert };
  const r = spawnSync(process.execPath, ["--input-type=module", "-e", script], { env, encoding: "utf8", cwd: import.meta.dirname, timeout: limit });
  assert.equal(r.status, 0, r.stderr);
  return r.stdout.trim();
}

test("over TLS with a token, and only one's own tenant", () => {
  const out = trusting(`
    const s = await store("acme", "acme").create("s");
    await s.commit([{ role: "user", content: "hi" }]);
    for await (const e of s.follow({ after: 0 })) { console.log(e.type, e.seq); break; }
    console.log((await store("reader", "acme").session("s").resume()).seq);
    console.log(await name(store("reader", "acme").create("t")));
    console.log(await name(store("acme", "other").session("s").resume()));
    const { token } = await store("acme", "acme").issueToken({ session: "s", seconds: 60 });
    console.log((await store(token, "acme").session("s").resume()).seq);
    console.log(await name(store("all", "other").session("s").resume()));
    console.log(await name(store("wrong", "acme").session("s").resume()));
    console.log(await name(store(undefined, "acme").session("s").resume()));`);
  assert.deepEqual(out.split("\n"), ["commit 1", "1", "Forbidden permission", "Forbidden permission", "1", "NotFound not-found",
    "Unauthorized unauthorized", "Unauthorized unauthorized"]);
});

test("a certificate that is not trusted is not talked to", async () => {
  const s = new Store(service.url, { ...quick, token: "all", tenant: "acme", maxTries: 2 }).session("s");
  await assert.rejects(s.resume(), (e: Error) => !(e instanceof Unauthorized) && /self.signed/i.test(e.message));
});
