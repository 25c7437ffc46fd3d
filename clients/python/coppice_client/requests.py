"""Requests, repeated until their outcome is known, within limits."""
from __future__ import annotations

import contextlib
import itertools
import random
import re
import threading
import time
import uuid
from dataclasses import dataclass
from typing import Any, Callable, Generic, Iterator, TypeVar
from urllib.parse import quote, urlencode

from .answers import TEXTS, Answer, Want, error_of, media_type, no_answer
from .errors import CoppiceError, InvalidArgument, OutcomeUnknown, Unavailable
from .rawjson import UNSET, encode, parse, text_of
from .transport import FAILURES, HTTP, MAX_LINE, Headers, NotSent, Opened, header_of

T = TypeVar("T")
LINES = "application/x-ndjson"
_NONE: Headers = {}
_HEADER = re.compile(r"[!-~\xa0-\xff]([ -~\xa0-\xff]*[!-~\xa0-\xff])?")
_DOTS = re.compile(r"(\.|%2e){0,2}", re.IGNORECASE)

@dataclass(frozen=True)
class Limits:
    """How long requests are repeated. Times are in seconds; clock, draw (0 to 1) and sleep are for tests."""

    total: float = 120.0  # from the first attempt to the beginning of the last
    attempts: int = 40
    first: float = 0.05  # the pause after the first attempt; each further one is twice as long
    longest: float = 5.0
    clock: Callable[[], float] = time.monotonic
    draw: Callable[[], float] = random.random
    sleep: Callable[[float], object] | None = None  # default: a pause that Store.close ends


def segment(part: str) -> str:
    """Return a part of a path, quoted. InvalidArgument: it is not text, or changes the path when it is decoded."""
    try:
        if not _DOTS.fullmatch(part):
            return quote(part, safe="")
    except (TypeError, UnicodeEncodeError):
        pass
    raise InvalidArgument(f"{part!a:.200} is no id")


def check_header(name: str, value: str) -> None:
    """Raise InvalidArgument for a value that a header cannot contain."""
    if not isinstance(value, str) or not _HEADER.fullmatch(value):
        raise InvalidArgument(f"{name}: no header can carry this value: it is empty, begins or ends with a space, "
                              "or has a control character or one above U+00FF")


@dataclass(frozen=True)
class Page(Generic[T]):
    """A page of a list, the cursors of the pages around it ("" = there is none), and its ETag, a base for writes."""

    items: list[T]
    next: str
    prev: str
    etag: str


class Pages(Iterator[T]):
    """The items of a list: of all pages, or with limit="all" those of one answer, as it arrives."""

    def __init__(self, read: Callable[..., tuple[Page[T], CoppiceError | None]], lines: Iterator[T] | None) -> None:
        self._read, self._items = read, lines or self._all()

    def __next__(self) -> T:
        return next(self._items)

    def page(self, *, after: str = "", before: str = "") -> Page[T]:
        """Return one page: the first one, or that after or before a cursor of another one."""
        page, failed = self._read(after, before)
        if failed:
            raise failed
        return page

    def _all(self) -> Iterator[T]:
        after = ""
        while True:
            page, failed = self._read(after, "")
            yield from page.items
            if failed:  # reading failed after the answer had begun
                raise failed
            if not page.next:
                return
            if page.next == after:
                raise no_answer("a list", "a page is followed by itself")
            after = page.next


class Resource:
    """A path of the API, with the operations below it. shared is what a store shares with its sessions."""

    _named = ""  # the session that the answers name
    seen = ""  # the ETag of the last read: if that read the newest commit, a write can have it as its base

    def __init__(self, shared: tuple[HTTP, dict[str, str], Limits, threading.Event], below: str) -> None:
        self._shared, self._below = shared, below
        self._transport, self._headers, self._limits, self._closing = shared

    def _path(self, *parts: str, **query: Any) -> str:
        path = "/".join([self._below, *map(segment, parts)])
        sent = {k: str(v).lower() if isinstance(v, bool) else v for k, v in query.items() if v is not None}
        try:
            return f"{path}?{urlencode(sent)}" if sent else path
        except UnicodeEncodeError as e:
            raise InvalidArgument(f"a parameter is text: {e}") from None

    def _attempts(self) -> Callable[[CoppiceError], None]:
        """Return a function that pauses after a failed attempt, or raises its error if that was the last one."""
        limit, start, count = self._limits, self._limits.clock(), itertools.count()

        def again(failed: CoppiceError) -> None:
            made = next(count)  # half of the pause is random, so that clients do not retry at the same time
            wait = max(failed.pause, min(limit.longest, limit.first * 2.0 ** min(made, 60)) * (0.5 + limit.draw() / 2))
            if made + 1 >= limit.attempts or limit.clock() - start + wait > limit.total or self._closing.is_set():
                raise failed
            (limit.sleep or self._closing.wait)(wait)
        return again

    def _send(
        self, method: str, path: str, want: Want, body: Any = None, headers: Headers = _NONE, *, once: bool = False,
        writes: bool = True,
    ) -> Answer:
        """Return the answer to a request, which is repeated unchanged. once: it is not repeated.

        body is bytes or a dict, whose members None and UNSET are not sent.
        """
        request = f"{method} {path}"
        sent = {**self._headers, **headers}
        if isinstance(body, dict):
            body = encode({name: value for name, value in body.items() if value is not None and value is not UNSET})
            sent["Content-Type"] = "application/json"
        for name, value in sent.items():
            check_header(name, value)
        again = self._attempts()
        unknown = False  # whether an attempt may have been stored
        while True:
            try:
                return want.read(request, *self._transport.send(method, path, sent, body))
            except FAILURES as e:
                failed = CoppiceError(f"{request}: {e or type(e).__name__}")
                failed.outcome = "not-applied" if isinstance(e, NotSent) else "unknown"
            except CoppiceError as e:
                failed = e
            if failed.code == "answer" and writes:
                raise failed.as_kind(OutcomeUnknown)
            if not failed.passing:
                looked_for_key = failed.status == 412 or failed.code in ("fenced", "key-reused")
                if unknown and not looked_for_key:
                    failed.outcome = "unknown"
                raise failed
            unknown = writes and (unknown or failed.outcome == "unknown")
            failed = failed.as_kind(OutcomeUnknown if unknown else Unavailable)
            if once:
                raise failed
            again(failed)

    def text(self, *parts: str, **query: Any) -> str:
        """Return the answer to GET of a path below this one: session.text("entries", ID) has all digits."""
        return text_of(self._bytes(TEXTS, *parts, **query))

    def _bytes(self, types: tuple[str, ...], *parts: str, **query: Any) -> bytes:
        return self._read(Want(bytes, types), *parts, **query).body

    def _json(self, kind: type[T], *parts: str, **query: Any) -> T:
        value: T = self._read(Want(kind, session=self._named), *parts, **query).value
        return value

    def _read(self, want: Want, *parts: str, **query: Any) -> Answer:
        answer = self._send("GET", self._path(*parts, **query), want, writes=False)
        self.seen = answer.tag
        return answer

    def _pages(self, name: str, *parts: str, **query: Any) -> Pages[Any]:
        def read(after: str, before: str) -> tuple[Page[Any], CoppiceError | None]:
            cursors = {k: v for k, v in (("after", after), ("before", before)) if v}
            answer = self._read(Want(dict), *parts, **{**query, **cursors})
            page = answer.value
            if not isinstance(page.get(name), list):
                raise no_answer("/".join(parts), f"the body has no list {name}")
            failed = page.get("error")
            found = Page(page[name], page.get("next", ""), page.get("prev", ""), answer.tag)
            return found, failed and CoppiceError(failed["detail"], failed["code"], 500, failed)

        return Pages(read, self._lines(*parts, **query) if query.get("limit") == "all" else None)

    def _lines(self, *parts: str, **query: Any) -> Iterator[Any]:
        """Yield the items of a list of one answer, as they arrive. The request is repeated only before it has begun."""
        path = self._path(*parts, **query)
        request = f"GET {path}"
        conn, answer = self._begun(path, request)
        with contextlib.closing(conn), contextlib.closing(answer):
            while True:
                try:
                    line = text_of(answer.readline(MAX_LINE))
                except FAILURES as e:
                    raise CoppiceError(f"{request}: the answer was cut: {e}").as_kind(Unavailable) from None
                if not line and not answer.length:  # its Content-Length is used up
                    return
                if not line.endswith("\n"):
                    raise CoppiceError(f"{request}: the answer was cut").as_kind(Unavailable)
                item = parse(line)
                if line.startswith('{"error":') and len(item) == 1:
                    raise CoppiceError(item["error"]["detail"], item["error"]["code"], 500, item["error"])
                yield item

    def _begun(self, path: str, request: str) -> Opened:
        sent = {**self._headers, "Accept": LINES}
        again = self._attempts()
        while True:
            try:
                conn, answer = self._transport.open("GET", path, sent, None)
                if answer.status == 200 and media_type(header_of(answer)) == LINES:
                    return conn, answer
                with contextlib.closing(conn), contextlib.closing(answer):
                    if answer.status >= 400:
                        raise error_of(request, answer.status, header_of(answer), answer.read())
                    raise no_answer(request, f"HTTP status {answer.status}, no lines", answer.status)
            except FAILURES as e:
                failed = CoppiceError(f"{request}: {e or type(e).__name__}")
            except CoppiceError as e:
                if not e.passing:
                    raise
                failed = e
            again(failed.as_kind(Unavailable))


def new_id() -> str:
    """Return a UUIDv7: ids of later milliseconds are greater."""
    return str(uuid.UUID(int=int(time.time() * 1000) << 80 | 7 << 76 | uuid.uuid4().int & (1 << 76) - 1))
