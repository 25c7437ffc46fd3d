"""HTTP/1.1 over connections that are kept alive."""
from __future__ import annotations

import contextlib
import http.client
import ssl
import time
from typing import Mapping, Tuple
from urllib.parse import urlsplit

MAX_IDLE, IDLE = 8, 60.0  # connections that are kept, and for how many seconds: half as long as the server keeps them
FAILURES = (OSError, http.client.HTTPException)  # of a connection; what was sent may have arrived
Headers = Mapping[str, str]
Opened = Tuple[http.client.HTTPConnection, http.client.HTTPResponse]


class NotSent(OSError):
    """There was no connection, so that the server has not seen the request."""


class HTTP:
    """The transport to a base URL, which threads may share; timeout is in seconds without a byte. Errors: FAILURES."""

    def __init__(self, base_url: str, tls: ssl.SSLContext | None = None, timeout: float = 40.0) -> None:
        url = urlsplit(base_url)
        if url.scheme not in ("http", "https") or not url.hostname or url.query or url.username:
            raise ValueError(f"{base_url!r}: want http://HOST:PORT or https://HOST:PORT, and perhaps a path")
        self._host, self._port, self._prefix, self._timeout = url.hostname, url.port, url.path.rstrip("/"), timeout
        self._tls = tls or ssl.create_default_context() if url.scheme == "https" else None
        self._idle: list[tuple[float, http.client.HTTPConnection]] = []  # append and pop are atomic

    def send(self, method: str, path: str, headers: Headers, body: bytes | None) -> tuple[int, Headers, bytes]:
        """Return status, header (names in lower case) and body of the answer to a request. A test may have its own."""
        conn, answer = self.open(method, path, headers, body)
        text = answer.read()
        if answer.will_close or len(self._idle) >= MAX_IDLE:
            conn.close()
        else:
            self._idle.append((time.monotonic(), conn))
        return answer.status, {name.lower(): value for name, value in answer.headers.items()}, text

    def open(self, method: str, path: str, headers: Headers, body: bytes | None) -> Opened:
        """Return an answer to be read, and its connection."""
        conn = self._connect()
        try:
            conn.request(method, self._prefix + path, body, headers)
            answer = conn.getresponse()
            if answer.length is None and not answer.chunked:  # http.client takes a header that is cut as a whole one
                raise http.client.IncompleteRead(b"")
            return conn, answer
        except BaseException:
            conn.close()
            raise

    def _connect(self) -> http.client.HTTPConnection:
        while self._idle:
            with contextlib.suppress(IndexError):  # another thread took the last one
                since, conn = self._idle.pop()
                if time.monotonic() - since < IDLE:
                    return conn
                conn.close()
        conn = (http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._tls)
                if self._tls else http.client.HTTPConnection(self._host, self._port, timeout=self._timeout))
        try:
            conn.connect()
        except OSError as e:
            conn.close()
            raise NotSent(f"connect to {self._host}: {e}") from e
        return conn

    def close(self) -> None:
        """Close the connections that no request uses."""
        while self._idle:
            self._idle.pop()[1].close()
