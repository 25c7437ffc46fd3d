"""The operations of the API that only have to be sent."""
# Written by tools/generate.py from docs/openapi.json. Do not edit.
from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Callable, Iterable, Literal

from .answers import Want, wrong_member
from .errors import OutcomeUnknown, Unavailable
from .rawjson import UNSET, Raw, encode, split
from .requests import Pages, Resource, new_id
from .schema import (
    AccessDoc, BranchList, Change, Commit, Committed, Compacted, Context, ContextItem, Deleted, Diff, DocList, Erased,
    Event, Fork, Found, Health, IO, Import, IssuedToken, LabelList, Match, Moved, NewSession, OpenCall, Prompt,
    Resume, Retention, Rollback, RowList, SecretAt, SessionUsage, Snapshot, SnapshotList, Snapshots, Tokens, TreeMap,
    Usage, Verify, Versions, Window,
)
from .schema import Session as SessionInfo

if TYPE_CHECKING:
    from .session import Session


class Resumed:
    """What an agent needs to continue. raw has each member as JSON text: raw["state"] has all digits."""

    def __init__(self, text: str, session: str) -> None:
        members = split(text)
        found = {name: value for name, value, _ in members}
        if wrong := wrong_member(Resume, found, session):
            raise ValueError(wrong)
        self.raw = {name: raw for name, _, raw in members}
        self.branch: str = found["branch"]
        self.commit: str = found["commit"]
        """id of the newest commit"""
        self.context: list[Any] = found["context"]
        """the messages of the bounded working context"""
        self.head: str | None = found["head"]
        """the entry from which the next one grows; null: the next one is a root"""
        self.io: IO = found["io"]
        """requests to the backend"""
        self.open_calls: list[OpenCall] = found["openCalls"]
        """tool calls of the context without a result"""
        self.seq: int = found["seq"]
        """number of the newest commit"""
        self.session: str = found["session"]
        self.state: Any = found["state"]
        """the agent's state; null if it was never set"""
        self.window: Window = found["window"]
        self.docs: dict[str, Any] | None = found.get("docs")
        """documents by name"""
        self.manager: Any = found.get("manager")
        """what the context manager keeps"""
        self.missing: int | None = found.get("missing")
        """number of the newest commit that was made and is lost"""

    @property
    def raw_context(self) -> list[Raw]:
        """Each message of the context as text."""
        return [raw for _, _, raw in split(self.raw["context"])]


class StoreOperations(Resource):
    """The operations on a store."""

    def access(self) -> AccessDoc:
        """What the client may do, so that it does not offer what would be refused."""
        return self._json(AccessDoc, "access")

    def entries(
        self, *, session: str | None = None, prefix: str | None = None, cwd: str | None = None,
        parent: str | None = None, type: str | None = None, custom: str | None = None, before: str | None = None,
        order: Literal["asc", "desc"] | None = None, limit: int | Literal["all"] | None = None,
        images: Literal["inline", "ref"] | None = None, meta: dict[str, str] | None = None,
        match: dict[str, Any] | None = None,
    ) -> Pages[Found]:
        """Entries of many sessions, by their type and by any member. Session by session in the order of their ids, and
        within one in the order of appending. Amendments are entries of their own, and nothing is hidden.
        meta.KEY=VALUE, for any key and more than once: only sessions with this metadata. match.PATH=JSON, for any
        dotted path of members (match.data.source="loop"): only entries with this value there, members of objects in
        any order, numbers as they are written.

        session: only these sessions, separated by commas; absent ones are passed over
        prefix: only sessions whose ids begin so
        cwd: only sessions of this working directory
        parent: only sessions that this one started
        type: only entries of this type: message, custom, ...
        custom: only entries with this customType; with type=custom no other body is read
        before: only entries whose ids sort before this one, byte by byte
        order: desc: newest first, sessions by their ids
        limit: of the page; all: every item in one answer, which has no next
        images: ref: images over 24 KiB as references
        """
        return self._pages(
            "entries", "entries", session=session, prefix=prefix, cwd=cwd, parent=parent, type=type, custom=custom,
            before=before, order=order, limit=limit, images=images, **{f"meta.{key}": value for key,
            value in (meta or {}).items()}, **{f"match.{path}": encode(value).decode() for path,
            value in (match or {}).items()},
        )

    def health(self) -> Health:
        """Whether the server answers."""
        return self._json(Health, "health")

    def import_file(
        self, data: bytes, format: Literal["pi", "omp", "atomic", "operator", "claude-code", "codex"] | None = None,
        *, session: str | None = None, name: str | None = None, again: bool | None = None, grow: bool | None = None,
    ) -> Import:
        """Import a session file of another program, which is the body. As `coppice import`: a file that was imported
        before and has not changed is left alone, and what was added to it is appended to its session. One whose
        session was deleted is not imported. Damaged lines are skipped and reported. With again it is sent once: after
        a lost answer it may be there (OutcomeUnknown).

        session: id of the new session; default that of the file if it is free
        format: default: by the content
        name: name of the file, which some formats need
        again: import what the store has, or had, under a new id
        grow: append what was added to a file to its session
        """
        path = self._path("import", session=session, format=format, name=name, again=again, grow=grow)
        found: Import = self._send("POST", path, Want(Import), data, once=bool(again)).value
        return found

    def prompts(
        self, q: str | None = None, *, prefix: bool | None = None, cwd: str | None = None, session: str | None = None,
        limit: int | None = None,
    ) -> Pages[Prompt]:
        """What users typed in all sessions and branches, newest first.

        q: as of search; empty = all prompts
        prefix: q is the beginning of the prompt
        cwd: only sessions of this working directory
        session: only this session
        """
        return self._pages("prompts", "prompts", q=q, prefix=prefix, cwd=cwd, session=session, limit=limit)

    def get_retention(self) -> Retention:
        """Which sessions and snapshots stay. Without a rule all stay."""
        return self._json(Retention, "retention")

    def search(
        self, q: str | None = None, *, cwd: str | None = None, session: str | None = None, limit: int | None = None,
    ) -> Pages[Match]:
        """Entries of all sessions and branches that contain words. Finds what was committed before, or, where the
        index takes longer than 2 s to read that, what is indexed so far. Of one entry the first 256 KiB of text are
        searched.

        q: words, all of them; in quotes adjacent; re: = a regular expression
        cwd: only sessions of this working directory
        session: only this session
        """
        return self._pages("matches", "search", q=q, cwd=cwd, session=session, limit=limit)

    def sessions(
        self, q: str | None = None, *, cwd: str | None = None, parent: str | None = None, top: bool | None = None,
        order: Literal["activity", "created", "id"] | None = None, limit: int | None = None,
        exact: bool | None = None, docs: str | None = None, meta: dict[str, str] | None = None,
    ) -> Pages[SessionInfo]:
        """Sessions, newest activity first or in another order. meta.KEY=VALUE, for any key and more than once: only
        sessions with this metadata.

        cwd: only sessions of this working directory
        parent: only sessions that this one started
        top: only sessions that no other one started: those without a parent, and forks
        q: only sessions whose title, first prompt or preview contains all these words
        order: newest first, or by stored name
        exact: list every session; else one by activity may miss recent work
        docs: names of documents that come with each session, at most 64, separated by commas
        """
        return self._pages(
            "sessions", "sessions", cwd=cwd, parent=parent, top=top, q=q, order=order, limit=limit, exact=exact,
            docs=docs, **{f"meta.{key}": value for key, value in (meta or {}).items()},
        )

    def create(
        self, id: str = "", *, again: bool | None = None, cwd: str | None = None, meta: dict[str, str] | None = None,
        parent: str | None = None, relation: str | None = None, title: str | None = None,
    ) -> Session:
        """Create a session. Commits seq 0. With an Idempotency-Key a repeat gets the first answer."""
        made = self.session(id or new_id())
        made._create({"again": again, "cwd": cwd, "meta": meta, "parent": parent, "relation": relation, "title": title})
        return made

    def issue_token(
        self, *, meta: dict[str, str] | None = None, rights: str | None = None, seconds: int | None = None,
        session: str | None = None, write: bool | None = None,
    ) -> IssuedToken:
        """A token for one session, or for some, that is valid for a time. For a page in a browser. It is known to this
        server alone, until it ends; a stream that began with it lasts for up to 10 minutes more."""
        path = self._path("tokens")
        found: IssuedToken = self._send(
            "POST", path, Want(IssuedToken), {"meta": meta, "rights": rights, "seconds": seconds, "session": session,
            "write": write}, writes=False,
        ).value
        return found

    def usages(
        self, q: str | None = None, *, cwd: str | None = None, parent: str | None = None, top: bool | None = None,
        order: Literal["activity", "created", "id"] | None = None, limit: int | None = None,
        meta: dict[str, str] | None = None,
    ) -> Pages[SessionUsage]:
        """Tokens and cost of sessions, each with all branches. Each response of a provider counts in one session, the
        one that received it. Reads every entry of a session that was changed since it was asked for last.
        meta.KEY=VALUE, for any key and more than once: only sessions with this metadata.

        cwd: only sessions of this working directory
        parent: only sessions that this one started
        top: only sessions that no other one started: those without a parent, and forks
        q: only sessions whose title, first prompt or preview contains all these words
        order: newest first, or by stored name
        """
        return self._pages(
            "sessions", "usage", cwd=cwd, parent=parent, top=top, q=q, order=order, limit=limit,
            **{f"meta.{key}": value for key, value in (meta or {}).items()},
        )

    def session(self, id: str) -> Session:
        raise NotImplementedError


class SessionOperations(Resource):
    """The operations on a session."""

    def delete(self, *, trash: bool | None = None, children: bool | None = None, purge: bool | None = None) -> Deleted:
        """Delete a session for good, or into the trash. `coppice trash` lists what is in the trash, and restores it.
        With children=true, sessions that it started are deleted before it, and those that they started, but no forks.
        If that fails in the middle, left names those that are not deleted, and a repeat continues. purge=true needs
        the right erase too: it also removes the items of the trash that are of the session, its pin and what terminals
        remember, names what keeps copies, and completes an earlier deletion.

        trash: keep a copy in the trash of the server
        children: delete the sessions that it started too
        purge: remove also what the server keeps of it, and name what keeps copies
        """
        found: Deleted = self._move(Deleted, "delete", None, "DELETE", trash=trash, children=children, purge=purge)
        return found

    def info(self) -> SessionInfo:
        """The summary of a session; its ETag is the newest commit."""
        return self._json(SessionInfo)

    def set_info(
        self, *, cwd: str | None = None, meta: dict[str, str | None] | None = None, title: str | None = None,
        key: str = "", base: str = "",
    ) -> Moved:
        """Change title, working directory and metadata."""
        found: Moved = self._keyed(
            Moved, "PATCH", self._path(), {"cwd": cwd, "meta": meta, "title": title}, key, base, False,
        )
        return found

    def amend(self, entry: str, *, message: Any | None = None, key: str = "", base: str = "") -> Moved:
        """Replace the content of an entry, for all that read it."""
        found: Moved = self._keyed(
            Moved, "POST", self._path("amend"), {"entry": entry, "message": message}, key, base, False,
        )
        return found

    def blame(self, path: str | None = None, at: str | None = None, *, limit: int | None = None) -> Pages[Change]:
        """Which commits changed a value of the state. Newest first. A request looks at no more than 10,000 commits and
        256 MiB of states, so a page may be empty and have next. Losing turns that were kept on a branch do not count,
        but for one that at names.

        path: a JSON pointer into the state (RFC 6901); empty = the whole state
        at: a target: only changes up to the commit in force there; default head
        limit: of changes
        """
        return self._pages("changes", "blame", path=path, at=at, limit=limit)

    def blob(self, sha256: str) -> bytes:
        """The bytes of an image, or a range of them. An image of an entry that has more than 24 KiB is stored apart,
        once. What is no picture is a download."""
        return self._bytes(
            ("application/octet-stream", "image/gif", "image/jpeg", "image/png", "image/webp"), "blobs", sha256,
        )

    def branch(
        self, entry: str, *, name: str | None = None, summary: str | None = None, key: str = "", base: str = "",
    ) -> Moved:
        """Move the head to an entry, so that the next one begins a branch."""
        found: Moved = self._keyed(
            Moved, "POST", self._path("branch"), {"entry": entry, "name": name, "summary": summary}, key, base, False,
        )
        return found

    def branches(self) -> BranchList:
        """Branches and their heads."""
        return self._json(BranchList, "branches")

    def claim(self, *, key: str = "", base: str = "") -> Moved:
        """Take over the session from writers of before. It ends a fence of this handle; its base is then the claim."""
        found: Moved = self._keyed(Moved, "POST", self._path("claim"), {}, key, base, True)
        return found

    def commits(self, at: str | None = None, *, limit: int | None = None) -> Pages[Commit]:
        """Commits, newest first. With at, the first one is the commit in force at a target: that of an entry is the
        one with the state that the agent had there. after and before lead on from there in both directions.

        at: a target: the page begins at the commit in force there; default head
        """
        return self._pages("commits", "commits", at=at, limit=limit)

    def commit(
        self, entries: Iterable[Any] = (), *, format: Literal["claude-code", "codex"] | None = None,
        context: list[ContextItem] | None = None, create: NewSession | None = None,
        docs: dict[str, Any] | None = None, from_: str | None = None, images: Literal["inline", "ref"] | None = None,
        manager: Any = UNSET, on_conflict: Literal["fail", "keep-both", "keep-fenced"] | None = None,
        on_known_id: Literal["error", "ignore", "amend"] | None = None, reason: str | None = None, state: Any = UNSET,
        key: str = "", base: str = "",
    ) -> Committed:
        """Commit entries and state, all or nothing. Entries without a parent grow from the head of the commit in
        If-Match. A conflict is 412 with the winner and the entries since; with onConflict keep-both the commit is
        stored on a branch, kept; with keep-fenced also where another client has claimed the session. An entry may be
        {message, original}, which keeps what a program has of the message, or {entry, onKnownId}. With a format
        entries are lines of that program, as they are in its files, or the body is: they become the entries of an
        import, and each keeps its lines as original, or originals. Lines that the session has are passed over. It is
        retried with one idempotency key, so stored at most once. A session remembers the keys of its last 1,024
        commits that had one. What is absent is unchanged; None clears state and manager. base is the handle's, and the
        key, of at most 250 characters, is made here, unless they are given; base="*" commits on whatever is newest.

        format: the program whose lines the entries are
        """
        return self._commit(
            {"context": context, "create": create, "docs": docs, "entries": list(entries), "from": from_,
            "images": images, "manager": Raw("null") if manager is None else manager, "onConflict": on_conflict,
            "onKnownId": on_known_id, "reason": reason, "state": Raw("null") if state is None else state}, key, base,
            format,
        )

    def commit_at(self, seq: int) -> Commit:
        """One commit, which never changes."""
        return self._json(Commit, "commits", str(seq))

    def compact(self, summary: str, *, from_: str | None = None, keep: int | None = None) -> Compacted:
        """Replace the older part of the context with a summary. After a lost answer it is found again only by from_,
        and its receipt has no replaced. Without from_ the error is OutcomeUnknown: resume, and look."""

        def made(e: Event, f: dict[str, Any]) -> Any:
            return from_ and (f.get("summary"), f.get("firstKeptEntryId")) == (summary, from_)

        found: Compacted = self._move(
            Compacted, "compact", {"summary": summary, "from": from_, "keep": keep}, reason="compaction", made=made,
        )
        return found

    def context_at(
        self, at: str | None = None, *,
        provider: Literal["anthropic", "openai-chat", "openai-responses", "gemini"] | None = None,
        vendor: str | None = None, limit: int | None = None, after: str | None = None,
    ) -> Context:
        """What the model saw, now or at any time, complete or in pages. Calls, diagnostics and losses come with the
        first page.

        at: a target; default head
        provider: of the request
        vendor: who runs the provider's API, as messages name it
        limit: messages of a page, of at most 4 MiB; 0 = all
        after: next of another page of the same context
        """
        return self._json(Context, "context", at=at, provider=provider, vendor=vendor, limit=limit, after=after)

    def diff(self, a: str, b: str | None = None, *, limit: int | None = None) -> Diff:
        """What differs in messages and state between two times.

        a: a target, as at of state
        b: a target; default head
        limit: entries of each path, the first ones
        """
        return self._json(Diff, "diff", a=a, b=b, limit=limit)

    def docs(self, at: str | None = None) -> DocList:
        """The documents of a session, now or at any time.

        at: a target: seq:N, commit:ID, entry:ID, snap:ID, tag:NAME, a branch, a time; default head
        """
        return self._json(DocList, "docs", at=at)

    def doc(self, name: str, at: str | None = None) -> Any:
        """One document, now or at any time; 404 where there is none of this name.

        at: a target, as at of state; default head
        """
        return self._json(object, "docs", name, at=at)

    def edit(self, entry: str, message: Any, *, key: str = "", base: str = "") -> Moved:
        """Append another version of an entry, and move the head to it."""
        found: Moved = self._keyed(
            Moved, "POST", self._path("edit"), {"entry": entry, "message": message}, key, base, False,
        )
        return found

    def entries(
        self, path: str | None = None, *, order: Literal["asc", "desc"] | None = None,
        limit: int | Literal["all"] | None = None, from_: str | None = None, type: str | None = None,
        custom: str | None = None, below: bool | None = None, ids: str | None = None,
        images: Literal["inline", "ref"] | None = None, marks: bool | None = None,
        match: dict[str, Any] | None = None,
    ) -> Pages[Any]:
        """Entries of a path or of all branches, in either direction. With limit=all the answer has every entry, and is
        written while they are read. match.PATH=JSON, for any dotted path of members (match.data.source="loop"): only
        entries with this value there, members of objects in any order, numbers as they are written. With images=ref
        the base64 text of an image of more than 24 KiB is coppice-blob:sha256:HEX:BYTES, of which blobs/HEX has the
        bytes; other text that begins so has =: after the colon.

        path: head (the default), all = every entry as appended, or the entry at the path's end
        order: asc: root first, or as appended
        limit: of the page; all: every item in one answer, which has no next
        from_: the entry to begin with, in this order; 422 if it is not on the path
        type: only entries of this type: message, custom, ...
        custom: only entries with this customType
        below: the path continues to the newest leaf below its entry, as switch does
        ids: only these entries, in this order, separated by commas
        images: ref: images over 24 KiB as references
        marks: beside the entries, which versions and continuations each has; not as NDJSON
        """
        return self._pages(
            "entries", "entries", path=path, order=order, limit=limit, **{"from": from_}, type=type, custom=custom,
            below=below, ids=ids, images=images, marks=marks, **{f"match.{path}": encode(value).decode() for path,
            value in (match or {}).items()},
        )

    def entry(self, entry: str, *, images: Literal["inline", "ref"] | None = None) -> dict[str, Any]:
        """One entry, as amendments have it.

        images: ref: images over 24 KiB as references
        """
        return self._json(dict, "entries", entry, images=images)

    def erase(
        self, entries: list[str], *, docs: list[str] | None = None, dry_run: bool | None = None,
        everywhere: bool | None = None, purge_trash: bool | None = None, reason: str | None = None,
        states: list[str] | None = None,
    ) -> Erased:
        """Remove the content of entries for good, and leave stubs. It is a conflict for no writer. If it fails in the
        middle readers see the entries or the stubs, and a repeat completes it; a repeat after it is done changes
        nothing. Not reached are quotations in other entries and other values of states, exported files, backups, and
        older versions that a store keeps."""
        want = Want(Erased, session=self._named)
        path = self._path("erase")
        found: Erased = self._send(
            "POST", path, want, {"entries": entries, "docs": docs, "dryRun": dry_run, "everywhere": everywhere,
            "purgeTrash": purge_trash, "reason": reason, "states": states},
        ).value
        return found

    def export(
        self,
        format: Literal["pi", "original", "omp", "atomic", "operator", "claude-code", "codex", "markdown", "html"] | None = None,
        *, secrets: Literal["refuse", "redact", "allow"] | None = None, line: str | None = None,
    ) -> bytes:
        """The session as a file. What the format cannot express is in the trailer Coppice-Losses: a JSON object of
        counts. Of a session with credentials nothing is sent (409, secrets), until secrets=redact replaces each by
        [secret: RULE], or secrets=allow sends them. The format original has them, unless secrets=redact.

        secrets: treatment of credentials
        line: markdown and html: only the path to this entry; default every branch
        """
        kind = {"html": "text/html", "markdown": "text/markdown"}.get(format or "", "application/x-ndjson")
        return self._bytes((kind,), "export", format=format, secrets=secrets, line=line)

    def fork(self, to: str | None = None, *, id: str = "", title: str | None = None) -> Fork:
        """A new session of the path to a target. The base of the handle stays."""
        found: Fork = self._move(Fork, "fork", {"id": id, "title": title, "to": to})
        return found

    def hide(self, entry: str, *, key: str = "", base: str = "") -> Moved:
        """Leave an entry out of contexts, paths and trees; amend shows it again."""
        found: Moved = self._keyed(Moved, "POST", self._path("hide"), {"entry": entry}, key, base, False)
        return found

    def release(self, *, key: str = "", base: str = "") -> Moved:
        """End the hold of a session."""
        found: Moved = self._keyed(Moved, "DELETE", self._path("hold"), None, key, base, False)
        return found

    def hold(self, reason: str, *, key: str = "", base: str = "") -> Moved:
        """Hold a session: nothing removes it. Until it is released, its deletion, an erasure in it and retention are
        409 held. Commits go on. The reason is its metadata coppice.hold, which nothing else changes."""
        found: Moved = self._keyed(Moved, "PUT", self._path("hold"), {"reason": reason}, key, base, False)
        return found

    def label(self, entry: str, label: str, *, key: str = "", base: str = "") -> Moved:
        """Name an entry for people; the head stays."""
        found: Moved = self._keyed(
            Moved, "POST", self._path("label"), {"entry": entry, "label": label}, key, base, False,
        )
        return found

    def labels(self) -> LabelList:
        """Labels of entries."""
        return self._json(LabelList, "labels")

    def map(
        self, *, view: str | None = None,
        filter: Literal["default", "no-tools", "user-only", "labeled-only", "all"] | None = None,
        search: str | None = None, fold: str | None = None, buckets: int | None = None, mark: str | None = None,
        failures: bool | None = None, near: int | None = None,
    ) -> TreeMap:
        """The drawn tree in at most 2,048 buckets. The first request with a mark reads the session once. The view
        keeps the hits of the last 8 marks.

        view: as of rows
        mark: words: hits counts the rows whose entries contain all of them
        failures: also a list of the entries that failed
        near: a row: nextHit and previousHit are those around it
        """
        return self._json(
            TreeMap, "map", view=view, filter=filter, search=search, fold=fold, buckets=buckets, mark=mark,
            failures=failures, near=near,
        )

    def original(self) -> bytes:
        """The session as it was imported, byte for byte. Of a session that was not imported, the lines that commits
        with a format brought; if none did, all entries."""
        return self._bytes(("application/octet-stream",), "original")

    def partial(self, message: Any) -> bool:
        """Say what the assistant has streamed so far, to those who follow the session. No commit: the next one ends
        it. None removes it. It is sent once, and False is returned if that failed."""
        with contextlib.suppress(OutcomeUnknown, Unavailable):
            sent = Raw("null") if message is None else message
            self._send("POST", self._path("partial"), Want(bytes, ()), {"partial": sent}, once=True)
            return True
        return False

    def rename_branch(self, branch: str, name: str, *, key: str = "", base: str = "") -> Moved:
        """Rename a branch, or remove its name."""
        found: Moved = self._keyed(
            Moved, "POST", self._path("rename-branch"), {"branch": branch, "name": name}, key, base, False,
        )
        return found

    def rollback(self, to: str, *, key: str = "", base: str = "") -> Rollback:
        """Restore state, context and head as they were."""
        found: Rollback = self._keyed(Rollback, "POST", self._path("rollback"), {"to": to}, key, base, False)
        return found

    def rows(
        self, *, view: str | None = None,
        filter: Literal["default", "no-tools", "user-only", "labeled-only", "all"] | None = None,
        search: str | None = None, fold: str | None = None, from_: int | None = None, around: str | None = None,
        count: int | None = None,
    ) -> RowList:
        """The tree as it is drawn, a stretch of rows at a time.

        view: the view of another answer: the same rows, whatever was committed since
        search: only entries that contain all these words
        fold: ids of entries below which nothing is shown, separated by commas
        from_: the first row
        around: instead of from: an entry, or a unique prefix of its id, to be in the middle
        """
        return self._json(
            RowList, "rows", view=view, filter=filter, search=search, fold=fold, **{"from": from_}, around=around,
            count=count,
        )

    def secrets(self) -> Pages[SecretAt]:
        """How many credentials a session has, by rule. A request looks at no more than 2,000 entries and 8 MiB, of all
        branches, as they are amended; the last page also at the title, the newest state and documents. `coppice
        secrets` looks at everything."""
        return self._pages("secrets", "secrets")

    def snapshot(self, tag: str | None = None) -> Snapshot:
        """Store the state of the newest commit as a snapshot. The base of the handle stays."""
        found: Snapshot = self._move(Snapshot, "snapshot", {"tag": tag})
        return found

    def snapshots(self) -> SnapshotList:
        """Snapshots."""
        return self._json(SnapshotList, "snapshots")

    def state_at(self, at: str | None = None) -> Any:
        """The agent's state, now or at any time.

        at: a target: seq:N, commit:ID, entry:ID, snap:ID, tag:NAME, a branch, a time; default head
        """
        return self._json(object, "state", at=at)

    def switch(self, to: str, *, key: str = "", base: str = "") -> Moved:
        """Move the head to a branch, with the state in force there."""
        found: Moved = self._keyed(Moved, "POST", self._path("switch"), {"to": to}, key, base, False)
        return found

    def usage(self, at: str | None = None, *, points: bool | None = None) -> Usage:
        """Tokens and cost of all branches, or of one path. Lists the store, for copies, and reads every entry.

        at: a target: only the path that ends there, without other branches; not with points
        points: also how the cost grew from commit to commit
        """
        return self._json(Usage, "usage", at=at, points=points)

    def verify(self, *, deep: bool | None = None) -> Verify:
        """Read the session and report damage; changes nothing, so the right to read is enough."""
        path = self._path("verify")
        found: Verify = self._send("POST", path, Want(Verify), {"deep": deep}, writes=False).value
        return found

    def versions(self, entry: str) -> Versions:
        """The versions of an entry: what grows from the same parent."""
        return self._json(Versions, "versions", entry)

    def _move(
        self, kind: Any, op: str, body: Any, method: str = "POST", reason: str = "",
        made: Callable[..., Any] | None = None, **query: Any,
    ) -> Any:
        raise NotImplementedError

    def _keyed(
        self, kind: Any, method: str, path: str, body: Any, key: str, base: str, claims: bool,
    ) -> Any:
        raise NotImplementedError

    def _commit(
        self, body: dict[str, Any], key: str, base: str, format: str | None = None,
    ) -> Committed:
        raise NotImplementedError
