"""The asyncio twin."""
from __future__ import annotations

import asyncio
import inspect
import threading
from typing import Any

from coppice_client import AsyncSession, AsyncStore, AsyncTurn, Conflict, Session, Store
from tests.served import Case, said


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


class AsyncTest(Case):
    def setUp(self) -> None:
        self.url = self.serve().url

    def run_all(self, main: Any) -> None:
        before = threading.active_count()
        asyncio.run(main())
        self.assertEqual(threading.active_count(), before, "threads are joined")

    def test_it_has_every_method(self) -> None:
        for sync, twin in ((Store, AsyncStore), (Session, AsyncSession)):
            names = {n for n, _ in inspect.getmembers(sync, inspect.isfunction) if not n.startswith("_")}
            self.assertEqual(names - {"close"}, {
                n for n, _ in inspect.getmembers(twin, inspect.isfunction) if not n.startswith("_")
            } - {"aclose", "keep_both"})

    def test_turns_pages_and_conflicts(self) -> None:
        async def main() -> None:
            async with AsyncStore(self.url) as store:
                session = await store.create("x", title="T")

                async def run(turn: AsyncTurn) -> None:
                    turn.append(user("a"))
                    turn.state = {"n": 1}
                    await turn.commit(reason="intent")
                    turn.append(user("b"))
                await session.turn(run)
                self.assertEqual([e["message"] async for e in session.entries()], [user("a"), user("b")])
                self.assertEqual([s["title"] async for s in store.sessions()], ["T"])
                other = store.session("x")
                self.assertEqual((await other.resume()).state, {"n": 1})
                await asyncio.gather(*(session.commit([user(str(n))]) for n in range(20)))
                with self.assertRaises(Conflict) as caught:
                    await other.commit([user("late")])
                self.assertIn("kept", await other.keep_both(caught.exception))
                self.assertEqual(len([e async for e in session.entries("all")]), 23)

                async def lost(turn: AsyncTurn) -> None:
                    await session.resume()
                    await session.commit([user("winner")])
                    turn.append(user("loser"))
                    await turn.commit()
                with self.assertRaises(Conflict) as caught:
                    await other.turn(lost, claim=True)
                assert caught.exception.kept
        self.run_all(main)

    def test_follow_survives_cancelled_waits_and_is_closed(self) -> None:
        async def main() -> None:
            async with AsyncStore(self.url) as store:
                session = await store.create("x")
                async with await store.session("x").follow(after=0) as follow:
                    seen = []
                    for n in range(5):
                        with self.assertRaises(asyncio.TimeoutError):
                            await asyncio.wait_for(follow.__anext__(), 0.01)
                        await session.commit([user(str(n))])
                        seen.append((await follow.__anext__()).data["seq"])
                    self.assertEqual(seen, [1, 2, 3, 4, 5])
                    waiting = asyncio.ensure_future(follow.__anext__())
                    await asyncio.sleep(0)
                    await follow.aclose()
                    with self.assertRaises(StopAsyncIteration):
                        await waiting
        self.run_all(main)

    def test_a_cancelled_commit_goes_on(self) -> None:
        async def main() -> None:
            async with AsyncStore(self.url, threads=1) as store:
                session = await store.create("x")
                task = asyncio.ensure_future(session.commit([user("a")]))
                await asyncio.sleep(0)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                await session.commit([user("b")])
        self.run_all(main)
        with Store(self.url) as store:
            self.assertEqual(said(store.session("x"))[-1], "b")
