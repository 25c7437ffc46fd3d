"""The errors, with their meaning for the data and what to do next."""
from __future__ import annotations

from typing import Any, Literal

from .schema import Commit, Committed


class CoppiceError(Exception):
    """A request that failed: code, detail and hint are described in docs/http.md, problem is the whole answer.

    status 0 = there was no answer. outcome is the effect on the data. passing: it may succeed in pause seconds.
    """

    session: Any = None  # whose commit it was: with this body and key, made on this base
    body: dict[str, Any]
    key = base = ""
    format: str | None = None
    outcome: Literal["applied", "not-applied", "unknown"] = "not-applied"

    def __init__(self, detail: str, code: str = "unreachable", status: int = 0, problem: Any = None, pause: float = 0):
        self.detail, self.code, self.status, self.problem, self.pause = detail, code, status, problem or {}, pause
        self.hint = str(self.problem.get("hint", ""))
        self.passing = status in (408, 429, 502, 503, 504) or code in ("unreachable", "proxy")
        super().__init__(f"{code}: {detail}" + (f" ({self.hint})" if self.hint else ""))

    def as_kind(self, kind: type[CoppiceError]) -> CoppiceError:
        """Return the same error as one of another class."""
        return kind(self.detail, self.code, self.status, self.problem, self.pause)


class InvalidArgument(CoppiceError, ValueError):
    """A value, key, token, id or address that cannot be sent. Nothing was sent."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail, "usage")


class Unauthorized(CoppiceError):
    """The token is missing or unknown."""


class Forbidden(CoppiceError):
    """The token, the tenant or the server does not permit the request: code is "permission" or "read-only"."""


class NotFound(CoppiceError):
    """There is no such session, entry or commit."""


class Deleted(CoppiceError):
    """The session was deleted. Only a creation with again uses its id."""


class Exists(CoppiceError):
    """The id of a new session is taken."""


class KeyReused(CoppiceError):
    """The idempotency key belongs to a commit with other content. Nothing was stored."""


class Unavailable(CoppiceError):
    """The server could not be reached within the limits. Nothing was stored."""


class OutcomeUnknown(CoppiceError):
    """A write was sent, and its outcome is unknown within the limits. After a move: resume, and check."""

    outcome = "unknown"

    def retry(self) -> Committed:
        """Send the commit once more, as commit(..., key=key, base=base) does in another process: it is stored once.

        The session has to know the key: it remembers those of its last 1,024 commits that had one.
        """
        if self.session is None:
            raise InvalidArgument("retry sends a commit, and this write was none: resume, and look")
        made: Committed = self.session._commit(self.body, self.key, self.base, self.format)
        return made


class Lost(CoppiceError):
    """Another writer was first: a Conflict or a Fenced. Nothing was stored."""

    kept: Committed | None = None  # the receipt of keep_both
    _policy = "keep-both"

    def keep_both(self) -> Committed:
        """Store the commit as a branch: once, however often this is called while the session remembers its key."""
        if self.session is None:
            raise InvalidArgument("keep_both stores a commit, and this write was none: resume, and make it again")
        body = {**self.body, "onConflict": self._policy}
        kept: Committed = self.session._commit(body, self.key, self.base, self.format)
        self.kept = kept
        return kept


class Conflict(Lost):
    """Another writer was first, and nothing was stored."""

    @property
    def winner(self) -> Commit | None:
        """The commit that was first."""
        return self.problem.get("winner")

    @property
    def entries_since(self) -> list[Any]:
        """The entries since the base, at most 100; problem["more"] = not all."""
        return list(self.problem.get("entries", ()))


class Fenced(Lost):
    """Another client claimed the session. Nothing was stored, and this process should stop writing to it.

    The handle refuses writes from then on, until resume or claim. keep_both stores the commit that was refused.
    """

    _policy = "keep-fenced"
