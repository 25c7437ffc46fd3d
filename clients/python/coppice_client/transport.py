"""HTTP/1.1 over connections that are kept alive."""
from __future__ import annotations

import contextlib
import http.client
import io
import re
import ssl
import time
from typing import Mapping, Tuple
from urllib.parse import urljoin, urlsplit

from .errors import InvalidArgument

MAX_IDLE, IDLE = 8, 60.0  # connections that are kept, and for how many seconds: half as long as the server keeps them
MAX_REDIRECTS = 5  # of one read
PIECE = 64 << 10  # bytes that are sent or read at a time
MAX_LINE = 160 << 20  # bytes: a commit of 64 MiB, and its state patch
FAILURES = (OSError, http.client.HTTPException)  # of a connection; the request may have arrived
Headers = Mapping[str, str]
Opened = Tuple[http.client.HTTPConnection, http.client.HTTPResponse]

_PORTS = {"http": 80, "https": 443}
_PRINTABLE = re.compile("[!-~]*")


class NotSent(OSError):
    """There was no connection, so that the server has not seen the request."""


def origin(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of a URL. ValueError: it has none that this client can reach."""
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname or not _PRINTABLE.fullmatch(parts.path + parts.query):
        raise ValueError("want http://HOST:PORT or https://HOST:PORT, and perhaps a path")
    return parts.scheme, parts.hostname, parts.port or _PORTS[parts.scheme]


class HTTP:
    """The transport to a base URL, which threads may share; timeout is in seconds without a byte. Errors: FAILURES."""

    def __init__(self, base_url: str, tls: ssl.SSLContext | None = None, timeout: float = 40.0) -> None:
        try:
            self._origin = origin(base_url)
            url = urlsplit(base_url)
            if url.query or url.fragment or url.username is not None:
                raise ValueError
        except ValueError:  # neither the address nor the cause, which may repeat a password
            raise InvalidArgument("base_url: want http(s)://HOST:PORT/PATH without user and query") from None
        self._base, self._prefix, self._timeout = base_url, url.path.rstrip("/"), timeout
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
        return answer.status, header_of(answer), text

    def open(self, method: str, path: str, headers: Headers, body: bytes | None) -> Opened:
        """Return an answer to be read, and its connection. A GET follows redirects within the origin, a write none."""
        target = self._prefix + path
        conn, answer = self._request(method, target, headers, body)
        for _ in range(MAX_REDIRECTS):
            moved = self._moved(target, answer) if method == "GET" else ""
            if not moved:
                break
            answer.close()
            conn.close()
            target = moved
            conn, answer = self._request(method, target, headers, body)
        return conn, answer

    def _moved(self, target: str, answer: http.client.HTTPResponse) -> str:
        """Return the path and the query that an answer redirects to; "" = it does not, or to another origin."""
        to = answer.headers.get("Location")
        if not to or answer.status not in (301, 302, 303, 307, 308):
            return ""
        try:
            to = urljoin(urljoin(self._base, target), to)
            if origin(to) != self._origin:
                return ""
        except ValueError:
            return ""
        url = urlsplit(to)
        return (url.path or "/") + (f"?{url.query}" if url.query else "")

    def _request(self, method: str, target: str, headers: Headers, body: bytes | None) -> Opened:
        conn = self._connect()
        try:
            if body is None:
                conn.request(method, target, headers=headers)
            else:  # in pieces, since the time-out of a socket bounds the time of each call of sendall
                conn.request(method, target, io.BytesIO(body), {**headers, "Content-Length": str(len(body))})
            answer = conn.getresponse()
            if answer.length is None and not answer.chunked:  # http.client accepts a truncated header
                raise http.client.IncompleteRead(b"")
            return conn, answer
        except BaseException:
            conn.close()
            raise

    def _connect(self) -> http.client.HTTPConnection:
        conn: http.client.HTTPConnection
        while self._idle:
            with contextlib.suppress(IndexError):  # another thread took the last one
                since, conn = self._idle.pop()
                if time.monotonic() - since < IDLE:
                    return conn
                conn.close()
        _, host, port = self._origin
        if self._tls:
            conn = http.client.HTTPSConnection(host, port, timeout=self._timeout, context=self._tls, blocksize=PIECE)
        else:
            conn = http.client.HTTPConnection(host, port, timeout=self._timeout, blocksize=PIECE)
        try:
            conn.connect()
        except OSError as e:
            conn.close()
            raise NotSent(f"connect to {host}: {e}") from e
        return conn

    def close(self) -> None:
        """Close the connections that no request uses."""
        while self._idle:
            self._idle.pop()[1].close()


def header_of(answer: http.client.HTTPResponse) -> Headers:
    """Return the header of an answer, with names in lower case."""
    return {name.lower(): value for name, value in answer.headers.items()}
