"""Writes that are not turns. They have no key: after a lost answer, the log says whether they were made."""
from __future__ import annotations

import json
import threading
from typing import Any, Callable
from urllib.parse import unquote

from .errors import Conflict, CoppiceError, Exists, NotFound, OutcomeUnknown, Unavailable
from .operations import SessionOperations
from .rawjson import Raw
from .requests import new_id
from .schema import Event

# The reason of the commit that a move makes, and whether a commit e with the first entry f has the effect that the
# body b asks for, in session s. What is not here may be made twice: a claim, and a change of title and metadata.
_MADE: dict[str, tuple[str, Callable[[Any, Any, Any, Any], Any]]] = {
    "switch": ("branch", lambda s, b, e, f: not f and b["to"] in (e["branch"], e["head"])),
    "branch": ("branch", lambda s, b, e, f: b.get("name") in (None, e["branch"]) and (
        f.get("summary") == b["summary"] if b.get("summary") else not f and e["head"] == (b["entry"] or None))),
    "edit": ("branch", lambda s, b, e, f: isinstance(b["message"], dict) and f.get("id") == b["message"]["id"]),
    "label": ("label", lambda s, b, e, f: f.get("targetId") == b["entry"] and f.get("label", "") == b["label"]),
    "compact": ("compaction", lambda s, b, e, f: f.get("summary") == b["summary"]),
    "rollback": ("rollback", lambda s, b, e, f: s.context_at(b["to"])["leaf"] == e["head"] and (
        s.text("state", at=b["to"]) == s.text("state", at="commit:" + e["commit"]))),
}


class Moves(SessionOperations):
    """The base of a handle, the commit on which it writes; seq is its number. Each move is one commit.

    Conflict: the session moved since the base. OutcomeUnknown: the answer was lost, and the log does not say.
    """

    def __init__(self, shared: Any, path: str) -> None:
        super().__init__(shared, path)
        self.id, self.base, self.seq, self._lock = unquote(path.rsplit("/", 1)[1]), "", -1, threading.RLock()

    def _at(self, commit: str, seq: int) -> None:
        self.base, self.seq = commit, seq

    def _made_on(self) -> str:
        if not self.base:
            raise ValueError(f"session {self.id}: resume it before the first write, and after a turn that was kept")
        return self.base

    def _move(self, op: str, body: Any, method: str = "POST", **query: Any) -> Any:
        path = self._path(*([op] if method == "POST" else []), **query)
        if op == "edit":  # with an id from here, by which it is found again
            read = json.loads(body["message"]) if isinstance(body["message"], Raw) else body["message"]
            body["message"] = ({"type": "message", "id": new_id(), "message": body["message"]} if "role" in read
                               else read if isinstance(body["message"], Raw) else {"id": new_id(), **read})
        with self._lock:
            base, again, lost = self._made_on(), self._attempts(), False
            while True:
                try:
                    text, tag = self._send(method, path, body, {"If-Match": f'"{base}"'}, once=True)
                    doc = json.loads(text)
                    if op not in ("fork", "snapshot", "delete"):
                        self._at(tag, doc["seq"])
                    return doc
                except (Conflict, Exists, NotFound, OutcomeUnknown, Unavailable) as e:
                    failed = e
                if lost := lost or isinstance(failed, OutcomeUnknown):
                    try:
                        if found := self._found(op, body, failed):
                            return found
                    except Unavailable as e:
                        raise e.as_kind(OutcomeUnknown)
                if isinstance(failed, (Conflict, Exists, NotFound)):
                    raise failed
                again(failed.as_kind(OutcomeUnknown) if lost else failed)

    def _found(self, op: str, body: Any, failed: CoppiceError) -> Any:
        """Return what a write whose answer was lost has made; None = nothing yet, so that it may be sent again."""
        if op == "delete":
            return {"deleted": True, "session": self.id} if isinstance(failed, NotFound) else None
        if op == "fork":  # its id is new
            return {"session": body["id"]} if isinstance(failed, Exists) else None
        if op == "snapshot":
            return next((s for s in self.snapshots()["snapshots"]
                         if s["commit"] == self.base and s.get("tag") == body.get("tag")), None)
        events: list[Event] = self._json("events", after=self.seq, wait=1)["commits"]
        reason, made = _MADE.get(op, ("", lambda *_: False))
        for e in events:
            if e["reason"] == reason and made(self, body, e, (e["entries"] or [{}])[0]):
                self._at(e["commit"], e["seq"])
                return {k: v for k, v in e.items() if k in ("head", "branch", "seq", "kept")}
        if any(e["reason"] == reason for e in events):
            raise OutcomeUnknown(f"{op}: no answer came, and a commit since then may be it: resume, and look")
        return None
