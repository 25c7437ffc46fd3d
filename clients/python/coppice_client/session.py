"""A session: what is read of it to go on, and every write to it."""
from __future__ import annotations

import contextlib
import json
import secrets
import threading
from typing import Any, Callable, Mapping
from urllib.parse import unquote

from .errors import Conflict, CoppiceError, Exists, NotFound, OutcomeUnknown, Unavailable
from .follow import Follow
from .operations import Resumed, SessionOperations
from .rawjson import Raw
from .requests import new_id
from .schema import Committed, Event
from .turn import INTERRUPTED, Turn


class Session(SessionOperations):
    """The handle of a session. It writes on its base, the commit that it was at last; seq is the number of that.

    Threads that share it write one after the other. Before the first write, and after a receipt with kept: resume.
    """

    def __init__(self, shared: Any, path: str) -> None:
        super().__init__(shared, path)
        self.id, self.base, self.seq, self._lock = unquote(path.rsplit("/", 1)[1]), "", -1, threading.RLock()

    def _create(self, body: dict[str, Any]) -> None:
        headers = {"If-None-Match": "*", "Idempotency-Key": secrets.token_hex(16)}
        self.base, self.seq = self._send("PUT", self._path(), body, headers)[1], 0

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
        self.base, self.seq = r.commit, r.seq
        return r

    def _made_on(self) -> str:
        if not self.base:
            raise ValueError(f"session {self.id}: resume it before the first write, and after a turn that was kept")
        return self.base

    def _commit(self, body: dict[str, Any], key: str, base: str) -> Committed:
        with self._lock:
            key, base = key or secrets.token_hex(16), base or self._made_on()
            headers = {"If-Match": "*" if base == "*" else f'"{base}"', "Idempotency-Key": key}
            try:
                text, tag = self._send("POST", self._path("commits"), body, headers)
            except CoppiceError as e:
                e.session, e.body, e.key, e.base = self, body, key, base
                raise
            receipt: Committed = json.loads(text)
            self.base, self.seq = "" if "kept" in receipt else tag, receipt["seq"]
            return receipt

    def _move(self, op: str, body: Any, method: str = "POST", reason: str = "", made: Any = None, **query: Any) -> Any:
        """Make a write that has no key. After a lost answer, the log says whether it was made."""
        path, again, lost = self._path(*[op] * (method == "POST"), **query), self._attempts(), False
        with self._lock:
            base = self._made_on()
            while True:
                try:
                    text, tag = self._send(method, path, body, {"If-Match": f'"{base}"'}, once=True)
                    doc = json.loads(text)
                    if op not in ("fork", "snapshot", "delete"):
                        self.base, self.seq = tag, doc["seq"]
                    return doc
                except CoppiceError as e:
                    failed = e
                if lost := lost or isinstance(failed, OutcomeUnknown):
                    try:
                        if found := self._found(op, body, failed, reason, made):
                            return found
                    except Unavailable as e:
                        raise e.as_kind(OutcomeUnknown)
                if not failed.passing:
                    raise failed
                again(failed.as_kind(OutcomeUnknown) if lost else failed)

    def _found(self, op: str, body: Any, failed: CoppiceError, reason: str, made: Any) -> Any:
        """Return what a write whose answer was lost has made; None = nothing, so that it may be sent again."""
        if op == "delete":
            return {"deleted": True, "session": self.id} if isinstance(failed, NotFound) else None
        if op == "fork":  # its id is new
            return {"session": body["id"]} if isinstance(failed, Exists) else None
        if op == "snapshot":
            return next((s for s in self.snapshots()["snapshots"]
                         if s["commit"] == self.base and s.get("tag") == body["tag"]), None)
        events: list[Event] = self._json("events", after=self.seq, wait=1)["commits"]
        mine = [e for e in events if e["reason"] == reason]
        for e in mine:
            if made and made(e, (e["entries"] or [{}])[0]):
                self.base, self.seq = e["commit"], e["seq"]
                return {k: v for k, v in e.items() if k in ("head", "branch", "seq", "kept")}
        if mine:
            raise OutcomeUnknown(f"{op}: no answer came, and a commit since then may be it: resume, and look")
        return None

    def _version(self, message: Any) -> Any:
        read = json.loads(message) if isinstance(message, Raw) else message
        entry = {"type": "message", "message": message} if "role" in read else message
        return entry if isinstance(entry, Raw) else {"id": new_id(), **entry}  # an id by which it is found again

    def follow(self, after: int | None = None, *, partial: bool = False) -> Follow:
        """Return the commits after a seq (default: the handle's, else the newest); with partial, what is streamed."""
        newest = self.seq if after is not None or self.seq >= 0 else self.info()["seq"]
        return Follow(self, newest if after is None else after, partial)

    def turn(
        self, run: Callable[[Turn], Mapping[str, Any] | None], *, create: bool = False, claim: bool = False,
        interrupted: str = INTERRUPTED,
    ) -> Committed:
        """Do one turn, as Session.Run of the Go library does: resume, answer open calls, run, commit what it appended.

        A lost race becomes a branch: kept in the receipt. If run raises, the rest is dropped, but a Conflict kept.
        """
        t = Turn(self, self.resume(create=create), interrupted)
        if claim:
            self.claim()
        try:
            return t.end(run(t))
        except Conflict as e:
            if e.session is self:
                e.keep_both()
            raise
