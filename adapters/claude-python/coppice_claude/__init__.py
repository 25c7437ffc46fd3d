"""A SessionStore of the Claude Agent SDK on a coppice service. A transcript is a session, a line of it a message.

Types are structural, so that the package needs no version of the SDK.
"""
from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import threading
from collections import OrderedDict
from datetime import datetime
from typing import Any, Callable, Iterator, Mapping, NamedTuple, TypeVar

from coppice_client import Conflict, Deleted, Exists, KeyReused, NotFound, OutcomeUnknown, Store
from coppice_client.schema import Committed, NewSession
from coppice_client.schema import Session as SessionInfo

__all__ = ["CoppiceSessionStore", "CoppiceSummaryStore"]
__version__ = "0.1.0"

T = TypeVar("T")
Key = Mapping[str, str]
Line = Mapping[str, Any]
Fold = Callable[[Any, Any, Any], Any]

MAX_SESSIONS = 1000  # whose summary or pending batch is kept in memory; the oldest goes
MAX_RACES = 100  # times that a summary is folded again because another writer was first
SUMMARY = "summary.py"  # the document: summaries of the SDK for TypeScript have other members


class _Pending(NamedTuple):
    """A batch whose outcome is unknown: the same batch again has the same key."""

    batch: str
    key: str


class _Known(NamedTuple):
    """What the process knows of a session: the commit that has its summary."""

    base: str
    summary: Any


class CoppiceSessionStore:
    """Keeps transcripts in a service. Without summaries the SDK loads each session that it lists.

    scope keeps transcripts apart from those of other scopes of the service.
    """

    _fold: Fold | None = None

    def __init__(self, service: str | Store, *, scope: str = "", **options: Any) -> None:
        self._store = Store(service, **options) if isinstance(service, str) else service
        self._scope = scope
        self._lock = threading.Lock()
        self._last: dict[str, threading.Event] = {}  # the end of the newest append of this process
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._pending: OrderedDict[str, _Pending] = OrderedDict()

    async def append(self, key: Key, entries: list[Any]) -> None:
        """Store lines after those of earlier calls, once by their uuid."""
        batch = _once(entries)
        if not batch:
            return
        id, done = self.id(key), threading.Event()
        with self._lock:
            before, self._last[id] = self._last.get(id), done

        def run() -> None:
            try:
                if before:
                    before.wait()
                self._write(id, key, batch)
            finally:
                done.set()
                with self._lock:
                    if self._last.get(id) is done:
                        del self._last[id]

        await _in_thread(run)

    async def load(self, key: Key) -> list[Any] | None:
        """Return all lines in the order in which they were stored; None = there are none."""

        def run() -> list[Any] | None:
            try:
                text = self._store.session(self.id(key)).original()
            except (NotFound, Deleted):
                return None
            return _once([json.loads(line) for line in text.split(b"\n") if line]) or None

        return await _in_thread(run)

    async def list_sessions(self, project_key: str) -> list[Any]:
        """Return the sessions of a project, without those of agents."""
        return await _in_thread(lambda: [
            {"session_id": (s.get("meta") or {})["session"], "mtime": _mtime(s)} for s in self._sessions(project_key)
        ])

    async def delete(self, key: Key) -> None:
        """Delete a transcript; that of a session with those of its agents."""
        await _in_thread(lambda: self._delete(key))

    async def list_subkeys(self, key: Key) -> list[str]:
        """Return the subpaths of a session."""
        parent = self.id({"project_key": key["project_key"], "session_id": key["session_id"]})
        query: dict[str, Any] = {"parent": parent, "meta": {"store": "claude-agent"}, "limit": 500, "order": "id"}
        return await _in_thread(lambda: [(s.get("meta") or {})["subpath"] for s in self._store.sessions(**query)])

    def close(self) -> None:
        """Close idle connections. A store may be used by several event loops until then."""
        self._store.close()

    def id(self, key: Key) -> str:
        """Return the session of a transcript: keys have any length and characters, ids do not."""
        parts = [self._scope, key["project_key"], key["session_id"], key.get("subpath")]
        return f"claude-{_hash(parts)[:40]}"

    def _project(self, project_key: str) -> str:
        name = f"{self._scope}/{project_key}" if self._scope else project_key
        return name if len(name) <= 200 else f"{name[:150]}-{_hash(name)[:40]}"

    def _write(self, id: str, key: Key, batch: list[Any]) -> None:
        text = _hash([id, batch])
        with self._lock:
            was = self._pending.pop(id, None)
        idempotency = was.key if was and was.batch == text else f"{text[:16]}-{secrets.token_hex(16)}"
        try:
            if self._fold and key.get("subpath") is None:
                self._commit_folded(self._fold, id, key, batch, idempotency)
            else:
                self._commit(id, key, batch, "*", idempotency)
        except KeyReused:  # the key is of this batch alone: it was stored, with the summary as it was then
            pass
        except OutcomeUnknown:
            self._keep(self._pending, id, _Pending(text, idempotency))
            raise

    def _commit(self, id: str, key: Key, batch: list[Any], base: str, idempotency: str, docs: Any = None) -> Committed:
        session, create = self._store.session(id), self._creation(key, batch)
        return session.commit(batch, format="claude-code", base=base, key=idempotency, create=create, docs=docs)

    def _commit_folded(self, fold: Fold, id: str, key: Key, batch: list[Any], idempotency: str) -> None:
        """Store lines and the summary that has them, in one commit on the one that has the summary before."""
        for race in range(MAX_RACES):
            with self._lock:
                known = self._known.pop(id, None)
            try:
                base, summary = known or self._read(id, key, batch)
                folded = fold(summary, key, batch)
                receipt = self._commit(id, key, batch, base, idempotency, {SUMMARY: folded})
                if receipt.get("repeated"):
                    return
                commit, old = receipt["commit"], set(receipt.get("known") or ())
                if old:
                    fresh = [line for line in batch if line.get("uuid") not in old]
                    folded = fold(summary, key, fresh) if fresh else summary
                    docs = {SUMMARY: folded}
                    commit = self._store.session(id).commit(base=commit, docs=docs)["commit"]
                return self._keep(self._known, id, _Known(commit, folded))
            except (Conflict, NotFound, Deleted):
                if race + 1 == MAX_RACES:
                    raise

    def _read(self, id: str, key: Key, batch: list[Any]) -> _Known:
        """Return the summary of a session, which is created if there is none."""
        session = self._store.session(id)
        try:
            docs = session.docs()["docs"]
            return _Known(session.seen, docs.get(SUMMARY))
        except (NotFound, Deleted):
            pass
        try:
            return _Known(self._store.create(id, **self._creation(key, batch)).base, None)
        except Exists:
            return self._read(id, key, batch)

    def _creation(self, key: Key, batch: list[Any]) -> NewSession:
        meta = {"store": "claude", "project": self._project(key["project_key"]), "session": key["session_id"]}
        created: NewSession = {"again": True, "meta": meta}  # a transcript may come back after it was deleted
        cwd = next((line["cwd"] for line in batch if isinstance(line.get("cwd"), str)), None)
        if cwd is not None:
            created["cwd"] = cwd
        if (subpath := key.get("subpath")) is not None:
            meta.update(store="claude-agent", subpath=subpath)
            main = {"project_key": key["project_key"], "session_id": key["session_id"]}
            created.update(parent=self.id(main), relation="agent")
        return created

    def _sessions(self, project_key: str, docs: str | None = None) -> Iterator[SessionInfo]:
        meta = {"store": "claude", "project": self._project(project_key)}
        return self._store.sessions(meta=meta, limit=500, order="id", docs=docs)

    def _delete(self, key: Key) -> None:
        id, whole = self.id(key), key.get("subpath") is None
        with self._lock:
            self._known.pop(id, None)
            self._pending.pop(id, None)
        if self._drop(id, whole) or not whole:
            return
        for child in list(self._store.sessions(parent=id, limit=500, order="id")):  # of a session that has no lines
            self._drop(child["id"], False)

    def _drop(self, id: str, children: bool) -> bool:
        """Delete a session at whatever it is. Report whether there was one."""
        session = self._store.session(id)
        for race in range(MAX_RACES):
            try:
                session.info()
                session.base = session.seen
                session.delete(children=children)
                return True
            except (NotFound, Deleted):
                return False
            except Conflict:
                if race + 1 == MAX_RACES:
                    raise
        return False

    def _keep(self, kept: OrderedDict[str, T], id: str, value: T) -> None:
        with self._lock:
            kept.pop(id, None)
            kept[id] = value
            if len(kept) > MAX_SESSIONS:
                kept.popitem(last=False)


class CoppiceSummaryStore(CoppiceSessionStore):
    """A store with summaries: a list of sessions is one request. fold is the SDK's fold_session_summary."""

    def __init__(self, service: str | Store, fold: Fold, *, scope: str = "", **options: Any) -> None:
        super().__init__(service, scope=scope, **options)
        self._fold = fold

    async def list_session_summaries(self, project_key: str) -> list[Any]:
        """Return the summaries of the sessions of a project."""
        return await _in_thread(lambda: [
            {**(s.get("docs") or {})[SUMMARY], "mtime": _mtime(s)}
            for s in self._sessions(project_key, SUMMARY) if SUMMARY in (s.get("docs") or {})
        ])


def _once(lines: list[Any]) -> list[Any]:
    """Return the first of the lines with a uuid.

    The service knows the lines of one answer by its last one: if a part of them comes again, it is stored again.
    """
    seen: set[Any] = set()
    return [line for line in lines
            if (uuid := line.get("uuid")) is None or not (uuid in seen or seen.add(uuid))]  # type: ignore[func-returns-value]


def _mtime(s: SessionInfo) -> int:
    seconds, _, fraction = s["updated"].rstrip("Z").partition(".")
    return int(datetime.fromisoformat(seconds + "+00:00").timestamp()) * 1000 + int((fraction + "000")[:3])


def _hash(value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


async def _in_thread(run: Callable[[], T]) -> T:
    """Run a function in a thread. A caller that is cancelled stops waiting; the thread ends its request."""
    try:
        import anyio  # the SDK has it, and may run on trio
    except ImportError:
        return await asyncio.to_thread(run)
    found: T = await anyio.to_thread.run_sync(run, abandon_on_cancel=True)
    return found
