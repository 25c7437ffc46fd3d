"""Lists: page by page, or in one answer as it arrives; and the use of their ETags."""
from __future__ import annotations

import asyncio
import unittest
from typing import Any

from coppice_client import AsyncStore, Conflict, CoppiceError, Limits, Store, Unavailable
from tests.served import Canned, Case, Proxy

LINES = {"Content-Type": "application/x-ndjson"}


def step(n: int) -> dict[str, Any]:
    return {"type": "custom", "customType": "check", "data": {"n": n, "of": {"source": "loop" if n % 2 else "input"}}}


def numbers(entries: Any) -> list[int]:
    return [e["data"]["n"] for e in entries]


class ListsTest(Case):
    def test_a_page_has_cursors_and_a_base(self) -> None:
        with Store(self.serve().url) as store:
            session = store.create()
            session.commit([step(n) for n in range(7)], docs={"plan": {"n": 1}, "a/b": 2})
            pages = session.entries(limit=3)
            first = pages.page()
            second = pages.page(after=first.next)
            back = pages.page(before=second.prev)
            self.assertEqual([numbers(p.items) for p in (first, second, back)], [[0, 1, 2], [3, 4, 5], [0, 1, 2]])
            self.assertEqual((first.prev, pages.page(after=second.next).next), ("", ""))
            self.assertEqual(numbers(pages), list(range(7)))
            other = store.session(session.id)
            other.commit([step(7)], base=first.etag)
            with self.assertRaises(Conflict):
                session.commit([step(8)])
            self.assertEqual(session.docs()["docs"], {"plan": {"n": 1}, "a/b": 2})
            session.commit([step(8)], base=session.seen)
            self.assertEqual(session.entry(str(session.info()["head"]))["data"]["n"], 8)
            self.assertEqual(session.doc("a/b"), 2)
            listed = list(store.sessions(docs="a/b"))
            self.assertEqual([s.get("docs") for s in listed], [{"a/b": 2}])

    def test_entries_are_chosen_by_members(self) -> None:
        with Store(self.serve().url) as store:
            for team in ("blue", "red"):
                session = store.create(meta={"team": team})
                session.commit([step(n) for n in range(6)])
            loop = {"data.of.source": "loop"}
            self.assertEqual(numbers(session.entries(match=loop, order="desc")), [5, 3, 1])
            self.assertEqual(numbers(session.entries(match={"data.n": 4}, custom="check")), [4])
            red = store.entries(match=loop, meta={"team": "red"}, order="desc", limit=2)
            found = red.page().items
            self.assertEqual([(f["session"], f["entry"]["data"]["n"]) for f in found],
                             [(session.id, 5), (session.id, 3)])
            older = store.entries(meta={"team": "red"}, before=found[1]["entry"]["id"], limit=2)
            self.assertEqual([f["entry"]["data"]["n"] for f in older], [0, 1, 2])
            self.assertEqual(len(list(store.usages(meta={"team": "red"}))), 1)

    def test_all_entries_are_one_request(self) -> None:
        server = self.serve()
        proxy = Proxy(server.port, lambda n, request: None)
        self.addCleanup(proxy.close)
        with Store(proxy.url) as store:
            session = store.create("s")
            for i in range(3):
                session.commit([step(400 * i + n) for n in range(400)])
            sent = len(proxy.requests)
            self.assertEqual(numbers(session.entries("all", limit="all")), list(range(1200)))
            self.assertEqual(len(proxy.requests), sent + 1)
            self.assertEqual(next(session.entries(limit="all"))["data"]["n"], 0)

        async def main() -> None:
            async with AsyncStore(server.url) as twin:
                entries = twin.session("s").entries(limit="all")
                self.assertEqual(numbers([e async for e in entries]), list(range(1200)))
                page = await twin.session("s").entries(limit=5).page()
                self.assertEqual((len(page.items), page.etag != ""), (5, True))
        asyncio.run(main())

    def test_an_answer_that_is_cut(self) -> None:
        two = b'{"a":1}\n{"a":2}\n'
        whole = {**LINES, "Transfer-Encoding": "chunked"}
        for headers, body, code in (
            (whole, two + b'{"a', "unreachable"),
            ({**LINES, "Content-Length": "100", "Connection": "close"}, two, "unreachable"),
            (whole, two + b'{"error":{"code":"corrupt","detail":"damaged"}}\n', "corrupt"),
        ):
            with self.subTest(body=body):
                server = Canned(lambda *_: (200, headers, body))
                self.addCleanup(server.close)
                got: list[Any] = []
                with Store(server.url, timeout=1, limits=Limits(attempts=1)) as store:
                    with self.assertRaises(CoppiceError) as caught:
                        got.extend(e["a"] for e in store.session("s").entries(limit="all"))
                    self.assertEqual(caught.exception.code, code)
        page = b'{"entries":[{"a":1}],"error":{"code":"corrupt","detail":"damaged"}}'
        replies = iter([(503, {}, b""), (200, whole, b'{"error":1,"a":2}\n')])
        server = Canned(lambda method, path: next(replies) if "all" in path else
                        (200, {"Content-Type": "application/json"}, page))
        self.addCleanup(server.close)
        with Store(server.url, limits=Limits(first=0.001)) as store:
            self.assertEqual(list(store.session("s").entries(limit="all")), [{"error": 1, "a": 2}])
            with self.assertRaises(CoppiceError) as caught:
                store.session("s").entries().page()
            self.assertEqual(caught.exception.code, "corrupt")
        server = Canned(lambda *_: (503, {}, b""))
        self.addCleanup(server.close)
        with Store(server.url, limits=Limits(first=0.001, attempts=2)) as store:
            self.assertRaises(Unavailable, list, store.session("s").entries(limit="all"))


if __name__ == "__main__":
    unittest.main()
