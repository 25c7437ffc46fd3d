"""A session: resume, commit, follow, turn."""
from __future__ import annotations

import contextlib
import functools
import json
import secrets
from typing import Any, Callable, Mapping

from .errors import Conflict, Exists, NotFound, OutcomeUnknown, Unavailable
from .follow import Follow
from .moves import Moves
from .operations import Resumed
from .schema import Committed
from .turn import INTERRUPTED, Turn


class Session(Moves):
    """The handle of a session, which knows the commit that it was at last: its base.

    A write is made on the base: if another writer moved the session since, it is a Conflict. Of threads that share a handle one
    writes at a time. After a receipt with kept, the session is to be resumed before the next write.
    """

    def _create(self, body: Mapping[str, Any]) -> None:
        headers = {"If-None-Match": "*", "Idempotency-Key": secrets.token_hex(16)}
        self._at(self._send("PUT", self._path(), dict(body), headers)[1], 0)

    def resume(self, *, create: bool = False) -> Resumed:
        """Read what an agent needs to continue, with one request, and make it the base. create: unless it exists."""
        try:
            r = Resumed(self.text("resume"))
        except NotFound:
            if not create:
                raise
            with contextlib.suppress(Exists):  # another client was first, or it was deleted
                self._create({})
            return self.resume()
        self._at(r.commit, r.seq)
        return r

    def _commit(self, body: dict[str, Any], key: str, base: str) -> Committed:
        key = key or secrets.token_hex(16)
        with self._lock:
            base = base or self._made_on()
            headers = {"If-Match": "*" if base == "*" else f'"{base}"', "Idempotency-Key": key}
            try:
                text, tag = self._send("POST", self._path("commits"), body, headers)
            except Conflict as e:
                e.keep_both = functools.partial(self._keep, e, {**body, "onConflict": "keep-both"}, key, base)
                raise
            except OutcomeUnknown as e:
                e.key, e.base, e.again = key, base, functools.partial(self._commit, body, key, base)
                raise
            receipt: Committed = json.loads(text)
            self._at("" if "kept" in receipt else tag, receipt["seq"])
        return receipt

    def _keep(self, e: Conflict, body: dict[str, Any], key: str, base: str) -> Committed:
        e.kept = self._commit(body, f"{key}.kept", base)
        return e.kept

    def _partial(self, body: Any) -> bool:
        try:
            self._send("POST", self._path("partial"), body, once=True)
        except (OutcomeUnknown, Unavailable):
            return False
        return True

    def follow(self, after: int | None = None, *, partial: bool = False) -> Follow:
        """Return the commits after a seq (default: the handle's, else the newest) as they come, without gap or repeat.

        With partial, what is streamed comes too.
        """
        after = after if after is not None else self.seq if self.seq >= 0 else self.info()["seq"]
        return Follow(self, after, partial)

    def turn(
        self, run: Callable[[Turn], Mapping[str, Any] | None], *, create: bool = False, claim: bool = False,
        interrupted: str = INTERRUPTED,
    ) -> Committed:
        """Do one turn, as Session.Run of the Go library does: resume, answer open calls, run, commit what it appended.

        If another writer was first, the turn becomes a branch: kept in the receipt. If run raises, what it did not
        commit is dropped; but if that is the Conflict of a commit of the turn, the turn is kept, and it is raised.
        """
        t = Turn(self, self.resume(create=create), interrupted)
        if claim:
            self.claim()
        try:
            return t.end(run(t))
        except Conflict as e:
            if e is t.lost:
                e.keep_both()
            raise
