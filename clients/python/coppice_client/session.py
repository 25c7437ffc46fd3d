"""A session: the read that continues it, and every write to it."""
from __future__ import annotations

import contextlib
import hashlib
import secrets
import threading
from typing import Any, Callable, Mapping
from urllib.parse import unquote

from .answers import Want, no_answer, wrong_member
from .errors import Conflict, CoppiceError, Deleted, Exists, Fenced, InvalidArgument, NotFound, OutcomeUnknown
from .follow import Follow
from .operations import Resumed, SessionOperations
from .rawjson import Raw, parse
from .requests import new_id
from .schema import Committed, Created, Event, Events
from .turn import INTERRUPTED, Turn


class Session(SessionOperations):
    """The handle of a session. Each write sends base as If-Match: the newest commit that it knows, whose number is seq.

    Threads that share it take turns. Call resume() before the first write, and after a receipt with kept.
    """

    def __init__(self, shared: Any, path: str) -> None:
        super().__init__(shared, path)
        self.id = self._named = unquote(path.rsplit("/", 1)[1])
        self.base, self.seq, self._lock = "", -1, threading.RLock()
        self._fence: Fenced | None = None  # met by a write; until resume or claim

    def _create(self, body: dict[str, Any]) -> None:
        headers = {"If-None-Match": "*", "Idempotency-Key": secrets.token_hex(16)}
        self.base = self._send("PUT", self._path(), Want(Created, tag=True, session=self.id), body, headers).tag
        self.seq = 0

    def resume(self, *, create: bool = False) -> Resumed:
        """Read what an agent needs to continue, with one request, and set base. create: if it never existed."""
        try:
            text = self.text("resume")
        except NotFound:
            if not create:
                raise
            with contextlib.suppress(Exists):  # another client was first
                self._create({})
            return self.resume()
        try:
            r = Resumed(text, self.id)
        except ValueError as e:
            raise no_answer("GET " + self._path("resume"), str(e)) from None
        self.base, self.seq, self._fence = r.commit, r.seq, None
        return r

    def _made_on(self) -> str:
        if not self.base:
            raise InvalidArgument(
                f"session {self.id}: resume it before the first write, and after a turn that was kept")
        return self.base

    def _open(self) -> None:
        """Raise Fenced if a write met a fence since resume or claim."""
        if self._fence:
            raise self._fence.as_kind(Fenced)

    def _keyed(self, kind: Any, method: str, path: str, body: Any, key: str, base: str, claims: bool) -> Any:
        """Make a move, an annotation or a claim: once, however often it is sent."""
        with self._lock:
            if not claims:
                self._open()
            key = key or secrets.token_hex(16)
            base = base or self._made_on()
            headers = {"If-Match": "*" if base == "*" else f'"{base}"', "Idempotency-Key": key}
            try:
                answer = self._send(method, path, Want(kind, tag=True), body, headers)
            except CoppiceError as e:
                self._failed(e, key, base)
                raise
            if claims:
                self._fence = None
            if answer.tag != base:  # otherwise it is an annotation of a state that this handle has not seen
                self.base, self.seq = answer.tag, answer.value["seq"]
            return answer.value

    def _failed(self, failed: CoppiceError, key: str, base: str) -> None:
        failed.key, failed.base = key, base
        if isinstance(failed, Fenced):
            self._fence = failed

    def _commit(self, body: dict[str, Any], key: str, base: str, format: str | None = None) -> Committed:
        with self._lock:
            if body.get("onConflict") != "keep-fenced":
                self._open()
            key = key or secrets.token_hex(16)
            base = base or ("*" if body.get("create") is not None and not self.base else self._made_on())
            headers = {"If-Match": "*" if base == "*" else f'"{base}"', "Idempotency-Key": key}
            try:
                answer = self._send("POST", self._path("commits", format=format), Want(Committed), body, headers)
            except CoppiceError as e:
                e.session, e.body, e.format = self, body, format
                self._failed(e, key, base)
                raise
            receipt: Committed = answer.value
            self.base = "" if "kept" in receipt else answer.tag or receipt["commit"]
            self.seq = receipt["seq"]
            return receipt

    def _move(
        self, kind: Any, op: str, body: Any, method: str = "POST", reason: str = "", made: Any = None, **query: Any,
    ) -> Any:
        """Make a write without a key. After a lost answer, search the log for it."""
        path = self._path(op, **query) if method == "POST" else self._path(**query)
        moves_base = op not in ("fork", "snapshot", "delete")
        own = not (query.get("trash") or query.get("purge"))  # whether a commit found after a lost answer is known to be this write
        if op == "fork":
            own, body = not body["id"], {**body, "id": body["id"] or new_id()}
        want = Want(kind, tag=moves_base, session=body["id"] if op == "fork" else self.id)
        again = self._attempts()
        lost = False
        with self._lock:
            self._open()
            base = self._made_on()
            while True:
                try:
                    headers = {"If-Match": f'"{base}"'}
                    answer = self._send(method, path, want, body, headers, once=True)
                    if moves_base:
                        self.base, self.seq = answer.tag, answer.value["seq"]
                    return answer.value
                except CoppiceError as e:
                    failed = e
                lost = lost or isinstance(failed, OutcomeUnknown)
                if lost and own:
                    try:
                        found = self._found(op, body, failed, reason, made)
                    except CoppiceError as e:
                        raise e.as_kind(OutcomeUnknown) from failed
                    if found:
                        return found
                if not failed.passing:
                    was_first = isinstance(failed, (Conflict, Fenced)) and op not in ("fork", "snapshot")
                    if lost and not was_first:  # the lost attempt may have been applied, or may still arrive
                        raise failed.as_kind(OutcomeUnknown) from failed
                    raise failed
                again(failed.as_kind(OutcomeUnknown) if lost else failed)

    def _found(self, op: str, body: Any, failed: CoppiceError, reason: str, made: Any) -> Any:
        """Return the commit of a write whose answer was lost; None = none, so that it may be sent again."""
        if op == "delete":
            gone = isinstance(failed, (NotFound, Deleted))
            return {"deleted": True, "session": self.id} if gone else None
        if op == "fork":
            return {"session": body["id"]} if isinstance(failed, Exists) else None
        if op == "snapshot":
            return next((s for s in self.snapshots()["snapshots"]
                         if s["commit"] == self.base and s.get("tag") == body["tag"]), None)
        events: list[Event] = self._json(Events, "events", after=self.seq, wait=1)["commits"]
        if wrong := next(filter(None, (wrong_member(Event, e) for e in events)), ""):
            raise no_answer("GET " + self._path("events"), wrong)
        mine = [e for e in events if e["reason"] == reason]
        for e in mine:
            first = (e["entries"] or [{}])[0]
            if made and made(e, first):
                self.base, self.seq = e["commit"], e["seq"]
                known = {k: v for k, v in e.items() if k in ("head", "branch", "seq", "kept")}
                return {**known, "entry": first.get("id"), "firstKept": first.get("firstKeptEntryId"),
                        "tokensBefore": first.get("tokensBefore")}
        if mine:
            raise OutcomeUnknown(f"{op}: no answer came, and a commit since then may be it: resume, and look")
        return None

    def upload(self, image: bytes) -> str:
        """Send the bytes of an image before the commit that has it. Return the text that refers to it, in place of
        base64, in the entries of a commit with images="ref"."""
        name = hashlib.sha256(image).hexdigest()
        headers = {"Content-Type": "application/octet-stream"}
        self._send("PUT", self._path("blobs", name), Want(bytes, ()), image, headers)
        return f"coppice-blob:sha256:{name}:{len(image)}"

    def follow(self, after: int | None = None, *, partial: bool = False) -> Follow:
        """Return the commits after a seq, by default the handle's or the newest. partial: partial output too."""
        newest = self.seq if after is not None or self.seq >= 0 else self.info()["seq"]
        return Follow(self, newest if after is None else after, partial)

    def _begin(self, create: bool, claim: bool) -> Resumed:
        """Claim the session, if asked to, and resume it: a commit of an older writer is in what is read, or fenced."""
        if claim:
            try:
                self.claim(base="*")
            except NotFound:
                if not create:
                    raise
                with contextlib.suppress(Exists):  # another client was first
                    self._create({})
                self.claim(base="*")
        return self.resume(create=create)

    def turn(
        self, run: Callable[[Turn], Mapping[str, Any] | None], *, create: bool = False, claim: bool = False,
        interrupted: str = INTERRUPTED,
    ) -> Committed:
        """Do one turn, as Session.Run of the Go library does: resume, answer open calls, run, commit what it appended.

        A lost race becomes a branch: kept in the receipt. If run raises, entries not committed are dropped, but those
        of a Conflict are kept.
        """
        if not claim:
            self._open()
        t = Turn(self, self._begin(create, claim), interrupted)
        try:
            return t.end(run(t))
        except Conflict as e:
            if e.session is self:
                e.keep_both()
            raise
