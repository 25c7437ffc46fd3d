"""Streams that are cut: no commit is missed or repeated."""
from __future__ import annotations

import contextlib
import shutil
import threading
from typing import Any
from unittest import mock

from coppice_client import Follow, Limits, NotFound, Store, Unavailable
from coppice_client.follow import Followed
from coppice_client.transport import HTTP, Headers, Opened
from tests.served import LIMIT, Case, Proxy, Reply

QUICK = Limits(first=0.01, longest=0.1, total=60.0, attempts=1000)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def take(follow: Follow, count: int) -> list[Followed]:
    return [next(follow) for _ in range(count)]


class FollowTest(Case):
    def test_cut_streams_have_no_gap_and_no_repeat(self) -> None:
        server = self.serve()
        cuts = [-1, 0, 30, 190, 500, 700, 1100, 1500, 2600]
        proxy = Proxy(server.port, lambda n, request: cuts[n % len(cuts)] if b"/events" in request else None)
        self.addCleanup(proxy.close)
        with Store(server.url) as direct, Store(proxy.url, limits=QUICK) as store:
            session = direct.create("x")
            follow = store.session("x").follow(after=0)
            seen = []
            for n in range(40):
                session.commit([user(f"message {n}")], state={"n": n})
            for event in follow:
                seen.append((event.data["seq"], event.data["entries"][0]["message"]["content"]))
                if len(seen) == 40:
                    break
            follow.close()
            self.assertEqual(seen, [(n + 1, f"message {n}") for n in range(40)])
            self.assertGreater(len([r for r in proxy.requests if b"/events" in r]), len(cuts))

    def test_what_comes_again_is_not_yielded_again(self) -> None:
        class Forgetful(HTTP):
            """A transport that loses a header, as a proxy may."""

            def open(self, method: str, path: str, headers: Headers, body: bytes | None) -> Opened:
                rest = {name: value for name, value in headers.items() if name != "Last-Event-ID"}
                return super().open(method, path + "?after=0", rest, body)

        server = self.serve()
        proxy = Proxy(server.port, lambda n, request: 1500 if n < 3 and b"/events" in request else None)
        self.addCleanup(proxy.close)
        with Store(server.url) as direct, Store(transport=Forgetful(proxy.url), limits=QUICK) as store:
            session = direct.create("x")
            for n in range(10):
                session.commit([user(str(n))])
            follow = store.session("x").follow(after=0)
            self.assertEqual([e.data["seq"] for e in take(follow, 10)], list(range(1, 11)))
            follow.close()
            self.assertEqual(len(proxy.requests), 4)

    def test_a_restarted_server_and_live_commits(self) -> None:
        server = self.serve()
        with Store(server.url, limits=QUICK) as store:
            session = store.create("x")
            follow = store.session("x").follow()  # from the newest commit on, which is seq 0
            seen: list[int] = []
            thread = threading.Thread(target=lambda: seen.extend(e.data["seq"] for e in take(follow, 30)))
            session.commit([user("0")])
            thread.start()
            for n in range(1, 30):
                if n in (10, 20):
                    server.kill()
                    server.start()
                session.commit([user(str(n))])
            thread.join(120)
            follow.close()
            self.assertEqual(seen, list(range(1, 31)))

    def test_partial_output(self) -> None:
        with Store(self.serve().url) as store:
            session = store.create("x")
            with_partial = store.session("x").follow(after=0, partial=True)
            without = store.session("x").follow(after=0)
            self.assertTrue(session.partial({"role": "assistant", "content": "Hel"}))
            first = next(with_partial)
            while first.data is None:
                first = next(with_partial)
            self.assertEqual((first.kind, first.data), ("partial", {"role": "assistant", "content": "Hel"}))
            session.commit([{"role": "assistant", "content": "Hello"}])
            self.assertEqual(next(without).kind, "commit")
            kinds = [e.kind for e in (next(with_partial), next(with_partial))]
            self.assertIn("commit", kinds)
            with_partial.close()
            without.close()

    def test_a_read_while_it_is_closed(self) -> None:
        closing, read = threading.Event(), threading.Event()

        class Slow(contextlib.closing):  # type: ignore[type-arg]
            def __exit__(self, *exc: object) -> None:
                closing.set()
                read.wait(LIMIT)
                super().__exit__(*exc)
        with Store(self.serve().url) as store, mock.patch("coppice_client.follow.contextlib.closing", Slow):
            store.create("x").commit([user("a")])
            follow = store.session("x").follow(after=0)
            self.assertEqual(next(follow).data["seq"], 1)
            thread = threading.Thread(target=follow.close)
            thread.start()
            try:
                self.assertTrue(closing.wait(LIMIT))
                self.assertIsNone(next(follow, None))
            finally:
                read.set()
                thread.join()

    def test_close_wakes_the_reader(self) -> None:
        with Store(self.serve().url) as store:
            store.create("x").commit([user("a")])
            follow = store.session("x").follow(after=0)
            self.assertEqual(next(follow).data["seq"], 1)
            rest: list[Followed] = []
            thread = threading.Thread(target=lambda: rest.extend(follow))
            thread.start()
            follow.close()
            thread.join(60)
            self.assertFalse(thread.is_alive())
            self.assertEqual(rest, [])

    def test_a_reset_is_reported(self) -> None:
        with Store(self.serve().url) as store:
            session = store.create("x")
            follow = session.follow(after=99)
            self.assertEqual(next(follow).kind, "reset")
            session.commit([user("a")])
            self.assertEqual(next(follow).data["seq"], 1)
            follow.close()

    def test_a_restored_store_is_one_reset(self) -> None:
        server = self.serve()
        with Store(server.url, limits=QUICK) as store:
            store.create("x").commit([user("kept")])
            server.stop()
            shutil.copytree(server.store, server.store + "-old")
            server.start()
            session = store.session("x")
            session.resume()
            for n in range(5):
                session.commit([user(f"lost {n}")])
            follow = store.session("x").follow(after=0)
            self.assertEqual([e.data["seq"] for e in take(follow, 6)], list(range(1, 7)))
            server.kill()
            shutil.rmtree(server.store)
            shutil.move(server.store + "-old", server.store)
            server.start()
            self.assertEqual(next(follow).kind, "reset")
            seen: list[Followed] = []
            reader = threading.Thread(target=lambda: seen.append(next(follow)))
            reader.start()
            for _ in range(3):  # it connects again each time
                server.kill()
                server.start()
            session.resume()
            session.commit([user("new")])
            reader.join(LIMIT / 2)
            follow.close()
            self.assertEqual([(e.kind, e.data["seq"]) for e in seen], [("commit", 2)])

    def test_a_reset_that_is_cut_off_is_one_reset(self) -> None:
        streams = [b"retry: 1000\n\nevent: reset\ndata: null\n\n",
                   b"retry: 1000\n\nevent: reset\ndata: null\n\nid: 3\n\n",
                   b'id: 3\n\nevent: commit\nid: 4\ndata: {"seq":4}\n\n']
        canned = self.answer(lambda method, path: (200, {"Content-Type": "text/event-stream"}, streams.pop(0)))
        with Store(canned.url, limits=QUICK) as store:
            follow = store.session("x").follow(after=9)
            self.assertEqual([(e.kind, e.data) for e in take(follow, 2)], [("reset", None), ("commit", {"seq": 4})])
            follow.close()
        self.assertEqual([headers["Last-Event-ID"] for _, _, headers, _ in canned.requests], ["9", "9", "3"])

    def test_limits_are_those_of_one_interruption(self) -> None:
        quiet, commit = b"retry: 1000\nid: 0\n\n", b'event: commit\nid: 1\ndata: {"seq":1}\n\n'
        for streams, seqs in (([quiet, quiet, commit, b""], [1]), ([b""], [])):
            now = 0.0

            def reply(method: str, path: str) -> Reply:
                nonlocal now
                now += 3600.0  # a stream lasts for an hour
                return 200, {"Content-Type": "text/event-stream"}, streams.pop(0)
            canned = self.answer(reply)
            with Store(canned.url, limits=Limits(total=60.0, first=0.001, clock=lambda: now)) as store:
                follow = store.session("x").follow(after=0)
                self.assertEqual([e.data["seq"] for e in take(follow, len(seqs))], seqs)
                self.assertRaises(Unavailable, next, follow)
            self.assertEqual(streams, [])

    def test_what_does_not_come_back_is_an_error(self) -> None:
        server = self.serve()
        with Store(server.url, limits=Limits(first=0.001, longest=0.001, attempts=4)) as store:
            self.assertRaises(NotFound, next, store.session("none").follow(after=0))
            store.create("x")
            server.stop()
            self.assertRaises(Unavailable, next, store.session("x").follow(after=0))
