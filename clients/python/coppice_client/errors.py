"""What can go wrong, what that means for the data, and what to do next."""
from __future__ import annotations

import json
from typing import Any, Callable, Literal

from .schema import Commit, Committed


class CoppiceError(Exception):
    """A request that failed: status of HTTP (0 = no answer came), and code, detail and hint as in docs/http.md.

    problem is the whole answer; outcome says what happened to the data; pause is how many seconds the server asks for.
    """

    outcome: Literal["applied", "not-applied", "unknown"] = "not-applied"
    pause: float = 0.0

    def __init__(self, detail: str, code: str = "connection", status: int = 0, problem: Any = None) -> None:
        self.detail, self.code, self.status, self.problem = detail, code, status, problem or {}
        self.hint = str(self.problem.get("hint", ""))
        super().__init__(f"{code}: {detail}" + (f" ({self.hint})" if self.hint else ""))

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed later: an error of the connection, of a proxy, or of a busy server."""
        return (self.status in (0, 408, 429, 502, 503, 504) or self.code == "in-flight"
                or self.status == 500 and not self.problem)

    def as_kind(self, kind: type[CoppiceError]) -> CoppiceError:
        """Return the same error of a class that says what it means for the request."""
        made = kind(self.detail, self.code, self.status, self.problem)
        made.pause, made.__cause__ = self.pause, self
        return made


class Unauthorized(CoppiceError):
    """The token is missing or not known."""


class Forbidden(CoppiceError):
    """The token, the tenant or the server does not allow it: code is "permission" or "read-only"."""


class NotFound(CoppiceError):
    """There is no such session, entry or commit, or the session was deleted."""


class Exists(CoppiceError):
    """The id of a new session is taken, or was once (code "deleted")."""


class Fenced(CoppiceError):
    """Another client claimed the session. Nothing was stored, and this process should stop writing to it."""


class KeyReused(CoppiceError):
    """The idempotency key is that of a commit with other content. Nothing was stored."""


class Unavailable(CoppiceError):
    """The server could not be reached within the limits. Nothing was stored."""


class OutcomeUnknown(CoppiceError):
    """A write was sent, and its outcome could not be learned within the limits.

    again() sends a commit once more with its key, so that it is stored at most once; another process does the same by
    commit(..., key=key, base=base) with the same content. Of a move, key is "": resume, and look.
    """

    outcome = "unknown"
    key = base = ""
    again: Callable[[], Committed]


class Conflict(CoppiceError):
    """Another writer was first, and nothing was stored. problem["entries"] are the entries since the base.

    keep_both() of a commit stores it as a branch beside the winner: once, however often it is called, as its key is
    made from that of the commit. kept is the receipt of that.
    """

    kept: Committed | None = None
    keep_both: Callable[[], Committed]

    @property
    def winner(self) -> Commit | None:
        """The newest commit."""
        return self.problem.get("winner")


_KINDS: dict[str | int, type[CoppiceError]] = {
    "conflict": Conflict, "exists": Exists, "deleted": Exists, "fenced": Fenced, "key-reused": KeyReused,
    401: Unauthorized, 403: Forbidden, 404: NotFound, 412: Conflict,
}


def error_of(status: int, text: bytes, pause: str) -> CoppiceError:
    """Return the error that an answer reports: one of the server, or of a proxy before it."""
    try:
        problem = json.loads(text)
        code, detail = str(problem["code"]), str(problem["detail"])
    except (ValueError, KeyError, TypeError):
        problem, code, detail = {}, "failed", f"HTTP status {status}"
    failed = (_KINDS.get(code) or _KINDS.get(status) or CoppiceError)(detail, code, status, problem)
    failed.outcome = "not-applied" if status < 500 or code in ("busy", "in-doubt", "no-space") else "unknown"
    failed.pause = float(pause) if pause.isdecimal() else 0.0
    return failed
