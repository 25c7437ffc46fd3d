"""Tokens, tenants, TLS, and a server that only reads."""
from __future__ import annotations

import hashlib
import shutil
import ssl
import subprocess
import unittest

from coppice_client import Forbidden, Limits, Store, Unauthorized, Unavailable
from tests.served import Case, Server

ONCE = Limits(attempts=1)


class SecurityTest(Case):
    def tokens(self, *lines: tuple[str, str, str]) -> str:
        path = f"{self.folder()}/tokens"
        with open(path, "w") as file:
            for token, tenant, rights in lines:
                file.write(f"{hashlib.sha256(token.encode()).hexdigest()} {tenant} {rights}\n")
        return path

    def test_tenants_see_their_own_sessions(self) -> None:
        file = self.tokens(("ours", "acme", "read,write"), ("theirs", "other", "read,write"), ("eyes", "acme", "read"))
        url = self.serve("--tenants", "--token-file", file).url
        with Store(url, token="ours", tenant="acme") as acme, Store(url, token="theirs", tenant="other") as other:
            acme.create("x").commit([{"role": "user", "content": "a"}])
            other.create("y")
            self.assertEqual([s["id"] for s in acme.sessions()], ["x"])
            self.assertEqual([s["id"] for s in other.sessions()], ["y"])
        for token, tenant, kind in (("theirs", "acme", Forbidden), ("ours", "", Forbidden),
                                    ("none", "acme", Unauthorized), ("", "acme", Unauthorized)):
            with Store(url, token=token, tenant=tenant) as store:
                self.assertRaises(kind, store.session("x").resume)
                with self.assertRaises(kind) as caught:
                    store.create("z")
                self.assertEqual(caught.exception.outcome, "not-applied")
        with Store(url, token="eyes", tenant="acme") as reader:
            session = reader.session("x")
            self.assertEqual(len(session.resume().context), 1)
            self.assertRaises(Forbidden, session.commit)
            self.assertRaises(Forbidden, session.switch, "main")

    def test_a_server_that_only_reads(self) -> None:
        folder = self.folder()
        server = Server(folder)
        with Store(server.url) as store:
            store.create("x")
        server.stop()
        server = Server(folder, "--read-only")
        self.addCleanup(server.stop)
        with Store(server.url) as store:
            session = store.session("x")
            session.resume()
            with self.assertRaises(Forbidden) as caught:
                session.commit()
            self.assertEqual(caught.exception.code, "read-only")

    @unittest.skipUnless(shutil.which("openssl"), "no openssl")
    def test_tls(self) -> None:
        folder = self.folder()
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
             "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{folder}/key.pem",
             "-out", f"{folder}/cert.pem"], check=True, capture_output=True)
        url = self.serve("--tls-cert", f"{folder}/cert.pem", "--tls-key", f"{folder}/key.pem", "--token-file",
                         self.tokens(("t", "-", "read,write"))).url
        self.assertTrue(url.startswith("https://"))
        with Store(url, token="t", tls=ssl.create_default_context(cafile=f"{folder}/cert.pem")) as store:
            session = store.create("x")
            session.commit([{"role": "user", "content": "a"}])
            follow = session.follow(after=0)
            self.assertEqual(next(follow).data["seq"], 1)
            follow.close()
        with Store(url, token="t", limits=ONCE) as store, self.assertRaisesRegex(Unavailable, "certificate"):
            store.health()
