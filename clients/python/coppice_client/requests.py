"""Requests that are repeated until their outcome is known, within limits."""
from __future__ import annotations

import itertools
import json
import random
import threading
import time
import uuid
from dataclasses import dataclass
from typing import Any, Callable, Iterator
from urllib.parse import quote, urlencode

from .errors import CoppiceError, OutcomeUnknown, Unavailable, error_of
from .rawjson import UNSET, encode
from .transport import FAILURES, HTTP, Headers, NotSent


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


class Resource:
    """A path of the API, with the operations below it. shared is what a store shares with its sessions."""

    def __init__(self, shared: tuple[HTTP, dict[str, str], Limits, threading.Event], below: str) -> None:
        self._shared, self._below = shared, below
        self._transport, self._headers, self._limits, self._closing = shared

    def _path(self, *parts: str, **query: Any) -> str:
        sent = {k: str(v).lower() if isinstance(v, bool) else v for k, v in query.items() if v is not None}
        return "/".join([self._below, *(quote(p, safe="") for p in parts)]) + ("?" + urlencode(sent) if sent else "")

    def _attempts(self) -> Callable[[CoppiceError], None]:
        """Return what pauses after an attempt that failed, or raises its error if that was the last one."""
        limit, start, count = self._limits, self._limits.clock(), itertools.count()

        def again(failed: CoppiceError) -> None:
            made = next(count)  # half of the pause is random, so that clients do not meet again
            wait = max(failed.pause, min(limit.longest, limit.first * 2.0 ** min(made, 60)) * (0.5 + limit.draw() / 2))
            if made + 1 >= limit.attempts or limit.clock() - start + wait > limit.total or self._closing.is_set():
                raise failed
            (limit.sleep or self._closing.wait)(wait)
        return again

    def _send(
        self, method: str, path: str, body: Any = None, headers: Headers = {}, once: bool = False,
    ) -> tuple[bytes, str]:
        """Return body and ETag. It is repeated as it is; once: never. Members of None and UNSET are not sent."""
        sent, unknown, again = {**self._headers, **headers}, False, self._attempts()
        if isinstance(body, dict):
            body = encode({k: v for k, v in body.items() if v is not None and v is not UNSET}).encode()
            sent["Content-Type"] = "application/json"
        while True:
            try:
                status, header, text = self._transport.send(method, path, sent, body)
                if status < 300:
                    return text, header.get("etag", "").strip('"')
                failed = error_of(status, text, header.get("retry-after", ""))
            except FAILURES as e:
                failed = CoppiceError(f"{method} {path}: {e or type(e).__name__}")
                failed.outcome = "not-applied" if isinstance(e, NotSent) else "unknown"
            if not failed.passing:
                if unknown and failed.status not in (412, 422) and failed.code != "fenced":  # these looked for the key
                    failed.outcome = "unknown"
                raise failed
            unknown = method != "GET" and (unknown or failed.outcome == "unknown" or failed.code == "in-flight")
            failed = failed.as_kind(OutcomeUnknown if unknown else Unavailable)
            if once:
                raise failed
            again(failed)

    def text(self, *parts: str, **query: Any) -> str:
        """Return what GET of a path below this one answers: session.text("entries", ID) has all digits."""
        return self._bytes(*parts, **query).decode()

    def _bytes(self, *parts: str, **query: Any) -> bytes:
        return self._send("GET", self._path(*parts, **query))[0]

    def _json(self, *parts: str, **query: Any) -> Any:
        return json.loads(self._bytes(*parts, **query))

    def _pages(self, name: str, *parts: str, **query: Any) -> Iterator[Any]:
        page: dict[str, Any] = {"next": None}
        while "next" in page:
            page = self._json(*parts, **{**query, "after": page["next"]})
            yield from page[name]
            if "error" in page:  # reading failed after the answer had begun
                raise CoppiceError(page["error"]["message"], page["error"]["code"], 500, page["error"])


def new_id() -> str:
    """Return a UUIDv7: ids of later milliseconds are greater."""
    return str(uuid.UUID(int=int(time.time() * 1000) << 80 | 7 << 76 | uuid.uuid4().int & (1 << 76) - 1))
