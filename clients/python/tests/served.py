"""A real `coppice serve`, a proxy before it that cuts connections, and a server with answers of the test."""
from __future__ import annotations

import atexit
import contextlib
import faulthandler
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import sys
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Callable

LIMIT = 300.0  # seconds of a test; the longest takes 30 on two idle cores
ROOT = Path(__file__).resolve().parents[3]
_built: str | None = None
_running: set[subprocess.Popen[str]] = set()  # servers


def coppice() -> str:
    """Return the command: COPPICE_BIN, or one that is built here, once."""
    global _built
    if _built is None:
        _built = os.environ.get("COPPICE_BIN")
    if not _built:
        folder = tempfile.mkdtemp(prefix="coppice-bin-")
        atexit.register(shutil.rmtree, folder, True)
        _built = str(Path(folder) / "coppice")
        subprocess.run(["go", "build", "-o", _built, "./cmd/coppice"], cwd=ROOT, check=True)
    return _built


class Server:
    """A server on a store of its own."""

    def __init__(self, folder: str, *flags: str) -> None:
        self._flags, self._folder, self._addr = flags, folder, "127.0.0.1:0"
        self.store = f"{folder}/store"
        self.start()

    def start(self) -> None:
        """Start it; again at its old address. The port may be in use for a moment: then it is tried again."""
        for _ in range(50):
            with open(f"{self._folder}/log", "a") as log:
                self._process = subprocess.Popen(
                    [coppice(), "serve", "--store", self.store, "--addr", self._addr, *self._flags],
                    stdout=subprocess.PIPE, stderr=log, text=True,
                    env={**os.environ, "COPPICE_STATE": f"{self._folder}/state", "COPPICE_HISTORY": "off"},
                )
            _running.add(self._process)
            assert self._process.stdout
            line = ""
            for line in self._process.stdout:
                if line.startswith("serving "):
                    break
            if line.startswith("serving "):
                self.url = line.split()[1]
                self._addr = self.url.split("//")[1].split("/")[0]
                return
            self._process.wait()
            self._end()
        raise AssertionError(Path(f"{self._folder}/log").read_text())

    @property
    def port(self) -> int:
        return int(self._addr.rsplit(":", 1)[1])

    def kill(self) -> None:
        """End it with SIGKILL."""
        self._process.kill()
        self._process.wait()
        self._end()

    def stop(self) -> None:
        """End it with SIGTERM."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._end()

    def _end(self) -> None:
        _running.discard(self._process)
        assert self._process.stdout
        self._process.stdout.close()


Reply = tuple[int, dict[str, str], bytes]


class Canned:
    """An HTTP server with the answers that reply(method, path) returns."""

    def __init__(self, reply: Callable[[str, str], Reply]) -> None:
        canned = self
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self._open: list[socket.socket] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                canned._open.append(self.connection)

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                canned.requests.append((self.command, self.path, dict(self.headers), body))
                status, headers, body = reply(self.command, self.path)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if headers.get("Transfer-Encoding") == "chunked":
                    body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
                else:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = False  # they are joined
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]  # of a client that leaves
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        for conn in self._open:
            with contextlib.suppress(OSError):
                conn.shutdown(socket.SHUT_RDWR)
        self._server.server_close()


class Case(unittest.TestCase):
    """A test with servers that end with it, and a time limit."""

    def run(self, result: unittest.TestResult | None = None) -> unittest.TestResult | None:
        timer = threading.Timer(LIMIT, self._expired)
        timer.start()
        try:
            return super().run(result)
        finally:
            timer.cancel()
            timer.join()

    def _expired(self) -> None:
        """End the run: a waiting test cannot be interrupted from another thread."""
        print(f"{self.id()}: not done after {LIMIT} s", file=sys.stderr, flush=True)
        faulthandler.dump_traceback()
        for process in list(_running):
            process.kill()
            process.wait(10)
        os._exit(1)

    def folder(self) -> str:
        folder = tempfile.mkdtemp(prefix="coppice-py-")
        self.addCleanup(shutil.rmtree, folder, True)
        return folder

    def serve(self, *flags: str) -> Server:
        server = Server(self.folder(), *flags)
        self.addCleanup(server.stop)
        return server

    def answer(self, reply: Callable[[str, str], Reply]) -> Canned:
        canned = Canned(reply)
        self.addCleanup(canned.close)
        return canned


class Proxy:
    """A TCP proxy that cuts connections after rule(n, request) bytes of the answer to request n (from 0).

    None = not at all; 0 = after the server has answered, so that the request is done; -1 = before it is sent.
    """

    def __init__(self, port: int, rule: Any) -> None:
        self._port, self._rule, self.requests = port, rule, list[bytes]()
        self.after: Any = None  # is called before a connection is cut
        self._lock, self._open = threading.Lock(), set[socket.socket]()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(client,))
            with self._lock:
                self._threads.append(thread)
                self._open.add(client)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        """Pass one request after another. Answers are read as bytes arrive: it ends a connection after each request."""
        try:
            with client:
                head = b""
                while b"\r\n\r\n" not in head:
                    piece = client.recv(65536)
                    if not piece:
                        return
                    head += piece
                top, _, body = head.partition(b"\r\n\r\n")
                length = next((int(line.split(b":")[1]) for line in top.split(b"\r\n")
                               if line.lower().startswith(b"content-length:")), 0)
                while len(body) < length:
                    body += client.recv(65536)
                with self._lock:
                    self.requests.append(top)
                    cut = self._rule(len(self.requests) - 1, top)
                if cut == -1:
                    return
                with socket.create_connection(("127.0.0.1", self._port)) as server:
                    with self._lock:
                        self._open.add(server)
                    server.sendall(top + b"\r\nConnection: close\r\n\r\n" + body)
                    sent = 0
                    while piece := server.recv(65536):
                        if cut is not None and sent + len(piece) >= cut:
                            if self.after:
                                self.after()
                            client.sendall(piece[:cut - sent])
                            return
                        client.sendall(piece)
                        sent += len(piece)
        except OSError:
            return

    def cut(self) -> None:
        """Cut all connections."""
        with self._lock:
            for conn in self._open:
                try:
                    conn.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            self._open.clear()

    def close(self) -> None:
        """End it, and join its threads."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join()
        self.cut()
        for thread in self._threads:
            thread.join()


def said(session: Any) -> list[str]:
    """Return the text of all messages of a session, on all branches, in the order in which they were stored."""
    return [e["message"]["content"] for e in session.entries("all") if e["type"] == "message"]
