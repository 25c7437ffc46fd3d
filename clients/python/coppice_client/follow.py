"""The commits of a session, as they are made."""
from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any, Generator, Iterator, NamedTuple

from .answers import error_of, media_type, no_answer
from .errors import CoppiceError, Unavailable
from .rawjson import parse, text_of
from .requests import Resource
from .transport import FAILURES, MAX_LINE, header_of


class Followed(NamedTuple):
    """A commit (an Event), a partial (the streamed output, None = none) or a reset: resume again."""

    kind: str
    data: Any
    text: str  # data as text


class Follow(Iterator[Followed]):
    """The events of a session, without gap or repeat: it connects again when it is cut. One thread reads it.

    It ends after close(), which another thread may call. Unavailable: the limits have passed since the stream was cut.
    """

    def __init__(self, session: Resource, after: int, partial: bool) -> None:
        self._session, self._after, self._partial = session, after, partial
        self._seen, self._closed = after, False  # commits up to seen are not yielded again
        self._socket: socket.socket | None = None
        self._events, self._reading = self._read(), threading.Lock()

    def __next__(self) -> Followed:
        if self._closed:  # close() may be ending the generator
            raise StopIteration
        with self._reading:
            return next(self._events)

    def _read(self) -> Generator[Followed, None, None]:
        again = self._session._attempts()
        while not self._closed:
            heard = False
            failed = CoppiceError("the stream ended")
            try:
                for event in self._connected():
                    heard = True
                    if event is not None:
                        yield event
            except FAILURES as e:
                failed = CoppiceError(str(e) or type(e).__name__)
            except CoppiceError as e:
                failed = e
            if not failed.passing:
                raise failed
            if heard:  # the limits are those of one interruption
                again = self._session._attempts()
            if not self._closed:
                again(failed.as_kind(Unavailable))

    def _connected(self) -> Iterator[Followed | None]:
        """Yield the new events of one connection; None = data arrived, but nothing to be yielded."""
        reset: Followed | None = None
        for id, event in self._blocks():
            if event is not None and event.kind == "reset":
                reset = event  # held until its id arrives, so that it is received again after a cut before that
            elif reset is not None:
                self._seen = id if event is None else -1
                self._after = max(self._seen, 0)
                yield reset
                reset = None
            if event is None or event.kind == "reset":
                yield None
            elif event.kind == "commit":
                yield self._commit(event)
            elif event.kind != "partial" or self._partial:
                yield event

    def _commit(self, event: Followed) -> Followed | None:
        """Return a new commit, and record its seq."""
        seq = event.data.get("seq") if isinstance(event.data, dict) else None
        if not isinstance(seq, int):
            raise no_answer("GET events", "a commit has no seq")
        if seq <= self._seen:
            return None
        self._seen = self._after = seq
        return event

    def _blocks(self) -> Iterator[tuple[int, Followed | None]]:
        """Yield the blocks of one connection, each an id (-1 = none) and an event (None = none), or both.

        A block that is cut is not yielded.
        """
        sent = {**self._session._headers, "Accept": "text/event-stream", "Last-Event-ID": str(self._after)}
        path = self._session._path("events")
        conn, answer = self._session._transport.open("GET", path, sent, None)
        with contextlib.closing(conn), contextlib.closing(answer):
            self._socket = conn.sock
            header = header_of(answer)
            if answer.status >= 400:
                raise error_of(f"GET {path}", answer.status, header, answer.read())
            if answer.status != 200 or media_type(header) != "text/event-stream":
                raise no_answer(f"GET {path}", f"HTTP status {answer.status}, content type {media_type(header)}")
            fields: dict[str, str] = {}
            while not self._closed and (line := answer.readline(MAX_LINE)):
                if line != b"\n":
                    name, _, value = text_of(line).rstrip("\n").partition(": ")
                    fields[name] = value
                    continue
                yield _block(fields)
                fields = {}

    def close(self) -> None:
        """End the iteration, also while another thread waits for it."""
        self._closed = True
        with contextlib.suppress(OSError, AttributeError):  # it is closed, or was never open
            self._socket.shutdown(socket.SHUT_RDWR)  # type: ignore[union-attr]
        if self._reading.acquire(blocking=False):  # otherwise another thread reads, and ends by itself
            try:
                self._events.close()
            finally:
                self._reading.release()


def _block(fields: dict[str, str]) -> tuple[int, Followed | None]:
    """Return id and event of a block of a stream."""
    try:
        id = int(fields.get("id", "-1"))
        if "event" not in fields:
            return id, None
        text = fields["data"]
        return id, Followed(fields["event"], parse(text), text)
    except (KeyError, ValueError) as e:
        raise no_answer("GET events", f"an event cannot be read: {e}") from None
