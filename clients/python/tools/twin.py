"""The asyncio twin of the synchronous classes: each method runs the synchronous one in a thread."""
from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

HEAD = '''"""The same client for asyncio: each call runs in a thread of the store, which aclose joins."""
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
@NAMES@)
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
'''

STORE = '''

class AsyncStore(_Twin):
    """Store for asyncio, with so many threads as requests at a time. async with closes it."""

    def __init__(
@ARGS@
        threads: int = 16,
    ) -> None:
        super().__init__(ThreadPoolExecutor(threads, "coppice"))
        self._sync = Store(
@GIVEN@
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
'''


def methods(source: str, name: str) -> list[tuple[ast.FunctionDef, str, str]]:
    """Return the public methods of a class, each with its header and its comment."""
    found = []
    lines = source.split("\n")
    for node in ast.parse(source).body:
        if not isinstance(node, ast.ClassDef) or node.name != name:
            continue
        for f in node.body:
            if isinstance(f, ast.FunctionDef) and not f.name.startswith("_"):
                header = "\n".join(lines[f.lineno - 1: f.body[0].lineno - 1])
                found.append((f, header, first(ast.get_docstring(f) or "")))
    return found


def first(comment: str) -> str:
    """Return the first sentence of a comment."""
    return re.split(r"(?<=\.)\s", " ".join(comment.split()))[0]


def call(f: ast.FunctionDef) -> str:
    """Return the arguments that pass on those of a method."""
    args = [a.arg for a in f.args.args[1:]] + [f"{a.arg}={a.arg}" for a in f.args.kwonlyargs]
    return "".join(f", {a}" for a in args)


def twins(source: str, owner: str, skip: set[str]) -> str:
    """Return the asynchronous methods of a class."""
    out = ""
    for f, header, doc in methods(source, owner):
        if f.name in skip:
            continue
        comment = f'        """{doc}"""\n'
        passed = call(f)
        if "-> Pages[" in header:
            work = f"        return AsyncPages(self, self._sync.{f.name}({passed[2:]}))"
            header = header.replace("-> Pages[", "-> AsyncPages[")
        elif header.rstrip().endswith("-> Session:"):
            work = f"        return AsyncSession(self._threads, await self._run(self._sync.{f.name}{passed}))"
            header = header.replace("-> Session:", "-> AsyncSession:")
        else:
            work = f"        return await self._run(self._sync.{f.name}{passed})"
        if "AsyncPages" not in header:
            header = header.replace("    def ", "    async def ", 1)
        out += "\n" + "\n".join(broken(header)) + "\n" + comment + "\n".join(broken(work)) + "\n"
    return out


def broken(text: str) -> list[str]:
    """Return code as lines of at most 120 columns."""
    lines = []
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip()))
        while len(line) > 120:
            cut = line.rfind(", ", 0, 119) + 1
            lines.append(line[:cut])
            line = indent + "    " + line[cut + 1:]
        lines.append(line)
    return lines


def module(package: Path, operations: str) -> str:
    """Return the module of the asynchronous classes."""
    session, store = (package / "session.py").read_text(), (package / "store.py").read_text()
    head = store[store.index("    def __init__(\n") + len("    def __init__(\n"):]
    args = head[:head.index("    ) -> None:")].rstrip()
    names = [a.split(":")[0].strip() for a in re.split(r",\s*", args) if ":" in a]
    given = textwrap.fill(", ".join(n if n == "base_url" else f"{n}={n}" for n in names) + ",", 108)
    own = twins(session, "Session", {"follow", "turn"}) + twins(operations, "SessionOperations", set())
    shared = STORE.replace("@ARGS@", args).replace("@GIVEN@", textwrap.indent(given, " " * 12))
    body = HEAD + own + shared + twins(operations, "StoreOperations", {"session"})
    schema = sorted(set(re.findall(r"^    (.*),$", operations[operations.index("from .schema import ("):
                                                             operations.index(")\nfrom .schema")], re.M)))
    used = [n for n in ", ".join(schema).split(", ") if re.search(rf"\b{n}\b", body.replace("@NAMES@", ""))]
    text = textwrap.fill(", ".join(sorted(used)) + ",", 116, break_on_hyphens=False)
    return body.replace("@NAMES@", textwrap.indent(text, "    ") + "\n")
