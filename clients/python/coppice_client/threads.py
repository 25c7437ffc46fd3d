"""The base of the asyncio classes: calls that run in threads, and iterators and turns over them."""
from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, AsyncIterable, AsyncIterator, Callable, Iterator, TypeVar

from .errors import Conflict, Fenced
from .follow import Follow, Followed
from .requests import Page, Pages
from .schema import Committed
from .session import Session
from .turn import Turn

T = TypeVar("T")
END: Any = object()


class _Threads:
    """Runs synchronous calls in threads that the store owns.

    A call whose task is cancelled continues in its thread until it ends: the outcome of a write is then unknown.
    """

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads

    async def _run(self, call: Callable[..., T], *args: Any, **named: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: call(*args, **named))

    async def _items(self, items: Iterator[T]) -> AsyncIterator[T]:
        while some := await self._run(lambda: list(islice(items, 50))):
            for item in some:
                yield item


class AsyncPages(AsyncIterable[T]):
    """Pages for asyncio."""

    def __init__(self, owner: _Threads, pages: Pages[T]) -> None:
        self._owner, self._pages = owner, pages

    def __aiter__(self) -> AsyncIterator[T]:
        return self._owner._items(self._pages)

    async def page(self, *, after: str = "", before: str = "") -> Page[T]:
        """Pages.page."""
        return await self._owner._run(self._pages.page, after=after, before=before)


class AsyncFollow(AsyncIterator[Followed]):
    """Follow for asyncio, in a thread of its own, which aclose joins. A task that is cancelled loses no event."""

    def __init__(self, follow: Follow) -> None:
        self._follow, self._thread = follow, ThreadPoolExecutor(1, "coppice-follow")
        self._next: asyncio.Future[Followed] | None = None

    async def __anext__(self) -> Followed:
        if self._next is None:
            self._next = asyncio.get_running_loop().run_in_executor(self._thread, next, self._follow, END)
        waiting = self._next
        try:
            event = await asyncio.shield(waiting)
        finally:
            if waiting.done():
                self._next = None
        if event is END:
            raise StopAsyncIteration
        return event

    async def aclose(self) -> None:
        """End the iteration, and join the thread."""
        self._follow.close()
        if self._next is not None:
            await asyncio.gather(self._next, return_exceptions=True)
        self._thread.shutdown()

    async def __aenter__(self) -> AsyncFollow:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class AsyncTurn(_Threads):
    """Turn for asyncio."""

    def __init__(self, threads: ThreadPoolExecutor, turn: Turn) -> None:
        super().__init__(threads)
        self._turn, self.resumed, self.messages, self.append = turn, turn.resumed, turn.messages, turn.append

    @property
    def state(self) -> Any:
        """The state, which may be changed or replaced."""
        return self._turn.state

    @state.setter
    def state(self, state: Any) -> None:
        self._turn.state = state

    async def commit(self, *, reason: str | None = None) -> Committed:
        """Turn.commit."""
        return await self._run(self._turn.commit, reason=reason)


class _Twin(_Threads):
    """What AsyncStore and AsyncSession have in common."""

    _sync: Any  # the Store or the Session

    @property
    def seen(self) -> str:
        """The ETag of the newest read."""
        return str(self._sync.seen)

    async def text(self, *parts: str, **query: Any) -> str:
        """Session.text."""
        return await self._run(self._sync.text, *parts, **query)


class _Session(_Twin):
    """The part of AsyncSession that is not one call in a thread."""

    def __init__(self, threads: ThreadPoolExecutor, session: Session) -> None:
        super().__init__(threads)
        self._sync: Session = session

    @property
    def id(self) -> str:
        """The id of the session."""
        return self._sync.id

    @property
    def base(self) -> str:
        """The commit on which the next write is made; "" before the first resume."""
        return self._sync.base

    @property
    def seq(self) -> int:
        """The number of the base, -1 before the first resume."""
        return self._sync.seq

    async def follow(self, after: int | None = None, *, partial: bool = False) -> AsyncFollow:
        """Session.follow. The caller closes the iterator, by aclose or async with."""
        return AsyncFollow(await self._run(self._sync.follow, after, partial=partial))

    async def keep_both(self, conflict: Conflict | Fenced) -> Committed:
        """Conflict.keep_both, or Fenced.keep_both, of a commit of this session."""
        return await self._run(conflict.keep_both)
