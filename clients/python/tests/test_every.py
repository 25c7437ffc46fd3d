"""Every public method of the stores and sessions, against the service."""
from __future__ import annotations

import asyncio
import contextlib
import hashlib
import inspect
from pathlib import Path
from typing import Any, Callable

from coppice_client import AsyncFollow, AsyncSession, AsyncStore, Follow, Pages, Session, Store
from coppice_client.threads import AsyncPages
from tests.served import Case

TOKEN = "secret"
USER = {"role": "user", "content": "hi"}
FILE = b'{"type":"session","version":3,"id":"i","timestamp":"2026-01-01T00:00:00Z"}\n'
IMAGE = b"GIF89a" + bytes(50_000)
# By the class, then by the name: how a method is called, with the ids of entries that a commit has stored.
STORE: dict[str, Callable[[Any], Any]] = {
    "access": lambda s: s.access(), "entries": lambda s: s.entries(), "health": lambda s: s.health(),
    "get_retention": lambda s: s.get_retention(),
    "import_file": lambda s: s.import_file(FILE),
    "prompts": lambda s: s.prompts(), "search": lambda s: s.search("hi"), "sessions": lambda s: s.sessions(),
    "create": lambda s: s.create(), "issue_token": lambda s: s.issue_token(session="s", seconds=60),
    "usages": lambda s: s.usages(), "session": lambda s: s.session("s"),
    "text": lambda s: s.text("health"),
}
SESSION: dict[str, Callable[[Any, list[str]], Any]] = {
    "info": lambda s, e: s.info(), "set_info": lambda s, e: s.set_info(title="t"),
    "amend": lambda s, e: s.amend(e[0], message=USER), "blame": lambda s, e: s.blame(),
    "blob": lambda s, e: s.blob(hashlib.sha256(IMAGE).hexdigest()), "branches": lambda s, e: s.branches(), "claim": lambda s, e: s.claim(), "commits": lambda s, e: s.commits(),
    "commit_at": lambda s, e: s.commit_at(0), "context_at": lambda s, e: s.context_at(),
    "diff": lambda s, e: s.diff("seq:0"), "docs": lambda s, e: s.docs(), "doc": lambda s, e: s.doc("d"),
    "entries": lambda s, e: s.entries(), "entry": lambda s, e: s.entry(e[0]),
    "export": lambda s, e: s.export(), "fork": lambda s, e: s.fork(), "hide": lambda s, e: s.hide(e[1]),
    "hold": lambda s, e: s.hold("r"), "release": lambda s, e: s.release(), "label": lambda s, e: s.label(e[0], "l"),
    "labels": lambda s, e: s.labels(), "map": lambda s, e: s.map(), "original": lambda s, e: s.original(),
    "partial": lambda s, e: s.partial(USER), "rename_branch": lambda s, e: s.rename_branch("main", "m"),
    "rows": lambda s, e: s.rows(), "secrets": lambda s, e: s.secrets(), "snapshot": lambda s, e: s.snapshot("tag"), "snapshots": lambda s, e: s.snapshots(),
    "state_at": lambda s, e: s.state_at(), "usage": lambda s, e: s.usage(), "verify": lambda s, e: s.verify(deep=True),
    "versions": lambda s, e: s.versions(e[0]), "upload": lambda s, e: s.upload(IMAGE[:100]),
    "follow": lambda s, e: s.follow(after=0), "text": lambda s, e: s.text("state"), "resume": lambda s, e: s.resume(),
    "commit": lambda s, e: s.commit([USER]), "compact": lambda s, e: s.compact("what was said", keep=1),
    "rollback": lambda s, e: s.rollback("seq:1"), "switch": lambda s, e: s.switch(e[1]),
    "branch": lambda s, e: s.branch(e[0]), "edit": lambda s, e: s.edit(e[0], USER),
    "erase": lambda s, e: s.erase([e[0]]), "delete": lambda s, e: s.delete(),
}
BY_HAND = {"close", "aclose", "turn", "keep_both"}  # each has tests of its own


def methods(kind: type) -> set[str]:
    """Return the names of the public methods of a class."""
    return {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")} - BY_HAND


async def ended(answer: Any) -> Any:
    """Return an answer that is awaited, and read to its end."""
    if inspect.isawaitable(answer):
        answer = await answer
    if isinstance(answer, AsyncPages):
        return [item async for item in answer]
    if isinstance(answer, AsyncFollow):
        async with answer:
            return await answer.__anext__()
    if isinstance(answer, Follow):
        with contextlib.closing(answer):
            return next(answer)
    return list(answer) if isinstance(answer, Pages) else answer


class EveryTest(Case):
    def setUp(self) -> None:
        tokens = Path(self.folder(), "tokens")
        tokens.write_text(hashlib.sha256(TOKEN.encode()).hexdigest() + " - admin\n")
        self.url = self.serve("--token-file", str(tokens)).url

    async def walk(self, store: Any) -> None:
        """Call each method of a store and of a session."""
        for name, call in STORE.items():
            with self.subTest(f"Store.{name}"):
                self.assertIsNotNone(await ended(call(store)))
        session = await ended(store.create("s"))
        image = {"type": "image", "mimeType": "image/gif", "data": await ended(session.upload(IMAGE))}
        entries = (await ended(session.commit([USER, {**USER, "content": [image]}], docs={"d": 1}, state={"n": 1},
                                              images="ref")))["entries"]
        for name, call_on in SESSION.items():
            with self.subTest(f"Session.{name}"):
                if name == "compact":  # it needs something to replace
                    await ended(session.commit([USER, USER]))
                if name == "delete":  # the erasure is a commit too
                    await ended(session.resume())
                self.assertIsNotNone(await ended(call_on(session, entries)))

    def test_every_method_works(self) -> None:
        self.assertEqual((methods(Store), methods(Session)), (set(STORE), set(SESSION)))
        with Store(self.url, token=TOKEN) as store:
            asyncio.run(self.walk(store))

    def test_every_method_works_for_asyncio(self) -> None:
        self.assertEqual((methods(AsyncStore), methods(AsyncSession)), (set(STORE), set(SESSION)))

        async def walk() -> None:
            async with AsyncStore(self.url, token=TOKEN) as store:
                await self.walk(store)
        asyncio.run(walk())
