"""The commits of a session as they come."""
from __future__ import annotations

import contextlib
import json
import socket
from typing import Any, Generator, Iterator, NamedTuple

from .errors import CoppiceError, Unavailable, error_of
from .requests import Resource
from .transport import FAILURES

MAX_LINE = 160 << 20  # bytes: a commit of 64 MiB, and its state patch


class Followed(NamedTuple):
    """What came: a commit (an Event), a partial (what is streamed, None = nothing) or a reset: resume again."""

    kind: str
    data: Any
    text: str  # data as text


class Follow(Iterator[Followed]):
    """The events of a session, without gap or repeat: it connects again when it is cut. One thread reads it.

    It ends after close(), which another thread may call. Unavailable: nothing came for as long as the limits allow.
    """

    def __init__(self, session: Resource, after: int, partial: bool) -> None:
        self._session, self._after, self._partial = session, after, partial
        self._seen, self._closed = after, False  # commits up to seen are not yielded again
        self._socket: socket.socket | None = None
        self._events = self._read()

    def __next__(self) -> Followed:
        return next(self._events)

    def _read(self) -> Generator[Followed, None, None]:
        again = self._session._attempts()
        while not self._closed:
            failed = CoppiceError("the stream ended")
            try:
                for e in self._connected():
                    again = self._session._attempts()
                    if e.kind == "commit" and e.data["seq"] > self._seen:
                        self._seen = self._after = e.data["seq"]
                    elif e.kind == "commit" or e.kind == "partial" and not self._partial:
                        continue
                    elif e.kind == "reset":
                        self._seen = -1
                    yield e
            except FAILURES as e:
                failed = CoppiceError(str(e) or type(e).__name__)
            except CoppiceError as e:
                failed = e
            if not failed.passing:
                raise failed
            if not self._closed:
                again(failed.as_kind(Unavailable))

    def _connected(self) -> Iterator[Followed]:
        """Yield the events of one connection. One that is cut in the middle is none."""
        sent = {**self._session._headers, "Accept": "text/event-stream", "Last-Event-ID": str(self._after)}
        conn, answer = self._session._transport.open("GET", self._session._path("events"), sent, None)
        with contextlib.closing(conn), contextlib.closing(answer):
            self._socket = conn.sock
            if answer.status != 200:
                raise error_of(answer.status, answer.read(), answer.headers.get("Retry-After", ""))
            fields: dict[str, str] = {}
            while not self._closed and (line := answer.readline(MAX_LINE)):
                if line == b"\n" and "event" in fields:
                    yield Followed(fields["event"], json.loads(fields["data"]), fields["data"])
                name, _, value = line.decode().rstrip("\n").partition(": ")
                fields = {**fields, name: value} if name else {}

    def close(self) -> None:
        """End the iteration, also while another thread waits for it."""
        self._closed = True
        with contextlib.suppress(OSError, AttributeError):  # it is closed, or was never open
            self._socket.shutdown(socket.SHUT_RDWR)  # type: ignore[union-attr]
        with contextlib.suppress(ValueError):  # another thread reads, and ends by itself
            self._events.close()
