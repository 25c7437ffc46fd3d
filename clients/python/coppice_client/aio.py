"""The same client for asyncio: each call runs in a thread of the store, which aclose joins."""
# Written by tools/generate.py from the synchronous classes. Do not edit.
from __future__ import annotations

import asyncio
import ssl
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Awaitable, Callable, Iterable, Literal, Mapping

from .errors import Conflict
from .operations import Resumed
from .rawjson import UNSET
from .requests import Limits
from .schema import (
    AccessDoc, BranchList, Change, Commit, Committed, Compacted, Context, ContextItem, Deleted, Diff, DocList, Erased,
    Fork, Found, Health, Import, IssuedToken, LabelList, Match, Moved, NewSession, Prompt, Retention, Rollback, RowList,
    SecretAt, SessionUsage, Snapshot, SnapshotList, Snapshots, Tokens, TreeMap, Usage, Verify, Versions,
)
from .schema import Session as SessionInfo
from .session import Session
from .store import Store
from .threads import AsyncPages, AsyncTurn, _Session, _Twin
from .transport import HTTP
from .turn import INTERRUPTED, Turn


class AsyncSession(_Session):
    """Session for asyncio."""

    async def turn(
        self, run: Callable[[AsyncTurn], Awaitable[Mapping[str, Any] | None]], *, create: bool = False,
        claim: bool = False, interrupted: str = INTERRUPTED,
    ) -> Committed:
        """Session.turn."""
        if not claim:
            self._sync._open()
        t = Turn(self._sync, await self._run(self._sync._begin, create, claim), interrupted)
        try:
            return await self._run(t.end, await run(AsyncTurn(self._threads, t)))
        except Conflict as e:
            if e.session is self._sync:
                await self._run(e.keep_both)
            raise

    async def resume(self, *, create: bool = False) -> Resumed:
        """Read what an agent needs to continue, with one request, and set base."""
        return await self._run(self._sync.resume, create=create)

    async def upload(self, image: bytes) -> str:
        """Send the bytes of an image before the commit that has it."""
        return await self._run(self._sync.upload, image)

    async def delete(self, *, trash: bool | None = None, children: bool | None = None,
        purge: bool | None = None) -> Deleted:
        """Delete a session for good, or into the trash."""
        return await self._run(self._sync.delete, trash=trash, children=children, purge=purge)

    async def info(self) -> SessionInfo:
        """The summary of a session; its ETag is the newest commit."""
        return await self._run(self._sync.info)

    async def set_info(
        self, *, cwd: str | None = None, meta: dict[str, str | None] | None = None, title: str | None = None,
        key: str = "", base: str = "",
    ) -> Moved:
        """Change title, working directory and metadata."""
        return await self._run(self._sync.set_info, cwd=cwd, meta=meta, title=title, key=key, base=base)

    async def amend(self, entry: str, *, message: Any | None = None, key: str = "", base: str = "") -> Moved:
        """Replace the content of an entry, for all that read it."""
        return await self._run(self._sync.amend, entry, message=message, key=key, base=base)

    def blame(self, path: str | None = None, at: str | None = None, *, limit: int | None = None) -> AsyncPages[Change]:
        """Which commits changed a value of the state."""
        return AsyncPages(self, self._sync.blame(path, at, limit=limit))

    async def blob(self, sha256: str) -> bytes:
        """The bytes of an image, or a range of them."""
        return await self._run(self._sync.blob, sha256)

    async def branch(
        self, entry: str, *, name: str | None = None, summary: str | None = None, key: str = "", base: str = "",
    ) -> Moved:
        """Move the head to an entry, so that the next one begins a branch."""
        return await self._run(self._sync.branch, entry, name=name, summary=summary, key=key, base=base)

    async def branches(self) -> BranchList:
        """Branches and their heads."""
        return await self._run(self._sync.branches)

    async def claim(self, *, key: str = "", base: str = "") -> Moved:
        """Take over the session from writers of before."""
        return await self._run(self._sync.claim, key=key, base=base)

    def commits(self, at: str | None = None, *, limit: int | None = None) -> AsyncPages[Commit]:
        """Commits, newest first."""
        return AsyncPages(self, self._sync.commits(at, limit=limit))

    async def commit(
        self, entries: Iterable[Any] = (), *, format: Literal["claude-code", "codex"] | None = None,
        context: list[ContextItem] | None = None, create: NewSession | None = None,
        docs: dict[str, Any] | None = None, from_: str | None = None, images: Literal["inline", "ref"] | None = None,
        manager: Any = UNSET, on_conflict: Literal["fail", "keep-both", "keep-fenced"] | None = None,
        on_known_id: Literal["error", "ignore", "amend"] | None = None, reason: str | None = None, state: Any = UNSET,
        key: str = "", base: str = "",
    ) -> Committed:
        """Commit entries and state, all or nothing."""
        return await self._run(self._sync.commit, entries, format=format, context=context, create=create, docs=docs,
            from_=from_, images=images, manager=manager, on_conflict=on_conflict, on_known_id=on_known_id,
            reason=reason, state=state, key=key, base=base)

    async def commit_at(self, seq: int) -> Commit:
        """One commit, which never changes."""
        return await self._run(self._sync.commit_at, seq)

    async def compact(self, summary: str, *, from_: str | None = None, keep: int | None = None) -> Compacted:
        """Replace the older part of the context with a summary."""
        return await self._run(self._sync.compact, summary, from_=from_, keep=keep)

    async def context_at(
        self, at: str | None = None, *,
        provider: Literal["anthropic", "openai-chat", "openai-responses", "gemini"] | None = None,
        vendor: str | None = None, limit: int | None = None, after: str | None = None,
    ) -> Context:
        """What the model saw, now or at any time, complete or in pages."""
        return await self._run(self._sync.context_at, at, provider=provider, vendor=vendor, limit=limit, after=after)

    async def diff(self, a: str, b: str | None = None, *, limit: int | None = None) -> Diff:
        """What differs in messages and state between two times."""
        return await self._run(self._sync.diff, a, b, limit=limit)

    async def docs(self, at: str | None = None) -> DocList:
        """The documents of a session, now or at any time."""
        return await self._run(self._sync.docs, at)

    async def doc(self, name: str, at: str | None = None) -> Any:
        """One document, now or at any time; 404 where there is none of this name."""
        return await self._run(self._sync.doc, name, at)

    async def edit(self, entry: str, message: Any, *, key: str = "", base: str = "") -> Moved:
        """Append another version of an entry, and move the head to it."""
        return await self._run(self._sync.edit, entry, message, key=key, base=base)

    def entries(
        self, path: str | None = None, *, order: Literal["asc", "desc"] | None = None,
        limit: int | Literal["all"] | None = None, from_: str | None = None, type: str | None = None,
        custom: str | None = None, below: bool | None = None, ids: str | None = None,
        images: Literal["inline", "ref"] | None = None, marks: bool | None = None,
        match: dict[str, Any] | None = None,
    ) -> AsyncPages[Any]:
        """Entries of a path or of all branches, in either direction."""
        return AsyncPages(self, self._sync.entries(path, order=order, limit=limit, from_=from_, type=type,
            custom=custom, below=below, ids=ids, images=images, marks=marks, match=match))

    async def entry(self, entry: str, *, images: Literal["inline", "ref"] | None = None) -> dict[str, Any]:
        """One entry, as amendments have it."""
        return await self._run(self._sync.entry, entry, images=images)

    async def erase(
        self, entries: list[str], *, docs: list[str] | None = None, dry_run: bool | None = None,
        everywhere: bool | None = None, purge_trash: bool | None = None, reason: str | None = None,
        states: list[str] | None = None,
    ) -> Erased:
        """Remove the content of entries for good, and leave stubs."""
        return await self._run(self._sync.erase, entries, docs=docs, dry_run=dry_run, everywhere=everywhere,
            purge_trash=purge_trash, reason=reason, states=states)

    async def export(
        self,
        format: Literal["pi", "original", "omp", "atomic", "operator", "claude-code", "codex", "markdown",
            "html"] | None = None,
        *, secrets: Literal["refuse", "redact", "allow"] | None = None, line: str | None = None,
    ) -> bytes:
        """The session as a file."""
        return await self._run(self._sync.export, format, secrets=secrets, line=line)

    async def fork(self, to: str | None = None, *, id: str = "", title: str | None = None) -> Fork:
        """A new session of the path to a target."""
        return await self._run(self._sync.fork, to, id=id, title=title)

    async def hide(self, entry: str, *, key: str = "", base: str = "") -> Moved:
        """Leave an entry out of contexts, paths and trees; amend shows it again."""
        return await self._run(self._sync.hide, entry, key=key, base=base)

    async def release(self, *, key: str = "", base: str = "") -> Moved:
        """End the hold of a session."""
        return await self._run(self._sync.release, key=key, base=base)

    async def hold(self, reason: str, *, key: str = "", base: str = "") -> Moved:
        """Hold a session: nothing removes it."""
        return await self._run(self._sync.hold, reason, key=key, base=base)

    async def label(self, entry: str, label: str, *, key: str = "", base: str = "") -> Moved:
        """Name an entry for people; the head stays."""
        return await self._run(self._sync.label, entry, label, key=key, base=base)

    async def labels(self) -> LabelList:
        """Labels of entries."""
        return await self._run(self._sync.labels)

    async def map(
        self, *, view: str | None = None,
        filter: Literal["default", "no-tools", "user-only", "labeled-only", "all"] | None = None,
        search: str | None = None, fold: str | None = None, buckets: int | None = None, mark: str | None = None,
        failures: bool | None = None, near: int | None = None,
    ) -> TreeMap:
        """The drawn tree in at most 2,048 buckets."""
        return await self._run(self._sync.map, view=view, filter=filter, search=search, fold=fold, buckets=buckets,
            mark=mark, failures=failures, near=near)

    async def original(self) -> bytes:
        """The session as it was imported, byte for byte."""
        return await self._run(self._sync.original)

    async def partial(self, message: Any) -> bool:
        """Say what the assistant has streamed so far, to those who follow the session."""
        return await self._run(self._sync.partial, message)

    async def rename_branch(self, branch: str, name: str, *, key: str = "", base: str = "") -> Moved:
        """Rename a branch, or remove its name."""
        return await self._run(self._sync.rename_branch, branch, name, key=key, base=base)

    async def rollback(self, to: str, *, key: str = "", base: str = "") -> Rollback:
        """Restore state, context and head as they were."""
        return await self._run(self._sync.rollback, to, key=key, base=base)

    async def rows(
        self, *, view: str | None = None,
        filter: Literal["default", "no-tools", "user-only", "labeled-only", "all"] | None = None,
        search: str | None = None, fold: str | None = None, from_: int | None = None, around: str | None = None,
        count: int | None = None,
    ) -> RowList:
        """The tree as it is drawn, a stretch of rows at a time."""
        return await self._run(self._sync.rows, view=view, filter=filter, search=search, fold=fold, from_=from_,
            around=around, count=count)

    def secrets(self) -> AsyncPages[SecretAt]:
        """How many credentials a session has, by rule."""
        return AsyncPages(self, self._sync.secrets())

    async def snapshot(self, tag: str | None = None) -> Snapshot:
        """Store the state of the newest commit as a snapshot."""
        return await self._run(self._sync.snapshot, tag)

    async def snapshots(self) -> SnapshotList:
        """Snapshots."""
        return await self._run(self._sync.snapshots)

    async def state_at(self, at: str | None = None) -> Any:
        """The agent's state, now or at any time."""
        return await self._run(self._sync.state_at, at)

    async def switch(self, to: str, *, key: str = "", base: str = "") -> Moved:
        """Move the head to a branch, with the state in force there."""
        return await self._run(self._sync.switch, to, key=key, base=base)

    async def usage(self, at: str | None = None, *, points: bool | None = None) -> Usage:
        """Tokens and cost of all branches, or of one path."""
        return await self._run(self._sync.usage, at, points=points)

    async def verify(self, *, deep: bool | None = None) -> Verify:
        """Read the session and report damage; changes nothing, so the right to read is enough."""
        return await self._run(self._sync.verify, deep=deep)

    async def versions(self, entry: str) -> Versions:
        """The versions of an entry: what grows from the same parent."""
        return await self._run(self._sync.versions, entry)


class AsyncStore(_Twin):
    """Store for asyncio, with so many threads as requests at a time. async with closes it."""

    def __init__(
        self, base_url: str = "", *, token: str = "", tenant: str = "", writer: str = "",
        tls: ssl.SSLContext | None = None, timeout: float = 40.0, limits: Limits = Limits(), transport: HTTP | None = None,
        threads: int = 16,
    ) -> None:
        super().__init__(ThreadPoolExecutor(threads, "coppice"))
        self._sync = Store(
            base_url, token=token, tenant=tenant, writer=writer, tls=tls, timeout=timeout, limits=limits,
            transport=transport,
        )

    def session(self, id: str) -> AsyncSession:
        """Store.session."""
        return AsyncSession(self._threads, self._sync.session(id))

    async def aclose(self) -> None:
        """Store.close; then wait for the threads: for no longer than an attempt of a request takes."""
        self._sync.close()
        await asyncio.get_running_loop().run_in_executor(None, self._threads.shutdown)

    async def __aenter__(self) -> AsyncStore:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def access(self) -> AccessDoc:
        """What the client may do, so that it does not offer what would be refused."""
        return await self._run(self._sync.access)

    def entries(
        self, *, session: str | None = None, prefix: str | None = None, cwd: str | None = None,
        parent: str | None = None, type: str | None = None, custom: str | None = None, before: str | None = None,
        order: Literal["asc", "desc"] | None = None, limit: int | Literal["all"] | None = None,
        images: Literal["inline", "ref"] | None = None, meta: dict[str, str] | None = None,
        match: dict[str, Any] | None = None,
    ) -> AsyncPages[Found]:
        """Entries of many sessions, by their type and by any member."""
        return AsyncPages(self, self._sync.entries(session=session, prefix=prefix, cwd=cwd, parent=parent, type=type,
            custom=custom, before=before, order=order, limit=limit, images=images, meta=meta, match=match))

    async def health(self) -> Health:
        """Whether the server answers."""
        return await self._run(self._sync.health)

    async def import_file(
        self, data: bytes, format: Literal["pi", "omp", "atomic", "operator", "claude-code", "codex"] | None = None,
        *, session: str | None = None, name: str | None = None, again: bool | None = None, grow: bool | None = None,
    ) -> Import:
        """Import a session file of another program, which is the body."""
        return await self._run(self._sync.import_file, data, format, session=session, name=name, again=again, grow=grow)

    def prompts(
        self, q: str | None = None, *, prefix: bool | None = None, cwd: str | None = None, session: str | None = None,
        limit: int | None = None,
    ) -> AsyncPages[Prompt]:
        """What users typed in all sessions and branches, newest first."""
        return AsyncPages(self, self._sync.prompts(q, prefix=prefix, cwd=cwd, session=session, limit=limit))

    async def get_retention(self) -> Retention:
        """Which sessions and snapshots stay."""
        return await self._run(self._sync.get_retention)

    def search(
        self, q: str | None = None, *, cwd: str | None = None, session: str | None = None, limit: int | None = None,
    ) -> AsyncPages[Match]:
        """Entries of all sessions and branches that contain words."""
        return AsyncPages(self, self._sync.search(q, cwd=cwd, session=session, limit=limit))

    def sessions(
        self, q: str | None = None, *, cwd: str | None = None, parent: str | None = None, top: bool | None = None,
        order: Literal["activity", "created", "id"] | None = None, limit: int | None = None,
        exact: bool | None = None, docs: str | None = None, meta: dict[str, str] | None = None,
    ) -> AsyncPages[SessionInfo]:
        """Sessions, newest activity first or in another order."""
        return AsyncPages(self, self._sync.sessions(q, cwd=cwd, parent=parent, top=top, order=order, limit=limit,
            exact=exact, docs=docs, meta=meta))

    async def create(
        self, id: str = "", *, again: bool | None = None, cwd: str | None = None, meta: dict[str, str] | None = None,
        parent: str | None = None, relation: str | None = None, title: str | None = None,
    ) -> AsyncSession:
        """Create a session."""
        return AsyncSession(self._threads, await self._run(self._sync.create, id, again=again, cwd=cwd, meta=meta,
            parent=parent, relation=relation, title=title))

    async def issue_token(
        self, *, meta: dict[str, str] | None = None, rights: str | None = None, seconds: int | None = None,
        session: str | None = None, write: bool | None = None,
    ) -> IssuedToken:
        """A token for one session, or for some, that is valid for a time."""
        return await self._run(self._sync.issue_token, meta=meta, rights=rights, seconds=seconds, session=session,
            write=write)

    def usages(
        self, q: str | None = None, *, cwd: str | None = None, parent: str | None = None, top: bool | None = None,
        order: Literal["activity", "created", "id"] | None = None, limit: int | None = None,
        meta: dict[str, str] | None = None,
    ) -> AsyncPages[SessionUsage]:
        """Tokens and cost of sessions, each with all branches."""
        return AsyncPages(self, self._sync.usages(q, cwd=cwd, parent=parent, top=top, order=order, limit=limit,
            meta=meta))
